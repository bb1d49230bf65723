"""Reduce a table to its shown part: no hidden, empty or constant column, specs no longer than needed."""

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
    """Return the table without empty columns; the caption states the values that all rows share.

    Args:
        grid: the whole table.
        hidden: headings of columns to hide.
    """
    if not grid.rows:
        return grid
    grid = _without(grid, lambda index: grid.headings[index] in hidden or _is_empty(grid, index))
    return _without_constant(_merge_conventions(_with_short_specs(grid)))


def _is_empty(grid: Grid, index: int) -> bool:
    return all(row[index].missing or row[index].text == "" for row in grid.rows)


def _without(grid: Grid, drop: Callable[[int], bool]) -> Grid:
    """Return the grid without the columns to drop; the whole grid if no column would be left."""
    kept = [index for index in range(len(grid.columns)) if not drop(index)] or list(range(len(grid.columns)))
    rows = tuple(tuple(row[index] for index in kept) for row in grid.rows)
    return replace(grid, columns=tuple(grid.columns[index] for index in kept), rows=rows)


def _with_short_specs(grid: Grid) -> Grid:
    """Shorten the specs in columns of a registry and in headings of groups."""
    short: dict[int, dict[str, str]] = {}
    for index, (group, column) in enumerate(grid.columns):
        if not group and column in KINDS:
            short[index] = shorten([row[index].text or "" for row in grid.rows], KINDS[column])
    groups = shorten([group for group, _ in grid.columns if group], "objectives")
    columns = tuple((groups.get(group, group), column) for group, column in grid.columns)
    rows = tuple(
        tuple(
            replace(cell, text=short[index].get(cell.text, cell.text)) if index in short and cell.text else cell
            for index, cell in enumerate(row)
        )
        for row in grid.rows
    )
    return replace(grid, columns=columns, rows=rows)


def _merge_conventions(grid: Grid) -> Grid:
    """Merge rows of conventions with equal cells into one row: `corrected, released`."""
    if ("", "convention") not in grid.columns:
        return grid
    index = grid.columns.index(("", "convention"))
    merged: dict[tuple[str, ...], list[Cell]] = {}
    for row in grid.rows:
        key = tuple(cell.plain() + cell.mark for other, cell in enumerate(row) if other != index)
        first = merged.setdefault(key, list(row))
        if first[index].text != row[index].text:
            first[index] = replace(first[index], text=f"{first[index].text}, {row[index].text}")
    return replace(grid, rows=tuple(tuple(row) for row in merged.values()))


def _without_constant(grid: Grid) -> Grid:
    """Move constant text columns to the caption; the column that names the rows stays."""
    constant = [index for index in range(len(grid.columns)) if _is_constant(grid, index)]
    if set(range(grid.labels)) <= set(constant):
        constant = [index for index in constant if index != _naming(grid)]
    if not constant:
        return grid
    shared = "; ".join(f"{grid.columns[index][1]} {grid.rows[0][index].plain()}" for index in constant)
    return replace(_without(grid, lambda index: index in constant), caption=_insert(shared, grid.caption))


def _insert(clause: str, caption: str) -> str:
    """Return the caption with the shared values behind its title: `cocos: objective ntxent; eps 0.01.`"""
    title, colon, settings = caption.partition(": ")
    if colon and "; " in settings and not re.search(r"[.;]", title):
        return f"{title}: {clause}; {settings}"
    return f"{caption} {clause[:1].upper()}{clause[1:]}."


def _is_constant(grid: Grid, index: int) -> bool:
    group, column = grid.columns[index]
    cells = [row[index] for row in grid.rows]
    alike = all(cell.text is not None and not cell.mark and cell.text == cells[0].text for cell in cells)
    return not group and alike and (len(cells) > 1 or column in _SETTINGS)


def _naming(grid: Grid) -> int:
    """Return the index of the column that names the rows best."""
    names = [column for _, column in grid.columns]
    return next((names.index(name) for name in _NAMES if name in names), 0)
