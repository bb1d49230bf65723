"""Write a table as Markdown or HTML; text and LaTeX have files of their own."""

from __future__ import annotations

import re
from html import escape

from ._grid import Grid, group_spans
from ._latex import latex as latex
from ._latex_text import latex_text as latex_text
from ._latex_text import without_commands as without_commands
from ._terminal import text as text
from .cells import Cell

_LINE = 50  # characters; pages fold a longer text


def markdown(grid: Grid) -> str:
    """Write a pipe table, with special characters escaped."""
    grid = grid.printable
    rows = [[_markdown_cell(cell) for cell in row] for row in grid.rows]
    lines = [
        f"**{_markdown_text(grid.caption)}**",
        "",
        "| " + " | ".join(map(_markdown_text, grid.headings)) + " |",
        "|" + "|".join(":--" if is_text else "--:" for is_text in grid.text_columns) + "|",
        *("| " + " | ".join(row) + " |" for row in rows),
    ]
    for note in grid.texts_below:
        lines += ["", _markdown_text(note)]
    return "\n".join(lines) + "\n"


def html(grid: Grid) -> str:
    """Write a table with caption, scopes and raw values for sorting; footnotes follow its container."""
    grid = grid.printable
    name = escape(re.sub(r"[^\w-]+", "-", grid.name))
    lines = [
        '<div class="table">',
        f'<div class="scroll" role="region" aria-labelledby="caption-{name}" tabindex="0">',
        f'<table id="table-{name}">',
        f'<caption id="caption-{name}"><span>{html_text(grid.caption)}</span></caption>',
        "<thead>",
        *_html_head(grid),
        "</thead>",
        "<tbody>",
        *(_html_row(row, grid.text_columns) for row in grid.rows),
        "</tbody>",
        "</table>",
        "</div>",
        *(f'<p class="note">{html_text(note)}</p>' for note in grid.texts_below),
        "</div>",
    ]
    return "\n".join(lines) + "\n"


def html_text(text: str) -> str:
    """Escape a text, and print its command lines as code; other backticks may belong to a name of the user.

    >>> html_text("`lossscope cite FRAME` says < and >")
    '<code>lossscope cite FRAME</code> says &lt; and &gt;'
    """
    return re.sub(r"`(lossscope [^`\n]+)`", r"<code>\1</code>", escape(text))


def _markdown_cell(cell: Cell) -> str:
    text = _markdown_text(cell.printed())
    text = f"**{text}**" if cell.best else f"<u>{text}</u>" if cell.second else text
    return text + (_markdown_text(f"[{cell.mark}]") if cell.mark else "")


def _markdown_text(text: str) -> str:
    escaped = re.sub(r"([\\|*_`\[\]])", r"\\\1", " ".join(text.split()))
    return escaped.replace("&", "&amp;").replace("<", "&lt;")


def _html_head(grid: Grid) -> list[str]:
    groups = group_spans([group for group, _ in grid.columns])
    tags = ['<th scope="col"' + ("" if is_text else ' class="number"') for is_text in grid.text_columns]
    if not any(group for group, _ in groups):
        cells = [f"{tag}>{escape(name)}</th>" for tag, (_, name) in zip(tags, grid.columns, strict=True)]
        return [f"<tr>{''.join(cells)}</tr>"]
    first, second = "", ""  # header rows
    for group, indices in groups:
        names = {index: escape(grid.columns[index][1]) for index in indices}
        if group:
            first += f'<th scope="colgroup" colspan="{len(indices)}">{escape(group)}</th>'
            second += "".join(f"{tags[index]}>{name}</th>" for index, name in names.items())
        else:
            first += f'{tags[indices[0]]} rowspan="2">{names[indices[0]]}</th>'
    return [f"<tr>{first}</tr>", f"<tr>{second}</tr>"]


def _html_row(row: tuple[Cell, ...], text_columns: list[bool]) -> str:
    cells = []
    for index, cell in enumerate(row):
        content = escape(cell.printed())
        if cell.picture:  # the text beside it names the item
            content = f'<img class="item" src="{escape(cell.picture)}" alt=""/>{content}'
        if cell.best or cell.second:
            content = f"<strong>{content}</strong>" if cell.best else f"<u>{content}</u>"
        if cell.mark:
            content += f"<sup>{escape(cell.mark)}</sup>"
        if index == 0 and text_columns[0]:
            cells.append(f'<th scope="row">{content}</th>')
        elif text_columns[index]:
            wrapped = ' class="wrap"' if len(cell.printed()) > _LINE else ""
            cells.append(f"<td{wrapped}>{content}</td>")
        else:
            value = "" if cell.missing or cell.mean is None else f' data-value="{cell.mean!r}"'
            cells.append(f'<td class="number"{value}>{content}</td>')
    return f"<tr>{''.join(cells)}</tr>"
