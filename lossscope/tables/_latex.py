"""A table as booktabs floats, laid out by `_latex_layout`."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ._grid import Grid, group_spans
from ._latex_layout import GAP, Layout, arrange_latex, floats, is_paragraph
from ._latex_text import latex_text, without_commands
from ._sheets import Sheet
from .cells import Cell


def latex(grid: Grid) -> str:
    """Write a booktabs float, or several for a long table; `\\resizebox` only corrects the estimated width."""
    layout = arrange_latex(grid)
    pages = floats(grid, layout)
    return "\n".join(_float(grid, layout, sheets, number, len(pages)) for number, sheets in enumerate(pages)) + "\n"


def _float(grid: Grid, layout: Layout, sheets: Sequence[Sheet], number: int, of: int) -> str:
    name = re.sub("[^a-zA-Z0-9-]+", "-", grid.name)
    caption = (
        rf"\caption{{{latex_text(without_commands(grid.caption))}}}"
        if number == 0
        else rf"\caption[]{{(continued from Table~\ref{{tab:{name}}})}}"
    )
    notes = [text for note in grid.texts_below if (text := without_commands(note))] if number == of - 1 else []
    lines = [
        r"\begin{table}[htbp]",
        r"\centering",
        caption,
        *([rf"\label{{tab:{name}}}"] if number == 0 else []),
        rf"{layout.size}\setlength{{\tabcolsep}}{{{GAP / 2:g}pt}}",
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
    cells = [
        rf"\multicolumn{{{len(columns)}}}{{c}}{{{latex_text(group)}}}" if group else "" for group, columns in groups
    ]
    rules = [rf"\cmidrule(lr){{{columns[0] + 1}-{columns[-1] + 1}}}" for group, columns in groups if group]
    return [" & ".join(cells) + r" \\", " ".join(rules)]


def _cell(cell: Cell, layout: Layout) -> str:
    text = _number(cell) + (rf"\textsuperscript{{{latex_text(cell.mark)}}}" if cell.mark else "")
    if is_paragraph(cell, layout.cap):
        return rf"\parbox[t]{{{layout.scale * layout.cap:g}pt}}{{\raggedright\strut {text}\strut}}"
    return text


def _number(cell: Cell) -> str:
    if cell.text is not None or cell.missing or cell.interval is not None:
        return latex_text(cell.printed())
    number = cell.plain(r" \pm ").replace("≤", r"\leq")
    if cell.best:
        return rf"$\mathbf{{{number}}}$"
    return rf"\underline{{${number}$}}" if cell.second else f"${number}$"
