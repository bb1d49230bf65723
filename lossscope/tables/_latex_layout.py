r"""How does a table fit on a page in LaTeX? In smaller letters, then in blocks of columns, then in several floats."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ._grid import Grid
from ._sheets import Sheet, arrange, plain
from .cells import Cell

WIDTH = 390.0  # points of a line, for the layout; article has 345, NeurIPS and ICLR have 397
HEIGHT = 520.0  # points of a float; a page of article has 550, pages of NeurIPS and ICLR have 650
GAP = 8.0  # points between two columns
_SIZES = ((r"\small", 0.9), (r"\footnotesize", 0.8), (r"\scriptsize", 0.7))  # of letters, relative to 10 points
_CAPS = (200.0, 130.0, 90.0, 60.0)  # points of a text, in letters of 10 points; a longer text is a paragraph
_LEADING = 12.2  # points from line to line, in letters of 10 points
_RULES, _BETWEEN = 16.0, 9.0  # points of a sheet's rules, and between two sheets
_COMPANY = 3  # rows that stand together at the foot or the head of a page
_POINTS = {"ijl.,:;'|!": 2.8, "fIrst()[]-/ ": 3.9, "mMW%@+=<>±−": 7.8, "w": 7.2, "ABCDEFGHKLNOPQRSTUVXYZ&": 7.2}
_OF_LETTER = {letter: points for letters, points in _POINTS.items() for letter in letters}


@dataclass(frozen=True)
class Layout:
    """The layout of a table."""

    size: str  # of its letters
    scale: float  # of these letters, relative to 10 points
    cap: float  # points of a text, in letters of 10 points; a longer text is a paragraph
    sheets: list[Sheet]

    @property
    def width(self) -> float:
        """Estimated width of the widest sheet in points."""
        return max(sheet.width(lambda cell: self.scale * points(cell, self.cap), GAP) for sheet in self.sheets)

    def row_height(self, row: Sequence[Cell]) -> float:
        """Return the estimated height of a row in points, from its longest paragraph."""
        lines = max((_lines(cell, self.cap) for cell in row if cell.text is not None), default=1)
        return lines * self.scale * _LEADING

    def head_height(self, sheet: Sheet) -> float:
        """Return the estimated height of the headings and rules of a sheet in points."""
        lines = len(sheet.heads) + any(sheet.groups)
        return lines * self.scale * _LEADING + _RULES


def arrange_latex(grid: Grid) -> Layout:
    r"""Return the layout in the largest letters in which the table fits; else in blocks, in \footnotesize."""
    for (size, scale), cap in itertools.product(_SIZES, _CAPS[:2]):
        layout = Layout(size, scale, cap, [plain(grid)])
        if layout.width <= WIDTH:
            return layout
    size, scale = _SIZES[1]
    for cap in _CAPS[1:]:
        sheets = arrange(grid, WIDTH / scale, lambda cell, cap=cap: points(cell, cap), GAP / scale)  # type: ignore[misc]
        if sheets:
            return Layout(size, scale, cap, sheets)
    return Layout(size, scale, _CAPS[-1], [plain(grid)])


def floats(grid: Grid, layout: Layout) -> list[list[Sheet]]:
    """Return the sheets of each float, cut between rows where a page ends; the last has room for the texts below.

    Args:
        grid: the table, for its caption and the texts below.
        layout: its sheets and their letters.
    """
    pages: list[list[Sheet]] = [[]]
    room = HEIGHT - _caption_height(grid)
    left = room
    for sheet in layout.sheets:
        rows = sheet.rows
        while True:
            taken = _rows_within(rows, left - layout.head_height(sheet), layout)
            if pages[-1] and taken < min(_COMPANY, len(rows)):
                pages, left = [*pages, []], room
                continue
            taken = max(1, taken)
            pages[-1].append(replace(sheet, rows=rows[:taken]))
            left -= _height([pages[-1][-1]], layout) + _BETWEEN
            rows = rows[taken:]
            if not rows:
                break
    too_high = _height_below(grid) - (left + _BETWEEN)
    return pages if too_high <= 0 else [*pages[:-1], *_last_two(pages[-1])]


def float_height(grid: Grid, layout: Layout, sheets: Sequence[Sheet], is_last: bool = True) -> float:
    """Return the estimated height of a float in points, with its caption and, for the last, the texts below."""
    return _caption_height(grid) + _height(sheets, layout) + (_height_below(grid) if is_last else 0.0)


def points(cell: Cell, cap: float = _CAPS[0]) -> float:
    """Return the estimated width of a cell in points, in Computer Modern of 10 points; a text has `cap` at most."""
    return min(_natural(cell), cap) if cell.text is not None else _natural(cell)


def is_paragraph(cell: Cell, cap: float) -> bool:
    """Return whether a cell is a text too wide for one line."""
    return cell.text is not None and _natural(cell) >= cap


def _natural(cell: Cell) -> float:
    letters = sum(_OF_LETTER.get(letter, 5.3) for letter in cell.plain())
    spaces = 2.0 if cell.has_std else 0.0
    return letters + spaces + 3.5 * len(cell.mark)


def _lines(cell: Cell, cap: float) -> int:
    """Return the number of lines of a text; ragged lines waste about a seventh."""
    return math.ceil(1.15 * _natural(cell) / cap) if is_paragraph(cell, cap) else 1


def _text_height(text: str, scale: float = 1.0) -> float:
    return math.ceil(scale * _natural(Cell(text=text)) / WIDTH) * scale * _LEADING


def _caption_height(grid: Grid) -> float:
    return _text_height(grid.caption) + 16


def _height_below(grid: Grid) -> float:
    return sum(_text_height(text, 0.8) + 3 for text in grid.texts_below)


def _rows_within(rows: Sequence[tuple[Cell, ...]], height: float, layout: Layout) -> int:
    """Return how many of the first rows fit into a height."""
    for number, row in enumerate(rows):
        height -= layout.row_height(row)
        if height < 0:
            return number
    return len(rows)


def _height(sheets: Sequence[Sheet], layout: Layout) -> float:
    heights = (layout.head_height(sheet) + sum(map(layout.row_height, sheet.rows)) for sheet in sheets)
    return sum(heights) + _BETWEEN * (len(sheets) - 1)


def _last_two(sheets: Sequence[Sheet]) -> list[list[Sheet]]:
    """Cut the last float in two, so that the second has a few rows and room for the texts below."""
    *others, last = sheets
    kept = len(last.rows) - min(_COMPANY, max(1, len(last.rows) - 1))
    if kept:
        return [[*others, replace(last, rows=last.rows[:kept])], [replace(last, rows=last.rows[kept:])]]
    return [others, [last]] if others else [[last]]
