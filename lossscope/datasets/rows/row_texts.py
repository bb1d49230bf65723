"""Columns of a file -> rows of texts; every value of another kind is an InputError that names its line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import chain
from types import NoneType
from typing import Any

from lossscope.errors import InputError
from lossscope.io.column_blocks import ColumnBlock
from lossscope.io.json_files import shorten

from .column_choice import ColumnChoice
from .column_names import Role
from .passages import passage_text
from .row_block import RowBlock, TextLists

_MAX_TEXTS = 1 << 16  # positives, or negatives, of a row
_HINT = ". Where these are ids, name their texts: texts:file=...,corpus=collection.tsv,queries=queries.tsv"


def row_block(block: ColumnBlock, choice: ColumnChoice, file: int) -> RowBlock:
    """Return the rows of some columns.

    Args:
        block: columns as they are in the file.
        choice: which of them have which role.
        file: number of the file.

    Raises:
        InputError: a row without a query, or with a value that is no text and no list of texts.
    """
    queries = _queries(block, choice)
    rows = RowBlock(
        (file, block.number),
        block.file,
        block.lines,
        queries,
        _ids(block, choice),
        _lists(block, choice, "positive"),
        _lists(block, choice, "negative"),
        block.done,
        block.unit,
    )
    cut = choice.score_cut(block)
    rows = rows if cut is None else cut.apply(rows, block)
    return replace(rows, notices=choice.notices(block.file))


def _queries(block: ColumnBlock, choice: ColumnChoice) -> list[str]:
    columns = choice.columns("query", block)
    queries: list[Any] = block.columns[columns[0]] if columns else [None] * len(block.lines)
    if not {str}.issuperset(map(type, queries)):
        row = next(row for row, value in enumerate(queries) if not isinstance(value, str))
        names = " or ".join(map(repr, columns or choice.names.query[:4]))
        if not block.columns:
            raise InputError(
                f"{block.file} must have a column {names} with the text of the query; it has none. If another column "
                f"has it, add columns=query=NAME,positive=NAME to texts:file=...; if it holds embeddings, "
                f"`lossscope cocos {block.file}` prints the line that makes a dump of them"
            )
        known = ", ".join(map(repr, block.columns))
        raise InputError(
            f"{block.place(row)} must have a text as its query, {names}; got {shorten(queries[row])}. Its columns are "
            f"{known}: columns=query=NAME names another" + ("" if columns or not choice.columns("id", block) else _HINT)
        )
    return queries


def _ids(block: ColumnBlock, choice: ColumnChoice) -> list[str] | None:
    columns = choice.columns("id", block)
    if not columns or (choice.is_pair and columns == ["id"]):
        return None
    values = block.columns[columns[0]]
    for row, value in enumerate(values):
        if isinstance(value, bool) or not isinstance(value, str | int) or value == "":
            where = f"{columns[0]!r} of {block.place(row)}"
            raise InputError(
                f"{where} must be a text or a whole number, as in the rows before; got {shorten(value)}: give every "
                "row an id or none"
            )
    return [str(value) for value in values]


def _lists(block: ColumnBlock, choice: ColumnChoice, role: Role) -> TextLists:
    names = choice.columns(role, block)
    columns = [block.columns[name] for name in names]
    for name in names:
        choice.note_texts(name, block)
    lists = _flatten(columns, len(block.lines))
    if lists is None or not {str}.issuperset(map(type, lists.texts)):
        lists = _flatten_slowly(block, names)
    if max(lists.counts, default=0) > _MAX_TEXTS:
        row = next(row for row, count in enumerate(lists.counts) if count > _MAX_TEXTS)
        raise InputError(f"{block.place(row)} must have at most {_MAX_TEXTS} {role}s; got {lists.counts[row]}")
    return lists


def _flatten(columns: Sequence[list[Any]], rows: int) -> TextLists | None:
    """Return the lists of one column of texts or of lists, or of several that are all texts; None for any others."""
    if not columns:
        return TextLists([], [0] * rows)
    (first, *others), kinds = columns, {kind for column in columns for kind in set(map(type, column))}
    if kinds == {str}:
        texts = list(chain.from_iterable(zip(*columns, strict=True))) if others else first
        return TextLists(texts, [len(columns)] * rows)
    if others or not (kinds <= {str, NoneType} or kinds <= {list, NoneType}):
        return None
    if str in kinds:
        return TextLists([text for text in first if text is not None], [int(text is not None) for text in first])
    lists = [texts or () for texts in first]
    return TextLists(list(chain.from_iterable(lists)), list(map(len, lists)))


def _flatten_slowly(block: ColumnBlock, names: Sequence[str]) -> TextLists:
    """Return the lists of columns of texts, of lists of texts, and of nothing, row by row."""
    lists: list[list[tuple[str, str | None]]] = []
    for row in range(len(block.lines)):
        lists.append([])
        for name in names:
            value = block.columns[name][row]
            for text in [] if value is None else value if isinstance(value, list) else [value]:
                if isinstance(text, dict):
                    lists[-1].append(passage_text(text, f"{name!r} of {block.place(row)}"))
                elif isinstance(text, str):
                    lists[-1].append((text, None))
                else:
                    what = "a text or a list of texts"
                    hint = _HINT if isinstance(text, int) and not isinstance(text, bool) else ""
                    raise InputError(f"{name!r} of {block.place(row)} must be {what}; got {shorten(value)}{hint}")
    return TextLists.of(lists)
