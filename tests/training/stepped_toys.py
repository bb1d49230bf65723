"""Toy models whose forward pass is a line of algebra, with a split of the steps and a held-out one."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from lossscope.core.similarity import normalise
from lossscope.datasets.base import Split
from lossscope.encoders.base import Encoder, encoder_spec
from lossscope.encoders.types import EncodedBatch, Items
from lossscope.sources.checkpoints.captions import CaptionBatcher
from lossscope.text.vocabulary import Vocabulary
from lossscope.training.stepped_model import SteppedModel

FEATURES, WIDTH = 6, 4
COLOURS, SHAPES = "red blue green black white pink".split(), "dog cat hat cup sun car".split()


class InMemory:
    """Features in memory."""

    def __init__(self, arrays: Any) -> None:
        self.arrays, self.shape = arrays, arrays.shape[1:]

    def __len__(self) -> int:
        return len(self.arrays)

    def take(self, rows: Any) -> Any:
        return self.arrays[rows]


class Toy(Encoder):
    """v = norm(A x), t = norm(mean of word vectors); `unused` is a parameter that S does not depend on."""

    def __init__(self, words: int, width: int = WIDTH) -> None:
        super().__init__()
        self.images, self.words = nn.Linear(FEATURES, width, bias=False), nn.Embedding(words, width)
        self.unused = nn.Parameter(torch.ones(3))
        self.register_buffer("kept", torch.arange(3.0))

    def encode_images(self, images: Items) -> EncodedBatch:
        assert isinstance(images, Tensor)
        return EncodedBatch(normalise(self.images(images)))

    def encode_texts(self, ids: Tensor, lengths: Tensor) -> EncodedBatch:
        present = (torch.arange(ids.shape[1]) < lengths[:, None]).float()[:, :, None]
        return EncodedBatch(normalise((self.words(ids) * present).sum(1)))


def split(name: str, captions: list[str], owner: Any, features: Any) -> Split:
    ids = [str(number) for number in range(len(captions))]
    images = InMemory(features.astype(np.float32))
    return Split(name, images, captions, np.array(owner), ids[: len(features)], ids, name)


def stepped(seed: int = 0, captions: int = 2, **more: Any) -> SteppedModel:
    """Return a toy of random weights: 12 images for the steps, 7 held out, with some captions each."""
    rng = np.random.default_rng(seed)
    texts_of_all = [f"{a} {shape} {b}" for a, b in combinations(COLOURS, 2) for shape in SHAPES]  # no two have a tie
    drawn = iter(rng.permutation(len(texts_of_all)))

    def part(name: str, images: int) -> Split:
        owner = np.repeat(np.arange(images, dtype=np.int64), captions)
        texts = [texts_of_all[next(drawn)] for _ in owner]
        return split(name, texts, owner, rng.normal(size=(images, FEATURES)))

    words = Vocabulary.build([f"{colour} {shape}" for colour in COLOURS for shape in SHAPES], 1)
    torch.manual_seed(seed)
    model = Toy(len(words)).eval()
    parts = (CaptionBatcher(part(name, images), words) for name, images in (("train", 12), ("val", 7)))
    return SteppedModel(model, *parts, **more)


def separated() -> SteppedModel:
    """Return a toy in which each of 6 images is equal to its caption and orthogonal to all others: none violates."""
    words = Vocabulary.build(SHAPES, 1)
    model = Toy(len(words), FEATURES).eval()
    with torch.no_grad():
        model.images.weight.copy_(torch.eye(FEATURES))
        for number, word in enumerate(SHAPES):
            ids = words.encode(word)
            model.words.weight[ids] = 0.0
            model.words.weight[ids[len(ids) // 2]] = torch.eye(FEATURES)[number]
    rows = np.arange(6, dtype=np.int64)
    parts = (CaptionBatcher(split(name, SHAPES, rows, np.eye(6)), words) for name in ("train", "val"))
    return SteppedModel(model, *parts)


def regions() -> SteppedModel:
    """Return a model that scores pairs of regions and words."""
    rng, words = np.random.default_rng(0), Vocabulary.build([*COLOURS, *SHAPES], 1)
    texts = [f"{colour} {shape}" for colour in COLOURS for shape in SHAPES][:18]
    owner = np.arange(18, dtype=np.int64) // 2
    torch.manual_seed(0)
    model = encoder_spec("scan:dim=8,words=8").build((4, 12), len(words)).eval()
    parts = (CaptionBatcher(split(name, texts, owner, rng.normal(size=(9, 4, 12))), words) for name in ("train", "val"))
    return SteppedModel(model, *parts)
