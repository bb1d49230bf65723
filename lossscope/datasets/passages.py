"""The built-in text data set: questions and passages whose answers are all known, from a seed, without a download."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lossscope.core.relations import Relations
from lossscope.core.shuffles import shuffle_rows
from lossscope.core.sides import QUERY_DOCUMENT
from lossscope.core.types import Rows
from lossscope.errors import InputError
from lossscope.io.files import fingerprint_of

from .base import USUAL_SPLITS, Texts, require_range, require_split
from .synthetic.answers import PassageSplit
from .synthetic.corpus import QUESTIONS_PER_PERSON, STREAMS, Corpus
from .synthetic.knowledge import MOST_PEOPLE, RELATION_NAMES
from .synthetic.mining import PassageMiner

_SHARES = (4, 1, 1)  # of the names of people that each split may use, of their sum
_MOST = tuple(QUESTIONS_PER_PERSON * MOST_PEOPLE * share // sum(_SHARES) for share in _SHARES)
_FIRST_STREAM = 100  # behind those of scenes


@dataclass(frozen=True)
class Passages:
    """Questions that ask for a fact of a made-up person, and passages that state several facts of one.

    A passage answers a question if it states the fact. Labels have known gaps: `false_negatives` of the questions have
    a further passage that answers them and is not labelled, `mined_answers` of the mined negatives are such passages,
    and `duplicates` of the passages are there twice, the copy without a label. `vague` of the questions ask about
    somebody, and are labelled with passages about the person of whom they were written alone. No person is in two
    splits.

    Raises InputError for values out of range, more mined answers than unlabelled passages, and mined negatives of vague
    questions.
    """

    train: int = 2000  # number of training questions, at most 12288
    val: int = 250  # number of validation questions, at most 3072
    test: int = 250  # number of test questions, at most 3072
    facts: int = 3  # that a passage states, 2..4
    negatives: int = 4  # mined negatives of each question, 0..16
    false_negatives: float = 0.1  # share of the questions that have an answer without a label
    mined_answers: float = 0.02  # share of the mined negatives that really answer, one of a question at most
    duplicates: float = 0.02  # share of the passages that have a copy
    vague: float = 0.0  # share of the questions that name nobody: every passage that states such a fact answers them
    seed: int = 0  # of everything that is drawn, 0..2^64-1

    def __post_init__(self) -> None:
        for name, most in zip(USUAL_SPLITS, _MOST, strict=True):
            require_range(f"passages:{name}", getattr(self, name), 2, most)
        for name, low, high in (("facts", 2, 4), ("negatives", 0, 16), ("seed", 0, 2**64 - 1)):
            require_range(f"passages:{name}", getattr(self, name), low, high)
        for name in ("false_negatives", "mined_answers", "duplicates", "vague"):
            require_range(f"passages:{name}", getattr(self, name), 0, 1)
        if self.vague and self.negatives:
            raise InputError(
                "passages:negatives must be 0 where questions are vague, since most negatives that look like an answer "
                f"are answers; got {self.negatives} with vague={self.vague:g}. Add negatives=0"
            )
        for name in USUAL_SPLITS:
            mined, unlabelled = self._count_mined_answers(name), _part(self.false_negatives, getattr(self, name))
            if mined > unlabelled:
                raise InputError(
                    f"passages:mined_answers must be at most the answers without a label; {name} has {unlabelled} of "
                    f"them; got {mined}. Raise false_negatives, or lower mined_answers or negatives"
                )

    def splits(self) -> tuple[str, ...]:
        """Return train, val and test."""
        return USUAL_SPLITS

    def split(self, name: str) -> PassageSplit:
        """Return the split of a name; it knows which passage answers which question."""
        require_split(name, USUAL_SPLITS)
        corpus = self._write_corpus(name)
        corpus.make_vague(_part(self.vague, len(corpus.questions)))
        unlabelled = corpus.add_unlabelled(_part(self.false_negatives, len(corpus.questions)))
        corpus.add_copies(_part(self.duplicates, len(corpus.passages)))
        mined_answers = corpus.choose_mined_answers(unlabelled, self._count_mined_answers(name))
        negatives = PassageMiner(corpus).mine(self.negatives, mined_answers) if self.negatives else None
        return self._build(name, corpus, unlabelled, negatives)

    def _write_corpus(self, name: str) -> Corpus:
        """Write people, their passages and questions; those of a smaller split are the first of a larger one."""
        split, questions = USUAL_SPLITS.index(name), getattr(self, name)
        corpus = Corpus(self.seed, _FIRST_STREAM + 1 + split * STREAMS, self.facts)
        for row, number in enumerate(self._names(split)):
            left = questions - row * QUESTIONS_PER_PERSON
            if left <= 0:
                break
            corpus.add_person(number, min(left, QUESTIONS_PER_PERSON))
        return corpus

    def _names(self, split: int) -> list[int]:
        """Return the numbers of the names that a split may use, in the order of its people."""
        order = shuffle_rows(MOST_PEOPLE, self.seed, _FIRST_STREAM)
        ends = [MOST_PEOPLE * sum(_SHARES[:end]) // sum(_SHARES) for end in (split, split + 1)]
        numbers: list[int] = order[ends[0] : ends[1]].tolist()
        return numbers

    def _count_mined_answers(self, name: str) -> int:
        return _part(self.mined_answers, self.negatives * int(getattr(self, name)))

    def _build(self, name: str, corpus: Corpus, unlabelled: Rows, negatives: Rows | None) -> PassageSplit:
        """Return the split of a corpus: everything that answers is labelled, but copies and what is left out."""
        n, m = len(corpus.questions), len(corpus.passages)
        asked, stated = np.array(corpus.asked, dtype=np.int64), np.zeros((m, len(RELATION_NAMES)), dtype=bool)
        for row, (_, relations) in enumerate(corpus.stated):
            stated[row, list(relations)] = True
        pairs = _labelled(corpus, {(int(q), int(p)) for q, p in unlabelled})
        numbers = [rows.astype("<i8").tobytes() for rows in (pairs, negatives) if rows is not None]
        return PassageSplit(
            name=name,
            images=Texts(corpus.questions),
            captions=corpus.passages,
            caption_image=None,
            image_ids=[f"{name}-q{row:05d}" for row in range(n)],
            caption_ids=[f"{name}-p{row:05d}" for row in range(m)],
            fingerprint=fingerprint_of(name, *corpus.questions, "", *corpus.passages, "", *numbers),
            relations=Relations(n, m, pairs, QUERY_DOCUMENT, negatives=negatives),
            people=tuple(corpus.people),
            asked_person=asked[:, 0],
            asked_relation=asked[:, 1],
            names_nobody=np.isin(np.arange(n), list(corpus.vague)),
            passage_person=np.array([person for person, _ in corpus.stated], dtype=np.int64),
            stated=stated,
            duplicate_of=np.array(corpus.duplicate_of, dtype=np.int64),
        )


def _labelled(corpus: Corpus, left_out: set[tuple[int, int]]) -> Rows:
    """Return (p, 2) questions and the passages that answer them, by question; no copies, and none of `left_out`."""
    pairs = [
        (question, passage)
        for question, (person, relation) in enumerate(corpus.asked)
        for passage in corpus.passages_of[person]
        if relation in corpus.stated[passage][1] and (question, passage) not in left_out
    ]
    return np.array(pairs, dtype=np.int64).reshape(-1, 2)


def _part(share: float, number: int) -> int:
    """Return a share of a number, rounded to a whole one."""
    return int(share * number + 0.5)
