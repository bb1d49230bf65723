"""Which printed number stands beside one of ours, and what is to be said of it?"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from lossscope.spec import Spec

from ._footnotes import Footnotes, joined
from .cells import DASH, Cell
from .published import base as published
from .published.base import About

Key = tuple[str | None, str | None, str | None]  # objective, triplet weight, pair weight
KEY = ("objective", "triplet_weight", "pair_weight")
_CELLS = ("row_id", "dataset", "objective", "triplet_weight", "direction", "metric")
_DIRECTIONS = {"v2t": "i2t", "t2v": "t2i"}
_FIELDS = {"alpha": "margin", "m": "margin"}  # what the papers call a field of ours


def key_of(spec: str) -> Key:
    """How a spec is looked up: its name, and for goal both weights; `-` and `_` are one.

    >>> key_of("goal:triplet=cir,pair=sig-ms,tau=10"), key_of("triplet-sh:margin=0.2")
    (('goal', 'cir', 'sig_ms'), ('triplet_sh', None, None))
    """
    parsed = Spec.parse(spec)
    name = parsed.name.replace("-", "_")
    if name != "goal":
        return name, None, None
    triplet, pair = (parsed.values.get(key, "con").replace("-", "_") for key in ("triplet", "pair"))
    return name, triplet, pair


def label_of(key: Key) -> str:
    """How a printed line is called that no run of ours names."""
    return DASH if key[0] is None else " ".join(word for word in key if word)


def keyed(row: pd.Series[Any]) -> Key:
    """The key of a printed row."""
    objective, triplet, pair = (None if pd.isna(row[part]) else str(row[part]) for part in KEY)
    return objective, triplet, pair


@dataclass(frozen=True)
class Printed:
    """A printed table: its cells, what is known to be wrong in it, and what it is."""

    rows: pd.DataFrame
    doubts: Sequence[Mapping[Hashable, object]]
    about: About
    batch_size: str | None  # of the counts

    @classmethod
    def of(cls, paper: str, table: int) -> Printed:
        """One table of a paper. Raises InputError naming the tables there are."""
        rows = published.load(paper, table)
        rows["direction"] = rows["direction"].replace(_DIRECTIONS)
        for part in KEY:
            rows[part] = rows[part].map(_flat, na_action="ignore")
        recipes = published.recipes(paper)
        counted = recipes.loc[(recipes["method"] == "COCOS") & (recipes["key"] == "batch_size"), "value"]
        batch = str(counted.iloc[0]) if len(counted) and rows["split"].eq("train").any() else None
        return cls(rows, published.doubts(paper, table).to_dict("records"), published.about(paper, table), batch)

    def objectives(self) -> list[Key]:
        """Objectives in printed order; rows that name none left out."""
        named = self.rows[self.rows["objective"].notna()]
        return list(dict.fromkeys(keyed(row) for _, row in named.iterrows()))

    def line(self, dataset: str | None, method: str | None, key: Key) -> pd.DataFrame:
        """The printed cells of one data set, model and objective: none, or of one row."""
        if None in (dataset, method, key[0]):
            return self.rows[:0]
        same = (self.rows["dataset"] == dataset) & (self.rows["method"] == method)
        for part, word in zip(KEY, key, strict=True):
            same &= self.rows[part].isna() if word is None else self.rows[part] == word
        return self.rows[same]

    def has(self, direction: str, metric: str | None) -> bool:
        """Whether the table prints a number of this kind at all."""
        return bool(((self.rows["direction"] == direction) & (self.rows["metric"] == metric)).any())

    def cell(self, line: pd.DataFrame, direction: str, metric: str | None, notes: Footnotes) -> Cell:
        """A printed number with the digits it has in print, marked where it is in doubt; a dash where there is none."""
        records = line.to_dict("records")
        found = [row for row in records if (row["direction"], row["metric"]) == (direction, metric)]
        if not found:
            return Cell()
        row = found[0]
        std = None if pd.isna(row["std"]) else float(row["std"])
        mark = self._mark({str(name): row[name] for name in _CELLS}, notes)
        return Cell(None, float(row["mean"]), std, row["mean_digits"], std_digits=row["std_digits"], mark=mark)

    def released(self, key: Key, direction: str, metric: str | None, notes: Footnotes) -> str:
        """The mark of our own number of the convention `released`, where the released counter is at fault."""
        cell = {"objective": key[0], "direction": direction, "metric": metric}
        return self._mark(cell, notes, counter=True)

    def differences(self, line: pd.DataFrame, spec: str, settings: Mapping[str, str]) -> list[str]:
        """Parameters that the printed line has otherwise, as far as the paper states them: `tau 0.05, printed 0.1`."""
        stated = line["hyperparameters"].dropna().unique()
        wanted = dict(pair.split("=") for pair in stated[0].split(";")) if len(stated) else {}
        wanted |= {"batch_size": self.batch_size} if self.batch_size else {}
        ours = {**Spec.parse(spec).values, **settings}
        pairs = [(_FIELDS.get(name, name), value) for name, value in wanted.items()]
        return [
            f"{name.replace('_', ' ')} {ours[name]}, printed {value}"
            for name, value in pairs
            if name in ours and ours[name] != DASH and float(ours[name]) != float(value)
        ]

    def _mark(self, cell: Mapping[str, object], notes: Footnotes, counter: bool = False) -> str:
        """The letters of a cell's doubts; counter: of those alone that are of the released counter."""
        known = [doubt for doubt in self.doubts if doubt["counter"] or not counter]
        meant = [doubt for doubt in known if all(doubt[name] in ("*", cell.get(name)) for name in _CELLS)]
        return joined(*(notes.letter(str(doubt["note"])) for doubt in meant))


def _flat(word: str) -> str:
    return word.replace("-", "_")
