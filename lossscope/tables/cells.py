"""An entry of a table: its number, its deviation, its marks, and how it is printed."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

Better = Literal["higher", "lower"] | None
DASH = "–"
_DECIMALS = {"samples": 2, "queries": 1, "%": 1, "rank": 1}
_MOST = 8  # decimals


@dataclass(frozen=True)
class Cell:
    """One entry: words (`text`), or a number (`mean`, perhaps with `std`) with `digits` decimals.

    std_digits: decimals of the deviation where they are others. mark: letters of footnotes and signs such as †, printed
    raised in LaTeX and HTML and in brackets elsewhere.

    >>> Cell(mean=65.21, std=0.38).plain(), Cell(mean=3.0, digits=0).plain(), Cell().plain()
    ('65.2 ± 0.4', '3', '–')
    """

    text: str | None = None
    mean: float | None = None
    std: float | None = None
    digits: int = 1
    best: bool = False
    second: bool = False
    std_digits: int | None = None
    mark: str = ""

    @property
    def missing(self) -> bool:
        """Whether there is nothing to print but a dash."""
        return self.text is None and (self.mean is None or math.isnan(self.mean))

    @property
    def spread(self) -> bool:
        """Whether a standard deviation belongs to the number."""
        return self.std is not None and not math.isnan(self.std) and not self.missing

    def plain(self, between: str = " ± ") -> str:
        """The entry without marks; `between` separates mean and deviation."""
        if self.text is not None or self.missing:
            return DASH if self.text is None else self.text
        number = f"{self.mean:.{self.digits}f}"
        digits = self.digits if self.std_digits is None else self.std_digits
        return f"{number}{between}{self.std:.{digits}f}" if self.spread else number


def decimals(unit: str, value: float | None) -> int:
    """Decimals of a unit; more where a value this small would be printed as 0, one at most from 100 on."""
    usual = _DECIMALS.get(unit, 3)
    if not value or not math.isfinite(value) or abs(value) >= 10.0 ** (1 - usual):
        return min(usual, 1) if value and abs(value) >= 100 else usual
    return min(math.ceil(-math.log10(abs(value))) + 1, _MOST)


def marked(
    rows: Sequence[Sequence[Cell]], better: Sequence[Better], blocks: Sequence[Hashable] | None = None
) -> tuple[tuple[Cell, ...], ...]:
    """Which entry of each column is best, which second? As printed, so that equal numbers are marked alike.

    `better` has one word per column: "higher", "lower", or None for a column without a winner. `blocks` has a key per
    row: only rows with the same key compete. A column of a block with fewer than two different numbers has no winner.
    """
    done = [list(row) for row in rows]
    keys = list(blocks) if blocks is not None else [None] * len(done)
    for block in dict.fromkeys(keys):
        own = [row for row, key in zip(done, keys, strict=True) if key == block]
        for place, sense in enumerate(better):
            for row, cell in zip(own, ranked([row[place] for row in own], sense), strict=True):
                row[place] = cell
    return tuple(tuple(row) for row in done)


def ranked(cells: Sequence[Cell], better: Better) -> list[Cell]:
    """The same cells, the best and the second of them marked, as printed; none where there is no contest."""
    order = sorted({n for cell in cells if (n := _printed(cell)) is not None}, reverse=better == "higher")
    if better is None or len(order) < 2:
        return list(cells)
    numbers = [_printed(cell) for cell in cells]
    return [replace(c, best=n == order[0], second=n == order[1]) for c, n in zip(cells, numbers, strict=True)]


def _printed(cell: Cell) -> float | None:
    return None if cell.missing or cell.mean is None else round(cell.mean, cell.digits)


def _number(value: float | None) -> float:
    return math.nan if value is None else float(value)
