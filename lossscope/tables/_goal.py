"""How do combinations of triplet and pair weight compare? GOAL's grids: rows pair weight, columns triplet weight."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pandas as pd

from lossscope.errors import InputError, NoRows

from . import _captions, _contest, runs
from ._contest import Contest
from ._footnotes import Footnotes, joined
from ._lines import Line, belonging, left_out, lines, without_runs
from ._paper import Column, Measure, cell, dashes
from ._printed import Key, Printed
from .base import Table
from .cells import Cell

TRIPLET = ("con", "nca", "cir")
PAIR = ("con", "lin", "sig", "lin-ms", "sig-ms")
_UNITS = "R@1 in %. Rows: pair weight P; columns: triplet weight T."


@dataclass(frozen=True)
class Grid:
    """A printed table of grids, one for each model and direction, best and second of a whole grid marked."""

    number: int

    @property
    def name(self) -> str:
        """`xuan2023_3`"""
        return f"xuan2023_{self.number}"

    def build(self, frame: pd.DataFrame, tests: pd.DataFrame | None = None, everything: bool = False) -> list[Table]:
        """Rows of the probe `recall` of runs trained with goal -> a table per data set, model and direction.

        Models that the paper names in another table are left out. Raises InputError where rows are missing, or such
        that they can not stand in one table.
        """
        printed, tests = Printed.of("xuan2023_goal", self.number), _contest.checked(tests)
        every = runs.of_probe(frame, "recall", self.name)
        rows = belonging(every, printed, self.name, printed.objectives())
        rows = self._of_models(rows, printed)
        runs.check(rows, self.name)
        grids: dict[tuple[str, ...], list[Line]] = {}
        for line in lines(rows, printed, frame):
            grids.setdefault((*line.block, line.parameters), []).append(line)
        for own in grids.values():
            own += _printed_only(own, printed)
        if everything:
            for line in without_runs(printed, [line for own in grids.values() for line in own]):
                grids.setdefault(line.block, []).append(line)
        notes = left_out(every, rows)
        several = len(grids) > 1
        return [
            self._table(own, direction, f"-{place}" if several else "", printed, tests, notes)
            for place, own in enumerate(grids.values(), 1)
            for direction in ("i2t", "t2i")
        ]

    def _of_models(self, rows: pd.DataFrame, printed: Printed) -> pd.DataFrame:
        fit = rows["method"].isna() | rows["method"].isin(list(printed.rows["method"]))
        if not fit.any():
            there, got = (", ".join(frame["method"].dropna().unique()) for frame in (printed.rows, rows))
            raise NoRows(
                f"table {self.name} must have models of it ({there}) or without a published name; got {got}. "
                "Build the table that they belong to"
            )
        return rows[fit]

    def _table(
        self,
        found: Sequence[Line],
        direction: str,
        ending: str,
        printed: Printed,
        tests: pd.DataFrame | None,
        notes: Sequence[str],
    ) -> Table:
        places = _placed(found, self.name)
        letters = Footnotes()
        columns = [Column(Measure(direction, "R@1", better="higher"), printed=p) for p in (False, True)]
        ours, theirs = (_cells(places, column, printed, letters) for column in columns)
        contest = Contest(found[0].data, found[0].encoder, "R@1", direction, "higher")
        labels = [line.objective_label for line in places.values()]
        ours = dict(zip(places, contest.judged(list(ours.values()), labels, tests, letters), strict=True))
        body = [
            (
                Cell(text=pair),
                *(cells.get(_key(triplet, pair), Cell()) for triplet in TRIPLET for cells in (ours, theirs)),
            )
            for pair in PAIR
        ]
        heads = [("", "pair weight"), *((f"T {t}", who) for t in TRIPLET for who in ("ours", "published"))]
        below = (*letters.told(), *notes, *_captions.beside(found, printed), *dashes(body))
        caption = self._caption(found, direction, printed, tests)
        return Table(f"{self.name}{ending}-{direction}", caption, tuple(heads), tuple(body), below)

    def _caption(self, found: Sequence[Line], direction: str, printed: Printed, tests: pd.DataFrame | None) -> str:
        about, first = printed.about, found[0]
        own = [line for line in found if len(line.rows)]
        told = [
            f"{about.what} (Table {self.number} of {about.cite}): {direction}, {first.encoder}, {first.data}.",
            _UNITS,
        ]
        if own:
            setting = _captions.settings(own[0].rows) + [
                f"{k.replace('_', ' ')} {v}" for k, v in first.settings.items()
            ]
            told += [_captions.sentence(setting), _captions.parameters(own), _captions.deviation(own)]
            told += [
                "Best of the grid bold, second underlined, among ours.",
                _contest.told(tests, {("R@1", direction)}),
            ]
        return " ".join(part for part in told if part)


def _printed_only(own: Sequence[Line], printed: Printed) -> list[Line]:
    """The combinations of a grid that the paper has and we have not."""
    first, row = own[0], own[0].rows.iloc[0]
    beside = {key: printed.line(row["dataset"], row["method"], key) for key in printed.objectives()}
    gone = {key: cells for key, cells in beside.items() if len(cells) and key not in {line.key for line in own}}
    return [
        replace(first, key=key, objective_label="", spec="", rows=first.rows[:0], printed=c) for key, c in gone.items()
    ]


def _placed(found: Sequence[Line], what: str) -> dict[Key, Line]:
    """The line of each combination. Raises InputError where two have the same."""
    places: dict[Key, Line] = {}
    for line in found:
        other = places.setdefault(line.key, line)
        if other is not line:
            raise InputError(
                f"each cell of table {what} must be of one objective; got {other.objective_label} and "
                f"{line.objective_label} for {line.spec} ({line.encoder}, {line.data}). Leave one of them out"
            )
    return places


def _cells(places: dict[Key, Line], column: Column, printed: Printed, letters: Footnotes) -> dict[Key, Cell]:
    """A cell per combination, marked where a seed that others have is missing."""
    seeds = {seed for line in places.values() for seed in line.rows["seed"].dropna()}
    cells = {}
    for key, line in places.items():
        one = cell(line, column, printed, letters)
        gone = "" if column.printed or line.rows.empty else runs.absent(line.rows, seeds, letters)
        cells[key] = replace(one, mark=joined(one.mark, gone))
    return cells


def _key(triplet: str, pair: str) -> Key:
    return "goal", triplet, pair.replace("-", "_")
