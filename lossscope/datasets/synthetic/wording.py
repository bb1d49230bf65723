"""Write questions that ask for one fact of a person, and passages that state several, in varying words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from .knowledge import RELATION_NAMES, Person
from .scene import RandomGenerator

STATEMENTS: Mapping[str, tuple[str, ...]] = {
    "birthplace": ("was born in {}", "is a native of {}", "came into the world in {}"),
    "home": ("lives in {}", "has a house in {}", "settled in {}"),
    "year": ("was born in the year {}", "came into the world in the year {}", "has lived since {}"),
    "job": ("works as a {}", "is a {} by trade", "earns a living as a {}"),
    "instrument": ("plays the {}", "performs on the {}", "practises the {} every day"),
    "subject": ("studied {}", "has a degree in {}", "took lessons in {}"),
    "language": ("speaks {}", "is fluent in {}", "grew up with {}"),
    "pet": ("keeps a {}", "has a {} as a pet", "shares the house with a {}"),
}
"""Relation -> what may follow the name of a person; no two relations share a form."""
QUESTIONS: Mapping[str, tuple[str, ...]] = {
    "birthplace": ("where was {} born", "in which town was {} born", "what is the birthplace of {}"),
    "home": ("where does {} live", "in which town does {} live", "where is the house of {}"),
    "year": ("when was {} born", "in which year was {} born", "what is the birth year of {}"),
    "job": ("what does {} do for a living", "what is the job of {}", "which trade does {} follow"),
    "instrument": ("which instrument does {} play", "what does {} play", "on what does {} perform"),
    "subject": ("what did {} study", "which subject did {} study", "in what does {} have a degree"),
    "language": ("which language does {} speak", "what does {} speak", "in which language is {} fluent"),
    "pet": ("which animal does {} keep", "what pet does {} have", "what animal lives with {}"),
}
"""Relation -> the questions that ask for it."""
_CAPITAL = ("birthplace", "home", "language")  # relations whose values are names


def write_question(person: Person, relation: int, rng: RandomGenerator) -> str:
    """Return a question for a fact of a person; one random word."""
    text = rng.choice(QUESTIONS[RELATION_NAMES[relation]]).format(person.name)
    return f"{text[0].upper()}{text[1:]}?"


def write_passage(person: Person, relations: Sequence[int], rng: RandomGenerator) -> str:
    """Return sentences that state facts of a person in this order; two random words for each.

    The first sentence begins with the whole name, the others with a pronoun, the last name or the whole name.
    """
    return " ".join(_write_sentence(person, relation, index, rng) for index, relation in enumerate(relations))


def _write_sentence(person: Person, relation: int, index: int, rng: RandomGenerator) -> str:
    pronoun, last = person.pronoun.capitalize(), person.last.capitalize()
    subject = rng.choice((pronoun, pronoun, last, person.name))
    name, value = RELATION_NAMES[relation], person.values[relation]
    statement = rng.choice(STATEMENTS[name]).format(value.capitalize() if name in _CAPITAL else value)
    return f"{subject if index else person.name} {statement}."
