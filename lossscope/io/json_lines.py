"""Rows of JSON lines: one object a line, whose keys are columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from lossscope.errors import InputError

from .column_blocks import ColumnBlock, Keep, Only, require_columns
from .json_files import parse_json_lines
from .line_blocks import iter_line_blocks
from .reading import show_path


def iter_json_lines(location: str, keep: Keep, only: Only = None) -> Iterator[ColumnBlock]:
    """Yield the rows of a file of JSON lines in blocks; empty lines are no rows.

    Args:
        location: path or URL.
        keep: whether a key is read.
        only: numbers of the blocks that are yielded, without decoding the others; None: all.

    Raises:
        InputError: a line that is no JSON object, gives a key twice, or holds half of a surrogate pair, by its number.
    """
    name = show_path(location)
    for number, block in enumerate(iter_line_blocks(location)):
        if only is not None and number not in only:
            continue
        if number == 0:
            _require_no_array(block.lines, name)
        numbers, objects = parse_json_lines(block.lines, block.first, name)
        kept = sorted(filter(keep, set().union(*objects)))
        require_columns(kept, f"lines {block.first} and following of {name}")
        columns = {key: [row.get(key) for row in objects] for key in kept}
        yield ColumnBlock(number, name, numbers, columns, block.done)


def _require_no_array(lines: Sequence[str], name: str) -> None:
    """Raise InputError for a file that is one JSON array, on one line or on many."""
    first = next((line.strip() for line in lines if line.strip()), "")
    if first.startswith("["):
        raise InputError(
            f"{name} must have a JSON object on each line; it begins with an array: write every entry of it on a line "
            "of its own"
        )
