"""Which tables of its paper can be made from what a study has?"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator
from pathlib import Path

from lossscope import tables
from lossscope.errors import NoRows
from lossscope.tables.base import Table

from .chapters.base import ReportData

COUNTED = ("bleeker2022_2", "bleeker2022_3", "bleeker2022_4")  # of counts; all others are of recall


def papers(material: ReportData, counted: bool) -> Iterator[Table]:
    """The tables of the study's paper, of counts or of recall; those that it has no rows for are left out.

    Raises InputError where there are rows that can not stand in one table.
    """
    if material.results.paper is None:
        return
    for name in sorted(one.name for one in pkgutil.iter_modules([str(Path(str(tables.__file__)).parent)])):
        if name.startswith(f"{material.results.paper}_") and (name in COUNTED) == counted:
            try:
                table = importlib.import_module(f"{tables.__name__}.{name}")
                made = table.build(material.results.rows, material.tests)
                yield from (one for one in made if _compares(one))
            except NoRows:
                continue


def _compares(table: Table) -> bool:
    """Whether any published number stands in it."""
    places = [place for place, (_, column) in enumerate(table.columns) if column == "published"]
    return not places or any(not row[place].missing for row in table.rows for place in places)
