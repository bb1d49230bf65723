"""How well does every model retrieve? The paper's own table with the published values beside, or recall and rsum."""

from __future__ import annotations

from collections.abc import Sequence

from ..report import Item, Section
from ..tables import retrieval
from ._paper import papers
from .base import Material

ORDER = 10
_TEXT = (
    "Both directions of the test split, at the best epoch on the validation split. Published numbers are of the "
    "paper's data and towers; where these are others they stand for orientation."
)


def build(material: Material) -> Sequence[Section]:
    """Tables of recall."""
    items: tuple[Item, ...] = tuple(papers(material, counted=False))
    if not items:
        items = (retrieval.build(material.results.rows, ("data", "encoder", "trained")),)
    return [Section("How well they retrieve", _TEXT, items)]
