"""What is a table?

Cells with numbers in them, marked best and second, written as text, Markdown, LaTeX, CSV or HTML.
"""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from lossscope.errors import InputError

from . import formats
from .cells import Cell, _number


@dataclass(frozen=True)
class Table:
    """Named rows of cells under (group, column) headers, with a caption and footnotes.

    Neighbouring columns of one group share a heading; an empty group is a column of its own.
    """

    name: str
    caption: str
    columns: tuple[tuple[str, str], ...]
    rows: tuple[tuple[Cell, ...], ...]
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Raise InputError unless every row has a cell per column."""
        for place, row in enumerate(self.rows):
            if len(row) != len(self.columns):
                raise InputError(
                    f"row {place} of table {self.name!r} must have {len(self.columns)} cells; "
                    f"got {len(row)}. Use Cell() for what is missing"
                )

    @property
    def headings(self) -> tuple[str, ...]:
        """One flat name per column: `i2t R@1`."""
        return tuple(f"{group} {column}".strip() for group, column in self.columns)

    def to_text(self) -> str:
        """For a terminal: aligned columns; `*` marks the best of a column or block, `+` the second."""
        return formats.text(self)

    def to_markdown(self) -> str:
        """For a pull request or a wiki: best bold, second underlined."""
        return formats.markdown(self)

    def to_latex(self) -> str:
        r"""For a paper: a booktabs float, shrunk when too wide; needs `\usepackage{booktabs,graphicx}`."""
        return formats.latex(self)

    def to_html(self) -> str:
        """For a page: a table with caption and scopes, in a container of its own that scrolls."""
        return formats.html(self)

    def to_csv(self) -> str:
        """For another program: raw means; deviations and marks in columns of their own; words on one line."""
        one_line = self.to_frame().map(lambda value: " ".join(value.split()) if isinstance(value, str) else value)
        return str(one_line.to_csv(index=False, lineterminator="\n"))

    def _repr_html_(self) -> str:
        """How a notebook shows the table."""
        return self.to_html()

    def to_frame(self) -> pd.DataFrame:
        """The raw numbers: a column per heading; `<heading> std` and `<heading> mark` where there are such."""
        columns: dict[str, list[str | float | None]] = {}
        for place, heading in enumerate(self.headings):
            cells = [row[place] for row in self.rows]
            words = any(cell.text is not None for cell in cells)
            columns[heading] = [cell.text if words else _number(cell.mean) for cell in cells]
            if any(cell.spread for cell in cells):
                columns[f"{heading} std"] = [_number(cell.std) for cell in cells]
            if any(cell.mark for cell in cells):
                columns[f"{heading} mark"] = [cell.mark for cell in cells]
        return pd.DataFrame(columns)
