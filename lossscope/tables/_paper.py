"""How does a printed table become one of ours? Our numbers beside the published ones, a line per objective."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import pandas as pd

from . import _captions, _contest, runs
from ._contest import Contest
from ._footnotes import Footnotes, joined
from ._lines import Line, belonging, learnt, left_out, lines, without_runs
from ._printed import Printed
from ._summary import undefined
from .base import Table
from .cells import Better, Cell

CONVENTIONS = ("corrected", "released", "text")
NO_ROW = "–: not printed, or not measured."


@dataclass(frozen=True)
class Measure:
    """A statistic of one direction. metric: what the paper calls it, as the column names of published/ do."""

    direction: str
    statistic: str
    metric: str = ""
    digits: int = 1
    better: Better = None

    @property
    def heading(self) -> str:
        """`i2t R@1`; what is of both directions has no direction."""
        return self.statistic if self.direction == "both" else f"{self.direction} {self.statistic}"

    @property
    def published(self) -> str:
        """The metric of the printed cells."""
        return self.metric or self.statistic


@dataclass(frozen=True)
class Column:
    """A measure as counted by a convention, or (None) as there is but one; or as published."""

    measure: Measure
    convention: str | None = None
    printed: bool = False

    @property
    def header(self) -> tuple[str, str]:
        """(group, column)"""
        return self.measure.heading, "published" if self.printed else self.convention or "ours"


@dataclass(frozen=True)
class Paper:
    """A printed table, declared. parts: ending of the name -> measures, as many tables as would be too wide as one.

    any_objective: own objectives that the paper does not have stand in it too. derived: adds rows of statistics that
    follow from others.
    """

    paper: str
    number: int
    probe: str
    parts: Mapping[str, Sequence[Measure]]
    units: str
    any_objective: bool = False
    notes: tuple[str, ...] = ()
    derived: Callable[[pd.DataFrame], pd.DataFrame] = lambda rows: rows

    @property
    def name(self) -> str:
        """`bleeker2022_1`"""
        return f"{self.paper.partition('_')[0]}_{self.number}"

    def build(
        self,
        frame: pd.DataFrame,
        tests: pd.DataFrame | None = None,
        everything: bool = False,
        also: Callable[[pd.DataFrame], pd.Series[bool]] | None = None,
    ) -> list[Table]:
        """Rows of runs -> tables. also: which rows of other objectives belong in it too.

        Raises InputError where rows are missing, or such that they can not stand in one table.
        """
        printed, tests = Printed.of(self.paper, self.number), _contest.checked(tests)
        every = runs.of_probe(frame, self.probe, self.name)
        keys = [] if self.any_objective else printed.objectives()
        rows = belonging(every, printed, self.name, keys, also)
        runs.check(rows, self.name)
        found = lines(self.derived(rows), printed, frame)
        notes = (*self.notes, *left_out(every, rows), *undefined(rows), *learnt(rows))
        if everything:
            found += without_runs(printed, found)
        parts = self.parts.items()
        return [_Part(self, ending, tuple(measures), printed, tests).table(found, notes) for ending, measures in parts]


@dataclass(frozen=True)
class _Part:
    paper: Paper
    ending: str
    measures: tuple[Measure, ...]
    printed: Printed
    tests: pd.DataFrame | None

    def table(self, found: Sequence[Line], notes: Sequence[str]) -> Table:
        rows = pd.concat([line.rows for line in found if len(line.rows)])
        conventions, alike = self._conventions(rows)
        columns = self._columns(conventions)
        letters, body = Footnotes(), []
        words = _words(found)
        for line in found:
            seeds = rows.loc[rows["data"] == line.data, "seed"].dropna().unique()
            mark = runs.absent(line.rows, seeds, letters) if len(line.rows) else ""
            told = [Cell(text=str(word), mark=mark if key == "loss" else "") for key, word in words(line).items()]
            body.append([*told, *(cell(line, column, self.printed, letters) for column in columns)])
        heads = [("", key.replace("_", " ")) for key in words(found[0])]
        self._judge(found, body, [*(None for _ in heads), *columns], letters)
        headers = (*heads, *(column.header for column in columns))
        below = (*letters.told(), *alike, *notes, *_captions.beside(found, self.printed), *dashes(body))
        return Table(self.paper.name + self.ending, self._caption(found, rows), headers, tuple(map(tuple, body)), below)

    def _conventions(self, rows: pd.DataFrame) -> tuple[Sequence[str | None], list[str]]:
        """Those with columns of their own, and a note on others, which count the same here."""
        there = [name for name in CONVENTIONS if (rows["convention"] == name).any()]
        wanted = {(measure.direction, measure.statistic) for measure in self.measures}
        own = rows[[one in wanted for one in zip(rows["direction"], rows["statistic"], strict=True)]]
        wide = own.pivot_table(index=["run", "direction", "statistic"], columns="convention", values="mean")
        same = [name for name in there[1:] if "corrected" in wide and name in wide and _alike(wide, name)]
        note = [f"Counted as {' and as '.join(same)} these are the same as corrected."] if same else []
        return [name for name in there if name not in same] or [None], note

    def _columns(self, conventions: Sequence[str | None]) -> list[Column]:
        columns = []
        for measure in self.measures:
            columns += [Column(measure, name) for name in conventions]
            columns += [Column(measure, printed=True)] if self.printed.has(measure.direction, measure.published) else []
        return columns

    def _judge(
        self, found: Sequence[Line], body: list[list[Cell]], columns: Sequence[Column | None], letters: Footnotes
    ) -> None:
        for place, column in enumerate(columns):
            if column is None or column.printed:
                continue
            for block in dict.fromkeys(line.block for line in found):
                own = [k for k, line in enumerate(found) if line.block == block]
                measure = column.measure
                contest = Contest(block[0], block[1], measure.statistic, measure.direction, measure.better)
                trained = [found[k].objective_label for k in own]
                judged = contest.judged([body[k][place] for k in own], trained, self.tests, letters)
                for k, one in zip(own, judged, strict=True):
                    body[k][place] = one

    def _caption(self, found: Sequence[Line], rows: pd.DataFrame) -> str:
        about = self.printed.about
        own = [line for line in found if len(line.rows)]
        common = [f"{key} {value}" for key, value in _common(found).items()]
        compared = {(m.statistic, m.direction) for m in self.measures if m.better}
        tested = [_contest.told(self.tests, compared)] if compared else []
        best = ["Best of a block bold, second underlined, among ours."] if compared else []
        parts = [
            f"{about.what} (Table {self.paper.number} of {about.cite}).", self.paper.units,
            _captions.sentence([*common, *_captions.settings(rows)]), _captions.parameters(own),
            _captions.deviation(own), *best, *tested,
        ]  # fmt: skip
        return " ".join(part for part in parts if part)


def cell(line: Line, column: Column, printed: Printed, notes: Footnotes) -> Cell:
    """The number of a column: the published one, or ours over seeds, marked where its counter is at fault."""
    measure = column.measure
    if column.printed:
        return printed.cell(line.printed, measure.direction, measure.published, notes)
    found = line.found(measure.statistic, measure.direction, column.convention)
    one = runs.number(found, line.runs, measure.digits, notes)
    if column.convention != "released" or one.missing:
        return one
    return replace(one, mark=joined(one.mark, printed.released(line.key, measure.direction, measure.published, notes)))


def recalls(direction: str) -> tuple[Measure, ...]:
    """R@1, R@5 and R@10 of a direction."""
    return tuple(Measure(direction, f"R@{k}", better="higher") for k in (1, 5, 10))


RSUM = Measure("both", "rsum", better="higher")
RETRIEVAL = {"-i2t": recalls("i2t"), "-t2i": (*recalls("t2i"), RSUM)}
UNITS = "Recall in %, rsum (the sum of the six recalls) in points."


def _alike(wide: pd.DataFrame, name: str) -> bool:
    """Whether a convention gives the very numbers of `corrected`, wherever either is there."""
    ours, theirs = wide["corrected"], wide[name]
    return bool(((ours == theirs) | (ours.isna() & theirs.isna())).all())


def dashes(body: Sequence[Sequence[Cell]]) -> list[str]:
    """The footnote on dashes, where there are any."""
    return [NO_ROW] if any(one.missing for row in body for one in row) else []


def _common(found: Sequence[Line]) -> dict[str, str]:
    """Data and encoder, where all lines have the same."""
    values = {"data": {line.data for line in found}, "encoder": {line.encoder for line in found}}
    return {name: next(iter(own)) for name, own in values.items() if len(own) == 1}


def _words(found: Sequence[Line]) -> Callable[[Line], dict[str, str]]:
    """What the first cells of a line say: data and encoder where they differ, the loss, settings that differ."""
    common = _common(found)

    def words(line: Line) -> dict[str, str]:
        who = {"data": line.data, "encoder": line.encoder, "loss": line.objective_label, **line.settings}
        return {key: word for key, word in who.items() if key not in common}

    return words
