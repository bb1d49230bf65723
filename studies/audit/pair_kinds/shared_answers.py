"""Ask about facts that several passages state; each passage is labelled for a single question."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from .base import DataSet, Words, of_rows, sentence

KIND = "questions that share an answer"
_FACTS = {  # two questions, two statements
    "capital": (
        "what is the capital of {0}", "which city governs {0}",
        "{1} is the capital of {0}", "{0} is governed from its capital {1}",
    ),
    "river": (
        "which river flows through {0}", "what river crosses {0}",
        "The {1} flows through {0}", "{0} is crossed by the river {1}",
    ),
    "founder": (
        "who founded {0}", "by whom was {0} founded",
        "{0} was founded by {1}", "{1} is known as the founder of {0}",
    ),
    "export": (
        "what does {0} export", "what is the main export of {0}",
        "{0} mainly exports {1}", "The main export of {0} is {1}",
    ),
    "mountain": (
        "what is the highest mountain of {0}", "which mountain of {0} is highest",
        "{1} is the highest mountain of {0}", "No mountain of {0} is higher than {1}",
    ),
}  # fmt: skip


@dataclass(frozen=True)
class Setup:
    """The number of facts, and how often each is stated."""

    name: str
    countries: int
    seed: int
    share: float  # of the facts that a second passage states
    filler: int = 12  # words beside the fact
    lower: bool = False


SETUPS = (
    Setup("a tenth stated twice", 150, 1, 0.1),
    Setup("half stated twice", 120, 2, 0.5),
    Setup("all stated twice", 100, 3, 1.0, 20),
    Setup("none stated twice", 150, 4, 0.0),
    Setup("a fifth stated twice, small letters", 150, 5, 0.2, 6, True),
)


def data_sets() -> Iterator[DataSet]:
    """Yield all of them."""
    for setup in SETUPS:
        yield build(setup)


def build(setup: Setup) -> DataSet:
    """Write the corpus of a setup."""
    words = Words(100 + setup.seed)
    rows: list[tuple[str, str, object]] = []
    values = words.names(setup.countries * len(_FACTS), 1)
    for number, country in enumerate(words.names(setup.countries, 1)):
        topic = words.topic()
        for fact, (question, other, statement, again) in _FACTS.items():
            if words.random.random() < 0.3:
                continue
            value = values[number * len(_FACTS) + list(_FACTS).index(fact)]
            forms = [(question, statement)]
            if words.random.random() < setup.share:
                forms.append((other, again))
            for asked, stated in forms:
                filler = sentence(words.text(setup.filler, topic)), sentence(words.text(setup.filler, topic))
                text = f"{filler[0]} {stated.format(country, value)}. {filler[1]}"
                query = f"{asked.format(country)}?"
                rows.append((query.lower() if setup.lower else query, text, (country, fact)))
    return of_rows(KIND, setup.name, rows, words)
