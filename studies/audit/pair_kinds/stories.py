"""Make items with several texts and no pictures, declared as images and captions, to mislead a test for photos."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from .base import DataSet, Words, sentence
from .hidden_captions import caption_split

KIND = "items with texts"
_ACTS = "walks runs sits stands plays eats sleeps jumps rides waits swims climbs".split()
_WHO = "man woman boy girl dog child couple team crowd horse cat player".split()
_WHERE = "street park beach field house river bridge market garden snow forest station".split()
_LOOKS = "red blue green black white young old small large happy wet tired".split()


@dataclass(frozen=True)
class Setup:
    """How items are described."""

    name: str
    form: str  # grammar, topics or persons
    n: int
    seed: int
    texts: int = 5
    alike: float = 0.0  # share of the items with the same content as another


SETUPS = (
    Setup("a grammar of photos, all worded alike", "grammar", 700, 1),
    Setup("a grammar of photos, short", "grammar", 900, 2, 3),
    Setup("a grammar of photos, a tenth described twice", "grammar", 700, 3, 5, 0.1),
    Setup("a grammar of photos, half described twice", "grammar", 500, 4, 4, 0.5),
    Setup("topics", "topics", 600, 5),
    Setup("topics, a fifth described twice", "topics", 500, 6, 4, 0.2),
    Setup("persons", "persons", 600, 7, 3),
    Setup("persons, a tenth described twice", "persons", 500, 8, 4, 0.1),
)


def data_sets() -> Iterator[DataSet]:
    """Yield all of them."""
    for setup in SETUPS:
        yield build(setup)


def build(setup: Setup) -> DataSet:
    """Write the items of a setup: they match if they are the same, or say the same in the same grammar."""
    words = Words(700 + setup.seed)
    random = words.random
    names = words.names(setup.n)
    groups: list[list[str]] = []
    keys: list[int] = []
    meanings: dict[object, int] = {}
    for number in range(setup.n):
        topic = words.topic(12)
        scene = tuple(str(random.choice(part)) for part in (_LOOKS, _WHO, _ACTS, _WHERE))
        meaning: object = scene if setup.form == "grammar" else number
        for _ in range(1 + int(random.random() < setup.alike)):
            keys.append(meanings.setdefault(meaning, len(meanings)))
            groups.append([_text(setup.form, words, scene, topic, names[number]) for _ in range(setup.texts)])
    key = np.array(keys)
    split = caption_split(groups)
    owners = key[split.caption_image]
    return DataSet(KIND, setup.name, split, lambda a, b: key[a] == owners[b], seed=setup.seed)


def _text(form: str, words: Words, scene: tuple[str, ...], topic: np.ndarray, name: str) -> str:
    random = words.random
    if form == "topics":
        return sentence(words.text(12, topic))
    if form == "persons":
        return f"{name} {random.choice(_ACTS)} near the {random.choice(_WHERE)} of {' '.join(words.text(4, topic))} ."
    look, who, act, where = scene
    frames = (
        f"A {look} {who} {act} in the {where} .", f"In the {where} , a {look} {who} {act} .",
        f"There is a {who} that {act} by a {where} .", f"The {look} {who} {act} .", f"A {who} {act} on the {where} .",
    )  # fmt: skip
    return str(random.choice(frames))
