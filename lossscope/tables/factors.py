"""Is a loss a triplet weight times a pair weight, and which unified loss is it nearest to? A row for each loss."""

from __future__ import annotations

import math
from typing import Any

import pandas as pd

from lossscope.errors import InputError
from lossscope.io.frames import require_columns

from .base import Table
from .cells import DASH, Cell

REQUIRED = (
    "objective", "factorises", "cells", "fitted", "one_zero", "not_factorisable", "rms", "largest", "unexplained",
    "balance", "T_by_D", "curl", "curl_relative", "curl_points", "kinks", "low", "high", "points",
)  # fmt: skip
NEAREST = (
    "margin", "gamma", "scale", "cosine", "residual", "border", "source", "split", "batches", "batch_size", "seed",
    "sampling",
)  # fmt: skip
_EXACT = 1e-6  # relative curl of the gradient of a loss, but for rounding
_LEGEND = (
    "fit: w₊ = T P₊(s₊) and w₋ = T P₋(s₋), by least squares to log(pull / push), over cells where both weights are "
    "above 1e-6 of their largest",
    "residual: of log(pull / push); share: of its variance, – where pull / push is constant",
    "one zero: cells where exactly one weight is 0; not factorisable: those of them, and of other signs, that no P "
    "explains",
    "T by D: share of the variance of T that s₋ − s₊ explains, – where T is constant",
    "curl: largest |∂w₊/∂s₋ − ∂w₋/∂s₊| by the largest slope, without points at kinks; 0: the gradient of a loss",
)


def build(frame: pd.DataFrame) -> list[Table]:
    """Return a table of factors, and one of nearest unified losses where rows have them.

    Args:
        frame: rows of `lossscope analyse factors --format csv`.

    Raises:
        InputError: columns or rows are missing.
    """
    require_columns(frame, REQUIRED, "rows of factors")
    if frame.empty:
        raise InputError("table factors must have rows; got none. Run `lossscope analyse factors`")
    return [_factors(frame), *([_nearest(frame)] if "gamma" in frame else [])]


def _factors(frame: pd.DataFrame) -> Table:
    columns = (
        "objective", "factorises", "cells fitted", "one zero", "not factorisable", "residual rms", "residual max",
        "share", "T by D", "curl", "kinks", "gradient of a loss",
    )  # fmt: skip
    body = tuple(
        (
            Cell(text=str(row["objective"])), Cell(text="yes" if row["factorises"] else "no"),
            Cell(text=f"{row['fitted'] / row['cells']:.0%}".replace("%", " %")), Cell(mean=row["one_zero"], digits=0),
            Cell(mean=row["not_factorisable"], digits=0), _small(row["rms"]), _small(row["largest"]),
            _small(row["unexplained"]), Cell(mean=row["T_by_D"], digits=3), _small(row["curl_relative"]),
            Cell(text=f"{row['kinks']:g} of {row['curl_points']:g}"),
            Cell(text=DASH if pd.isna(row["curl"]) else "yes" if row["curl_relative"] <= _EXACT else "no"),
        )
        for row in frame.to_dict("records")
    )  # fmt: skip
    first = frame.iloc[0]
    points = sorted({int(number) for number in frame["points"]}, reverse=True)
    grids = " or ".join(f"{number} × {number}" for number in points)
    caption = (
        f"Weights of a query with two candidates on a grid of {grids} similarities from {first['low']:g} to "
        f"{first['high']:g}: T, P₊ and P₋, and what they leave."
    )
    return Table("factors", caption, tuple(("", name) for name in columns), body, (), _LEGEND)


def _nearest(frame: pd.DataFrame) -> Table:
    known = frame[frame["source"].notna()]
    columns = ("objective", "margin", "gamma", "scale", "cosine", "residual", "at the border of the search")
    body = tuple(
        (
            Cell(text=str(row["objective"])), Cell(mean=row["margin"], digits=3), Cell(mean=row["gamma"], digits=1),
            Cell(mean=row["scale"], digits=3), Cell(mean=row["cosine"], digits=4), _small(row["residual"]),
            Cell(text=_border(row)),
        )
        for row in known.to_dict("records")
    )  # fmt: skip
    first = known.iloc[0]
    split = f", split {first['split']}" if pd.notna(first["split"]) else ""
    caption = (
        f"Nearest unified loss: source {first['source']}{split}; all entries of W of {first['batches']:g} batches of "
        f"{first['batch_size']:g} ({first['sampling']}), seed {first['seed']:g}; residual |W − scale · W_unified|² / "
        "|W|². Searched: margin 0 to 1, gamma 1 to 1,000; at a border the optimum may be beyond."
    )
    return Table("nearest_unified", caption, tuple(("", name) for name in columns), body)


def _small(number: float) -> Cell:
    """Return a number with three significant digits; what is below 1e-9 is rounding, and reads 0."""
    if math.isnan(number):
        return Cell()
    return Cell(text="0" if abs(number) < 1e-9 else f"{number:.3g}".replace("e-0", "e-"))


def _border(row: dict[Any, Any]) -> str:
    """Return where the optimum lies: at which border, inside the range, or nowhere."""
    if math.isnan(row["gamma"]):
        return "no weights"
    return str(row["border"]) if row["border"] and pd.notna(row["border"]) else "no"
