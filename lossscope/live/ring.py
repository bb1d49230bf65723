"""Watch rows of S of one process, whose blocks of columns come from all processes in turn."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType

from torch import Tensor

from lossscope.core.types import DIRECTIONS, Direction
from lossscope.engine.one_batch import OneBatch, plain_mode
from lossscope.engine.ring_rows import RingRows
from lossscope.errors import InputError

from .observed import Row
from .shared_batch import BatchPart

PlanOf = Callable[[tuple[Direction, ...]], OneBatch]
Finish = Callable[[Callable[[], BatchPart]], Row]


class Ring:
    """Collect the blocks of a watched step; after the `with` block, `row` is its row, or None for a skipped step.

    Args:
        columns: candidates of all processes together.
        offset: row i matches column offset + i.
        plan_of: directions -> plan.
        finish: merges the part of this process and keeps the row; None: the step is skipped.
        is_shared: whether other processes have other rows. Then an error of `add` is raised at the end, in all
            processes, as they may wait for the next block of this process.
    """

    def __init__(self, columns: int, offset: int, plan_of: PlanOf, finish: Finish | None, is_shared: bool) -> None:
        for name, value in (("columns", columns), ("offset", offset)):
            if isinstance(value, bool) or not isinstance(value, int) or value < (name == "columns"):
                raise InputError(f"{name} of a ring must be a whole number; got {value!r}")
        self.row: Row | None = None
        self._columns, self._offset, self._plan_of = columns, offset, plan_of
        self._finish, self._is_shared = finish, is_shared
        self._plan: OneBatch | None = None
        self._rows: list[RingRows] = []  # of each direction
        self._error: Exception | None = None

    def add(self, S: Tensor, first: int, S_second: Tensor | None = None) -> None:
        """Add a block; it is read at once and may be overwritten.

        Args:
            S: (b, w) similarities of the rows of this process with w candidates.
            first: column of the first of these.
            S_second: (b, w) similarities of its rows of the second side with w items of the first; in every block or
                none.

        Raises:
            InputError: another number of rows than in the block before, or repeated columns.
        """
        if self._finish is None or self._error is not None:
            return
        try:
            self._add([S] if S_second is None else [S, S_second], first)
        except Exception as error:
            if not self._is_shared:
                raise
            self._error = error

    def _add(self, blocks: list[Tensor], first: int) -> None:
        if self._plan is None:
            self._plan = self._plan_of(DIRECTIONS[: len(blocks)])
            self._rows = [RingRows(plan, self._columns, self._offset) for plan in self._plan.of_directions]
        if len(blocks) != len(self._rows):
            raise InputError("S_second must be given with every block of a ring, or with none")
        for rows, S in zip(self._rows, blocks, strict=True):
            with plain_mode(getattr(S, "device", rows.finite.device)):
                rows.add(S, first)

    def _part(self) -> BatchPart:
        if self._error is not None:
            raise self._error
        if self._plan is None:
            raise InputError(f"blocks must have all {self._columns} columns; got none")
        finite = self._rows[0].finite
        with plain_mode(finite.device):
            shares = [rows.share() for rows in self._rows]
            finite = finite if len(self._rows) == 1 else finite & self._rows[1].finite
        return BatchPart(self._plan, shares, [self._columns] * len(shares), finite, self._offset)

    def __enter__(self) -> Ring:
        """Begin a step."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Compute the row, unless the block raised an error. Raises InputError where columns are missing."""
        if value is None and self._finish is not None:
            self.row = self._finish(self._part)
        self._rows, self._plan = [], None
