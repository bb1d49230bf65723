"""What readers of rows yield: some rows of a file as columns, with the line that each began in."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from lossscope.errors import InputError

MAX_COLUMNS = 1000  # that are read of a file of rows
Keep = Callable[[str], bool]  # whether a column is read, by its name
Only = Container[int] | None  # numbers of the blocks that are read; None: all


@dataclass(frozen=True)
class ColumnBlock:
    """Some rows of one file: columns of equal length, None where a row has no value."""

    number: int  # of the block in its file, from 0; the same whenever the file is read
    file: str  # as messages name it
    lines: Sequence[int]  # where each row begins, counted from 1
    columns: Mapping[str, list[Any]]
    done: int  # bytes of the file that were read so far
    unit: Literal["line", "row"] = "line"  # what `lines` counts

    def place(self, row: int) -> str:
        """Return `line 17 of FILE`."""
        return f"{self.unit} {self.lines[row]} of {self.file}"


def require_columns(names: Sequence[str], file: str) -> None:
    """Raise InputError for more columns than any file of rows has, and for two of one name."""
    require_different(names, file)
    if len(names) > MAX_COLUMNS:
        raise InputError(f"{file} must have at most {MAX_COLUMNS} columns to read; got {len(names)}")


def require_different(names: Sequence[str], file: str) -> None:
    """Raise InputError for two columns of one name."""
    double = next((name for name in names if names.count(name) > 1), None) if len(set(names)) < len(names) else None
    if double is not None:
        raise InputError(f"columns of {file} must have different names; got {double!r} twice")


def join_blocks(blocks: Iterable[ColumnBlock]) -> ColumnBlock | None:
    """Return the rows of blocks of the same columns as one block, which is the table; None where there are none."""
    collected = list(blocks)
    if not collected:
        return None
    columns = {name: [value for block in collected for value in block.columns[name]] for name in collected[0].columns}
    return replace(
        collected[-1], number=0, lines=[line for block in collected for line in block.lines], columns=columns
    )
