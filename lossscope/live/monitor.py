"""The statistics of a loss while any training loop runs: call `scope.watch(S)` once a step."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd
import torch
from torch import Tensor

from lossscope.core.similarity import Mask, cosine, normalise
from lossscope.engine.one_batch import HALF_TYPES, OneBatch, i2t_mask
from lossscope.errors import InputError
from lossscope.io.files import write_atomically
from lossscope.io.trusted_code import trust
from lossscope.objectives.custom.as_objective import ObjectiveLike, as_objective
from lossscope.registry import build

Row = dict[str, float]  # `finite` and the statistics of one step
Sink = Callable[[int, Row], None]  # (step, row)
_NAN = float("nan")


@dataclass
class LossScope:
    """Statistics of every n-th batch, in both directions, for any training loop.

    Raises InputError for values out of range and probes that need gradients of layers, SpecError for invalid specs.

    >>> scope = LossScope("ntxent:tau=0.05", probes=("cocos",))
    >>> sorted(scope.watch(torch.eye(4)))[:3]
    ['finite', 'i2t/C_0', 'i2t/C_neg']
    """

    objective: ObjectiveLike  # whose weights W are analysed: a spec, an objective, or your own function or module
    probes: Sequence[str] = ("similarity", "cocos")  # specs; all but those that need gradients of layers
    every: int = 1  # run the probes on steps whose number is a multiple of this
    keep: int = 10_000  # newest rows that `history` keeps; 0: none
    sink: Sink | None = None  # called with the step and its row, to log it elsewhere
    history: deque[Row] = field(init=False, repr=False)  # a row for each watched step, with its number
    calls: int = field(default=0, init=False)  # number of calls of `watch`

    def __post_init__(self) -> None:
        if not (isinstance(self.every, int) and self.every >= 1 and isinstance(self.keep, int) and self.keep >= 0):
            got = f"{self.every!r} and {self.keep!r}"
            raise InputError(f"every must be at least 1 and keep at least 0; got {got}. Give whole numbers")
        if not isinstance(self.probes, list | tuple) or not self.probes:
            raise InputError(f'probes must be specs, as ("cocos:eps=0.1",); got {self.probes!r}')
        typed = [one for one in (self.objective, *self.probes) if isinstance(one, str)]
        with trust(typed):
            objective = as_objective(self.objective)
            self._one_batch = OneBatch(objective, tuple(dict.fromkeys(build("probes", spec) for spec in self.probes)))
        self.history = deque(maxlen=self.keep)

    def watch(
        self,
        S: Tensor | None = None,
        mask: Mask | None = None,
        *,
        images: Tensor | None = None,
        captions: Tensor | None = None,
        step: int | None = None,
    ) -> Row | None:
        """Return the statistics of this step and append them to `history`; None on steps that `every` skips.

        Nothing is modified and no graph is kept; one transfer to the host. Where S or an embedding is not finite,
        `finite` is 0 and the statistics are NaN.

        Args:
            S: (images, captions) similarities of any float type on any device; without a mask (b, b) of pairs, pair i
                on the diagonal.
            mask: of the direction i2t.
            images: (n, d) embeddings, in place of S, whose cosine is then used; or beside S, for probes that read them.
            captions: (m, d) embeddings, given together with `images`.
            step: its number; None: the number of earlier calls.

        Raises:
            InputError: shapes that do not fit, or a mask of t2i.
        """
        number = self.calls if step is None else step
        self.calls += 1
        if number % self.every:
            return None
        S, images, captions = self._inputs(
            _as_tensor(S, "S"), _as_tensor(images, "images"), _as_tensor(captions, "captions")
        )
        finite, values = self._one_batch(S, i2t_mask(S, mask), images, captions)
        return self._record(number, finite, values)

    def frame(self) -> pd.DataFrame:
        """Return `history` as a frame: step, finite (1 or 0), and a column for each statistic and direction."""
        return pd.DataFrame(list(self.history), columns=["step", "finite", *self._one_batch.columns])

    def save(self, path: Path | str) -> Path:
        """Write `frame()` atomically. Raises InputError unless the name ends in .csv or .parquet."""
        path, frame = Path(path), self.frame()
        if path.suffix not in (".csv", ".parquet"):
            raise InputError(f"history must be saved as .csv or .parquet; got {path.name!r}")
        with write_atomically(path) as part:
            if path.suffix == ".csv":
                frame.to_csv(part, index=False, lineterminator="\n")
            else:
                frame.to_parquet(part, index=False, write_page_checksum=True)
        return path

    def _inputs(
        self, S: Tensor | None, images: Tensor | None, captions: Tensor | None
    ) -> tuple[Tensor, Tensor | None, Tensor | None]:
        """Return S and the embeddings, normalised, if they are given.

        Raises InputError if neither is given, or only one side of the embeddings, or S has another shape than they.
        """
        if images is None or captions is None:
            if images is not captions:
                raise InputError("images and captions must be given together; got one of them")
            if S is None:
                raise InputError("watch must be given S, or images and captions; got neither")
            return S, None, None
        images, captions, cosines = _cosines(images, captions)
        if S is not None and S.shape != cosines.shape:
            raise InputError(f"S must be of its images and captions, {tuple(cosines.shape)}; got {tuple(S.shape)}")
        return cosines if S is None else S, images, captions

    def _record(self, step: int, finite: bool, values: list[float]) -> Row:
        row: Row = {"finite": float(finite)}
        row |= {name: value if finite else _NAN for name, value in zip(self._one_batch.columns, values, strict=True)}
        self.history.append({"step": step, **row})
        if self.sink is not None:
            self.sink(step, row)
        return row


def _as_tensor(x: Any, what: str) -> Tensor | None:
    """Return a tensor as it is, and an array of numpy or any other sequence of numbers as a tensor.

    Raises InputError for texts and anything else that is no matrix of numbers.
    """
    if x is None or isinstance(x, Tensor):
        return x
    try:
        return torch.as_tensor(x)
    except (TypeError, ValueError, RuntimeError) as error:
        shape = "(images, captions) similarities" if what == "S" else "(n, d) embeddings, not texts or pictures"
        raise InputError(
            f"{what} must be a matrix of numbers, {shape}; got {type(x).__name__}. Write watch(S), or "
            "watch(images=..., captions=...)"
        ) from error


def _cosines(images: Tensor, captions: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return detached rows of unit length, in float32 or wider, and their S."""
    with torch.inference_mode(False), torch.no_grad(), torch.autocast(images.device.type, enabled=False):
        wide = [x.float() if x.dtype in HALF_TYPES else x for x in (images.detach(), captions.detach())]
        dtype = torch.promote_types(wide[0].dtype, wide[1].dtype)
        V, T = (normalise(x.to(dtype)) for x in wide)
        return V, T, cosine(V, T)
