"""What of a table is shown: no hidden, empty or constant column, specs no longer than needed."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace

from ._grid import Grid
from ._specs import KINDS, shorten
from .cells import Cell

_SETTINGS = ("data", "encoder", "convention", "weight unit", "eps", "batch size", "sampling")
_NAMES = ("run", "system", "objective", "loss", "probe", "source")  # columns that name a row


def shown(grid: Grid, hidden: Sequence[str] = ()) -> Grid:
    """Return the table without columns that say nothing; what all rows share is said by the caption.

    Args:
        grid: the whole table.
        hidden: headings of columns that are not shown.
    """
    if not grid.rows:
        return grid
    grid = _without(grid, lambda place: grid.headings[place] in hidden or _is_empty(grid, place))
    return _without_constant(_merge_conventions(_with_short_specs(grid)))


def _is_empty(grid: Grid, place: int) -> bool:
    return all(row[place].missing or row[place].text == "" for row in grid.rows)


def _without(grid: Grid, drop: Callable[[int], bool]) -> Grid:
    """Return the grid without some columns; the whole grid where none would be left."""
    kept = [place for place in range(len(grid.columns)) if not drop(place)] or list(range(len(grid.columns)))
    rows = tuple(tuple(row[place] for place in kept) for row in grid.rows)
    return replace(grid, columns=tuple(grid.columns[place] for place in kept), rows=rows)


def _with_short_specs(grid: Grid) -> Grid:
    """Shorten the specs of columns that are named after a registry, and those that are groups."""
    short: dict[int, dict[str, str]] = {}
    for place, (group, column) in enumerate(grid.columns):
        if not group and column in KINDS:
            short[place] = shorten([row[place].text or "" for row in grid.rows], KINDS[column])
    groups = shorten([group for group, _ in grid.columns if group], "objectives")
    columns = tuple((groups.get(group, group), column) for group, column in grid.columns)
    rows = tuple(
        tuple(
            replace(cell, text=short[place].get(cell.text, cell.text)) if place in short and cell.text else cell
            for place, cell in enumerate(row)
        )
        for row in grid.rows
    )
    return replace(grid, columns=columns, rows=rows)


def _merge_conventions(grid: Grid) -> Grid:
    """Make rows of conventions that are printed alike one row: `corrected, released`."""
    if ("", "convention") not in grid.columns:
        return grid
    place = grid.columns.index(("", "convention"))
    merged: dict[tuple[str, ...], list[Cell]] = {}
    for row in grid.rows:
        key = tuple(cell.plain() + cell.mark for other, cell in enumerate(row) if other != place)
        first = merged.setdefault(key, list(row))
        if first[place].text != row[place].text:
            first[place] = replace(first[place], text=f"{first[place].text}, {row[place].text}")
    return replace(grid, rows=tuple(tuple(row) for row in merged.values()))


def _without_constant(grid: Grid) -> Grid:
    """Move text columns in which all rows are alike to the caption; one that names the rows stays."""
    constant = [place for place in range(len(grid.columns)) if _is_constant(grid, place)]
    if set(range(grid.labels)) <= set(constant):
        constant = [place for place in constant if place != _naming(grid)]
    if not constant:
        return grid
    said = "; ".join(f"{grid.columns[place][1]} {grid.rows[0][place].plain()}" for place in constant)
    return replace(_without(grid, lambda place: place in constant), caption=_insert(said, grid.caption))


def _insert(said: str, caption: str) -> str:
    """Return the caption with what all rows share behind its title: `cocos: objective ntxent; eps 0.01.`"""
    title, colon, settings = caption.partition(": ")
    if colon and "; " in settings and not re.search(r"[.;]", title):
        return f"{title}: {said}; {settings}"
    return f"{caption} {said[:1].upper()}{said[1:]}."


def _is_constant(grid: Grid, place: int) -> bool:
    group, column = grid.columns[place]
    cells = [row[place] for row in grid.rows]
    alike = all(cell.text is not None and not cell.mark and cell.text == cells[0].text for cell in cells)
    return not group and alike and (len(cells) > 1 or column in _SETTINGS)


def _naming(grid: Grid) -> int:
    """Return the place of the column that names the rows best."""
    names = [column for _, column in grid.columns]
    return next((names.index(name) for name in _NAMES if name in names), 0)
