"""Ask about people, with a passage each, all of one template: a candidate differs in a name, and answers nothing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from .base import DataSet, Words, by_keys, text_split

KIND = "people of a template"
_JOBS = "nurse teacher baker lawyer painter driver farmer pilot singer judge tailor miner cook guard clerk".split()
_HOBBIES = "chess rowing knitting fishing hiking cycling pottery poker dancing sailing gardening archery".split()


@dataclass(frozen=True)
class Setup:
    """How passages are written."""

    name: str
    n: int
    seed: int
    codes: bool = True  # names are a letter and a number
    doubled: float = 0.0  # share of people with a second passage that says the same
    form: int = 0  # number of the template
    lower: bool = False  # questions in small letters


SETUPS = (
    Setup("codes, none match, n = 300", 300, 1),
    Setup("codes, none match, n = 1000", 1000, 2),
    Setup("codes, none match, n = 1200", 1200, 3),
    Setup("codes, 5 % match, n = 1000", 1000, 4, doubled=0.05),
    Setup("names, none match, n = 600", 600, 5, False, form=1),
    Setup("names, 5 % match, n = 600", 600, 6, False, 0.05, 1),
    Setup("names, 20 % match, n = 600", 600, 7, False, 0.2, 1, True),
    Setup("names, none match, n = 600, small letters", 600, 8, False, form=2, lower=True),
)


def data_sets() -> Iterator[DataSet]:
    """Yield all of them."""
    for setup in SETUPS:
        yield build(setup)


def build(setup: Setup) -> DataSet:
    """Write the corpus of a setup."""
    words = Words(setup.seed)
    random = words.random
    alphabet = "ABCDEFGHJKLMNPRSTUVWXYZ"
    codes = [f"{alphabet[number % 23]} {100 + number // 3}" for number in random.permutation(3 * setup.n)[: setup.n]]
    names = codes if setup.codes else words.names(setup.n)
    cities, firms = words.names(40, 1), words.names(25, 1)
    queries: list[str] = []
    documents: list[str] = []
    query_keys: list[object] = []
    document_keys: list[object] = []
    for person, name in enumerate(names):
        job, hobby = str(random.choice(_JOBS)), str(random.choice(_HOBBIES))
        city, firm, year = str(random.choice(cities)), str(random.choice(firms)), int(random.integers(1940, 2005))
        passages = [_passage(setup.form, name, job, city, firm, year, hobby)]
        questions = [f"Who is {name}?"]
        if random.random() < setup.doubled:
            passages.append(_passage(3, name, job, city, firm, year, hobby))
            questions.append(f"What does {name} do?")
        for question, passage in zip(questions, passages, strict=True):
            queries.append(question.lower() if setup.lower else question)
            documents.append(passage)
            query_keys.append(person)
            document_keys.append(person)
    order = np.random.default_rng(setup.seed).permutation(len(queries))
    queries, documents = [queries[row] for row in order], [documents[row] for row in order]
    keys = by_keys([query_keys[row] for row in order], [document_keys[row] for row in order])
    positives = [(row, row) for row in range(len(queries))]
    return DataSet(KIND, setup.name, text_split(queries, documents, positives), keys, seed=setup.seed)


def _passage(form: int, name: str, job: str, city: str, firm: str, year: int, hobby: str) -> str:
    return (
        f"{name} is a {job} in {city}.",
        f"{name} was born in {year} and works as a {job} for {firm} in {city}. In spare time {name} likes {hobby}.",
        f"Profile of {name}. Job: {job}. Town: {city}. Employer: {firm}. Born: {year}.",
        f"In {city} the firm {firm} employs {name}, a {job} of the year {year}.",
    )[form]
