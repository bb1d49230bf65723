"""Read labels of pairs from the sheet, or from the labels.csv of the page."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations, compress
from pathlib import Path

import numpy as np
import numpy.typing as npt

from lossscope.core.pair_rows import ABSENT, resolve_pairs
from lossscope.core.sides import Sides, with_article
from lossscope.core.types import Rows
from lossscope.errors import InputError
from lossscope.io.json_files import shorten

from ..parts.material import Material
from ..search.known import are_known
from ..types import PairRows
from .kappa import Agreement, agreement
from .pair_file import DesignRow, PairFile, answer_column, pair_columns, read_pair_file

_WORDS = {
    "yes": True, "y": True, "1": True, "1.0": True, "true": True, "positive": True,
    "no": False, "n": False, "0": False, "0.0": False, "false": False, "negative": False,
    "": None, "unsure": None, "u": None, "?": None, "nan": None,
}  # fmt: skip
_LEAST = 10  # answers


@dataclass(frozen=True, eq=False)
class Labels:
    """Different pairs with their answers, without unsure and unanswered ones.

    `pairs` has no known matches and no copies: their probability does not come from the signals.
    """

    pairs: PairRows
    answers: npt.NDArray[np.bool_]  # (n,)
    design: tuple[DesignRow | None, ...]  # (n,) the stratum of each; None: it was not drawn for a rate
    given: PairRows  # all answered pairs, in the order of the file
    given_answers: npt.NDArray[np.bool_]
    given_design: tuple[DesignRow | None, ...]
    skipped: int  # rows without an answer
    known: int  # answered pairs that are known to match
    copies: int  # answered pairs of copies
    denied: int  # of these, pairs whose answer is no
    where: str  # the file or files, as messages name them
    agreements: tuple[Agreement, ...] = ()  # of each two files
    disputed: int = 0  # pairs left out because people answer them differently
    unreadable: tuple[str, ...] = ()  # which rows of a file are left out because they cannot be read, and why

    @property
    def notices(self) -> tuple[str, ...]:
        """Which answers were left out?"""
        notices = []
        if self.disputed:
            pairs = "1 pair is" if self.disputed == 1 else f"{self.disputed} pairs are"
            notices.append(f"{pairs} answered differently in {self.where}, and left out as unsure")
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


def read_labels(
    paths: Path | str | Sequence[Path | str], material: Material, is_copy: Callable[[PairRows], Rows] | None = None
) -> Labels:
    """Return the labelled pairs of sheets; a pair that is answered twice alike counts once.

    In one set, (a, b) is (b, a). Each file belongs to a person; pairs that people answer differently are left out.

    Rows that cannot be read are left out, and stated, where they are less than half of a file: rows of another length,
    without a known item or with one item twice, with a word that is no answer, with a malformed stratum.

    Args:
        paths: of a sheet, or of a sheet of each person.
        material: the items that the sheets name.
        is_copy: pairs -> (n,) 1 where a copy proves that they match; None: no pair is a copy.

    Raises:
        InputError: half of the rows of a file cannot be read, a pair has both answers in a file, fewer than ten answers
            to pairs that are neither known to match nor copies, or answers that are all the same.
    """
    files = [paths] if isinstance(paths, (Path, str)) else list(paths)
    people = [_read_answers(path, material) for path in files]
    merged: dict[tuple[int, int], _Answer | None] = {}  # None: people disagree
    for person in people:
        for pair, answer in person.answers.items():
            first = merged.setdefault(pair, answer)
            if first is not None and first.is_match != answer.is_match:
                merged[pair] = None
            elif first is not None and first.design is None:
                merged[pair] = answer
    kept = {pair: answer for pair, answer in merged.items() if answer is not None}
    where = " and ".join(person.where for person in people)
    rows = np.array([(answer.left, answer.right) for answer in kept.values()], np.int64).reshape(-1, 2)
    pairs = PairRows(rows[:, 0], rows[:, 1])
    matches = np.array([answer.is_match for answer in kept.values()], bool)
    design = [answer.design for answer in kept.values()]
    known = are_known(material.relations, pairs)
    copies = np.zeros(len(pairs), bool) if is_copy is None else ~known & (is_copy(pairs) > 0)
    keep = ~(known | copies)
    answers = matches[keep]
    if len(answers) < _LEAST:
        left_out = ((known, "known to match"), (copies, "copies"))
        words = " and ".join(f"{int(which.sum())} are {what}" for which, what in left_out if which.any())
        others = f" beside those that say nothing of the others ({words})" if words else ""
        raise InputError(f"{where} must have at least {_LEAST} answers, yes or no{others}; got {len(answers)}")
    if answers.all() or not answers.any():
        word = "yes" if answers.all() else "no"
        raise InputError(
            f"{where} must have answers of both kinds, yes and no; all {len(answers)} are {word}. Label more pairs"
        )
    return Labels(
        PairRows(pairs.left[keep], pairs.right[keep]), answers, tuple(compress(design, keep)),
        pairs, matches, tuple(design),
        skipped=sum(person.skipped for person in people), known=int(known.sum()), copies=int(copies.sum()),
        denied=int((copies & ~matches).sum()), where=where,
        agreements=tuple(_agreement(*two) for two in combinations(people, 2)),
        disputed=len(merged) - len(kept), unreadable=tuple(filter(None, (person.unreadable for person in people))),
    )  # fmt: skip


@dataclass(frozen=True)
class _Answer:
    """The answer of a person to a pair, yes or no."""

    left: int  # row
    right: int  # row
    is_match: bool
    design: DesignRow | None


@dataclass(frozen=True)
class _Person:
    """The answers of a file."""

    where: str
    answers: dict[tuple[int, int], _Answer]  # rows of a pair, of one set the smaller first
    skipped: int  # rows without an answer
    unreadable: str  # which rows are left out because they cannot be read; empty: none


def _read_answers(path: Path | str, material: Material) -> _Person:
    """Return the pairs of a file that have the answer yes or no."""
    sides, one_set = material.relations.sides, material.relations.one_set
    file = read_pair_file(path, sides, is_lenient=True)
    _note_answers(file, answer_column(sides))
    file = file.without(file.faults.lines)
    columns = material, file.left, file.right, file.where, file.lines, file.kinds
    resolved = resolve_pairs(*columns, absent="list")
    _note_items(file, sides, resolved)
    if file.faults.are_many(file.rows):
        resolve_pairs(*columns)  # says what names an item
    file.faults.require_few(file.rows)
    unreadable = file.faults.lines
    file, keep = file.without(unreadable), [line not in unreadable for line in file.lines]
    left, right = (rows[np.array(keep, bool)] for rows in resolved)
    given = [_WORDS[word] for word in file.answers or ()]
    positions: dict[tuple[int, int], int] = {}  # pair -> position of its answer in the file
    for position, (a, b, answer) in enumerate(zip(left.tolist(), right.tolist(), given, strict=True)):
        if answer is None:
            continue
        pair = (b, a) if one_set and b < a else (a, b)
        first = positions.setdefault(pair, position)
        if given[first] != answer:
            raise InputError(
                f"a pair must have one answer; lines {file.lines[first]} and {file.lines[position]} of {file.where} "
                f"answer the same pair with {_written(file, first)} and {_written(file, position)}"
            )
        if file.design[first] is None:  # the row with a stratum counts, though the fit has the pair, too
            positions[pair] = position
    answers = {
        pair: _Answer(int(left[position]), int(right[position]), bool(given[position]), file.design[position])
        for pair, position in positions.items()
    }
    skipped = sum(answer is None for answer in given)
    return _Person(file.where, answers, skipped, file.faults.notice(file.rows))


def _agreement(first: _Person, second: _Person) -> Agreement:
    """Return how far two people agree on the pairs that both answered."""
    both = [pair for pair in first.answers if pair in second.answers]
    answers = ([person.answers[pair].is_match for pair in both] for person in (first, second))
    return agreement((first.where, second.where), *answers)


def _written(file: PairFile, position: int) -> str:
    """Return the answer as the file has it."""
    return "" if file.answers is None else shorten(file.answers[position])


def _note_answers(file: PairFile, column: str) -> None:
    """Note the rows with a word that is no answer. Raises InputError for a file without answers."""
    if file.answers is None:
        raise InputError(f"{file.where} must have the column {column}, with yes, no or unsure; it has none")
    for line, word in zip(file.lines, file.answers, strict=True):
        if word not in _WORDS:
            file.faults.add(f"{column} of {file.where} must be yes, no or unsure", line, f"has {shorten(word)}")
    file.faults.require_few(file.rows)


def _note_items(file: PairFile, sides: Sides, rows: tuple[Rows, Rows]) -> None:
    """Note the rows that name no item, or one twice."""
    names = sides.first, sides.second or sides.first
    for column, name, ids, found in zip(pair_columns(sides), names, (file.left, file.right), rows, strict=True):
        for line, id, row in zip(file.lines, ids, found.tolist(), strict=True):
            if row == ABSENT:
                rule = f"column {column} of {file.where} must name {with_article(name)} of these data"
                file.faults.add(rule, line, f"has {shorten(id)}")
    for line, a, b in zip(file.lines, *(column.tolist() for column in rows), strict=True):
        if sides.is_one_set and a == b != ABSENT:
            file.faults.add(f"pairs of {file.where} must be of two items", line, "has one twice")
