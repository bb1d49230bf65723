"""Which unified loss is a loss nearest to? Fit margin and gamma to its weights on the batches of a source."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd
import torch

from lossscope.core.embedded import SplitEmbeddings
from lossscope.core.types import Progress
from lossscope.objectives.base import Objective
from lossscope.probes.views.view import DenseRows
from lossscope.registry import build, spec_of

from .analysis_batches import draw_batches, rows_of_batch
from .analysis_options import AnalysisBatches

MARGINS, GAMMAS = (0.0, 1.0), (1.0, 1000.0)  # what is searched
COLUMNS = (
    "objective", "spec", "margin", "gamma", "scale", "cosine", "residual", "border", "source", "split", "batches",
    "batch_size", "seed", "sampling",
)  # fmt: skip
_GRID = (9, 13)  # first values of margin and of log gamma
_STARTS = 3  # best points of the grid, from which the search starts
_AT_BORDER = 1e-3  # of the range: nearer to an end, the optimum is at the border
_Values = npt.NDArray[np.float64]


@dataclass(frozen=True)
class _Fit:
    """How near the unified loss of a point is to a loss."""

    cosine: float  # of both W
    scale: float  # c >= 0 that makes c · W of the unified loss nearest

    @property
    def residual(self) -> float:
        """|W − c W_unified|² / |W|²."""
        return max(1 - self.cosine**2, 0.0) if self.cosine > 0 else 1.0


def nearest_unified(
    embedded: SplitEmbeddings,
    objectives: Mapping[str, Objective],
    batches: AnalysisBatches | None = None,
    progress: Progress | None = None,
) -> pd.DataFrame:
    """Return the margin and the gamma of `unified` whose W is nearest to that of each objective: a row for each.

    residual = |W − c W_unified|² / |W|² over all entries of S of both directions of the batches, c = scale >= 0 free.
    The search is by Nelder & Mead over margin 0 to 1 and log gamma, gamma 1 to 1,000, from the three best points of a
    grid. border says at which end of that range the optimum lies: the true optimum may be beyond, as that of
    triplet_sh, gamma → ∞. An objective without any weight has NaN.

    Args:
        embedded: the split.
        objectives: title -> objective, all of which take the batches.
        batches: which batches; None: the first 4.
        progress: called with (label, done, of).

    Source: Li et al. 2022, eq. 5-7.
    """
    from scipy.optimize import minimize

    options = batches or AnalysisBatches(batches=4)
    drawn = draw_batches(embedded, options)
    rows = [part for batch in drawn for part in rows_of_batch(embedded, batch)]
    axes = np.linspace(*MARGINS, _GRID[0]), np.linspace(math.log(GAMMAS[0]), math.log(GAMMAS[1]), _GRID[1])
    grid = [np.array(point) for point in np.stack(np.meshgrid(*axes, indexing="ij"), -1).reshape(-1, 2)]
    weights = {title: _flat(rows, objective) for title, objective in objectives.items()}
    on_grid: dict[str, list[float]] = {title: [] for title in objectives}
    for point in grid:
        unified = _unified(rows, point)
        for title, W in weights.items():
            on_grid[title].append(_fit(W, unified).residual)
    found = []
    for number, (title, objective) in enumerate(objectives.items()):
        W = weights[title]
        row: dict[str, str | float] = {"objective": title, "spec": spec_of(objective), "border": ""}
        if W.any():
            starts = [grid[index] for index in np.argsort(on_grid[title], kind="stable")[:_STARTS]]
            bounds = [MARGINS, tuple(map(math.log, GAMMAS))]
            settings = {"xatol": 1e-7, "fatol": 1e-15, "maxfev": 300}
            results = [
                minimize(
                    lambda x, W=W: _fit(W, _unified(rows, x)).residual, start, method="Nelder-Mead", bounds=bounds,
                    options={**settings, "initial_simplex": _simplex(start, bounds)},
                )
                for start in starts
            ]  # fmt: skip
            best = min(results, key=lambda result: float(result.fun)).x
            fit = _fit(W, _unified(rows, best))
            row |= {
                "margin": float(best[0]), "gamma": math.exp(best[1]), "scale": fit.scale, "cosine": fit.cosine,
                "residual": fit.residual, "border": _border(best),
            }  # fmt: skip
        found.append(row)
        if progress is not None:
            progress("nearest unified loss", number + 1, len(objectives))
    shared = {
        "source": embedded.name, "split": embedded.split, "batches": len(drawn), "batch_size": len(drawn[0].images),
        "seed": options.seed, "sampling": drawn[0].mode,
    }  # fmt: skip
    return pd.DataFrame(found).assign(**shared).reindex(columns=list(COLUMNS))


def _flat(rows: Sequence[DenseRows], objective: Objective) -> _Values:
    """Return all entries of W, of all batches and directions."""
    return torch.cat([part.weights(objective).flatten() for part in rows]).cpu().numpy()


def _unified(rows: Sequence[DenseRows], point: _Values) -> _Values:
    """Return all entries of W of the unified loss at margin and log gamma."""
    return _flat(rows, build("objectives", f"unified:margin={float(point[0])!r},gamma={math.exp(point[1])!r}"))


def _fit(W: _Values, unified: _Values) -> _Fit:
    product, square = float(W @ unified), float(unified @ unified)
    if square == 0 or not W.any():
        return _Fit(0.0, 0.0)
    return _Fit(product / math.sqrt(square * float(W @ W)), max(product / square, 0.0))


def _simplex(start: _Values, bounds: Sequence[tuple[float, ...]]) -> _Values:
    """Return the corners (3, 2) of a first triangle, a step of the grid wide, inside the range."""
    corners = [start]
    for axis, ((low, high), number) in enumerate(zip(bounds, _GRID, strict=True)):
        step, corner = (high - low) / (number - 1), start.copy()
        corner[axis] += step / 2 if start[axis] + step / 2 <= high else -step / 2
        corners.append(corner)
    return np.array(corners)


def _border(point: _Values) -> str:
    """Return `margin = 0`, `gamma = 1000` and so on; empty inside the range."""
    ends = []
    for name, value, range_of, scale in (("margin", point[0], MARGINS, float), ("gamma", point[1], GAMMAS, math.log)):
        low, high = map(scale, range_of)
        near = _AT_BORDER * (high - low)
        ends += [f"{name} = {end:g}" for end, at in zip(range_of, (low, high), strict=True) if abs(value - at) <= near]
    return ", ".join(ends)
