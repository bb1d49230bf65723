"""Rows of JSON: an object on each line, or one array of objects, whose keys are columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from lossscope.errors import InputError

from .column_blocks import ColumnBlock, Keep, Only, require_columns
from .json_files import expect, parse_json, parse_json_lines, shorten
from .limits import MAX_TEXT_BYTES
from .line_blocks import iter_line_blocks
from .locations import open_location
from .reading import reading, show_path
from .text_files import decode_utf8

_ROWS = 512  # of a block of an array


def iter_json_lines(location: str, keep: Keep, only: Only = None) -> Iterator[ColumnBlock]:
    """Yield the rows of a file of JSON lines, or of one JSON array, in blocks; empty lines are no rows.

    Args:
        location: path or URL.
        keep: whether a key is read.
        only: numbers of the blocks that are yielded, without decoding the others; None: all.

    Raises:
        InputError: a line that is no JSON object, gives a key twice, or holds half of a surrogate pair, by its number;
            an array that is larger than a text file that is read as a whole.
    """
    name = show_path(location)
    for number, block in enumerate(iter_line_blocks(location)):
        if only is not None and number not in only:
            continue
        if number == 0 and _is_array(block.lines, name):
            yield from _iter_array(location, name, keep, only)
            return
        numbers, objects = parse_json_lines(block.lines, block.first, name)
        columns = _columns(objects, keep, f"lines {block.first} and following of {name}")
        yield ColumnBlock(number, name, numbers, columns, block.done)


def _columns(objects: Sequence[dict[str, Any]], keep: Keep, where: str) -> dict[str, list[Any]]:
    kept = sorted(filter(keep, set().union(*objects)))
    require_columns(kept, where)
    return {key: [row.get(key) for row in objects] for key in kept}


def _is_array(lines: Sequence[str], name: str) -> bool:
    """Return whether the lines begin an array, on one line or on many. Raises InputError for an array on each line."""
    first, *more = [line.strip() for line in lines if line.strip()][:2] or [""]
    if more and first.startswith("[") and first.endswith("]"):
        raise InputError(
            f'{name} must have a JSON object on each line, {{"query": ..., "positive": ...}}; got {shorten(first)}'
        )
    return first.startswith("[")


def _iter_array(location: str, name: str, keep: Keep, only: Only) -> Iterator[ColumnBlock]:
    """Yield the entries of an array, which is decoded as a whole. Raises InputError for a large one."""
    with open_location(location) as file, reading(location, "a readable file"):
        content = file.read(MAX_TEXT_BYTES + 1)
    if len(content) > MAX_TEXT_BYTES:
        raise InputError(
            f"{name} must have a JSON object on each line, as it has more than {MAX_TEXT_BYTES} bytes; it is an array: "
            f"jq -c '.[]' {name} > {name.removesuffix('.json')}.jsonl writes one"
        )
    entries = expect(parse_json(decode_utf8(content, name), name), list, name)
    for number, start in enumerate(range(0, len(entries), _ROWS)):
        if only is None or number in only:
            block = entries[start : start + _ROWS]
            objects = [expect(row, dict, f"row {start + 1 + index} of {name}") for index, row in enumerate(block)]
            columns = _columns(objects, keep, f"rows {start + 1} and following of {name}")
            lines = range(start + 1, start + 1 + len(block))
            yield ColumnBlock(number, name, lines, columns, len(content), "row")
