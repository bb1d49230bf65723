"""What a counting rule is: the counts of a row from its similarities and a few sums, whole or block by block.

The negatives of a row come as blocks; its positives are known before the first. A fold says what is kept of them:

    fold = start();  fold.add(block) ...;  fold.merge(fold of later blocks) ...;  fold.again();  fold.counts(eps)

Folds are merged in the order of their blocks alone, so that any number of threads and processes gives the same bits.
Shapes: n queries, p positives of a query (padded); a block is (r, w), some queries and some candidates.
Whether an entry counts depends on its similarity alone, s > cut. The cut is computed in float64 from float64 sums and
rounded once to the type of S, so that blocks of any shape give the same counts.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Protocol, Self

from torch import Tensor

from lossscope.core.cached import cached_property
from lossscope.core.counts import CountEffects, Counts

from .block import Block, Buffers, Tile
from .concentration import Concentration
from .rows import QueryPositives, WholeRows

Keep = Literal["none", "some", "all"]


class Fold(ABC):
    """What is kept of blocks of one direction: sums in float64, exact numbers, entries that can still count."""

    kept: ClassVar[tuple[str, ...]] = ()  # the attributes that are all of it, of plain values

    @abstractmethod
    def begin(self, known: Any = None) -> None:
        """Keep nothing yet.

        Args:
            known: of a fold of earlier blocks. By their sums entries are dropped that cannot count, which changes no
                number; None: nothing is known.
        """

    def start(self, known: Any = None) -> Self:
        """Return a fold of the same queries before its first block; what is known of the queries is shared."""
        fold = object.__new__(type(self))
        fold.__dict__.update(self.__dict__)  # a shallow copy; `copy` takes several times as long
        fold.begin(known)
        return fold

    @abstractmethod
    def add(self, block: Block) -> None:
        """Add a block, −inf on entries that are not negatives."""

    @abstractmethod
    def merge(self, later: Any) -> None:
        """Add a fold of later blocks; tensors of neither are overwritten."""

    def numbers(self) -> dict[str, Any]:
        """Return what is kept as plain values, which files and other processes can hold."""
        return {name: getattr(self, name) for name in self.kept}

    def load(self, numbers: Mapping[str, Any]) -> None:
        """Keep what the fold kept whose `numbers` these are."""
        for name in self.kept:
            setattr(self, name, numbers[name])

    def known(self) -> Any:
        """Return by what folds of later blocks may drop entries, see `begin`."""
        return None

    def again(self) -> Fold | None:
        """Return what a second pass over all blocks keeps; None where one was enough."""
        return None

    def finish(self, second: Any) -> None:
        """Keep what a second pass kept, too."""
        raise NotImplementedError(f"{type(self).__name__} takes one pass")


class CountFold(Fold):
    """The sums of n queries under one objective."""

    @abstractmethod
    def counts(self, eps: float) -> Counts:
        """Return the counts of all n queries; eps must be one of the fold's."""


class CountingRule(Protocol):
    """A frozen dataclass of the numbers in which the objectives of one family differ."""

    def fold(self, positives: QueryPositives, eps: Sequence[float], keep: Keep = "some") -> CountFold:
        """Return what is kept of the blocks of one direction.

        Args:
            positives: of the n queries.
            eps: thresholds that will be counted.
            keep: which entries that can still count. `some`: as long as they are not too many, so that one pass may be
                enough; `all`: however many, as blocks come once; `none`: they are counted in a second pass.
        """
        ...

    def count_rows(self, whole: WholeRows) -> RowCounts:
        """Return the counts of whole rows, equal to those of a fold: the fast kernel of a block of whole rows."""
        ...


class RowCounts(ABC):
    """The counts of whole rows under one objective."""

    @abstractmethod
    def counts(self, eps: float) -> Counts:
        """Return what the objective's paper counts."""

    def concentration(self) -> Concentration | None:
        """Return how concentrated the weights are; None where that takes every single weight."""
        return None

    def effects(self, eps: float) -> CountEffects | None:
        """Return the effect of each candidate on the counts; None where the rule does not state it."""
        return None


@dataclass(frozen=True, eq=False)
class FoldedRowCounts(RowCounts):
    """Whole rows counted as one block by the fold of a rule."""

    rule: CountingRule
    whole: WholeRows

    def counts(self, eps: float) -> Counts:
        """Return what the objective's paper counts."""
        counts: Counts = self.folded([eps]).counts(eps)
        return counts

    def folded(self, eps: Sequence[float]) -> Any:
        """Return the fold of the rows, counted in a second pass, which keeps no entries."""
        fold = self.rule.fold(self.whole.query_positives, eps, "none")
        fold.add(self.block)
        second = fold.again()
        if second is not None:
            second.add(self.block)
            fold.finish(second)
        return fold

    @cached_property
    def block(self) -> Block:
        """The rows as one block."""
        n, c = self.whole.negatives.shape
        return Block(Tile(self.whole.negatives, slice(0, n), slice(0, c), self.whole.buffers or Buffers()))


def fill_skipped(values: Tensor, usable: Tensor) -> Tensor:
    """Return the values, (n,), with 0 in skipped rows."""
    return values.where(usable, 0.0)
