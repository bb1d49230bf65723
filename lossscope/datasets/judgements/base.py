"""What a file of judgements says: pairs of ids, and which of them people called positive."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from lossscope.core.pair_rows import IdKind
from lossscope.errors import InputError
from lossscope.io.json_files import shorten


@dataclass(frozen=True)
class Judgements:
    """Judged pairs of one file, in its order.

    Raises InputError when there is none, and for a pair that is judged twice and differently.
    """

    where: str  # the file, as messages name it
    first: Sequence[str]  # (n,) what names items of the first side
    second: Sequence[str]  # (n,) what names items of the second side
    positive: Sequence[bool]  # (n,)
    rule: str  # what makes a pair positive, in words
    lines: Sequence[int] | None = None  # (n,) where each pair stands, counted from 1
    kinds: tuple[IdKind | None, IdKind | None] = (None, None)  # how both columns name items, where that is known
    queries: Literal["first", "second", "both"] = "both"  # sides whose items were judged as queries
    is_coco: bool = False  # whether the first side is named by numbers of COCO's images
    notices: tuple[str, ...] = ()  # what the user should know of how it was read

    def __post_init__(self) -> None:
        if not self.first:
            raise InputError(f"{self.where} must have at least one judged pair; it has none")
        seen: dict[tuple[str, str], int] = {}
        for row, pair in enumerate(zip(self.first, self.second, strict=True)):
            before = seen.setdefault(pair, row)
            if self.positive[before] != self.positive[row]:
                both = f"{shorten(pair[0])} and {shorten(pair[1])}"
                raise InputError(
                    f"{self.where} must judge a pair in one way; {both} are a positive in {self._place(before, row)}"
                )

    def _place(self, first: int, second: int) -> str:
        """Return which of two judgements calls the pair a positive, and which does not."""
        yes, no = (first, second) if self.positive[first] else (second, first)
        if self.lines is None:
            return f"pair {yes + 1} and none in pair {no + 1}"
        return f"line {self.lines[yes]} and none in line {self.lines[no]}"
