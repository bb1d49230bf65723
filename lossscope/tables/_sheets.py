"""How does a table fit into a width? As it is, transposed, in blocks of columns, or not at all."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from ._grid import Grid, group_spans
from .cells import Cell

Measure = Callable[[Cell], float]
_MOST_PER_NAME = 3  # columns of a transposed table for each of its lines, at most


@dataclass(frozen=True)
class Sheet:
    """Rows of cells below headings; the first columns are labels, which every block of columns repeats."""

    heads: tuple[tuple[str, ...], ...]  # lines of headings, a text per column
    groups: tuple[str, ...]  # above the headings, one per column; "" for no group
    rows: tuple[tuple[Cell, ...], ...]
    left: tuple[bool, ...]  # columns that are flush left
    labels: int  # number of label columns

    def columns(self, indices: Sequence[int]) -> Sheet:
        """Return the sheet with the columns of `indices`."""
        return replace(
            self,
            heads=tuple(tuple(line[index] for index in indices) for line in self.heads),
            groups=tuple(self.groups[index] for index in indices),
            rows=tuple(tuple(row[index] for index in indices) for row in self.rows),
            left=tuple(self.left[index] for index in indices),
        )

    def widths(self, measure: Measure, gap: float) -> list[float]:
        """Return the width of each column; the last of a group grows until its group's heading fits."""
        cells = [*([Cell(text=text) for text in line] for line in self.heads), *self.rows]
        widths = [max(map(measure, column)) for column in zip(*cells, strict=True)]
        for group, indices in group_spans(list(self.groups)):
            needed = sum(widths[index] for index in indices) + gap * (len(indices) - 1)
            widths[indices[-1]] += max(0.0, measure(Cell(text=group)) - needed)
        return widths

    def width(self, measure: Measure, gap: float) -> float:
        """Return the width of all columns and the gaps between them."""
        widths = self.widths(measure, gap)
        return sum(widths) + gap * (len(widths) - 1)


def arrange(grid: Grid, width: float, measure: Measure, gap: float) -> list[Sheet] | None:
    """Return the sheets of a table, one below the other; None if a label and a column are too wide.

    The table stays as it is if it fits; else it is transposed if that fits; else it takes blocks of columns, plain or
    transposed, whichever needs fewer lines.

    Args:
        grid: the table.
        width: of a sheet, at most.
        measure: of a cell, in the same unit.
        gap: between two columns.
    """
    sheets = [sheet for sheet in (plain(grid), transposed(grid)) if sheet is not None]
    for sheet in sheets:
        if sheet.width(measure, gap) <= width:
            return [sheet]
    split = [blocks for sheet in sheets if (blocks := _blocks(sheet, width, measure, gap))]
    return min(split, key=lambda blocks: sum(len(block.rows) + 3 for block in blocks), default=None)


def plain(grid: Grid) -> Sheet:
    """Return the table as a single sheet."""
    heads = (tuple(column for _, column in grid.columns),)
    groups = tuple(group for group, _ in grid.columns)
    return Sheet(heads, groups, grid.rows, tuple(grid.text_columns), grid.labels)


def transposed(grid: Grid) -> Sheet | None:
    """Return the table with a line per column and, for each row, a column per group: C_neg below i2t and t2i.

    None if a name stands twice in a group, if a table has only labels, or if it has many more rows than columns.
    """
    values = grid.columns[grid.labels :]
    names, sides = tuple(dict.fromkeys(name for _, name in values)), tuple(dict.fromkeys(group for group, _ in values))
    if len(set(values)) < len(values) or len(grid.rows) * len(sides) > _MOST_PER_NAME * len(names):
        return None
    index_of = {column: grid.labels + number for number, column in enumerate(values)}
    columns = [(row, side) for row in grid.rows for side in sides]
    labels = [(grid.columns[k][1], *(_label(row[k]) for row, _ in columns)) for k in range(grid.labels)]
    groups = ("",) * (1 + len(columns))
    if len(sides) > 1 and len(labels) == 1:  # the label stands once, above its sides
        (_, *above), labels = labels[0], []
        groups = ("", *above)
    sides_line = [("", *(side or "both" for _, side in columns))] if sides != ("",) else []
    body = tuple(
        (
            Cell(text=name),
            *(row[index_of[side, name]] if (side, name) in index_of else Cell(text="") for row, side in columns),
        )
        for name in names
    )
    return Sheet((*labels, *sides_line), groups, body, (True, *(False for _ in columns)), 1)


def _label(cell: Cell) -> str:
    return cell.plain() + (f"[{cell.mark}]" if cell.mark else "")


def _blocks(sheet: Sheet, width: float, measure: Measure, gap: float) -> list[Sheet] | None:
    """Return blocks of columns that fit, with whole groups if possible; None if a column is too wide."""
    labels = list(range(sheet.labels))

    def fits(indices: Sequence[int]) -> bool:
        return sheet.columns([*labels, *indices]).width(measure, gap) <= width

    together = sheet.heads[0] if len(sheet.heads) > 1 and not any(sheet.groups) else sheet.groups
    units: list[list[int]] = []  # columns that stay together
    for group, members in group_spans(list(together)):
        indices = [index for index in members if index >= sheet.labels]
        units += [indices] if indices and group and fits(indices) else [[index] for index in indices]
    if not units or not all(map(fits, units)):
        return None
    packed: list[list[int]] = [[]]
    for unit in units:
        if packed[-1] and not fits([*packed[-1], *unit]):
            packed.append([])
        packed[-1] += unit
    return [_without_empty_rows(sheet.columns([*labels, *indices])) for indices in packed]


def _without_empty_rows(sheet: Sheet) -> Sheet:
    """Return a block without its empty rows."""
    kept = [row for row in sheet.rows if not all(cell.missing or cell.text == "" for cell in row[sheet.labels :])]
    return replace(sheet, rows=tuple(kept or sheet.rows))
