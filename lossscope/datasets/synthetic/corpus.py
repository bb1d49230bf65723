"""Passages about people, questions on what they state, and the labels: with known gaps, copies and mined negatives."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import combinations

import numpy as np

from lossscope.core.shuffles import random_words, shuffle_rows
from lossscope.core.types import Rows

from .knowledge import RELATION_NAMES, Person, draw_person
from .scene import RandomGenerator
from .wording import write_passage, write_question

QUESTIONS_PER_PERSON = 3
STREAMS = 8  # random streams of a corpus, from its first one
_PEOPLE, _UNLABELLED, _COPIES, _EXTRA, _MINED, _MINED_ANSWERS, _VAGUE = range(7)
_WORDS = 64  # random words of a person, at most 8 + 8 + 2 + 2 * 2 * 3 + 6 + 3
_RELATIONS = len(RELATION_NAMES)


@dataclass
class Corpus:
    """Questions and passages about people; rows are in the order in which they were written."""

    seed: int
    stream: int  # the first of STREAMS
    facts: int  # stated by a passage
    people: list[Person] = field(default_factory=list)
    questions: list[str] = field(default_factory=list)
    asked: list[tuple[int, int]] = field(default_factory=list)  # person and relation of each question
    passages: list[str] = field(default_factory=list)
    stated: list[tuple[int, tuple[int, ...]]] = field(default_factory=list)  # person and relations of each passage
    vague: set[int] = field(default_factory=set)  # questions that name nobody
    duplicate_of: list[int] = field(default_factory=list)  # -1: no copy
    passages_of: dict[int, list[int]] = field(default_factory=dict)  # person -> passages, copies left out

    def add_person(self, number: int, questions: int) -> None:
        """Write two passages about a person, whose facts may overlap by one, and questions on different facts of them.

        Args:
            number: of the names of the person.
            questions: at most QUESTIONS_PER_PERSON.
        """
        row = len(self.people)
        rng = self._generator(_PEOPLE, row)
        person = draw_person(number, rng)
        self.people.append(person)
        order, overlap = rng.sample(range(_RELATIONS), _RELATIONS), rng.below(2)
        second = order[self.facts - overlap : 2 * self.facts - overlap]
        for relations in (order[: self.facts], second):
            self._add_passage(row, tuple(relations), rng)
        asked = rng.sample(order[: 2 * self.facts - overlap], QUESTIONS_PER_PERSON)
        for relation in asked[:questions]:
            self.questions.append(write_question(person, relation, rng))
            self.asked.append((row, relation))

    def make_vague(self, count: int) -> None:
        """Let `count` of the questions ask about somebody, so that every passage with such a fact answers them."""
        chosen = shuffle_rows(len(self.questions), self.seed, self.stream + _VAGUE)[:count]
        for question in chosen.tolist():
            name = self.people[self.asked[question][0]].name
            self.questions[question] = self.questions[question].replace(name, "somebody")
            self.vague.add(question)

    def add_unlabelled(self, count: int) -> Rows:
        """Write a further passage that answers each of `count` questions; return the (count, 2) pairs."""
        chosen = np.sort(shuffle_rows(len(self.questions), self.seed, self.stream + _UNLABELLED)[:count])
        pairs = []
        for question in chosen.tolist():
            rng = self._generator(_EXTRA, question)
            person, relation = self.asked[question]
            pairs.append((question, len(self.passages)))
            self._add_passage(person, self._new_facts(person, relation, rng), rng)
        return np.array(pairs, dtype=np.int64).reshape(-1, 2)

    def add_copies(self, count: int) -> None:
        """Append copies of `count` different passages, in the order of their rows."""
        chosen = np.sort(shuffle_rows(len(self.passages), self.seed, self.stream + _COPIES)[:count])
        for row in chosen.tolist():
            self.passages.append(self.passages[row])
            self.stated.append(self.stated[row])
            self.duplicate_of.append(row)

    def choose_mined_answers(self, unlabelled: Rows, count: int) -> Rows:
        """Return `count` of the unlabelled pairs (k, 2), those that a miner takes for negatives."""
        return unlabelled[shuffle_rows(len(unlabelled), self.seed, self.stream + _MINED_ANSWERS)[:count]]

    def miner(self, question: int) -> RandomGenerator:
        """Return the random generator of the mined negatives of a question."""
        return self._generator(_MINED, question)

    def _add_passage(self, person: int, relations: tuple[int, ...], rng: RandomGenerator) -> None:
        self.passages_of.setdefault(person, []).append(len(self.passages))
        self.passages.append(write_passage(self.people[person], relations, rng))
        self.stated.append((person, relations))
        self.duplicate_of.append(-1)

    def _new_facts(self, person: int, relation: int, rng: RandomGenerator) -> tuple[int, ...]:
        """Draw relations that include the one asked, and are together in no passage about the person yet."""
        known = {frozenset(self.stated[passage][1]) for passage in self.passages_of[person]}
        others = [other for other in range(_RELATIONS) if other != relation]
        sets = [(relation, *more) for more in combinations(others, self.facts - 1)]
        drawn = rng.choice([relations for relations in sets if frozenset(relations) not in known])
        return tuple(rng.sample(drawn, self.facts))

    def _generator(self, stream: int, row: int) -> RandomGenerator:
        return RandomGenerator(random_words(_WORDS, self.seed, self.stream + stream, row).tolist())
