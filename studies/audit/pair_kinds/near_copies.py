"""Make queries of words of a document; the corpus has edited copies of some documents, for other queries."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from .base import DataSet, Words, of_rows, sentence

KIND = "edited copies"


@dataclass(frozen=True)
class Setup:
    """How documents are written and edited."""

    name: str
    n: int
    seed: int
    copied: float  # share of the documents with a copy
    edits: float  # share of the words that differ in a copy
    length: int = 40
    topics: int = 40


SETUPS = (
    Setup("a tenth, few edits", 600, 1, 0.1, 0.05),
    Setup("a tenth, many edits", 600, 2, 0.1, 0.4),
    Setup("none", 600, 3, 0.0, 0.0),
    Setup("short, half", 500, 4, 0.5, 0.2, 10),
    Setup("few topics, a twentieth", 800, 5, 0.05, 0.2, 30, 8),
)


def data_sets() -> Iterator[DataSet]:
    """Yield all of them."""
    for setup in SETUPS:
        yield build(setup)


def build(setup: Setup) -> DataSet:
    """Write the corpus of a setup."""
    words = Words(200 + setup.seed)
    topics = [words.topic() for _ in range(setup.topics)]
    rows: list[tuple[str, str, object]] = []
    for number in range(setup.n):
        topic = topics[int(words.random.integers(setup.topics))]
        text = words.text(setup.length, topic)
        texts = [text]
        if words.random.random() < setup.copied:
            other = words.text(setup.length, topic)
            texts.append([b if words.random.random() < setup.edits else a for a, b in zip(text, other, strict=True)])
        for written in texts:
            asked = words.random.choice(len(written), min(5, len(written)), replace=False)
            half = len(written) // 2
            document = f"{sentence(written[:half])} {sentence(written[half:])}"
            rows.append((" ".join(written[position] for position in sorted(asked)), document, number))
    return of_rows(KIND, setup.name, rows, words)
