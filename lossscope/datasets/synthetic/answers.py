"""Which passage answers which question? Decided exactly, from what is asked and what is stated."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from lossscope.core.relations import Relations
from lossscope.core.types import Rows

from ..base import Split
from .knowledge import Person

Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class PassageSplit(Split):
    """A split of questions and passages with what each asks and states: a passage answers what it states.

    Labels lack some answers, as those of real data do: `relations` has what is labelled, `truth` what is so.
    """

    people: tuple[Person, ...]
    asked_person: Rows  # (N,) row in `people`
    asked_relation: Rows  # (N,) 0..7, place in `knowledge.RELATION_NAMES`
    names_nobody: Flags  # (N,) questions about somebody: a passage about anybody may answer
    passage_person: Rows  # (M,) row in `people`
    stated: Flags  # (M, 8) the relations that a passage states of its person
    duplicate_of: Rows  # (M,) row of the passage that a passage is a copy of, −1 of others

    def answers(self, question: int, passage: int) -> bool:
        """Whether the passage states what the question asks."""
        same = self.names_nobody[question] or self.asked_person[question] == self.passage_person[passage]
        return bool(same and self.stated[passage, self.asked_relation[question]])

    def truth(self) -> Flags:
        """Return (N, M) bool: `answers` of every question and passage."""
        same: Flags = self.asked_person[:, None] == self.passage_person[None, :]
        return (same | self.names_nobody[:, None]) & self.stated.T[self.asked_relation]

    @cached_property
    def false_negatives(self) -> Rows:
        """(k, 2) rows of questions and passages that answer them and are not labelled, copies included."""
        everything = np.arange(len(self.asked_person)), np.arange(len(self.captions))
        pairs: Rows = np.argwhere(self.truth() & ~self.relations.is_positive(*everything)).astype(np.int64)
        return pairs

    @cached_property
    def mined_answers(self) -> Flags:
        """(N, k) bool: the mined negatives that really answer their question."""
        mined = self.relations.negatives
        if mined is None:
            return np.zeros((len(self.asked_person), 0), dtype=bool)
        answers: Flags = np.take_along_axis(self.truth(), np.maximum(mined, 0), axis=1)
        return answers & (mined >= 0)

    def complete_relations(self) -> Relations:
        """Return the relations with every answer labelled, and no mined negative that is one."""
        pairs = np.argwhere(self.truth()).astype(np.int64)
        mined = self.relations.negatives
        kept = None if mined is None else np.where(self.mined_answers, -1, mined)
        return replace(self.relations, positives=pairs, negatives=kept)
