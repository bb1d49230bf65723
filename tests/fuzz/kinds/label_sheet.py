"""The answers to a sheet of an audit."""

from __future__ import annotations

import csv
from functools import cache
from pathlib import Path

from lossscope.audit.estimate.labels import read_labels
from lossscope.audit.parts.material import Material
from lossscope.registry import build
from tests.fuzz.trained import RECIPE

FILES = {"labels.csv": "csv"}
CHECKSUMMED = ()
ANSWERS = ["yes", "no", "unsure", "1", "0", "no", "", "Yes", "no", "no", "no", "n", "y", "no"]


def make(folder: Path) -> None:
    """Answer pairs of different images, which have no known match."""
    material = _material()
    with open(folder / "labels.csv", "w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream)
        writer.writerow(["image", "caption", "answer"])
        for number, answer in enumerate(ANSWERS):
            image, caption = material.image_ids[number % 3], material.caption_ids[-1 - number]
            writer.writerow([image, caption, answer])


def read(folder: Path) -> object:
    """Read the pairs and their answers."""
    labels = read_labels(folder / "labels.csv", _material())
    return labels.pairs.left, labels.pairs.right, labels.answers, labels.skipped, labels.known, labels.unreadable


@cache
def _material() -> Material:
    return Material.of((), build("datasets", RECIPE.data).split("train"), None)
