"""Put an odd value in one cell of a CSV file: text, numbers of any size, nothing, quotes that stay open."""

from __future__ import annotations

import csv
import io
from pathlib import Path

from numpy.random import Generator

from ..families import Inapplicable
from ..odd_values import draw_json, draw_text
from ..texts import read_text, write_text

_ODD = ("", "nan", "inf", "-inf", "1e999", "True", "1,5", '"', "0x10", "1_000", "9" * 400, "-1", "1e18", "0.5", "12a")


def mutate(path: Path, rng: Generator) -> str:
    """Edit the cell and return which."""
    rows = read_cells(path)
    row = int(rng.integers(len(rows)))
    if not rows[row]:
        raise Inapplicable("an empty row")
    column = int(rng.integers(len(rows[row])))
    choice = rng.random()
    odd = str(_ODD[rng.integers(len(_ODD))]) if choice < 0.6 else draw_text(rng) if choice < 0.8 else draw_json(rng)
    rows[row][column] = odd
    write_cells(path, rows)
    return f"row {row}, column {column}: {odd[:40]!r}"


def read_cells(path: Path) -> list[list[str]]:
    """Return the cells of a CSV file by row. Raises Inapplicable where there are none."""
    try:
        rows = list(csv.reader(io.StringIO(read_text(path))))
    except csv.Error as error:
        raise Inapplicable("no CSV") from error
    if not rows:
        raise Inapplicable("no rows")
    return rows


def write_cells(path: Path, rows: list[list[str]]) -> None:
    """Write cells as CSV, unquoted wherever a quote is not needed."""
    buffer = io.StringIO()
    csv.writer(buffer, lineterminator="\n").writerows(rows)
    write_text(path, buffer.getvalue())
