"""What a rule for false negatives is: from the rows of S to the negatives that are left out of the loss."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Literal, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from lossscope.core.similarity import Mask
from lossscope.core.types import Rows
from lossscope.errors import InputError

if TYPE_CHECKING:
    from lossscope.core.known_pairs import KnownPairs, ReadTexts

Needs = Literal["similarities", "related", "keys", "guide", "items"]


@dataclass(frozen=True, eq=False)
class BatchItems:
    """Which items of a split the rows and columns of k batches are."""

    first_ids: Sequence[str]  # of the whole split
    second_ids: Sequence[str]
    queries: Rows  # (k·q,) rows of the split
    candidates: Rows  # (k, c)
    first_are_queries: bool = True  # whether queries are of the first side
    texts: ReadTexts | None = None  # of the split's items; None: ids alone say which these are

    def blocks(self) -> Iterator[tuple[Rows, Rows]]:
        """Yield the rows of queries (q,) and candidates (c,) of each batch."""
        yield from zip(np.split(self.queries, len(self.candidates)), self.candidates, strict=True)

    def probabilities(self, known: KnownPairs) -> npt.NDArray[np.float32]:
        """Return the probability (k·q, c) that pairs give query and candidate; 0 of a pair that is not known.

        Raises InputError where the pairs are of other items.
        """
        blocks = []
        for queries, candidates in self.blocks():
            first, second = (queries, candidates) if self.first_are_queries else (candidates, queries)
            block = known.probabilities(self.first_ids, self.second_ids, first, second, self.texts)
            blocks.append(block if self.first_are_queries else block.T)
        return np.concatenate(blocks)


@dataclass(frozen=True)
class MaskInputs:
    """Rows of S of one direction, and what is known of them; of k batches one below the other."""

    S: Tensor  # (q, c)
    mask: Mask  # of these rows
    related: Tensor | None = None  # (q, c) bool, candidates that are known to be positives
    candidate_keys: Tensor | None = None  # (q, c) numbers that are equal where the inputs (pixels, words) are equal
    guide: Tensor | None = None  # (q, c) similarities of another model
    items: BatchItems | None = None  # which items these are, where both sides have ids

    def of_positive(self, similarities: Tensor) -> Tensor:
        """Return the largest similarity of a positive of each row, (q, 1); NaN in rows without one.

        Args:
            similarities: (q, c), S or those of the guide.
        """
        best = similarities.masked_fill(~self.mask.positives, -torch.inf).amax(1, keepdim=True)
        return best.where(best > -torch.inf, torch.nan)


@runtime_checkable
class NegativeMask(Protocol):
    """A frozen dataclass whose fields are the options of the rule."""

    needs: ClassVar[Needs]  # what it decides by

    def hidden(self, rows: MaskInputs) -> Tensor:
        """Return (q, c) bool: candidates to leave out; of these only negatives are."""
        ...


def hide_negatives(rows: MaskInputs, rules: Iterable[NegativeMask]) -> Mask:
    """Return the mask without the negatives that any of the rules hides.

    Each decides by the rows as they are, so that their order is of no effect.
    Raises InputError where the source does not know what a rule decides by.
    """
    valid = rows.mask.valid
    for rule in rules:
        _require_given(rows, rule)
        valid = valid & ~(rule.hidden(rows) & rows.mask.negatives)
    return replace(rows.mask, valid=valid)


def _require_given(rows: MaskInputs, rule: NegativeMask) -> None:
    given = {
        "similarities": rows.S, "related": rows.related, "keys": rows.candidate_keys, "guide": rows.guide,
        "items": rows.items,
    }  # fmt: skip
    if given[rule.needs] is None:
        reason = {
            "related": "the batch has the items of both sides in one set",
            "keys": "it needs the inputs (texts, pixels, ids) of both sides, in batches of pairs or groups",
            "guide": "no guide is given. Name its embeddings: --guide SOURCE",
            "items": "it looks items up by the ids of both sides, which are not known of views that are one set and of "
            "further candidates (--terms)",
        }[rule.needs]
        name = type(rule).__module__.rpartition(".")[2].replace("_", "-")  # the name of the file, as it is typed
        raise InputError(f"lossscope cannot use --mask {name}: {reason}")
