"""GOAL's grids of combinations: rows are pair weights, columns are triplet weights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pandas as pd

from lossscope.errors import InputError, NoRows

from . import _captions, _contest, runs
from ._contest import Contest
from ._footnotes import Footnotes, join_marks
from ._lines import Line, build_lines, left_out_note, printed_lines, select_rows
from ._paper import Column, Measure, cell, dash_note
from ._printed import Key, PrintedTable
from .base import Table
from .cells import Cell

TRIPLET = ("con", "nca", "cir")
PAIR = ("con", "lin", "sig", "lin-ms", "sig-ms")
_UNITS = "R@1 in %. Rows: pair weight P; columns: triplet weight T."


@dataclass(frozen=True)
class GoalGrids:
    """A printed table of grids, one for each model and direction; a grid has one best and one second cell."""

    number: int  # of the table in the paper

    @property
    def name(self) -> str:
        """`xuan2023_3`"""
        return f"xuan2023_{self.number}"

    def build(self, frame: pd.DataFrame, tests: pd.DataFrame | None = None, all_printed: bool = False) -> list[Table]:
        """Return a table per data set, model and direction, from rows of `recall` of runs trained with goal.

        Models of another table of the paper are left out.

        Args:
            frame: rows of runs, with runs.COLUMNS.
            tests: tests against the best of each grid, or None.
            all_printed: also return printed grids without a run of ours.

        Raises:
            InputError: rows are missing, or do not fit into one table.
        """
        printed, tests = PrintedTable.read("xuan2023_goal", self.number), _contest.with_signs(tests)
        frame = runs.from_sources(frame)
        of_probe = runs.select_probe(frame, "recall", self.name)
        rows = select_rows(of_probe, printed, self.name, printed.objectives())
        rows = self._select_models(rows, printed)
        runs.require_comparable(rows, self.name)
        grids: dict[tuple[str, ...], list[Line]] = {}
        for line in build_lines(rows, printed, frame):
            grids.setdefault((*line.block, line.parameters), []).append(line)
        for lines in grids.values():
            lines += _without_runs(lines, printed)
        if all_printed:
            for line in printed_lines(printed, [line for lines in grids.values() for line in lines]):
                grids.setdefault(line.block, []).append(line)
        notes = left_out_note(of_probe, rows)
        several = len(grids) > 1
        return [
            self._table(lines, direction, f"-{number}" if several else "", printed, tests, notes)
            for number, lines in enumerate(grids.values(), 1)
            for direction in ("i2t", "t2i")
        ]

    def _select_models(self, rows: pd.DataFrame, printed: PrintedTable) -> pd.DataFrame:
        """Return the rows of the table's models, or without a published name. Raises NoRows without any."""
        selected = rows["method"].isna() | rows["method"].isin(list(printed.rows["method"]))
        if not selected.any():
            expected, got = (", ".join(frame["method"].dropna().unique()) for frame in (printed.rows, rows))
            raise NoRows(
                f"table {self.name} must have its own models ({expected}) or models without a published name; got "
                f"{got}. Build the table of these models"
            )
        return rows[selected]

    def _table(
        self,
        lines: Sequence[Line],
        direction: str,
        suffix: str,
        printed: PrintedTable,
        tests: pd.DataFrame | None,
        notes: Sequence[str],
    ) -> Table:
        by_key = _by_key(lines, self.name)
        letters = Footnotes()
        columns = [Column(Measure(direction, "R@1", better="higher"), printed=p) for p in (False, True)]
        ours, published = (_cells(by_key, column, printed, letters) for column in columns)
        contest = Contest(lines[0].data, lines[0].encoder, "R@1", direction, "higher")
        labels = [line.objective_label for line in by_key.values()]
        ours = dict(zip(by_key, contest.mark(list(ours.values()), labels, tests, letters), strict=True))
        body = [
            (
                Cell(text=pair),
                *(cells.get(_key(triplet, pair), Cell()) for triplet in TRIPLET for cells in (ours, published)),
            )
            for pair in PAIR
        ]
        headings = [("", "pair weight"), *((f"T {t}", column) for t in TRIPLET for column in ("ours", "published"))]
        footnotes = (*letters.texts(), *notes, *_captions.published_notes(lines, printed), *dash_note(body))
        caption = self._caption(lines, direction, printed, tests)
        return Table(f"{self.name}{suffix}-{direction}", caption, tuple(headings), tuple(body), footnotes)

    def _caption(self, lines: Sequence[Line], direction: str, printed: PrintedTable, tests: pd.DataFrame | None) -> str:
        about, first = printed.about, lines[0]
        with_runs = [line for line in lines if len(line.rows)]
        parts = [
            f"{about.what} (Table {self.number} of {about.cite}): {direction}, {first.encoder}, {first.data}.",
            _UNITS,
        ]
        if with_runs:
            settings = _captions.settings(with_runs[0].rows) + [
                f"{k.replace('_', ' ')} {v}" for k, v in first.settings.items()
            ]
            parts += [_captions.sentence(settings), _captions.parameters(with_runs), _captions.deviation(with_runs)]
            parts += [
                "Best of the grid bold, second underlined, among ours.",
                _contest.describe_tests(tests, {("R@1", direction)}),
            ]
        return " ".join(part for part in parts if part)


def _without_runs(lines: Sequence[Line], printed: PrintedTable) -> list[Line]:
    """Return lines for printed combinations of a grid without a run of ours; none where they may not stand beside."""
    if any(line.apart for line in lines):
        return []
    first, row = lines[0], lines[0].rows.iloc[0]
    printed_cells = {key: printed.line(row["dataset"], row["method"], key) for key in printed.objectives()}
    keys = {line.key for line in lines}
    missing = {key: cells for key, cells in printed_cells.items() if len(cells) and key not in keys}
    return [
        replace(first, key=key, objective_label="", spec="", rows=first.rows[:0], printed=cells)
        for key, cells in missing.items()
    ]


def _by_key(lines: Sequence[Line], table: str) -> dict[Key, Line]:
    """Return the line of each combination. Raises InputError if two lines have the same combination."""
    by_key: dict[Key, Line] = {}
    for line in lines:
        other = by_key.setdefault(line.key, line)
        if other is not line:
            raise InputError(
                f"each cell of table {table} must be of one objective; got {other.objective_label} and "
                f"{line.objective_label} for {line.spec} ({line.encoder}, {line.data}). Leave one of them out"
            )
    return by_key


def _cells(by_key: dict[Key, Line], column: Column, printed: PrintedTable, letters: Footnotes) -> dict[Key, Cell]:
    """Return a cell per combination; a mark says that it lacks a seed of others."""
    seeds = {seed for line in by_key.values() for seed in line.rows["seed"].dropna()}
    cells = {}
    for key, line in by_key.items():
        number = cell(line, column, printed, letters)
        ours = not column.printed and not line.rows.empty
        mark = runs.missing_seeds_mark(line.rows, seeds, letters) if ours else ""
        cells[key] = replace(number, mark=join_marks(number.mark, mark))
    return cells


def _key(triplet: str, pair: str) -> Key:
    return "goal", triplet, pair.replace("-", "_")
