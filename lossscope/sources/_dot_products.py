"""Dot products of a dump's embeddings with their norms, and what is added to them: recommenders, logQ correction."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from lossscope.core.sides import plural
from lossscope.core.types import Rows
from lossscope.core.unit_vectors import row_lengths
from lossscope.errors import InputError

from ._dump_arrays import matrix_of, numpy_of

USED = "dot products of its embeddings"  # what captions say
_LEAST, _MOST = 1e-30, 1e30  # products of lengths: of these float32 holds seven digits, and sums of them
_SAMPLE = 2000  # queries, and candidates, that the notices describe


@dataclass(frozen=True)
class DotProductScorer:
    """s(q, c) = x_q · y_c + a_q + b_c.

    b_c = −tau log Q(c) is the logQ correction of a softmax over sampled items, as s / tau then has −log Q(c).
    Source: Yi et al. 2019 (sampling-bias-corrected neural modeling), eq. 3.
    """

    queries: Tensor  # (q, d)
    documents: Tensor  # (c, d)
    query_bias: Tensor  # (q,), 0 where there is none
    document_bias: Tensor  # (c,)

    def __call__(self, query_rows: Rows, document_rows: Rows) -> Tensor:
        """Return S (n, m) of some queries and candidates."""
        rows, columns = torch.from_numpy(query_rows), torch.from_numpy(document_rows)
        products = self.queries[rows] @ self.documents[columns].T
        return products + self.query_bias[rows, None] + self.document_bias[None, columns]


def dot_products(
    arrays: Mapping[str, Any], names: tuple[str, str], sides: tuple[str, str], path: Path, notices: list[str]
) -> DotProductScorer:
    """Return the scorer of a dump; notices say the range of the scores, and what the bias changes.

    Args:
        arrays: of the dump: embeddings by `names`, and `SIDE_bias` (n,) of either side, if any.
        names: of the embeddings of both sides.
        sides: names of both sides.
        path: of the dump, for messages.
        notices: to which the notices are added.

    Raises:
        InputError: embeddings or a bias that do not fit, or are not finite, or products that float32 does not hold.
    """
    first, second = (_finite(matrix_of(arrays[name], f"{name} of {path}"), f"{name} of {path}") for name in names)
    if first.shape[1] != second.shape[1]:
        raise InputError(
            f"{' and '.join(names)} of {path} must have one width; got {first.shape[1]}, {second.shape[1]}"
        )
    _require_float32((first, second), names, path)
    dtype = torch.promote_types(first.dtype, second.dtype)
    biases = [_bias(arrays, side, len(x), path).to(dtype) for side, x in zip(sides, (first, second), strict=True)]
    scorer = DotProductScorer(first.to(dtype), second.to(dtype), *biases)
    notices += _notices(scorer, sides)
    return scorer


def require_no_bias(arrays: Mapping[str, Any], sides: tuple[str, str], path: Path) -> None:
    """Raise InputError for a dump with a bias, whose embeddings are read as cosines."""
    given = [f"{side}_bias" for side in dict.fromkeys(sides) if f"{side}_bias" in arrays]
    if given:
        raise InputError(f"{' and '.join(given)} of {path} must be added to dot products; write --score dot")


def _bias(arrays: Mapping[str, Any], side: str, n: int, path: Path) -> Tensor:
    """Return `SIDE_bias` (n,); zeros where the dump has none."""
    name = f"{side}_bias"
    if name not in arrays:
        return torch.zeros(n)
    bias = numpy_of(arrays[name])
    if bias.shape != (n,) or bias.dtype.kind not in "fiu":
        raise InputError(f"{name} of {path} must be ({n},) numbers; got {bias.shape} of {bias.dtype}")
    return _finite(torch.from_numpy(np.array(bias, dtype=np.float64)), f"{name} of {path}")


def _finite(x: Tensor, what: str) -> Tensor:
    if not bool(torch.isfinite(x).all()):
        row = int((~torch.isfinite(x).reshape(len(x), -1).all(1)).nonzero()[0])
        raise InputError(f"{what} must be finite; row {row} is not")
    return x


def _require_float32(rows: tuple[Tensor, Tensor], names: tuple[str, str], path: Path) -> None:
    """Raise InputError where products of the longest rows overflow in float32, or those of the shortest underflow.

    Rows of zeros have products of 0.
    """
    lengths = [row_lengths(side) for side in rows]
    first, second = names
    for extreme, what in ((torch.max, "longest"), (torch.min, "shortest")):
        of_sides = [float(extreme(x[x > 0])) if bool((x > 0).any()) else 1.0 for x in lengths]
        if not _LEAST < of_sides[0] * of_sides[1] < _MOST:
            long = [f"{x:.3g}" if np.isfinite(x) else f"over {np.finfo(np.float64).max:.2g}" for x in of_sides]
            raise InputError(
                f"{first} and {second} of {path} must have lengths with products from {_LEAST:g} to {_MOST:g}, which "
                f"float32 holds; the {what} rows are {long[0]} and {long[1]} long. Multiply all rows of a side by "
                "one number, which changes no ranking, or leave --score dot out for cosines"
            )


def _notices(scorer: DotProductScorer, sides: tuple[str, str]) -> list[str]:
    """Return what the scores are, and how often the bias changes which candidate is first."""
    rows, columns = (
        np.linspace(0, len(x) - 1, min(len(x), _SAMPLE)).astype(np.int64) for x in (scorer.queries, scorer.documents)
    )
    S = scorer(rows, columns)
    low, middle, high = torch.quantile(S.flatten()[:: max(S.numel() // 1_000_000, 1)].float(), _quantiles()).tolist()
    norms = row_lengths(scorer.documents)
    notices = [
        f"scores are dot products, from {low:.3g} to {high:.3g} in 98 % of the pairs (median {middle:.3g}): tau, "
        f"margins and eps are of these; norms of {plural(sides[1])} are {float(norms.min()):.3g} to "
        f"{float(norms.max()):.3g}"
    ]
    bias = scorer.document_bias
    if bool(bias.any()):
        plain = S - bias[torch.from_numpy(columns)]
        changed = float((S.argmax(1) != plain.argmax(1)).float().mean())
        of = f" of {len(rows):,} queries" if len(rows) < len(scorer.queries) else " of the queries"
        notices.append(
            f"{sides[1]}_bias adds {float(bias.min()):.3g} to {float(bias.max()):.3g}; with it {changed:.0%}{of} have "
            f"another first {sides[1]}"
        )
    return notices


def _quantiles() -> Tensor:
    return torch.tensor([0.01, 0.5, 0.99])
