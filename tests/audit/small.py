"""Make a small audit, whose signals can be computed by hand, and slow versions to compare with."""

from __future__ import annotations

import numpy as np
import torch

from lossscope.audit.estimate.calibration import Calibration, Doubles
from lossscope.audit.parts.material import Material
from lossscope.audit.types import PairRows
from lossscope.core.embedded import SplitEmbeddings
from lossscope.core.relations import Relations
from lossscope.core.sides import Sides
from lossscope.core.types import Rows
from lossscope.datasets.base import Split, Texts

TEXTS = [
    "two dogs run on grass", "a dog plays on the lawn", "dogs chase a ball",
    "a red car on a road", "the car is parked", "an old car",
    "two dogs run on grass", "dogs run", "a brown dog runs",
    "people eat pizza", "a man eats a slice", "pizza on a plate",
]  # fmt: skip
OWNERS = np.repeat(np.arange(5), [3, 3, 3, 3, 0])  # the fifth image has no caption


class Pixels:
    """Pictures of 3 x 32 x 32."""

    def __init__(self, pixels: np.ndarray) -> None:
        self.pixels = pixels

    def __len__(self) -> int:
        return len(self.pixels)

    @property
    def shape(self) -> tuple[int, int, int]:
        """Shape of one picture."""
        return 3, self.pixels.shape[2], self.pixels.shape[3]

    def take(self, rows: Rows) -> np.ndarray:
        """Return the pictures at these rows."""
        picked: np.ndarray = self.pixels[rows]
        return picked


def pixels(seed: int = 0, n: int = 5) -> np.ndarray:
    """Return (n, 3, 32, 32) smooth random pictures; the third is the first, brighter by one."""
    random = np.random.default_rng(seed)
    rough = random.integers(20, 230, (n, 3, 8, 8)).astype(np.uint8)
    fine = rough.repeat(4, 2).repeat(4, 3)
    if n > 2:
        fine[2] = fine[0] + 1
    return fine


def split(owners: Rows = OWNERS, texts: list[str] = TEXTS, images: int = 5) -> Split:
    """Return a split of images and captions."""
    ids = [f"i{row}" for row in range(images)], [f"c{row}" for row in range(len(texts))]
    return Split("test", Pixels(pixels(n=images)), texts, owners, *ids, "0")  # type: ignore[arg-type]


def vectors(n: int, seed: int, d: int = 6) -> np.ndarray:
    """Return (n, d) random unit rows."""
    rows = np.random.default_rng(seed).normal(size=(n, d)).astype(np.float32)
    unit: np.ndarray = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return unit


def source(
    images: np.ndarray, captions: np.ndarray, owners: Rows | None = OWNERS, relations: Relations | None = None,
    name: str = "model",
) -> SplitEmbeddings:  # fmt: skip
    """Return embeddings of the items of `split`."""
    ids = [f"i{row}" for row in range(len(images))], [f"c{row}" for row in range(len(captions))]
    return SplitEmbeddings(
        name, torch.from_numpy(images), torch.from_numpy(captions), None, owners, *ids, "0", relations=relations  # type: ignore[arg-type]
    )  # fmt: skip


def material(models: int = 1, top: int = 100) -> Material:
    """Return five images (one without a caption), twelve captions, and models of them."""
    owners = split()
    return Material.of(
        tuple(source(vectors(5, 2 * k), vectors(12, 2 * k + 1), name=f"model {k}") for k in range(models)),
        owners,
        top=top,
    )


def every_pair(n: int = 5, m: int = 12) -> PairRows:
    """Return all pairs of n and m items."""
    left, right = np.divmod(np.arange(n * m), m)
    return PairRows(left, right)


def positives_without(pairs: PairRows, row: int, owners: Rows = OWNERS) -> list[int]:
    """Return the positives of a pair's query, without its candidate."""
    return [int(t) for t in np.nonzero(owners == pairs.left[row])[0] if t != pairs.right[row]]


def certain(k: int = 1) -> Calibration:
    """Return a calibration whose probabilities are 1 where the first signal is above 0, else 0."""
    weights: Doubles = np.zeros(k + 1)
    weights[1] = 1e4
    return Calibration(tuple(f"signal {number}" for number in range(k)), weights)


QUERIES = [
    "When did Ada ever meet Byron?", "who built the tower in paris", "Where on earth is 12 Oak Street?", "what runs",
]  # fmt: skip
DOCUMENTS = [
    "Later Ada met Byron in 1816.", "She was with Ada in Rome.", "the tower in Paris was built by Eiffel in 1889",
    "They live at 12 Oak Street in Rome.", "a dog runs", "He wrote to Byron from Paris in 1816.",
]  # fmt: skip
PAIRS_OF_TEXTS = np.array([[0, 0], [0, 1], [1, 2], [2, 3]])  # the fourth query has no document


def two_texts() -> Material:
    """Return four queries and six documents; most have names or numbers."""
    relations = Relations(len(QUERIES), len(DOCUMENTS), PAIRS_OF_TEXTS, Sides("query", "document"))
    ids = [f"q{row}" for row in range(len(QUERIES))], [f"d{row}" for row in range(len(DOCUMENTS))]
    return Material.of((), Split("test", Texts(QUERIES), DOCUMENTS, None, *ids, "0", relations=relations))
