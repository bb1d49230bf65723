r"""A table as booktabs floats that can be read: in smaller letters, then in blocks of columns."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from ._grid import Grid, group_spans
from ._latex_text import latex_text
from ._sheets import Sheet, arrange, chunks, plain
from .cells import Cell

WIDTH = 390.0  # points of a line that tables are made for; that of article is 345, of NeurIPS and ICLR 397
_SIZES = ((r"\small", 0.9), (r"\footnotesize", 0.8), (r"\scriptsize", 0.7))  # of letters, relative to 10 points
_GAP = 8.0  # points between two columns
_LINES = 40  # of a float
_CAP = 130.0  # points of a text; a longer one is a paragraph
_POINTS = {"ijl.,:;'|!": 2.8, "fIrst()[]-/ ": 3.9, "mMW%@+=<>±−": 7.8, "w": 7.2, "ABCDEFGHKLNOPQRSTUVXYZ&": 7.2}
_OF_LETTER = {letter: points for letters, points in _POINTS.items() for letter in letters}


@dataclass(frozen=True)
class Layout:
    """How a table is set."""

    size: str  # of its letters
    scale: float  # of these letters, relative to 10 points
    sheets: list[Sheet]

    @property
    def width(self) -> float:
        """Return the estimated width of the widest sheet in points."""
        return max(sheet.width(lambda cell: self.scale * points(cell), _GAP) for sheet in self.sheets)


def latex(grid: Grid) -> str:
    """Write a booktabs float, or several where it is long; `\\resizebox` only mends what the estimate misses."""
    layout = arrange_latex(grid)
    floats: list[list[Sheet]] = [[]]
    for sheet in (piece for one in layout.sheets for piece in chunks(one, _LINES)):
        if floats[-1] and sum(len(other.rows) + 4 for other in floats[-1]) + len(sheet.rows) > _LINES:
            floats.append([])
        floats[-1].append(sheet)
    return "\n".join(_float(grid, layout, own, place, len(floats)) for place, own in enumerate(floats)) + "\n"


def arrange_latex(grid: Grid) -> Layout:
    r"""Return the layout in the largest letters in which the table fits; in blocks, in \footnotesize, where none do."""
    for size, scale in _SIZES:
        layout = Layout(size, scale, [plain(grid)])
        if layout.width <= WIDTH:
            return layout
    size, scale = _SIZES[1]
    sheets = arrange(grid, WIDTH / scale, points, _GAP / scale)
    return Layout(size, scale, sheets or [plain(grid)])


def points(cell: Cell) -> float:
    """Return about how wide a cell is in points, in Computer Modern of 10 points."""
    letters = sum(_OF_LETTER.get(letter, 5.3) for letter in cell.plain())
    spaces = 2.0 if cell.has_std else 0.0
    natural = letters + spaces + 3.5 * len(cell.mark)
    return min(natural, _CAP) if cell.text is not None else natural


def _float(grid: Grid, layout: Layout, sheets: Sequence[Sheet], place: int, of: int) -> str:
    name = re.sub("[^a-zA-Z0-9-]+", "-", grid.name)
    caption = (
        rf"\caption{{{latex_text(grid.caption)}}}"
        if place == 0
        else rf"\caption[]{{(continued from Table~\ref{{tab:{name}}})}}"
    )
    notes = grid.texts_below if place == of - 1 else ()
    lines = [
        r"\begin{table}[htbp]",
        r"\centering",
        caption,
        *([rf"\label{{tab:{name}}}"] if place == 0 else []),
        rf"{layout.size}\setlength{{\tabcolsep}}{{{_GAP / 2:g}pt}}",
        r"\par\smallskip",
        *("\n\\par\\medskip\n".join(_tabular(sheet, layout) for sheet in sheets).splitlines()),
        *(rf"\par\smallskip{{\footnotesize\raggedright {latex_text(note)}\par}}" for note in notes),
        r"\end{table}",
    ]
    return "\n".join(lines)


def _tabular(sheet: Sheet, layout: Layout) -> str:
    groups = group_spans(list(sheet.groups))
    lines = [
        r"\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%",
        rf"\begin{{tabular}}{{{''.join('l' if flush else 'r' for flush in sheet.left)}}}",
        r"\toprule",
        *(_group_lines(groups) if any(sheet.groups) else []),
        *(" & ".join(map(latex_text, line)) + r" \\" for line in sheet.heads),
        *([r"\midrule"] if sheet.heads or any(sheet.groups) else []),
        *(" & ".join(_cell(cell, layout) for cell in row) + r" \\" for row in sheet.rows),
        r"\bottomrule",
        r"\end{tabular}}",
    ]
    return "\n".join(lines)


def _group_lines(groups: list[tuple[str, list[int]]]) -> list[str]:
    cells = [rf"\multicolumn{{{len(places)}}}{{c}}{{{latex_text(group)}}}" if group else "" for group, places in groups]
    rules = [rf"\cmidrule(lr){{{places[0] + 1}-{places[-1] + 1}}}" for group, places in groups if group]
    return [" & ".join(cells) + r" \\", " ".join(rules)]


def _cell(cell: Cell, layout: Layout) -> str:
    text = _number(cell) + (rf"\textsuperscript{{{latex_text(cell.mark)}}}" if cell.mark else "")
    if cell.text is not None and points(cell) >= _CAP:
        return rf"\parbox[t]{{{layout.scale * _CAP:g}pt}}{{\raggedright\strut {text}\strut}}"
    return text


def _number(cell: Cell) -> str:
    if cell.text is not None or cell.missing:
        return latex_text(cell.plain())
    number = cell.plain(r" \pm ").replace("≤", r"\leq")
    if cell.best:
        return rf"$\mathbf{{{number}}}$"
    return rf"\underline{{${number}$}}" if cell.second else f"${number}$"
