"""Encode pairs of texts as means of static word vectors: no training, words by Zipf's law, a part in all vectors."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from .base import Floats, Item, unit

KIND = "static word vectors"


@dataclass(frozen=True)
class Setup:
    """The options of texts and of their encoding; the lower half are faults."""

    name: str
    n: int = 800
    d: int = 128
    seed: int = 0
    words: int = 5000
    length: int = 12  # words of a query; a document has three times as many
    kept: float = 0.6  # share of a query's words that its document has, too
    common: float = 0.7  # length of the part that all word vectors share, over that of the rest
    topics: int = 40
    idf: bool = True  # whether rare words weigh more
    order: str = "right"  # of the documents: right, shifted, topics, share
    wide: int = 0  # dimensions in units of another scale
    empty: float = 0.0  # share of the documents that are empty: the vector that all words share
    repeated: int = 0  # further copies of each fourth document, with its query
    padded: bool = False  # whether padding counts in the mean, in batches of 16
    planted: tuple[str, ...] = ()


HEALTHY = tuple(
    Setup(f"{'weighted' if idf else 'plain'} means, d = {d}, n = {n}, seed {seed}", n, d, seed, idf=idf, common=common)
    for seed, (n, d, idf, common) in enumerate(
        (
            (400, 64, True, 0.7), (800, 128, True, 1.0), (1500, 256, True, 0.5), (800, 768, True, 1.0),
            (600, 300, False, 0.5), (1000, 128, False, 0.7), (3000, 100, True, 0.8), (300, 512, True, 1.5),
        ),
        1,
    )
)  # fmt: skip
_SICK = Setup("", seed=21)
SICK = (
    replace(_SICK, name="shifted rows", order="shifted", planted=("misaligned-pairs",)),
    replace(_SICK, name="shuffled in topics", order="topics", planted=("order-lost",)),
    replace(_SICK, name="shuffled in few topics", order="topics", topics=8, seed=22, planted=("order-lost",)),
    replace(_SICK, name="a sixth wrong", order="share", planted=("shuffled-share",)),
    replace(_SICK, name="a third wrong", order="third", planted=("shuffled-share",), seed=23),
    replace(_SICK, name="three dimensions of another scale", wide=3, planted=("anisotropy",)),
    replace(_SICK, name="two dimensions of another scale", wide=2, d=300, seed=24, planted=("anisotropy",)),
    replace(_SICK, name="empty documents", empty=0.01, common=3.0, idf=False, length=3, kept=0.3, planted=("hubness",)),
    replace(_SICK, name="copied documents", repeated=24, planted=("duplicates",)),
    replace(_SICK, name="padding counts", padded=True, planted=("batch-dependent",)),
)


def items(shift: int = 0) -> Iterator[Item]:
    """Yield a dump of each setup; for padding, two encodings of the same texts.

    Args:
        shift: added to every seed.
    """
    for setup in (*HEALTHY, *SICK):
        setup = replace(setup, seed=setup.seed + shift)
        options = {"batch_size": 256 if setup.repeated else 64}
        if setup.padded:
            alone, batched = encode(replace(setup, padded=False)), encode(setup)
            yield Item(KIND, setup.name, setup.planted, (alone, batched), None, {"same_items": True}, 64, setup.seed)
        else:
            yield Item(
                KIND, setup.name, setup.planted, (encode(setup),), None, options, options["batch_size"], setup.seed
            )


def encode(setup: Setup) -> dict[str, Floats]:
    """Return the dump of a setup."""
    rng = np.random.default_rng([setup.seed, setup.n, setup.d])
    frequency = 1 / (2.7 + np.arange(setup.words))
    frequency /= frequency.sum()
    topic_of_word = rng.integers(0, setup.topics, setup.words)
    centres = rng.normal(size=(setup.topics, setup.d)) / np.sqrt(setup.d)
    vectors = rng.normal(size=(setup.words, setup.d)) / np.sqrt(setup.d) + 0.7 * centres[topic_of_word]
    shared = unit(rng.normal(size=(1, setup.d)))
    vectors += setup.common * np.linalg.norm(vectors, axis=1).mean() * shared
    weight = 1e-3 / (1e-3 + frequency) if setup.idf else np.ones(setup.words)
    topic = rng.integers(0, setup.topics, setup.n)
    queries, documents = [], []
    for row in range(setup.n):
        bias = frequency * np.where(topic_of_word == topic[row], 20.0, 1.0)
        words = rng.choice(setup.words, setup.length, p=bias / bias.sum())
        kept = words[rng.random(setup.length) < setup.kept]
        more = rng.choice(setup.words, 3 * setup.length - len(kept), p=bias / bias.sum())
        queries.append(words)
        documents.append(np.concatenate([kept, more])[: rng.integers(2 * setup.length, 3 * setup.length + 1)])
    sides = [_pool(texts, vectors, weight, setup, rng) for texts in (queries, documents)]
    for row in np.flatnonzero(rng.random(setup.n) < setup.empty).tolist():
        sides[1][row] = setup.common * shared
    if setup.wide:
        sides = [np.concatenate([x, 4 * rng.normal(size=(setup.n, setup.wide)) * x.std()], 1) for x in sides]
        for x in sides:
            x[:, -setup.wide :] *= np.sqrt(setup.d)
    sides[1] = sides[1][_order(setup, topic, rng)]
    if setup.repeated:
        rows = np.concatenate([np.arange(setup.n), np.repeat(np.arange(0, setup.n, 4), setup.repeated)])
        sides = [sides[0][rows] + 1e-3 * rng.normal(size=(len(rows), setup.d)), sides[1][rows]]
    return {name: unit(x).astype(np.float32) for name, x in zip(("queries", "documents"), sides, strict=True)}


def _pool(texts: list, vectors: Floats, weight: Floats, setup: Setup, rng: np.random.Generator) -> Floats:  # type: ignore[type-arg]
    """Return weighted means; if padding counts, its vector fills each text up to the longest of 16."""
    pooled = np.stack([(weight[words, None] * vectors[words]).sum(0) for words in texts])
    lengths = np.array([len(words) for words in texts])
    if setup.padded:
        padding = np.random.default_rng(0).normal(size=setup.d) / np.sqrt(setup.d)
        order = rng.permutation(len(texts))
        for start in range(0, len(order), 16):
            batch = order[start : start + 16]
            pooled[batch] += (lengths[batch].max() + 20 - lengths[batch])[:, None] * padding
    means: Floats = pooled / lengths[:, None]
    return means


def _order(setup: Setup, topic: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return the document beside each query."""
    rows = np.arange(setup.n)
    if setup.order == "shifted":
        return np.roll(rows, 1)
    if setup.order == "topics":
        for value in range(setup.topics):
            of_topic = np.flatnonzero(topic == value)
            rows[of_topic] = rng.permutation(of_topic)
    if setup.order in ("share", "third"):
        wrong = np.flatnonzero(rng.random(setup.n) < (0.15 if setup.order == "share" else 0.33))
        rows[wrong] = np.roll(wrong, 1)
    return rows
