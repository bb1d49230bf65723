"""How many triplets does SmoothAP count per query? (COCOS paper, Table 4)"""

from __future__ import annotations

import pandas as pd

from . import _settings, _summary
from ._cocos import build_cocos_table
from .base import Table

_STATISTICS = ("C_q", "C_0")
_PER_POSITIVE = "Samples of smoothap are triplets, and counts are divided by the number of positives."
_RELEASED = (
    "released: t2i reads the wrong rows for the first fifth of the queries and none for the rest, as in the published "
    "table, so that nearly all of its queries have no gradient, whatever the model (at least 614 of the 640 of the "
    "paper's batches). Compare with the row corrected."
)
_TEXT = "text: sim carries the factor 1/tau, as printed; corrected and released are without it."


def build(frame: pd.DataFrame) -> Table:
    """Return C_q and C_0 of smoothap in both directions. Raises NoRows without any.

    Args:
        frame: summary rows, among them rows of the probe `cocos`.
    """
    rows = _summary.select_objectives(
        _summary.select(frame, "cocos", "cocos_smoothap"), ("smoothap",), "cocos_smoothap"
    )
    conventions = [
        note for name, note in (("released", _RELEASED), ("text", _TEXT)) if (rows["convention"] == name).any()
    ]
    notes = (_PER_POSITIVE, *_settings.undefined_note(rows), *conventions)
    return build_cocos_table("cocos_smoothap", "SmoothAP", rows, _STATISTICS, notes)
