"""Which losses are the combinations of triplet and pair weights? Table 1 of Xuan & Chen (2023), measured.

Found is what the objectives themselves give: equal, or how far apart their weights are; of a new combination, whether
any loss has this gradient.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import pandas as pd

from lossscope.io.frames import require_columns

from .base import Table
from .cells import Cell

MADE_BY = "lossscope.engine.goal_losses"
"""Its rows need no model: this module's function of its own name makes them."""
COLUMNS = ("triplet", "pair", "printed", "loss", "difference", "curl")
_EQUAL = 1e-9  # of weights in float64
_CURL = 1e-6  # of central differences
_NOTES = (
    "equal: the combination's weights are those of the loss, on the positive and the hardest negative, up to the "
    "factors tau (NT-Xent), 2 tau (Circle) and alpha, beta (binomial deviance). NT-Xent, Circle and binomial deviance "
    "see these two candidates alone; Circle has its factors attached and margin 0.71. Only queries inside the margin "
    "count.",
    "apart: largest difference of two weights, as a share of the loss's largest. The MS loss averages over a set with "
    "the pair itself, m at least 1; GOAL leaves the pair out.",
    "a loss: the gradient of some loss of the two similarities, where T is not 0. no loss: w₊ changes with s₋ "
    "otherwise than w₋ with s₊, by at most this much, so no loss has this gradient (section 3.4: not integrable). The "
    "relative terms of the -ms pairs are held at 0.1.",
)


def build(rows: pd.DataFrame) -> list[Table]:
    """Return the table: a row per pair weight, and for each triplet weight what is printed and what is found.

    Args:
        rows: of `lossscope.engine.goal_losses`: columns COLUMNS.

    Raises:
        InputError: the rows are others.
    """
    require_columns(rows, COLUMNS, "rows of Table 1 of Xuan & Chen, which `lossscope render xuan2023_1` alone makes,")
    triplets = list(dict.fromkeys(rows["triplet"]))
    cells = {
        (row["pair"], row["triplet"]): (Cell(text=str(row["printed"])), Cell(text=_found(row)))
        for row in rows.to_dict("records")
    }
    body = tuple(
        (Cell(text=str(pair)), *(cell for triplet in triplets for cell in cells[pair, triplet]))
        for pair in dict.fromkeys(rows["pair"])
    )
    headings = [("", "pair weight"), *((f"T {t}", column) for t in triplets for column in ("printed", "found"))]
    caption = "Losses that are combinations of triplet and pair weights (Table 1 of Xuan & Chen (2023)), measured."
    return [Table("xuan2023_1", caption, tuple(headings), body, _NOTES)]


def _found(row: dict[Hashable, Any]) -> str:
    difference, curl = float(row["difference"]), float(row["curl"])
    if row["loss"]:
        return "equal" if difference < _EQUAL else f"{difference:.2g} apart"
    return "a loss" if curl < _CURL else f"no loss, {curl:.2g}"
