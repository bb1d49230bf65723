"""The mask.npz of an audit, as training, masks and `lossscope.suspects` read it."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from lossscope.core.known_pairs import KnownPairs, read_known_pairs
from lossscope.core.suspects import suspects
from lossscope.core.text_digests import PairTexts, digest_texts

FILES = {"mask.npz": "npz"}
CHECKSUMMED = ("mask.npz",)
IDS = tuple(f"query {n}" for n in range(6)), tuple(f"document {n} é" for n in range(9))
PAIRS = np.array([[0, 3], [1, 8], [4, 0], [5, 5]])


def make(folder: Path) -> None:
    """Write four pairs of two sides that have texts."""
    texts = PairTexts(*map(digest_texts, IDS), np.array([False, True, False, False]))
    probability = np.array([0.9, 0.3, 0.1, 0.05], np.float32)
    KnownPairs(PAIRS[:, 0], PAIRS[:, 1], probability, *IDS, texts=texts).write(folder / "mask.npz")


def read(folder: Path) -> object:
    """Look all items up, by ids and by texts."""
    known = read_known_pairs(folder / "mask.npz")
    rows = np.arange(len(known.left_ids)), np.arange(len(known.right_ids))
    probabilities = known.probabilities(known.left_ids, known.right_ids, *rows)
    hidden = suspects(folder / "mask.npz", known.least or 1).hidden(*IDS)
    return known.left_ids, known.right_ids, known.least, known.texts, probabilities, hidden
