"""Pair complaints with the articles that solve them: a cause has several articles, and complaints repeat."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from .base import DataSet, Words, of_rows, sentence

KIND = "tickets and articles"


@dataclass(frozen=True)
class Setup:
    """The number of causes, of tickets of each, and how similar their words are."""

    name: str
    causes: int
    each: int  # tickets of a cause, each with an article
    seed: int
    shared: float  # share of words that the texts of a cause have in common


SETUPS = (
    Setup("one of each", 700, 1, 1, 0.6),
    Setup("two of each", 300, 2, 2, 0.6),
    Setup("five of each", 120, 5, 3, 0.5),
    Setup("ten of each, hardly alike", 60, 10, 4, 0.3),
    Setup("two of each, alike", 300, 2, 5, 0.9),
)


def data_sets() -> Iterator[DataSet]:
    """Yield all of them."""
    for setup in SETUPS:
        yield build(setup)


def build(setup: Setup) -> DataSet:
    """Write the tickets of a setup."""
    words = Words(600 + setup.seed)
    random = words.random
    rows: list[tuple[str, str, object]] = []
    for cause in range(setup.causes):
        core = words.text(14)
        for _ in range(setup.each):
            kept = [word for word in core if random.random() < setup.shared]
            ticket = " ".join([*kept[: len(kept) // 2 + 1], *words.text(5)])
            article = sentence([*[word for word in core if random.random() < setup.shared], *words.text(18)])
            rows.append((ticket, f"Error {100 + cause % 50}. {article}", cause))
    return of_rows(KIND, setup.name, rows, words)
