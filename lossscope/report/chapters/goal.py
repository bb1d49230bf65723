"""What do the triplet and pair weights of GOAL look like, and which losses are they? Figures 2 and 3, Table 1."""

from __future__ import annotations

from collections.abc import Sequence

from lossscope.plots import pair_curves, triplet_field
from lossscope.tables import xuan2023_1

from ..sections import Item, Picture, Section
from .base import ReportData

ORDER = 85
_TEXT = (
    "GOAL (Xuan & Chen, 2023) writes the gradient of a loss down directly, as a triplet weight times pair weights. "
    "The pictures show the weights that the objective itself returns for queries with two candidates."
)
_FIELDS = "Triplet weights, margin 0.2 and tau 10 (Figure 2 of Xuan & Chen, 2023)."
_CURVES = "Pair weights, alpha 2, beta 10, lambda 0.5, relative terms 0.1 (Figure 3 of Xuan & Chen, 2023)."


def build(data: ReportData) -> Sequence[Section]:
    """Return both figures and the table, where a study has `figures = ["goal"]`."""
    fields, curves = data.diagrams.goal_fields, data.diagrams.goal_curves
    if fields.empty or curves.empty:
        return []
    items: tuple[Item, ...] = (
        Picture("triplet_weights", _FIELDS, triplet_field.alt(fields), triplet_field.draw_many(fields)),
        Picture("pair_weights", _CURVES, pair_curves.alt(curves), pair_curves.draw_many(curves)),
    )
    items += tuple(xuan2023_1.build(data.diagrams.goal_losses)) if len(data.diagrams.goal_losses) else ()
    return [Section("The weights of GOAL", _TEXT, items)]
