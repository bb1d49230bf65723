"""A table written as text, Markdown, LaTeX and HTML."""

from __future__ import annotations

import itertools
import re
from html import escape
from typing import Protocol

from .cells import Cell

_LATEX = {
    **{char: f"\\{char}" for char in "&%_#${}"},
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "\\": r"\textbackslash{}",
    "–": "--",
    "—": "---",
    "±": r"$\pm$",
    "−": "$-$",
    "≥": r"$\geq$",
    "≤": r"$\leq$",
    "→": r"$\to$",
    "∞": r"$\infty$",
    "†": r"$\dagger$",
    "‡": r"$\ddagger$",
    "§": r"\S{}",
    "¶": r"\P{}",
    "×": r"$\times$",
    "τ": r"$\tau$",
    "ε": r"$\epsilon$",
    "γ": r"$\gamma$",
    "α": r"$\alpha$",
    "β": r"$\beta$",
    "λ": r"$\lambda$",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\textquotedbl{}",
    "[": "{[}",  # a row that starts with [ would be read as the option of \\
    "*": "{*}",
    "…": r"\dots{}",
    "“": "``",
    "”": "''",
    "’": "'",
    "`": r"\textasciigrave{}",
}


class TableParts(Protocol):
    """The parts of a table that are written."""

    @property
    def name(self) -> str: ...
    @property
    def caption(self) -> str: ...
    @property
    def columns(self) -> tuple[tuple[str, str], ...]: ...
    @property
    def rows(self) -> tuple[tuple[Cell, ...], ...]: ...
    @property
    def notes(self) -> tuple[str, ...]: ...
    @property
    def headings(self) -> tuple[str, ...]: ...


def text(table: TableParts) -> str:
    """Write aligned columns: text to the left, numbers to the right."""
    body = [[_text_cell(cell) for cell in row] for row in table.rows]
    groups = [group for group, _ in table.columns]
    headings = [column for _, column in table.columns]
    widths = [max(map(len, column)) for column in zip(headings, *body, strict=True)]
    left = _text_columns(table)
    spans = []
    for group, places in _group_spans(groups):
        width = sum(widths[place] for place in places) + 2 * (len(places) - 1)
        widths[places[-1]] += max(0, len(group) - width)
        spans.append(group.center(max(width, len(group))))
    lines = [table.caption, ""]
    if any(groups):
        lines.append("  ".join(spans).rstrip())
    rule = "  ".join("-" * width for width in widths)
    lines += [_align(headings, widths, left), rule, *(_align(row, widths, left) for row in body)]
    if any(cell.best for row in table.rows for cell in row):
        lines += ["", "* best, + second"]
    return "\n".join([*lines, *([""] if table.notes else []), *table.notes]) + "\n"


def markdown(table: TableParts) -> str:
    """Write a pipe table; special characters of texts are escaped."""
    rows = [[_markdown_cell(cell) for cell in row] for row in table.rows]
    left = _text_columns(table)
    lines = [
        f"**{_markdown_text(table.caption)}**",
        "",
        "| " + " | ".join(map(_markdown_text, table.headings)) + " |",
        "|" + "|".join(":--" if is_text else "--:" for is_text in left) + "|",
        *("| " + " | ".join(row) + " |" for row in rows),
    ]
    for note in table.notes:
        lines += ["", _markdown_text(note)]
    return "\n".join(lines) + "\n"


def latex(table: TableParts) -> str:
    """Write a booktabs float, with a rule below each group."""
    groups = _group_spans([group for group, _ in table.columns])
    headings = [latex_text(column) for _, column in table.columns]
    lines = [
        r"\begin{table}[htbp]",
        r"\centering",
        rf"\caption{{{latex_text(table.caption)}}}",
        rf"\label{{tab:{re.sub('[^a-zA-Z0-9-]+', '-', table.name)}}}",
        r"\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%",
        rf"\begin{{tabular}}{{{''.join('l' if is_text else 'r' for is_text in _text_columns(table))}}}",
        r"\toprule",
        *(_latex_groups(groups) if any(group for group, _ in groups) else []),
        " & ".join(headings) + r" \\",
        r"\midrule",
        *(" & ".join(map(_latex_cell, row)) + r" \\" for row in table.rows),
        r"\bottomrule",
        r"\end{tabular}}",
        *(rf"\par\smallskip{{\footnotesize {latex_text(note)}\par}}" for note in table.notes),
        r"\end{table}",
    ]
    return "\n".join(lines) + "\n"


def html(table: TableParts) -> str:
    """Write a table with caption, scopes and raw values for sorting; footnotes follow its container."""
    name = escape(re.sub(r"[^\w-]+", "-", table.name))
    text_columns = _text_columns(table)
    lines = [
        '<div class="table">',
        f'<div class="scroll" role="region" aria-labelledby="caption-{name}" tabindex="0">',
        f'<table id="table-{name}">',
        f'<caption id="caption-{name}"><span>{escape(table.caption)}</span></caption>',
        "<thead>",
        *_html_head(table),
        "</thead>",
        "<tbody>",
        *(_html_row(row, text_columns) for row in table.rows),
        "</tbody>",
        "</table>",
        "</div>",
        *(f'<p class="note">{escape(note)}</p>' for note in table.notes),
        "</div>",
    ]
    return "\n".join(lines) + "\n"


def latex_text(text: str) -> str:
    r"""Escape a text for LaTeX; characters that LaTeX may not have are written as code points.

    >>> print(latex_text("50% & a_b"))
    50\% \& a\_b
    """
    return "".join(_latex_char(char) for char in " ".join(text.split()))


def _latex_char(char: str) -> str:
    if char in _LATEX:
        return _LATEX[char]
    if char.isprintable() and (ord(char) < 128 or 0xC0 <= ord(char) <= 0x17F):
        return char
    return rf"\texttt{{U+{ord(char):04X}}}"


def _latex_groups(groups: list[tuple[str, list[int]]]) -> list[str]:
    cells = [rf"\multicolumn{{{len(places)}}}{{c}}{{{latex_text(group)}}}" if group else "" for group, places in groups]
    rules = [rf"\cmidrule(lr){{{places[0] + 1}-{places[-1] + 1}}}" for group, places in groups if group]
    return [" & ".join(cells) + r" \\", " ".join(rules)]


def _latex_number(cell: Cell) -> str:
    if cell.text is not None or cell.missing:
        return latex_text(cell.plain())
    number = cell.plain(r" \pm ")
    if cell.best:
        return rf"$\mathbf{{{number}}}$"
    return rf"\underline{{${number}$}}" if cell.second else f"${number}$"


def _latex_cell(cell: Cell) -> str:
    return _latex_number(cell) + (rf"\textsuperscript{{{latex_text(cell.mark)}}}" if cell.mark else "")


def _text_cell(cell: Cell) -> str:
    return cell.plain() + ("*" if cell.best else "+" if cell.second else "") + (f"[{cell.mark}]" if cell.mark else "")


def _markdown_cell(cell: Cell) -> str:
    text = _markdown_text(cell.plain())
    text = f"**{text}**" if cell.best else f"<u>{text}</u>" if cell.second else text
    return text + (_markdown_text(f"[{cell.mark}]") if cell.mark else "")


def _markdown_text(text: str) -> str:
    escaped = re.sub(r"([\\|*_`\[\]])", r"\\\1", " ".join(text.split()))
    return escaped.replace("&", "&amp;").replace("<", "&lt;")


def _html_head(table: TableParts) -> list[str]:
    groups = _group_spans([group for group, _ in table.columns])
    tags = ['<th scope="col"' + ("" if is_text else ' class="number"') for is_text in _text_columns(table)]
    if not any(group for group, _ in groups):
        cells = [f"{tag}>{escape(name)}</th>" for tag, (_, name) in zip(tags, table.columns, strict=True)]
        return [f"<tr>{''.join(cells)}</tr>"]
    first, second = "", ""  # header rows
    for group, places in groups:
        names = {place: escape(table.columns[place][1]) for place in places}
        if group:
            first += f'<th scope="colgroup" colspan="{len(places)}">{escape(group)}</th>'
            second += "".join(f"{tags[place]}>{name}</th>" for place, name in names.items())
        else:
            first += f'{tags[places[0]]} rowspan="2">{names[places[0]]}</th>'
    return [f"<tr>{first}</tr>", f"<tr>{second}</tr>"]


def _html_row(row: tuple[Cell, ...], text_columns: list[bool]) -> str:
    cells = []
    for place, cell in enumerate(row):
        content = escape(cell.plain())
        if cell.best or cell.second:
            content = f"<strong>{content}</strong>" if cell.best else f"<u>{content}</u>"
        if cell.mark:
            content += f"<sup>{escape(cell.mark)}</sup>"
        if place == 0 and text_columns[0]:
            cells.append(f'<th scope="row">{content}</th>')
        elif text_columns[place]:
            cells.append(f"<td>{content}</td>")
        else:
            value = "" if cell.missing or cell.mean is None else f' data-value="{cell.mean!r}"'
            cells.append(f'<td class="number"{value}>{content}</td>')
    return f"<tr>{''.join(cells)}</tr>"


def _text_columns(table: TableParts) -> list[bool]:
    """Return whether each column has text."""
    columns = zip(*table.rows, strict=True) if table.rows else ([] for _ in table.columns)
    return [any(cell.text is not None for cell in column) for column in columns]


def _group_spans(groups: list[str]) -> list[tuple[str, list[int]]]:
    """Return each group with the places of its columns; a column without a group is on its own."""
    keyed = [(group or f"\0{place}", place) for place, group in enumerate(groups)]
    runs = itertools.groupby(keyed, key=lambda item: item[0])
    return [("" if key.startswith("\0") else key, [place for _, place in items]) for key, items in runs]


def _align(cells: list[str], widths: list[int], left: list[bool]) -> str:
    padded = [c.ljust(w) if to_left else c.rjust(w) for c, w, to_left in zip(cells, widths, left, strict=True)]
    return "  ".join(padded).rstrip()
