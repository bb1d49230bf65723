"""Look up the printed numbers of a paper's table by data set, model and objective."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from lossscope.spec import Spec

from ._footnotes import Footnotes, join_marks
from .cells import DASH, Cell
from .published import base as published
from .published.base import About

Key = tuple[str | None, str | None, str | None]  # objective, triplet weight, pair weight
KEY = ("objective", "triplet_weight", "pair_weight")
NO_LOSS: Key = (None, None, None)  # of a model that was not trained, or whose loss is not stated
_CELL = ("row_id", "dataset", "objective", "triplet_weight", "direction", "metric")  # identify a printed cell
_DIRECTIONS = {"v2t": "i2t", "t2v": "t2i"}
_FIELDS = {"alpha": "margin", "m": "margin"}  # the papers' name of a field -> lossscope's


def key_of(spec: str | None) -> Key:
    """Return the key of a spec: its name, and for goal both weights; `-` and `_` are equal. None has NO_LOSS.

    >>> key_of("goal:triplet=cir,pair=sig-ms,tau=10"), key_of("triplet-sh:margin=0.2")
    (('goal', 'cir', 'sig_ms'), ('triplet_sh', None, None))
    """
    if spec is None:
        return NO_LOSS
    parsed = Spec.parse(spec)
    name = parsed.name.replace("-", "_")
    if name != "goal":
        return name, None, None
    triplet, pair = (parsed.values.get(field, "con").replace("-", "_") for field in ("triplet", "pair"))
    return name, triplet, pair


def key_of_row(row: pd.Series[Any]) -> Key:
    """Return the key of a printed row."""
    objective, triplet, pair = (None if pd.isna(row[part]) else str(row[part]) for part in KEY)
    return objective, triplet, pair


def label_of(key: Key) -> str:
    """Return the label of a printed row without a run."""
    return DASH if key[0] is None else " ".join(word for word in key if word)


@dataclass(frozen=True)
class PrintedTable:
    """A table as its paper prints it."""

    rows: pd.DataFrame  # its cells
    doubts: Sequence[Mapping[Hashable, object]]  # known errors
    about: About
    batch_size: str | None  # of the counts; None: the table has no counts

    @classmethod
    def read(cls, paper: str, table: int) -> PrintedTable:
        """Read one table of a paper. Raises InputError listing the tables."""
        rows = published.load(paper, table)
        rows["direction"] = rows["direction"].replace(_DIRECTIONS)
        for part in KEY:
            rows[part] = rows[part].map(_with_underscores, na_action="ignore")
        recipes = published.recipes(paper)
        sizes = recipes.loc[(recipes["method"] == "COCOS") & (recipes["key"] == "batch_size"), "value"]
        batch_size = str(sizes.iloc[0]) if len(sizes) and rows["split"].eq("train").any() else None
        doubts = published.doubts(paper, table).to_dict("records")
        return cls(rows, doubts, published.about(paper, table), batch_size)

    def objectives(self) -> list[Key]:
        """Return the objectives in printed order; skip rows that name none."""
        named = self.rows[self.rows["objective"].notna()]
        return list(dict.fromkeys(key_of_row(row) for _, row in named.iterrows()))

    def line(self, dataset: str | None, method: str | None, key: Key) -> pd.DataFrame:
        """Return the printed cells of a data set, model and objective: a row of the table, or nothing."""
        if dataset is None or method is None:
            return self.rows[:0]
        same = (self.rows["dataset"] == dataset) & (self.rows["method"] == method)
        for part, word in zip(KEY, key, strict=True):
            same &= self.rows[part].isna() if word is None else self.rows[part] == word
        return self.rows[same]

    def has(self, direction: str, metric: str | None) -> bool:
        """Return whether the table prints this metric and direction for any row."""
        return bool(((self.rows["direction"] == direction) & (self.rows["metric"] == metric)).any())

    def cell(self, line: pd.DataFrame, direction: str, metric: str | None, notes: Footnotes) -> Cell:
        """Return a printed number with its printed digits, marked if it is in doubt; a dash without a number."""
        records = line.to_dict("records")
        matches = [row for row in records if (row["direction"], row["metric"]) == (direction, metric)]
        if not matches:
            return Cell()
        row = matches[0]
        std = None if pd.isna(row["std"]) else float(row["std"])
        mark = self._mark({str(name): row[name] for name in _CELL}, notes)
        return Cell(None, float(row["mean"]), std, row["mean_digits"], std_digits=row["std_digits"], mark=mark)

    def mark_of_released(self, key: Key, direction: str, metric: str | None, notes: Footnotes) -> str:
        """Return the mark of our number in the convention `released` if the released counter is wrong."""
        cell = {"objective": key[0], "direction": direction, "metric": metric}
        return self._mark(cell, notes, counter_only=True)

    def differences(self, line: pd.DataFrame, spec: str, settings: Mapping[str, str]) -> list[str]:
        """Return parameters that differ from the paper's for a line: `tau 0.05, printed 0.1`.

        Args:
            line: the printed row.
            spec: our objective; empty: none.
            settings: our eps and batch size.
        """
        stated = line["hyperparameters"].dropna().unique()
        printed = dict(pair.split("=") for pair in stated[0].split(";")) if len(stated) else {}
        printed |= {"batch_size": self.batch_size} if self.batch_size else {}
        ours = {**(Spec.parse(spec).values if spec else {}), **settings}
        pairs = [(_FIELDS.get(name, name), value) for name, value in printed.items()]
        return [
            f"{name.replace('_', ' ')} {ours[name]}, printed {value}"
            for name, value in pairs
            if name in ours and ours[name] != DASH and float(ours[name]) != float(value)
        ]

    def _mark(self, cell: Mapping[str, object], notes: Footnotes, counter_only: bool = False) -> str:
        """Return the letters of a cell's doubts.

        Args:
            cell: its values of _CELL.
            notes: the footnotes.
            counter_only: leave out doubts that are not about the released counter.
        """
        doubts = [doubt for doubt in self.doubts if doubt["counter"] or not counter_only]
        matches = [doubt for doubt in doubts if all(doubt[name] in ("*", cell.get(name)) for name in _CELL)]
        return join_marks(*(notes.letter(str(doubt["note"])) for doubt in matches))


def _with_underscores(word: str) -> str:
    return word.replace("-", "_")
