"""A cell of a table: its number, deviation and marks, and its printed form."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

Better = Literal["higher", "lower"] | None
DASH = "–"
MINUS = "−"
_DECIMALS = {"samples": 2, "queries": 1, "%": 1, "sum of %": 1, "rank": 1}
_MAX_DECIMALS = 8


@dataclass(frozen=True)
class Cell:
    """A cell: a text, a number or an interval, else a dash; a number that prints as 0 has no sign.

    >>> Cell(mean=65.21, std=0.38).plain(), Cell(mean=3.0, digits=0).plain(), Cell().plain()
    ('65.2 ± 0.4', '3', '–')
    >>> Cell(mean=0.0072, digits=4, at_most=True).plain()
    '≤ 0.0072'
    >>> Cell(interval=(-0.093, 0.12), digits=2).plain()
    '-0.09 to 0.12'
    """

    text: str | None = None
    mean: float | None = None  # the number
    std: float | None = None  # its standard deviation
    digits: int = 1  # decimals
    best: bool = False  # of its column or block
    second: bool = False  # second best
    std_digits: int | None = None  # decimals of the deviation; None: `digits`
    at_most: bool = False  # whether the number is an upper bound: `≤ 0.0072`
    interval: tuple[float, float] | None = None  # its bounds, printed instead of a number
    picture: str = ""  # data address of a picture, which pages show before the text
    mark: str = ""  # letters of footnotes and signs such as †; raised in LaTeX and HTML, elsewhere in brackets

    @property
    def missing(self) -> bool:
        """Whether the cell prints a dash."""
        return self.text is None and self.interval is None and (self.mean is None or math.isnan(self.mean))

    @property
    def has_std(self) -> bool:
        """Whether the cell prints a standard deviation."""
        return self.std is not None and not math.isnan(self.std) and not self.missing

    def plain(self, separator: str = " ± ") -> str:
        """Return the cell without marks.

        Args:
            separator: between mean and deviation.
        """
        if self.text is not None or self.missing:
            return DASH if self.text is None else self.text
        if self.interval is not None:
            return " to ".join(f"{end:z.{self.digits}f}" for end in self.interval)
        number = f"{'≤ ' if self.at_most else ''}{self.mean:z.{self.digits}f}"
        digits = self.digits if self.std_digits is None else self.std_digits
        return f"{number}{separator}{self.std:.{digits}f}" if self.has_std else number

    def printed(self) -> str:
        """Return the cell without marks for terminals and pages, with a minus, not a hyphen, as the sign.

        >>> [cell.printed() for cell in (Cell(mean=-0.093, digits=2), Cell(mean=-0.001), Cell(text="triplet-sh"))]
        ['−0.09', '0.0', 'triplet-sh']
        """
        return self.plain() if self.text is not None else self.plain().replace("-", MINUS)


def decimals(unit: str, value: float | None) -> int:
    """Return the decimals of a unit; more for values that would print as 0, at most one from 100 on."""
    usual = _DECIMALS.get(unit, 3)
    if not value or not math.isfinite(value) or abs(value) >= 10.0 ** (1 - usual):
        return min(usual, 1) if value and abs(value) >= 100 else usual
    return min(math.ceil(-math.log10(abs(value))) + 1, _MAX_DECIMALS)


def mark_best(
    rows: Sequence[Sequence[Cell]], better: Sequence[Better], blocks: Sequence[Hashable] | None = None
) -> tuple[tuple[Cell, ...], ...]:
    """Mark the best and the second cell of each column, compared as printed: equal numbers get equal marks.

    A column of a block with fewer than two different numbers has no best cell.

    Args:
        rows: cells.
        better: of each column: "higher", "lower", or None for no comparison.
        blocks: a key per row; only rows with the same key are compared. None: all rows.
    """
    marked = [list(row) for row in rows]
    keys = list(blocks) if blocks is not None else [None] * len(marked)
    for block in dict.fromkeys(keys):
        block_rows = [row for row, key in zip(marked, keys, strict=True) if key == block]
        for index, direction in enumerate(better):
            column = mark_best_of_column([row[index] for row in block_rows], direction)
            for row, cell in zip(block_rows, column, strict=True):
                row[index] = cell
    return tuple(tuple(row) for row in marked)


def mark_best_of_column(cells: Sequence[Cell], better: Better) -> list[Cell]:
    """Mark the best cell where two printed numbers differ, and of three or more the second best."""
    numbers = [_round(cell) for cell in cells]
    known = [number for number in numbers if number is not None]
    order = sorted(set(known), reverse=better == "higher")
    if better is None or len(order) < 2:
        return list(cells)
    second = order[1] if len(known) > 2 else math.nan  # of two numbers the second is the loser
    return [replace(cell, best=n == order[0], second=n == second) for cell, n in zip(cells, numbers, strict=True)]


def _round(cell: Cell) -> float | None:
    return None if cell.missing or cell.mean is None else round(cell.mean, cell.digits)


def _number(value: float | None) -> float:
    return math.nan if value is None else float(value)
