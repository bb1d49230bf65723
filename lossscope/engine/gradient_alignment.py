"""Do two losses pull the same way? The cosine of their gradients in S, at the queries, and in the parameters."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import torch
from torch import Tensor

from lossscope.core.embedded import SplitEmbeddings
from lossscope.core.intervals import t_quantile
from lossscope.core.memory import free_bytes
from lossscope.core.pair import Pair
from lossscope.core.similarity import normalise
from lossscope.core.types import LEVEL, Progress
from lossscope.core.weights import Weights, reduce_weights
from lossscope.errors import InputError
from lossscope.objectives.base import Objective
from lossscope.probes.views.view import DenseRows
from lossscope.registry import spec_of

from .analysis_batches import draw_batches, rows_of_batch
from .analysis_options import AlignmentOptions

SPACES = ("similarities", "queries", "parameters")
TOTAL = "total"  # layer that stands for all parameters
COLUMNS = (
    "source", "split", "space", "layer", "a", "b", "a_spec", "b_spec", "cosine", "low", "high", "level", "batches",
    "counted", "undefined", "a_order", "b_order", "a_cluster", "b_cluster", "cut", "direction", "batch_size", "seed",
    "sampling",
)  # fmt: skip
_ROUNDING = 16  # a sum has a direction if it is larger than this many times the rounding error of its terms
_ROWS = 256  # queries at a time
_Matrix = npt.NDArray[np.float64]
_Whole = npt.NDArray[np.int64]


@dataclass
class _Sums:
    """The cosines of one space or layer, batch by batch."""

    means: list[_Matrix] = field(default_factory=list)  # (k, k) of each batch, NaN where no cosine is defined
    counted: int = 0  # queries, or batches
    undefined: _Whole | None = None  # (k, k) of them, where a gradient is 0

    def add(self, cosines: Tensor) -> None:
        """Add the cosines (n, k, k) of n queries of a batch, or of the batch (1, k, k); NaN where a gradient is 0."""
        known = ~cosines.isnan()
        number = known.sum(0)
        mean = torch.where(known, cosines, 0.0).sum(0) / number
        self.means.append(mean.cpu().numpy())
        missing = (len(cosines) - number).cpu().numpy()
        self.undefined = missing if self.undefined is None else self.undefined + missing
        self.counted += len(cosines)


def gradient_alignment(
    embedded: SplitEmbeddings,
    objectives: Mapping[str, Objective],
    options: AlignmentOptions | None = None,
    progress: Progress | None = None,
) -> pd.DataFrame:
    """Return cos(∇A, ∇B) of each pair of objectives on the same batches: rows with the columns COLUMNS.

    space similarities: rows of W = dL/dS, per query. space queries: the tangent part of g = Σ_c W_c t_c, which is what
    turns the query on the unit sphere, per query. space parameters: dL/dθ of a batch, both directions summed as the
    training of the objective does, by layer and in all (layer `total`).
    The cosine is a mean over the queries of a batch where both gradients are not 0, and then over batches. low and high
    are its t-interval over batches, NaN of fewer than two: for other batches of this split and this model. counted is
    the number of queries (of batches, for parameters), undefined how many of them have a gradient of length 0 under a
    or b. a_order and a_cluster are the leaf and the cluster of a by average linkage on 1 − cosine, of each space alone.

    Args:
        embedded: the split.
        objectives: title -> objective, all of which take the batches, as `fitting_objectives` returns them.
        options: batches, directions, and the cut of clusters.
        progress: called with (label, done, of).

    Raises:
        InputError: no objective is given, a direction does not exist, or gradients do not fit into memory.
    """
    options = options or AlignmentOptions()
    if not objectives:
        raise InputError("alignment must have an objective; got none")
    sums: dict[tuple[str, str], _Sums] = {}
    drawn = draw_batches(embedded, options.batches)
    for number, batch in enumerate(drawn):
        rows = rows_of_batch(embedded, batch, gradients=True)
        chosen = _of_direction(rows, options.direction, embedded)
        W = {title: [part.weights(objective) for part in rows] for title, objective in objectives.items()}
        spaces = {"similarities": _of_similarities(chosen, rows, W), "queries": _of_queries(chosen, rows, W)}
        for space, cosines in spaces.items():
            if cosines is not None:
                sums.setdefault((space, ""), _Sums()).add(cosines)
        for layer, cosines in _of_parameters(embedded, chosen, rows, objectives, W, batch.pairs).items():
            sums.setdefault(("parameters", layer), _Sums()).add(cosines[None])
        if progress is not None:
            progress(f"alignment of {len(objectives)} losses", number + 1, len(drawn))
    shared = {
        "source": embedded.name, "split": embedded.split, "level": LEVEL, "cut": options.cut,
        "direction": options.direction, "batch_size": len(drawn[0].images), "seed": options.batches.seed,
        "sampling": drawn[0].mode,
    }  # fmt: skip
    frames = [_frame(space, layer, part, objectives, options.cut) for (space, layer), part in sums.items()]
    return pd.concat(frames, ignore_index=True).assign(**shared)[list(COLUMNS)]


def missing_spaces(embedded: SplitEmbeddings) -> list[str]:
    """Return why spaces are missing, as sentences without a full stop; none of a checkpoint."""
    reasons = []
    if embedded.images is None:
        reasons.append(f"gradients at queries need embeddings; {embedded.name} has similarities only")
    if embedded.layer_gradients is None:
        reasons.append(f"gradients of parameters need a model; {embedded.name} has none. Use a checkpoint")
    return reasons


def cluster_losses(cosines: _Matrix, cut: float) -> tuple[_Matrix, _Matrix]:
    """Return the leaf (k,) and the cluster (k,) of each loss, numbered from 1 in the order of leaves.

    Average linkage on 1 − cosine; two clusters are one where the mean cosine of their pairs is at least the cut. NaN
    for losses whose cosines are not all known: those with most unknown cosines are left out first.

    Args:
        cosines: (k, k), symmetric.
        cut: a cosine.
    """
    from scipy.cluster.hierarchy import fcluster, leaves_list, linkage
    from scipy.spatial.distance import squareform

    kept = np.arange(len(cosines))
    while len(kept) and np.isnan(cosines[np.ix_(kept, kept)]).any():
        kept = np.delete(kept, np.isnan(cosines[np.ix_(kept, kept)]).sum(1).argmax())
    order, cluster = np.full((2, len(cosines)), np.nan)
    if len(kept) < 2:
        order[kept] = cluster[kept] = 1
        return order, cluster
    distances = np.clip(1 - cosines[np.ix_(kept, kept)], 0, None)
    np.fill_diagonal(distances, 0.0)
    tree = linkage(squareform(distances, checks=False), "average", optimal_ordering=True)
    leaves, flat = leaves_list(tree), fcluster(tree, 1 - cut + 1e-9, "distance")  # equal losses differ by rounding
    order[kept[leaves]] = np.arange(1, len(kept) + 1)
    numbers = {old: new for new, old in enumerate(dict.fromkeys(flat[leaves]), 1)}
    cluster[kept] = [numbers[old] for old in flat]
    return order, cluster


def _of_direction(rows: Sequence[DenseRows], direction: str, embedded: SplitEmbeddings) -> list[int]:
    """Return the numbers of the directions to read. Raises InputError for one that the batches do not have."""
    wanted = {"both": (0, 1), "i2t": (0,), "t2i": (1,)}[direction]
    chosen = [number for number in wanted if number < len(rows)]
    if not chosen:
        raise InputError(f"--direction must be i2t or both for {embedded.name}, which has one direction; got t2i")
    return chosen


_OfObjectives = Mapping[str, Sequence[Tensor]]
"""Title -> W of each direction, (q, c)."""


def _of_similarities(chosen: Sequence[int], rows: Sequence[DenseRows], W: _OfObjectives) -> Tensor:
    """(n, k, k) cosines of rows of W of all queries that have a positive and a negative."""
    parts = []
    for number in chosen:
        for part in torch.split((~rows[number].skipped).nonzero().squeeze(1), _ROWS):
            stacked = torch.stack([weights[number][part].double() for weights in W.values()], 1)
            parts.append(_cosines(stacked, torch.zeros(())))
    return torch.cat(parts)


def _of_queries(chosen: Sequence[int], rows: Sequence[DenseRows], W: _OfObjectives) -> Tensor | None:
    """(n, k, k) cosines of the tangent gradients of the same queries; None without embeddings."""
    parts = []
    for number in chosen:
        of_direction = rows[number]
        if of_direction.queries is None or of_direction.candidates is None:
            return None
        candidates, queries = of_direction.candidates[0].double(), normalise(of_direction.queries.double())
        for part in torch.split((~of_direction.skipped).nonzero().squeeze(1), _ROWS):
            weights = torch.stack([of_objective[number][part].double() for of_objective in W.values()], 1)
            gradients, v = weights @ candidates, queries[part][:, None]
            tangents = gradients - (gradients * v).sum(2, keepdim=True) * v
            rounding = _ROUNDING * torch.finfo(tangents.dtype).eps * weights.abs().sum(2)
            parts.append(_cosines(tangents, rounding))
    return torch.cat(parts)


def _of_parameters(
    embedded: SplitEmbeddings,
    chosen: Sequence[int],
    rows: Sequence[DenseRows],
    objectives: Mapping[str, Objective],
    W: _OfObjectives,
    pairs: int,
) -> dict[str, Tensor]:
    """Layer -> (k, k) cosines of dL/dθ of a batch; empty without a model."""
    if rows[0].gradients is None:
        return {}
    vectors: dict[str, list[Tensor]] = {}
    for title, objective in objectives.items():
        of_objective = _training_gradient(embedded, chosen, rows, objective, W[title], pairs)
        if not vectors:
            _require_memory(of_objective, len(objectives))
        for layer, vector in of_objective.items():
            vectors.setdefault(layer, []).append(vector.cpu())
    products = {layer: _products(torch.stack(parts)) for layer, parts in vectors.items()}
    products = {TOTAL: torch.stack(list(products.values())).sum(0), **products}
    return {layer: _cosines_of_products(product, torch.zeros(())) for layer, product in products.items()}


def _training_gradient(
    embedded: SplitEmbeddings,
    chosen: Sequence[int],
    rows: Sequence[DenseRows],
    objective: Objective,
    W: Sequence[Tensor],
    pairs: int,
) -> Mapping[str, Tensor]:
    """Layer -> dL/dθ, L of both directions as training adds them, or of one direction."""
    first, *others = (rows[number] for number in chosen)
    assert first.gradients is not None
    if not others:
        return first.gradients.vectors(W[chosen[0]])
    weights = Pair(*(Weights(W[number], None, ~rows[number].skipped) for number in chosen))
    traits = objective.traits
    if embedded.images is not None:  # one matrix has both directions: one backward pass
        G = reduce_weights(weights, traits.directions, traits.reduction, pairs).gradient
        return first.gradients.vectors(G)
    total: dict[str, Tensor] = {}
    for part, of_direction in zip((first, *others), _alone(weights), strict=True):
        assert part.gradients is not None
        G = reduce_weights(of_direction, traits.directions, traits.reduction, pairs).gradient
        for layer, vector in part.gradients.vectors(G if part is first else G.T).items():
            total[layer] = total[layer] + vector if layer in total else vector
    return total


def _alone(weights: Pair[Weights]) -> tuple[Pair[Weights], Pair[Weights]]:
    """Return the weights of both directions, once with 0 for those of the second, once of the first."""
    first, second = (Weights(torch.zeros_like(part.W), None, part.usable) for part in weights)
    return Pair(weights.i2t, second), Pair(first, weights.t2i)


def _require_memory(vectors: Mapping[str, Tensor], number: int) -> None:
    """Raise InputError if the gradients of all objectives do not fit into memory beside those of the largest layer."""
    sizes = [vector.numel() for vector in vectors.values()]
    needed = number * (4 * sum(sizes) + 8 * max(sizes))
    free = free_bytes(torch.device("cpu"))
    if needed > free:
        raise InputError(
            f"gradients of {number} losses need {needed / 1e9:.1f} GB and must fit into memory; {free / 1e9:.1f} GB "
            "are free. Name fewer losses"
        )


def _products(vectors: Tensor) -> Tensor:
    """(k, k) inner products of k vectors (k, n), in float64."""
    wide = vectors.double()
    return wide @ wide.T


def _cosines(vectors: Tensor, least: Tensor) -> Tensor:
    """(n, k, k) cosines of vectors (n, k, d); NaN where a vector is no longer than `least`."""
    lengths = vectors.norm(dim=2, keepdim=True)
    unit = vectors / lengths  # before the products: squares of tiny weights would be 0
    cosines = torch.bmm(unit, unit.transpose(1, 2)).clamp(-1, 1)
    known = lengths.squeeze(2) > least
    return cosines.where(known[:, :, None] & known[:, None, :], math.nan)


def _cosines_of_products(products: Tensor, least: Tensor) -> Tensor:
    """(k, k) cosines from inner products; NaN where a vector is no longer than `least`."""
    lengths = products.diagonal().sqrt()
    known = lengths > least
    cosines = (products / (lengths[:, None] * lengths)).clamp(-1, 1)
    return cosines.where(known[:, None] & known, math.nan)


def _frame(space: str, layer: str, sums: _Sums, objectives: Mapping[str, Objective], cut: float) -> pd.DataFrame:
    """Return the rows of one space or layer: each pair once, and each loss with itself."""
    titles, specs = list(objectives), [spec_of(objective) for objective in objectives.values()]
    stacked = np.stack(sums.means)
    known = (~np.isnan(stacked)).sum(0)
    total = np.nansum(stacked, 0)
    mean = np.divide(total, known, out=np.full(total.shape, np.nan), where=known > 0)
    squares = np.nansum((stacked - mean) ** 2, 0)
    order, cluster = cluster_losses(mean, cut)
    assert sums.undefined is not None
    rows: list[dict[str, Any]] = []
    for a in range(len(titles)):
        for b in range(a, len(titles)):
            n = int(known[a, b])
            half = math.nan
            if n > 1:
                half = t_quantile(LEVEL, n - 1) * math.sqrt(squares[a, b] / (n - 1) / n)
            rows.append({
                "space": space, "layer": layer, "a": titles[a], "b": titles[b], "a_spec": specs[a],
                "b_spec": specs[b], "cosine": mean[a, b], "low": max(mean[a, b] - half, -1.0) if n > 1 else math.nan,
                "high": min(mean[a, b] + half, 1.0) if n > 1 else math.nan, "batches": n, "counted": sums.counted,
                "undefined": int(sums.undefined[a, b]), "a_order": order[a], "b_order": order[b],
                "a_cluster": cluster[a], "b_cluster": cluster[b],
            })  # fmt: skip
    return pd.DataFrame(rows)
