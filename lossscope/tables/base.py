"""A table: cells with numbers, the best marked, written as text, Markdown, LaTeX, CSV or HTML."""

from __future__ import annotations

import math
from dataclasses import dataclass

import pandas as pd

from lossscope.errors import InputError
from lossscope.io.csv_tables import format_csv

from ._grid import Grid
from ._shown import shown
from .cells import _number


@dataclass(frozen=True)
class Table(Grid):
    """Rows of cells under (group, column) headers, with a caption and footnotes, and methods that write them.

    CSV and frames have every column and full specs. The other forms leave out hidden, empty and constant columns, and
    shorten specs.

    Raises InputError unless every row has a cell per column.
    """

    hidden: tuple[str, ...] = ()  # headings of columns for CSV and frames only

    def __post_init__(self) -> None:
        for number, row in enumerate(self.rows):
            if len(row) != len(self.columns):
                raise InputError(
                    f"row {number} of table {self.name!r} must have {len(self.columns)} cells; "
                    f"got {len(row)}. Use Cell() for a missing number"
                )

    @property
    def shown(self) -> Grid:
        """The shown part of the table."""
        grid = Grid(self.name, self.caption, self.columns, self.rows, self.notes, self.legend, self.meaning)
        return shown(grid, self.hidden)

    def to_text(self, width: int | None = None) -> str:
        """Write the table for a terminal: aligned columns; `*` marks the best of a column or block, `+` the second.

        Args:
            width: of the terminal in characters; a wider table is transposed or cut into blocks. None: no limit.
        """
        from ._terminal import text

        return text(self.shown, width)

    def to_markdown(self) -> str:
        """Write the table for a pull request or a wiki: best bold, second underlined."""
        from . import formats

        return formats.markdown(self.shown)

    def to_latex(self) -> str:
        r"""Write booktabs floats in readable letters; they need `\usepackage{booktabs,graphicx}`."""
        from . import formats

        return formats.latex(self.shown)

    def to_html(self) -> str:
        """Write the table for a page, with caption and scopes, in a container that scrolls."""
        from . import formats

        return formats.html(self.shown)

    def to_csv(self) -> str:
        """Write the table for another program: raw means, deviations and marks in columns of their own.

        Texts are exact, ids among them: `format_csv`.
        """
        return format_csv(self.to_frame())

    def _repr_html_(self) -> str:
        """Show the table in a notebook."""
        return self.to_html()

    def to_frame(self) -> pd.DataFrame:
        """Return the raw numbers: a column per heading, and its std, at_floor, mark, low, high if there are any."""
        columns: dict[str, list[str | float | bool | None]] = {}
        for index, heading in enumerate(self.headings):
            cells = [row[index] for row in self.rows]
            has_text = any(cell.text is not None for cell in cells)
            if any(cell.interval for cell in cells):
                for end, name in enumerate(("low", "high")):
                    columns[f"{heading} {name}"] = [cell.interval[end] if cell.interval else math.nan for cell in cells]
                continue
            columns[heading] = [cell.text if has_text else _number(cell.mean) for cell in cells]
            if any(cell.has_std for cell in cells):
                columns[f"{heading} std"] = [_number(cell.std) for cell in cells]
            if any(cell.at_most for cell in cells):
                columns[f"{heading} at_floor"] = [cell.at_most for cell in cells]
            if any(cell.mark for cell in cells):
                columns[f"{heading} mark"] = [cell.mark for cell in cells]
        return pd.DataFrame(columns)
