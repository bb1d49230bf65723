"""Known answers: numbers by the authors' code in tests/data/authors, and how ours are compared with them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from lossscope.core.embedded import SplitEmbeddings
from lossscope.retrieval.evaluate import evaluate
from tests.authors.rule import Floats

DATA = Path(__file__).parents[1] / "data" / "authors"
TOLERANCE = 1e-5
STATISTICS = ("R@1", "R@5", "R@10", "medr", "meanr")


@dataclass(frozen=True)
class Answers:
    """The known answers of one family."""

    name: str  # of its files

    @cached_property
    def content(self) -> dict[str, Any]:
        """Return the models' options, what they read, and their single numbers."""
        content: dict[str, Any] = json.loads((DATA / f"{self.name}.json").read_text(encoding="utf-8"))
        return content

    def array(self, name: str) -> npt.NDArray[Any]:
        """Return vectors, scores or ids by the authors' code."""
        with np.load(DATA / f"{self.name}.npz") as arrays:
            answer: npt.NDArray[Any] = arrays[name]
            return answer


def recalls(embedded: Sequence[SplitEmbeddings], folds: int = 1) -> Mapping[str, list[float]]:
    """Return R@1, R@5, R@10, median and mean rank of both directions, of one source or an ensemble."""
    frame = evaluate(embedded, folds).set_index(["direction", "statistic"])["mean"]
    return {direction: [float(frame[direction, name]) for name in STATISTICS] for direction in ("i2t", "t2i")}


def similarities(embedded: SplitEmbeddings) -> Floats:
    """Return S of all images and captions."""
    rows = np.arange(len(embedded.image_ids)), np.arange(len(embedded.caption_ids))
    scores: Floats = embedded.similarities(*rows).i2t.numpy()
    return scores


def difference(ours: torch.Tensor | Floats | None, theirs: Floats) -> float:
    """Return the greatest absolute difference."""
    assert ours is not None
    assert tuple(ours.shape) == theirs.shape
    return float(np.abs(np.asarray(ours) - theirs).max())
