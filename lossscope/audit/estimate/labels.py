"""Labels of pairs that somebody gave: read from the sheet, or from what the page downloads."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from lossscope.core.pair_rows import resolve_pairs
from lossscope.core.sides import Sides
from lossscope.errors import InputError
from lossscope.io.csv_tables import read_csv
from lossscope.io.json_files import shorten
from lossscope.io.reading import show_path

from ..parts.material import Material
from ..types import PairRows

ANSWER = "answer"
_WORDS = {
    "yes": True, "y": True, "1": True, "true": True, "positive": True,
    "no": False, "n": False, "0": False, "false": False, "negative": False,
}  # fmt: skip
_SKIPPED = ("", "unsure", "u", "?", "nan")


@dataclass(frozen=True, eq=False)
class Labels:
    """Pairs with their answers, unsure and unanswered ones left out."""

    pairs: PairRows
    answers: npt.NDArray[np.bool_]  # (n,)
    skipped: int  # pairs without an answer


def pair_columns(sides: Sides) -> tuple[str, str]:
    """Return the columns of a file of pairs: the names of the sides; of one set `item` and `item_2`.

    >>> pair_columns(Sides("query", "document")), pair_columns(Sides("item", None))
    (('query', 'document'), ('item', 'item_2'))
    """
    return sides.first, f"{sides.first}_2" if sides.second is None else sides.second


def read_pairs(path: Path | str, material: Material) -> tuple[PairRows, list[str], list[str], list[str] | None]:
    """Return the pairs of a CSV file, their ids as they are written, and its answers where it has that column.

    Raises InputError for a file without the columns of the sides, and ids that are of no item.
    """
    table, where = read_csv(path), show_path(Path(path))
    first, second = pair_columns(material.relations.sides)
    missing = [name for name in (first, second) if name not in table]
    if missing:
        got = ", ".join(map(str, table.columns))
        raise InputError(f"{where} must have the columns {first} and {second}; got {got}")
    for name in (first, second):
        if bool(table[name].isna().any()):
            row = int(table[name].isna().to_numpy().argmax())
            raise InputError(f"column {name} of {where} must name an item in every row; row {row} is empty")
    left, right = ([str(value) for value in table[name]] for name in (first, second))
    rows = resolve_pairs(material, left, right, where)
    answers = [str(value).strip().lower() for value in table[ANSWER]] if ANSWER in table else None
    return PairRows(*rows), left, right, answers


def read_labels(path: Path | str, material: Material) -> Labels:
    """Return the labelled pairs of a sheet.

    Raises InputError for words that are no answers, pairs of which all are answered alike, and less than ten answers.
    """
    where = show_path(Path(path))
    pairs, left, right, words = read_pairs(path, material)
    if words is None:
        raise InputError(f"{where} must have the column {ANSWER}, with yes, no or unsure; it has none")
    for row, word in enumerate(words):
        if word not in _WORDS and word not in _SKIPPED and word not in ("1.0", "0.0"):
            raise InputError(f"{ANSWER} of {where} must be yes, no or unsure; row {row} has {shorten(word)}")
    given = np.array([word not in _SKIPPED for word in words])
    answers = np.array([_WORDS.get(word.removesuffix(".0"), False) for word in words])
    seen: dict[tuple[int, int], bool] = {}
    for a, b, answer in zip(pairs.left[given].tolist(), pairs.right[given].tolist(), answers[given], strict=True):
        if seen.setdefault((a, b), bool(answer)) != bool(answer):
            raise InputError(f"{where} must answer a pair in one way; rows {a} and {b} have both answers")
    keep = np.nonzero(given)[0]
    if len(keep) < _LEAST:
        raise InputError(f"{where} must have at least {_LEAST} answers, yes or no; got {len(keep)}")
    return Labels(PairRows(pairs.left[keep], pairs.right[keep]), answers[keep], int((~given).sum()))


_LEAST = 10
