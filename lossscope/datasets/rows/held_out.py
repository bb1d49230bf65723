"""One file cut into train, val and test by a hash of the query, so that equal queries stay together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from lossscope.core.choices import WHOLE
from lossscope.core.normal_form import normal_form
from lossscope.errors import InputError
from lossscope.io.files import fingerprint_of

from .row_block import RowBlock

_SHARE = 0.1  # of the queries that a training holds out, where no other is asked for


@dataclass(frozen=True)
class HeldOut:
    """Which share of the queries is val, and which is test; the rest is train, and `all` is everything.

    The hash is of the query's normal form and the seed alone. Raises InputError for shares out of range.
    """

    val_share: float
    test_share: float
    seed: int

    @classmethod
    def asked(cls, val_share: float | None, test_share: float | None, seed: int) -> HeldOut:
        """Return the shares that were asked for; 0.1 each where they were not."""
        return cls(_SHARE if val_share is None else val_share, _SHARE if test_share is None else test_share, seed)

    def __post_init__(self) -> None:
        for name, share in (("val_share", self.val_share), ("test_share", self.test_share)):
            if not 0 <= share < 1:
                raise InputError(f"{name} must be in [0, 1); got {share}")
        if self.val_share + self.test_share >= 1:
            got = f"{self.val_share} and {self.test_share}"
            raise InputError(f"val_share and test_share must leave some for train; got {got}: lower one of them")

    @property
    def splits(self) -> tuple[str, ...]:
        """Names of the splits, train first."""
        names = ("train", *(["val"] if self.val_share else []), *(["test"] if self.test_share else []))
        return names if len(names) == 1 else (*names, WHOLE)

    def blocks(self, blocks: Iterable[RowBlock], name: str) -> Iterator[RowBlock]:
        """Yield the rows of one split."""
        for block in blocks:
            if name == WHOLE or len(self.splits) == 1:
                yield block
                continue
            rows = [row for row, query in enumerate(block.queries) if self._split_of(query) == name]
            if rows:
                yield block.take(rows)

    def _split_of(self, query: str) -> str:
        share = int(fingerprint_of(str(self.seed), normal_form(query))[:13], 16) / 16**13
        if share < self.test_share:
            return "test"
        return "val" if share < self.test_share + self.val_share else "train"
