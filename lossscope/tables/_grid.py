"""The parts of a table that are laid out: cells under headings, and the texts around them."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace

from lossscope.visible_text import show_text

from .cells import Cell

Header = tuple[str, str]


@dataclass(frozen=True)
class Grid:
    """Rows of cells under (group, column) headers, with a caption and footnotes: a table, or the shown part of it."""

    name: str  # of its files, and of its label in LaTeX
    caption: str
    columns: tuple[Header, ...]  # (group, column); neighbours of one group share a heading, "" is no group
    rows: tuple[tuple[Cell, ...], ...]
    notes: tuple[str, ...] = ()  # footnotes
    legend: tuple[str, ...] = ()  # of columns, a line each: `C_neg: negatives with weight above eps, per query`
    meaning: tuple[str, ...] = ()  # sentences about the meaning of the numbers

    @property
    def headings(self) -> tuple[str, ...]:
        """A flat name per column: `i2t R@1`."""
        return tuple(f"{group} {column}".strip() for group, column in self.columns)

    @property
    def text_columns(self) -> list[bool]:
        """For each column, whether it has text."""
        columns = zip(*self.rows, strict=True) if self.rows else ([] for _ in self.columns)
        return [any(cell.text is not None for cell in column) for column in columns]

    @property
    def printable(self) -> Grid:
        """The grid with every text on one line and control characters of names as \\xNN."""
        return replace(
            self,
            caption=one_line(self.caption),
            columns=tuple((one_line(group), one_line(column)) for group, column in self.columns),
            rows=tuple(tuple(_printable_cell(cell) for cell in row) for row in self.rows),
            notes=tuple(map(one_line, self.notes)),
            legend=tuple(map(one_line, self.legend)),
            meaning=tuple(map(one_line, self.meaning)),
        )

    @property
    def labels(self) -> int:
        """The number of leading text columns, which name the rows."""
        return len(list(itertools.takewhile(bool, self.text_columns)))

    @property
    def texts_below(self) -> tuple[str, ...]:
        """The texts below the cells: the legend as one text, the meaning of the numbers, footnotes."""
        legend = "; ".join(line.rstrip(".") for line in self.legend)
        return tuple(text for text in (f"{legend}." if legend else "", " ".join(self.meaning), *self.notes) if text)


def one_line(text: str) -> str:
    r"""Return a text on one line, with unprintable characters as \xNN or \uNNNN."""
    return show_text(text.replace("\n", " ").replace("\t", " "))


def _printable_cell(cell: Cell) -> Cell:
    return cell if cell.text is None else replace(cell, text=one_line(cell.text))


def group_spans(groups: list[str]) -> list[tuple[str, list[int]]]:
    """Return each group with the indices of its columns; a column without a group stands alone."""
    keyed = [(group or f"\0{index}", index) for index, group in enumerate(groups)]
    runs = itertools.groupby(keyed, key=lambda item: item[0])
    return [("" if key.startswith("\0") else key, [index for _, index in items]) for key, items in runs]
