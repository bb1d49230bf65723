"""Build a paper's table from our runs: our numbers beside the published ones, a line per objective."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import pandas as pd

from lossscope.core.types import CONVENTIONS

from . import _captions, _contest, runs
from ._contest import Contest
from ._footnotes import Footnotes, join_marks
from ._lines import (
    Line,
    build_lines,
    learnt_parameters_note,
    left_out_note,
    members_note,
    printed_lines,
    select_rows,
)
from ._printed import PrintedTable
from ._settings import undefined_note
from .base import Table
from .cells import Better, Cell

_UNTESTED = "Means over folds are not tested: the tests are of whole splits."
DASH_NOTE = "–: not printed, or not measured."


@dataclass(frozen=True)
class Measure:
    """A statistic of one direction."""

    direction: str  # i2t, t2i or both
    statistic: str
    metric: str = ""  # name in the CSV files of published/; empty: the statistic
    digits: int = 1  # decimals
    better: Better = None

    @property
    def heading(self) -> str:
        """`i2t R@1`; without a direction if it covers both."""
        return self.statistic if self.direction == "both" else f"{self.direction} {self.statistic}"

    @property
    def published(self) -> str:
        """The metric of the printed cells."""
        return self.metric or self.statistic


@dataclass(frozen=True)
class Column:
    """A measure as we counted it, or as published."""

    measure: Measure
    convention: str | None = None  # of our counts; None: there is only one
    printed: bool = False  # published numbers

    @property
    def header(self) -> tuple[str, str]:
        """(group, column)"""
        return self.measure.heading, "published" if self.printed else self.convention or "ours"


@dataclass(frozen=True)
class Paper:
    """The declaration of a printed table."""

    paper: str  # name of the CSV file in published/
    number: int  # of the table in the paper
    probe: str  # its rows fill the table
    parts: Mapping[str, Sequence[Measure]]  # suffix of a table's name -> its measures; several if one is too wide
    units: str  # sentence of the caption
    any_objective: bool = False  # whether objectives that the paper lacks belong into it, too
    notes: tuple[str, ...] = ()  # footnotes
    derived: Callable[[pd.DataFrame], pd.DataFrame] = lambda rows: rows  # adds rows of statistics computed from others

    @property
    def name(self) -> str:
        """`bleeker2022_1`"""
        return f"{self.paper.partition('_')[0]}_{self.number}"

    def build(
        self,
        frame: pd.DataFrame,
        tests: pd.DataFrame | None = None,
        all_printed: bool = False,
        extra: Callable[[pd.DataFrame], pd.Series[bool]] | None = None,
    ) -> list[Table]:
        """Return the tables of rows of runs.

        Args:
            frame: rows of runs, with runs.COLUMNS, or of an evaluation file.
            tests: tests against the best of each block, or None.
            all_printed: also show printed rows without a run of ours.
            extra: selects further rows of other objectives.

        Raises:
            InputError: rows are missing, or do not fit into one table.
        """
        printed, tests = PrintedTable.read(self.paper, self.number), _contest.with_signs(tests)
        frame = runs.from_sources(frame)
        of_probe = runs.select_probe(frame, self.probe, self.name)
        keys = [] if self.any_objective else printed.objectives()
        rows = select_rows(of_probe, printed, self.name, keys, extra)
        runs.require_comparable(rows, self.name)
        lines = build_lines(self.derived(rows), printed, frame)
        notes = (*self.notes, *left_out_note(of_probe, rows), *undefined_note(rows), *learnt_parameters_note(rows))
        if all_printed:
            lines += printed_lines(printed, lines)
        parts = self.parts.items()
        return [_Part(self, suffix, tuple(measures), printed, tests).table(lines, notes) for suffix, measures in parts]


@dataclass(frozen=True)
class _Part:
    """One of the tables of a Paper, with a part of its measures."""

    paper: Paper
    suffix: str  # of its name
    measures: tuple[Measure, ...]
    printed: PrintedTable
    tests: pd.DataFrame | None

    def table(self, lines: Sequence[Line], notes: Sequence[str]) -> Table:
        rows = pd.concat([line.rows for line in lines if len(line.rows)])
        conventions, same_note = self._conventions(rows)
        columns = self._columns(conventions)
        letters, body = Footnotes(), []
        labels = _line_labels(lines)
        for line in lines:
            seeds = rows.loc[rows["data"] == line.data, "seed"].dropna().unique()
            mark = runs.missing_seeds_mark(line.rows, seeds, letters) if len(line.rows) else ""
            first = [Cell(text=str(text), mark=mark if key == "loss" else "") for key, text in labels(line).items()]
            body.append([*first, *(cell(line, column, self.printed, letters) for column in columns)])
        headings = [("", key.replace("_", " ")) for key in labels(lines[0])]
        self._mark_best(lines, body, [*(None for _ in headings), *columns], letters)
        headers = (*headings, *(column.header for column in columns))
        published = _captions.published_notes(lines, self.printed)
        untested = [_UNTESTED] if self.tests is not None and any(line.of_folds for line in lines) else []
        notes = (*same_note, *notes, *members_note(lines), *untested)
        footnotes = (*letters.texts(), *notes, *published, *dash_note(body))
        name = self.paper.name + self.suffix
        return Table(name, self._caption(lines, rows), headers, tuple(map(tuple, body)), footnotes)

    def _conventions(self, rows: pd.DataFrame) -> tuple[Sequence[str | None], list[str]]:
        """Return the conventions that get columns, and a footnote on conventions that equal the corrected counts."""
        names = [name for name in CONVENTIONS if (rows["convention"] == name).any()]
        measures = {(measure.direction, measure.statistic) for measure in self.measures}
        of_measures = rows[[pair in measures for pair in zip(rows["direction"], rows["statistic"], strict=True)]]
        wide = of_measures.pivot_table(index=["run", "direction", "statistic"], columns="convention", values="mean")
        same = [name for name in names[1:] if "corrected" in wide and name in wide and _equals_corrected(wide, name)]
        note = [f"Counts by the convention {' and '.join(same)} equal the corrected counts."] if same else []
        return [name for name in names if name not in same] or [None], note

    def _columns(self, conventions: Sequence[str | None]) -> list[Column]:
        columns = []
        for measure in self.measures:
            columns += [Column(measure, name) for name in conventions]
            columns += [Column(measure, printed=True)] if self.printed.has(measure.direction, measure.published) else []
        return columns

    def _mark_best(
        self, lines: Sequence[Line], body: list[list[Cell]], columns: Sequence[Column | None], letters: Footnotes
    ) -> None:
        """Mark our cells in `body`, block by block."""
        for index, column in enumerate(columns):
            if column is None or column.printed:
                continue
            for block in dict.fromkeys(line.block for line in lines):
                of_block = [k for k, line in enumerate(lines) if line.block == block]
                measure = column.measure
                contest = Contest(block[0], block[1], measure.statistic, measure.direction, measure.better)
                labels = [lines[k].objective_label for k in of_block]
                tests = None if any(lines[k].of_folds for k in of_block) else self.tests
                marked = contest.mark([body[k][index] for k in of_block], labels, tests, letters)
                for k, marked_cell in zip(of_block, marked, strict=True):
                    body[k][index] = marked_cell

    def _caption(self, lines: Sequence[Line], rows: pd.DataFrame) -> str:
        about = self.printed.about
        with_runs = [line for line in lines if len(line.rows)]
        common = [f"{key} {value}" for key, value in _common_labels(lines).items()]
        compared = {(m.statistic, m.direction) for m in self.measures if m.better}
        tests = [_contest.describe_tests(self.tests, compared)] if compared else []
        best = ["Best of a block bold, second underlined, among ours."] if compared else []
        parts = [
            f"{about.what} (Table {self.paper.number} of {about.cite}).", self.paper.units,
            _captions.sentence([*common, *_captions.settings(rows)]), _captions.parameters(with_runs),
            _captions.deviation(with_runs), *best, *tests,
        ]  # fmt: skip
        return " ".join(part for part in parts if part)


def cell(line: Line, column: Column, printed: PrintedTable, notes: Footnotes) -> Cell:
    """Return the published number, or the mean of ours over seeds; a mark says that the released counter is wrong."""
    measure = column.measure
    if column.printed:
        return printed.cell(line.printed, measure.direction, measure.published, notes)
    values = line.values(measure.statistic, measure.direction, column.convention)
    mean = runs.mean_cell(values, line.runs, measure.digits, notes)
    if column.convention != "released" or mean.missing:
        return mean
    mark = printed.mark_of_released(line.key, measure.direction, measure.published, notes)
    return replace(mean, mark=join_marks(mean.mark, mark))


def recalls(direction: str) -> tuple[Measure, ...]:
    """Return R@1, R@5 and R@10 of a direction."""
    return tuple(Measure(direction, f"R@{k}", better="higher") for k in (1, 5, 10))


RSUM = Measure("both", "rsum", better="higher")
RETRIEVAL = {"-i2t": recalls("i2t"), "-t2i": (*recalls("t2i"), RSUM)}
UNITS = "Recall in %, rsum (the sum of the six recalls) in points."


def dash_note(body: Sequence[Sequence[Cell]]) -> list[str]:
    """Return the footnote on dashes, if there are any."""
    return [DASH_NOTE] if any(cell.missing for row in body for cell in row) else []


def _equals_corrected(wide: pd.DataFrame, name: str) -> bool:
    """Return whether all numbers of a convention equal the numbers of `corrected`."""
    corrected, other = wide["corrected"], wide[name]
    return bool(((corrected == other) | (corrected.isna() & other.isna())).all())


def _common_labels(lines: Sequence[Line]) -> dict[str, str]:
    """Return data and encoder, if all lines share them."""
    values = {"data": {line.data for line in lines}, "encoder": {line.encoder for line in lines}}
    return {name: next(iter(labels)) for name, labels in values.items() if len(labels) == 1}


def _line_labels(lines: Sequence[Line]) -> Callable[[Line], dict[str, str]]:
    """Return a function from a line to its first cells: data and encoder if they differ, the loss, its settings."""
    common = _common_labels(lines)

    def labels(line: Line) -> dict[str, str]:
        texts = {"data": line.data, "encoder": line.encoder, "loss": line.objective_label, **line.settings}
        return {key: text for key, text in texts.items() if key not in common}

    return labels
