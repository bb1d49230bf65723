"""How is a table laid out in a given width? As it is, transposed, in blocks of columns, or not at all."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from ._grid import Grid, group_spans
from .cells import Cell

Measure = Callable[[Cell], float]
_MOST_PER_NAME = 3  # columns of a transposed table, for each of its lines


@dataclass(frozen=True)
class Sheet:
    """Cells as they stand below each other; the first columns are labels, which every block of columns repeats."""

    heads: tuple[tuple[str, ...], ...]  # lines of headings, a text per column
    groups: tuple[str, ...]  # above the headings, one per column; "" is none
    rows: tuple[tuple[Cell, ...], ...]
    left: tuple[bool, ...]  # columns that are flush left
    labels: int  # number of label columns

    def columns(self, places: Sequence[int]) -> Sheet:
        """Return the sheet of some columns."""
        return replace(
            self,
            heads=tuple(tuple(line[place] for place in places) for line in self.heads),
            groups=tuple(self.groups[place] for place in places),
            rows=tuple(tuple(row[place] for place in places) for row in self.rows),
            left=tuple(self.left[place] for place in places),
        )

    def widths(self, measure: Measure, gap: float) -> list[float]:
        """Return the width of each column; the last of a group takes what its heading needs more."""
        cells = [*([Cell(text=text) for text in line] for line in self.heads), *self.rows]
        widths = [max(map(measure, column)) for column in zip(*cells, strict=True)]
        for group, places in group_spans(list(self.groups)):
            own = sum(widths[place] for place in places) + gap * (len(places) - 1)
            widths[places[-1]] += max(0.0, measure(Cell(text=group)) - own)
        return widths

    def width(self, measure: Measure, gap: float) -> float:
        """Return the width of all columns and the gaps between them."""
        widths = self.widths(measure, gap)
        return sum(widths) + gap * (len(widths) - 1)


def arrange(grid: Grid, width: float, measure: Measure, gap: float) -> list[Sheet] | None:
    """Return the sheets that show a table, one below the other; None where a label and a column are too wide.

    As it is where that fits; else transposed, where that does; else whichever takes fewer lines in blocks of columns.

    Args:
        grid: the table.
        width: that a sheet may have.
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
    """Return the table as it is."""
    heads = (tuple(column for _, column in grid.columns),)
    groups = tuple(group for group, _ in grid.columns)
    return Sheet(heads, groups, grid.rows, tuple(grid.text_columns), grid.labels)


def transposed(grid: Grid) -> Sheet | None:
    """Return the table with a line per column and, for each row, a column per group: C_neg below i2t and t2i.

    None where a name stands twice in a group, a table has nothing but labels, or many more rows than columns.
    """
    values = grid.columns[grid.labels :]
    names, sides = tuple(dict.fromkeys(name for _, name in values)), tuple(dict.fromkeys(group for group, _ in values))
    if len(set(values)) < len(values) or len(grid.rows) * len(sides) > _MOST_PER_NAME * len(names):
        return None
    place = {column: grid.labels + number for number, column in enumerate(values)}
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
            *(row[place[side, name]] if (side, name) in place else Cell(text="") for row, side in columns),
        )
        for name in names
    )
    return Sheet((*labels, *sides_line), groups, body, (True, *(False for _ in columns)), 1)


def _label(cell: Cell) -> str:
    return cell.plain() + (f"[{cell.mark}]" if cell.mark else "")


def _blocks(sheet: Sheet, width: float, measure: Measure, gap: float) -> list[Sheet] | None:
    """Return blocks of columns that fit, groups unbroken where they can be; None where one column is too wide."""
    labels = list(range(sheet.labels))

    def fits(places: Sequence[int]) -> bool:
        return sheet.columns([*labels, *places]).width(measure, gap) <= width

    together = sheet.heads[0] if len(sheet.heads) > 1 and not any(sheet.groups) else sheet.groups
    units: list[list[int]] = []  # what stays together
    for group, own in group_spans(list(together)):
        places = [place for place in own if place >= sheet.labels]
        units += [places] if places and group and fits(places) else [[place] for place in places]
    if not units or not all(map(fits, units)):
        return None
    packed: list[list[int]] = [[]]
    for unit in units:
        if packed[-1] and not fits([*packed[-1], *unit]):
            packed.append([])
        packed[-1] += unit
    return [_without_empty_rows(sheet.columns([*labels, *places])) for places in packed]


def _without_empty_rows(sheet: Sheet) -> Sheet:
    """Return a block without the rows that have nothing in it."""
    kept = [row for row in sheet.rows if not all(cell.missing or cell.text == "" for cell in row[sheet.labels :])]
    return replace(sheet, rows=tuple(kept or sheet.rows))
