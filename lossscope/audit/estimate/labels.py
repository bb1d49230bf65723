"""Labels of pairs that somebody gave: read from the sheet, or from what the page downloads."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from lossscope.core.pair_rows import resolve_pairs
from lossscope.core.types import Rows
from lossscope.errors import InputError
from lossscope.io.json_files import shorten

from ..parts.material import Material
from ..search.known import are_known
from ..types import PairRows
from .pair_file import PairFile, answer_column, read_pair_file

_WORDS = {
    "yes": True, "y": True, "1": True, "1.0": True, "true": True, "positive": True,
    "no": False, "n": False, "0": False, "0.0": False, "false": False, "negative": False,
    "": None, "unsure": None, "u": None, "?": None, "nan": None,
}  # fmt: skip
_LEAST = 10  # answers


@dataclass(frozen=True, eq=False)
class Labels:
    """Different pairs with their answers, unsure and unanswered ones left out.

    Pairs that are known to match and copies are none of `pairs`: their probability does not come from the signals.
    """

    pairs: PairRows
    answers: npt.NDArray[np.bool_]  # (n,)
    given: PairRows  # all answered pairs, in the order of the file
    given_answers: npt.NDArray[np.bool_]
    skipped: int  # rows without an answer
    known: int  # answered pairs that are known to match
    copies: int  # answered pairs of copies
    denied: int  # of these, pairs whose answer is no
    where: str  # the file, as messages name it

    @property
    def notices(self) -> tuple[str, ...]:
        """What was left out of them."""
        notices = []
        if self.known:
            notices.append(
                f"{self.known} answered pairs of {self.where} are known to match, and say nothing of the others"
            )
        if self.copies:
            denied = f"; {self.denied} of them are answered no, and stay copies all the same" if self.denied else ""
            notices.append(
                f"{self.copies} answered pairs of {self.where} are copies, which match without labels, and say nothing "
                f"of the others{denied}"
            )
        return tuple(notices)


def read_labels(path: Path | str, material: Material, is_copy: Callable[[PairRows], Rows] | None = None) -> Labels:
    """Return the labelled pairs of a sheet, a pair that is answered twice alike once.

    Of one set, (a, b) is (b, a).

    Args:
        path: of the sheet.
        material: whose items it names.
        is_copy: pairs -> (n,) 1 where a copy proves that they match; None: none are.

    Raises:
        InputError: words that are no answers, items that are none of the split, an item with itself, a pair with both
            answers, less than ten answers of pairs that are neither known to match nor copies, and answers that are
            all the same.
    """
    file = read_pair_file(path, material.relations.sides)
    given = _answers(file, answer_column(material.relations.sides))
    left, right = resolve_pairs(material, file.left, file.right, file.where, file.lines)
    relations = material.relations
    places: dict[tuple[int, int], int] = {}  # pair -> where its answer stands
    for place, (a, b, answer) in enumerate(zip(left.tolist(), right.tolist(), given, strict=True)):
        if answer is None:
            continue
        if relations.one_set and a == b:
            raise InputError(f"a pair must be of two items; line {file.lines[place]} of {file.where} has one twice")
        first = places.setdefault((b, a) if relations.one_set and b < a else (a, b), place)
        if given[first] != answer:
            raise InputError(
                f"a pair must have one answer; lines {file.lines[first]} and {file.lines[place]} of {file.where} "
                f"answer the same pair with {_written(file, first)} and {_written(file, place)}"
            )
    distinct = np.array(list(places.values()), np.int64)
    every, every_answer = (
        PairRows(left[distinct], right[distinct]),
        np.array([given[k] for k in distinct.tolist()], bool),
    )
    known = are_known(relations, every)
    copies = np.zeros(len(every), bool) if is_copy is None else ~known & (is_copy(every) > 0)
    keep = ~(known | copies)
    answers = every_answer[keep]
    if len(answers) < _LEAST:
        left_out = ((known, "known to match"), (copies, "copies"))
        words = " and ".join(f"{int(which.sum())} are {what}" for which, what in left_out if which.any())
        others = f" beside those that say nothing of the others ({words})" if words else ""
        raise InputError(f"{file.where} must have at least {_LEAST} answers, yes or no{others}; got {len(answers)}")
    if answers.all() or not answers.any():
        word = "yes" if answers.all() else "no"
        raise InputError(
            f"{file.where} must have answers of both kinds, yes and no; all {len(answers)} are {word}. Label more pairs"
        )
    return Labels(
        PairRows(every.left[keep], every.right[keep]), answers, every, every_answer,
        skipped=sum(one is None for one in given), known=int(known.sum()), copies=int(copies.sum()),
        denied=int((copies & ~every_answer).sum()), where=file.where,
    )  # fmt: skip


def _written(file: PairFile, place: int) -> str:
    """Return an answer as it is written."""
    return "" if file.answers is None else shorten(file.answers[place])


def _answers(file: PairFile, column: str) -> list[bool | None]:
    """Return the answer of each row, None where there is none."""
    if file.answers is None:
        raise InputError(f"{file.where} must have the column {column}, with yes, no or unsure; it has none")
    for line, word in zip(file.lines, file.answers, strict=True):
        if word not in _WORDS:
            raise InputError(f"{column} of {file.where} must be yes, no or unsure; line {line} has {shorten(word)}")
    return [_WORDS[word] for word in file.answers]
