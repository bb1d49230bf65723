"""Make a labelled set of requests; its labels are finer than the intents, so that two labels can mean the same."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from lossscope.core.relations import Relations
from lossscope.datasets.base import Split, Texts

from .base import DataSet, Words

KIND = "labels that hide labels"
_FRAMES = (
    "please {v} my {o}", "i want to {v} the {o}", "can you {v} {o} for me", "how do i {v} a {o}",
    "{v} {o} now", "help me {v} this {o} in {c}", "i need someone to {v} my {o} at {c}", "is it possible to {v} {o}",
)  # fmt: skip
_VERBS = {
    "cancel": ("cancel", "stop", "call off"), "change": ("change", "modify", "edit"),
    "buy": ("buy", "order", "purchase"), "track": ("track", "locate", "follow"),
    "refund": ("refund", "reimburse", "pay back"), "find": ("find", "look up", "search"),
}  # fmt: skip
_OBJECTS = {
    "flight": ("flight", "plane ticket"), "hotel": ("hotel room", "room"), "card": ("credit card", "card"),
    "parcel": ("parcel", "package"), "bill": ("bill", "invoice"), "meal": ("meal", "dinner"),
    "phone": ("phone", "mobile"), "account": ("account", "profile"),
}  # fmt: skip


@dataclass(frozen=True)
class Setup:
    """The number of requests, and the share of split labels."""

    name: str
    n: int
    seed: int
    split: float  # share of the intents with two labels


SETUPS = (
    Setup("a tenth split", 800, 1, 0.1),
    Setup("half split", 800, 2, 0.5),
    Setup("all split", 600, 3, 1.0),
    Setup("none split", 800, 4, 0.0),
)


def data_sets() -> Iterator[DataSet]:
    """Yield all of them."""
    for setup in SETUPS:
        yield build(setup)


def build(setup: Setup) -> DataSet:
    """Write the requests of a setup."""
    words = Words(300 + setup.seed)
    random = words.random
    cities = words.names(50, 1)
    intents = [(verb, thing) for verb in _VERBS for thing in _OBJECTS]
    is_split = random.random(len(intents)) < setup.split
    texts, truth, labels = [], [], []
    for _ in range(setup.n):
        number = int(random.integers(len(intents)))
        verb, thing = intents[number]
        frame = str(random.choice(_FRAMES))
        texts.append(
            frame.format(v=random.choice(_VERBS[verb]), o=random.choice(_OBJECTS[thing]), c=random.choice(cities))
        )
        truth.append(number)
        labels.append(2 * number + int(is_split[number] and random.random() < 0.5))
    intent = np.array(truth)
    relations = Relations.of_labels(np.unique(labels, return_inverse=True)[1], "request")
    ids = [f"r{row}" for row in range(setup.n)]
    split = Split("train", Texts(texts), texts, None, ids, ids, "0", relations=relations)
    return DataSet(KIND, setup.name, split, lambda a, b: intent[a] == intent[b], seed=setup.seed)
