"""Write a table for a terminal: no line is wider than the terminal, and no cell breaks."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence

from ._grid import Grid, group_spans
from ._sheets import Sheet, arrange, plain
from .cells import Cell

_GAP = 2
_CAPTION_LINES = 2
_NARROWEST = 20


def text(grid: Grid, width: int | None = None) -> str:
    """Write aligned columns, text to the left and numbers to the right; legend, meaning and notes below.

    Args:
        grid: the table.
        width: of the terminal in characters; None: no limit.
    """
    grid = grid.printable
    if width is None:
        return _document(grid, [_lines(plain(grid))], None)
    width = max(width, _NARROWEST)
    sheets = arrange(grid, width, _measure, _GAP)
    blocks = _records(grid, width) if sheets is None else [_lines(sheet) for sheet in sheets]
    return _document(grid, blocks, width)


def _document(grid: Grid, blocks: Sequence[Sequence[str]], width: int | None) -> str:
    caption, rest = _caption(grid.caption, width)
    parts: list[Sequence[str]] = [caption, *blocks]
    if any(cell.best for row in grid.rows for cell in row):
        parts.append(["* best, + second"])
    parts.append([line for item in grid.legend for line in wrap(item, width, "  ")])
    parts.append([line for item in grid.meaning for line in wrap(item, width)])
    parts += [wrap(note, width) for note in (*rest, *grid.notes)]
    return "\n\n".join("\n".join(part) for part in parts if part) + "\n"


def _caption(caption: str, width: int | None) -> tuple[list[str], list[str]]:
    """Return the lines of a caption, at most two, and the remaining sentences as footnotes."""
    if width is None or len(wrap(caption, width)) <= _CAPTION_LINES:
        return wrap(caption, width), []
    parts = re.split(r"(?<=[;.]) ", caption)
    fitting = [k for k in range(1, len(parts)) if len(wrap(" ".join(parts[:k]), width)) <= _CAPTION_LINES]
    first = max(fitting, default=1)
    rest = " ".join(parts[first:])
    kept = re.sub(r";$", ".", " ".join(parts[:first]))
    return wrap(kept, width), [re.sub(r"^[a-z]+(?= )", lambda word: word[0].capitalize(), rest)] if rest else []


def wrap(text: str, width: int | None, indent: str = "") -> list[str]:
    """Break a text into lines; a word longer than a line breaks after a sign of a path or spec.

    Args:
        text: a paragraph.
        width: of a line; None: a single line.
        indent: of all lines but the first.
    """
    if width is None:
        return [text] if text else []
    room = width - len(indent)
    words = [piece for word in text.split() for piece in _pieces(word, room)]
    return textwrap.wrap(
        " ".join(words), width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )


def _pieces(word: str, room: int) -> list[str]:
    """Break a word into pieces no longer than a line."""
    pieces = [""]
    for part in re.findall(rf"[^/,:=_-]{{1,{room - 1}}}[/,:=_-]?|[/,:=_-]", word) if len(word) > room else [word]:
        if len(pieces[-1] + part) > room:
            pieces.append("")
        pieces[-1] += part
    return pieces


def _records(grid: Grid, width: int) -> list[list[str]]:
    """Return a paragraph per row, `heading: value`, for texts too wide for columns."""
    records = []
    for row in grid.rows:
        pairs = [(h, _printed(c)) for h, c in zip(grid.headings, row, strict=True) if not c.missing and c.text != ""]
        first, *others = pairs
        lines = wrap(f"{first[0]}: {first[1]}", width, "  ")
        for heading, value in others:
            lines += ["  " + line for line in wrap(f"{heading}: {value}", width - 2, "  ")]
        records.append(lines)
    return records


def _lines(sheet: Sheet) -> list[str]:
    """Return the lines of a sheet: groups, headings, a rule, rows."""
    widths = [int(width) for width in sheet.widths(_measure, _GAP)]
    lines = []
    if any(sheet.groups):
        spans = group_spans(list(sheet.groups))
        sizes = [sum(widths[index] for index in indices) + _GAP * (len(indices) - 1) for _, indices in spans]
        lines.append(_join([group.center(size) for (group, _), size in zip(spans, sizes, strict=True)]))
    lines += [_align(line, widths, sheet.left) for line in sheet.heads]
    lines.append(_join(["-" * width for width in widths]))
    return lines + [_align([_printed(cell) for cell in row], widths, sheet.left) for row in sheet.rows]


def _align(cells: Sequence[str], widths: Sequence[int], left: Sequence[bool]) -> str:
    return _join([c.ljust(w) if flush else c.rjust(w) for c, w, flush in zip(cells, widths, left, strict=True)])


def _join(cells: Sequence[str]) -> str:
    return (" " * _GAP).join(cells).rstrip()


def _printed(cell: Cell) -> str:
    return cell.printed() + ("*" if cell.best else "+" if cell.second else "") + (f"[{cell.mark}]" if cell.mark else "")


def _measure(cell: Cell) -> float:
    return len(_printed(cell))
