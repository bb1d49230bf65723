"""How many triplets does SmoothAP count per query? (COCOS paper, Table 4)"""

from __future__ import annotations

import pandas as pd

from . import _settings, _summary
from ._legend import legend
from ._meaning import meaning
from ._summary import Column
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
    """Return C_q and C_0 of smoothap, both directions. Raises NoRows where there are none.

    Args:
        frame: summary rows with those of the probe `cocos`.
    """
    rows = _summary.select_objectives(
        _summary.select(frame, "cocos", "cocos_smoothap"), ("smoothap",), "cocos_smoothap"
    )
    columns = [Column(side, (name,)) for side in _summary.directions(rows) for name in _STATISTICS]
    caption = "COCOS of SmoothAP: " + _settings.settings(rows, "batches", _summary.system_keys(rows))
    conventions = [
        note for name, note in (("released", _RELEASED), ("text", _TEXT)) if (rows["convention"] == name).any()
    ]
    notes = (_PER_POSITIVE, *_settings.undefined_note(rows), *conventions)
    explained = legend(("cocos", name) for name in _STATISTICS)
    return _summary.build_table(
        "cocos_smoothap",
        caption,
        _summary.group_rows(rows, _summary.system_keys(rows)),
        columns,
        notes,
        legend=explained,
        meaning=meaning(rows),
    )
