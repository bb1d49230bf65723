"""A CSV file of texts as a person or lossscope wrote it: columns by name, every text exactly as it was written."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

from lossscope.errors import InputError

from .column_blocks import join_blocks
from .csv_rows import iter_csv_rows
from .exact_texts import IDS_IN_CSV
from .reading import show_path

_BLANKS = " \t"


@dataclass(frozen=True)
class CsvTexts:
    """The columns of a file, without rows of another length than the header."""

    where: str  # the file, as messages name it
    columns: dict[str, list[str]]  # by names without blanks around them
    lines: list[int]  # in which each row begins
    ragged: dict[int, int] = field(default_factory=dict)  # line -> number of values, of the rows of another length


def read_csv_texts(path: str, named: Collection[str] = (), is_lenient: bool = False) -> CsvTexts:
    """Read a CSV file as `exact_texts.IN_CSV` writes it.

    Blanks around a text belong to it, unless the header has some, too: then they belong to the way the file is written.

    Args:
        path: the file.
        named: columns whose names must occur once, blanks around them left out of account; none: all columns.
        is_lenient: whether rows of another length than the header are left out, and counted, instead of refused.

    Raises:
        InputError: a file without a header or a row, two columns of one name, a row of another length.
    """
    where, ragged = show_path(path), dict[int, int]()
    table = join_blocks(iter_csv_rows(path, lambda name: True, ragged=ragged if is_lenient else None))
    if table is None and ragged:
        return read_csv_texts(path, named)  # which says how long its rows are
    if table is None:
        raise InputError(f"{where} must have a header and at least one pair; it has no pair")
    is_spaced = any(name != name.strip(_BLANKS) for name in table.columns)
    columns: dict[str, list[str]] = {}
    for header, values in table.columns.items():
        name = IDS_IN_CSV.read(header.strip())
        if name in columns and (not named or name in named):
            raise InputError(f"columns of {where} must have different names; got {name!r} twice, but for blanks")
        cells = [value.strip(_BLANKS) for value in values] if is_spaced else values
        columns[name] = list(map(IDS_IN_CSV.read, cells))
    return CsvTexts(where, columns, list(table.lines), ragged)
