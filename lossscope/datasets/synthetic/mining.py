"""Mined negatives: passages that look like an answer, and do not state what is asked; some of them do."""

from __future__ import annotations

import numpy as np

from lossscope.core.relations import NONE
from lossscope.core.types import Rows

from .corpus import Corpus


class PassageMiner:
    """Finds passages about the asked person, about namesakes, and about the asked relation.

    Args:
        corpus: questions and passages; copies are never mined.
    """

    def __init__(self, corpus: Corpus) -> None:
        self.corpus = corpus
        self.stating: dict[int, list[int]] = {}  # relation -> passages
        self.named: dict[tuple[str, int], list[int]] = {}  # first or last name, relation -> passages
        for passages in corpus.passages_of.values():
            for passage in passages:
                self._index(passage)

    def _index(self, passage: int) -> None:
        row, relations = self.corpus.stated[passage]
        person = self.corpus.people[row]
        for relation in relations:
            self.stating.setdefault(relation, []).append(passage)
            for name in (person.first, person.last):
                self.named.setdefault((name, relation), []).append(passage)

    def mine(self, k: int, answers: Rows) -> Rows:
        """Return (n, k) passages for each question, −1 where there are fewer.

        About half are about the person, without the fact that is asked; the others state the fact of other people, half
        of them namesakes.

        Args:
            k: passages of a question.
            answers: (a, 2) questions and passages that answer them, which take the place of one of the others.
        """
        mined = np.full((len(self.corpus.questions), k), NONE, dtype=np.int64)
        answer_of: dict[int, int] = dict(answers.tolist())
        for question in range(len(mined)):
            rng = self.corpus.miner(question)
            chosen: list[int] = []
            for pool, most in zip(self._pools(question), ((k + 1) // 2, (3 * k + 3) // 4, k), strict=True):
                left = [passage for passage in pool if passage not in chosen]
                chosen += rng.sample(left, min(len(left), most - len(chosen)))
            mined[question, : len(chosen)] = chosen
            if question in answer_of:
                mined[question, rng.below(k)] = answer_of[question]
        return mined

    def _pools(self, question: int) -> tuple[list[int], list[int], list[int]]:
        """Return passages about the person without the fact, those of namesakes with it, and of anybody else."""
        row, relation = self.corpus.asked[question]
        person, stated = self.corpus.people[row], self.corpus.stated
        silent = [passage for passage in self.corpus.passages_of[row] if relation not in stated[passage][1]]
        namesakes = dict.fromkeys((*self.named[person.first, relation], *self.named[person.last, relation]))
        others = [passage for passage in self.stating[relation] if stated[passage][0] != row]
        return silent, [passage for passage in namesakes if stated[passage][0] != row], others
