"""Which rows of scored pairs are positives? Those of label 1, or with a score of at least a cut."""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from lossscope.errors import InputError
from lossscope.io.column_blocks import ColumnBlock
from lossscope.io.json_files import shorten

from .row_block import RowBlock, TextLists

_SCALES = {1.0: 0.8, 5.0: 4.0}  # the end of a scale -> its cut: 4 of 5 is "mostly equivalent" in STS
_Text = tuple[str, str | None]  # a text and its id
_NLI = {-1.0, 0.0, 1.0, 2.0}  # entailment, neutral, contradiction; -1: annotators did not agree


@dataclass(frozen=True)
class ScoreCut:
    """From which score on a pair of a file is a positive, and what the user should know of it."""

    column: str
    at: float
    notice: str

    def apply(self, rows: RowBlock, block: ColumnBlock) -> RowBlock:
        """Return rows whose texts below the cut are negatives of their query.

        A row has a score for its positives together, or a list: of each positive, or of positives and negatives.
        Raises InputError, naming the line, for a row without a score.
        """
        positives, negatives, scored = list[list[_Text]](), list[list[_Text]](), list[list[tuple[str, float]]]()
        values = block.columns.get(self.column, [None] * len(rows))
        columns = zip(values, rows.positives.pairs(), rows.negatives.pairs(), strict=True)
        for row, (value, near, far) in enumerate(columns):
            where = f"{self.column!r} of {block.place(row)}"
            scores = [_number(score, where) for score in value] if isinstance(value, list) else None
            marked = near + far if scores is not None and len(scores) == len(near) + len(far) else near
            if scores is None:
                scores = [_number(value, where)] * len(near)
            if len(scores) != len(marked):
                raise InputError(f"{where} must be a score of each of {len(marked)} texts; got {shorten(value)}")
            rest = far if marked is near else []
            scored.append([(text[0], score) for text, score in zip(marked, scores, strict=True)])
            positives.append([text for text, score in zip(marked, scores, strict=True) if score >= self.at])
            negatives.append([text for text, score in zip(marked, scores, strict=True) if score < self.at] + rest)
        lists = TextLists.of(positives), TextLists.of(negatives)
        return replace(rows, positives=lists[0], negatives=lists[1], is_scored=True, scores=scored)


def choose_cut(blocks: Iterable[ColumnBlock], column: str, cut: float | None, is_pair: bool) -> ScoreCut | str:
    """Return the cut of a file's scores, or a notice why lossscope does not read them.

    Args:
        blocks: of the file, with this column.
        column: name of the scores.
        cut: that the user typed.
        is_pair: whether rows are two texts that match or not; else they are a query and a positive, and only labels
            of 0 and 1 tell that the text may be a negative.

    Raises:
        InputError: labels of NLI, or scores of an unknown scale without a cut.
    """
    scores, file, is_whole = array("d"), "", True
    for block in blocks:
        file = block.file
        for row, value in enumerate(block.columns.get(column, [None] * len(block.lines))):
            for score in value if isinstance(value, list) and not is_pair else [value]:
                number, where = _parse(score), f"{column!r} of {block.place(row)}"
                if number is None and cut is None and not is_pair:
                    return _unread(column, file)
                if number is None and cut is None and isinstance(score, str) and score.strip():
                    got = f"got {shorten(score)}. {_keep_entailments(file, column, 'entailment')}"
                    raise InputError(f"{where} must be a score or a label of 0 or 1; {got}")
                is_whole &= _is_whole(score)
                scores.append(_number(score, where))
    if cut is None and set(scores) <= {0.0, 1.0}:
        return ScoreCut(column, 0.5, (
            f"{column!r} of {file} is 0 or 1: rows of 1 are positives ({_count(scores, 0.5)}), rows of 0 are negatives "
            "of their query"
        ))  # fmt: skip
    if cut is None and not is_pair:
        return _unread(column, file)
    low, high = min(scores), max(scores)
    if cut is None and is_whole and set(scores) <= _NLI:
        raise InputError(
            f"{column!r} of {file} must be a score or a label of 0 or 1; it is {low:g}..{high:g}, as in NLI. "
            f"{_keep_entailments(file, column, 0)}. If they are grades, say from which on a row is a positive: cut=1"
        )
    at = _usual_cut(low, high, column, file) if cut is None else cut
    return ScoreCut(column, at, (
        f"{column!r} of {file} is {low:g}..{high:g}: rows with {at:g} or more are positives ({_count(scores, at)}), "
        "all others are negatives of their query"
        + (f". Assuming cut={at:g}; set it with cut=S" if cut is None else "")
    ))  # fmt: skip


def _count(scores: Sequence[float], at: float) -> str:
    return f"{sum(score >= at for score in scores):,} of {len(scores):,}"


def _usual_cut(low: float, high: float, column: str, file: str) -> float:
    """Return 4/5 of the scale's end. Raises InputError for a scale that is not 0..1 or 0..5."""
    scale = next((end for end in _SCALES if low >= 0 and 0.8 * end < high <= end), None)
    if scale is None:
        raise InputError(
            f"{column!r} of {file} is {low:g}..{high:g}, a scale that lossscope does not know: say from which score on "
            f"a row is a positive, texts:file=...,cut={(low + high) / 2:g}"
        )
    return _SCALES[scale]


def _unread(column: str, file: str) -> str:
    return (
        f"{column!r} of {file} is not read, as it is not a label of 0 and 1: every text among the positives is one. "
        "Where texts with a low score are none, add cut=S"
    )


def _keep_entailments(file: str, column: str, entailment: int | str) -> str:
    """Return the lines of Python that keep the pairs of a file of NLI that are entailments."""
    path = Path(file)
    loads = {
        ".csv": f"pd.read_csv({file!r})",
        ".tsv": f"pd.read_csv({file!r}, sep='\\t')",
        ".parquet": f"pd.read_parquet({file!r})",
        ".arrow": f"datasets.Dataset.from_file({file!r}).to_pandas()",
    }
    load = loads.get(path.suffix, f"pd.read_json({file!r}, lines=True)")
    out = str(path.with_name(f"{path.stem}-entailment.jsonl"))
    library = "datasets" if path.suffix == ".arrow" else "pandas as pd"
    return (
        f"Of NLI only entailments are positives; keep those, in Python: import {library}; x = {load}; "
        f"x[x[{column!r}] == {entailment!r}].drop(columns={column!r}).to_json({out!r}, orient='records', lines=True)"
    )


def _parse(value: object) -> float | None:
    """Return a finite number, or a text that is a number; None: it is none."""
    if isinstance(value, bool | int | float):
        number = float(value)
    elif isinstance(value, str):
        try:
            number = float(value)
        except ValueError:
            return None
    else:
        return None
    return number if math.isfinite(number) else None


def _number(value: object, where: str) -> float:
    number = _parse(value)
    if number is None:
        raise InputError(f"{where} must be a number; got {shorten(value)}")
    return number


def _is_whole(value: object) -> bool:
    return isinstance(value, int) or (isinstance(value, str) and value.lstrip("-").isdecimal())
