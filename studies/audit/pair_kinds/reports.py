"""Pair headlines with dated reports: reports of an event match its headlines, those of another date or town do not."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from .base import DataSet, Words, of_rows, sentence

KIND = "dated reports"
_EVENTS = (
    ("flood", "floods hit {p}", "Heavy rain flooded parts of {p} on {d}. {n} people left their homes."),
    ("fire", "fire in {p}", "A fire broke out in {p} on {d}. Firefighters rescued {n} people."),
    ("strike", "workers of {p} on strike", "Workers in {p} stopped work on {d}. The union counted {n} of them."),
    ("match", "{p} wins the cup", "The team of {p} won the cup on {d} before {n} spectators."),
    ("vote", "{p} votes", "The people of {p} voted on {d}. Of {n} voters most were in favour."),
)
_MONTHS = "January March April June July August September October November December".split()


@dataclass(frozen=True)
class Setup:
    """The number of events, how often each is reported, and the number of towns."""

    name: str
    n: int
    seed: int
    twice: float  # share of the events with a second report
    towns: int


SETUPS = (
    Setup("none twice, few places", 700, 1, 0.0, 25),
    Setup("a tenth twice, few places", 650, 2, 0.1, 25),
    Setup("half twice, many places", 500, 3, 0.5, 400),
    Setup("none twice, many places", 700, 4, 0.0, 600),
    Setup("all twice, few places", 350, 5, 1.0, 30),
)


def data_sets() -> Iterator[DataSet]:
    """Yield all of them."""
    for setup in SETUPS:
        yield build(setup)


def build(setup: Setup) -> DataSet:
    """Write the reports of a setup."""
    words = Words(500 + setup.seed)
    random = words.random
    towns = words.names(setup.towns, 1)
    rows: list[tuple[str, str, object]] = []
    for number in range(setup.n):
        _, headline, report = _EVENTS[int(random.integers(len(_EVENTS)))]
        town = str(random.choice(towns))
        date = f"{int(random.integers(1, 29))} {random.choice(_MONTHS)} {int(random.integers(1990, 2024))}"
        people = int(random.integers(12, 900))
        for again in range(1 + int(random.random() < setup.twice)):
            title = f"{headline.format(p=town)}, {date}" if again == 0 else f"{date}: {headline.format(p=town)}"
            text = f"{report.format(p=town, d=date, n=people)} {sentence(words.text(8))}"
            rows.append((title[:1].upper() + title[1:], text, number))
    return of_rows(KIND, setup.name, rows, words)
