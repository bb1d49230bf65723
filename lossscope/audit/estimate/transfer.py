"""Are these data like the photos and captions that people judged, so that probabilities carry over?"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from lossscope.io.json_files import member, read_json

from ..parts.material import Material
from ..parts.text_names import find_names
from ..parts.text_space import stems
from .default_weights import FILE
from .signal_table import SignalTable

_TEXTS, _STEMS = 1000, 5000  # drawn at random, so that the signature does not depend on the size of the data
_LEAST_TEXTS, _LEAST_ITEMS = 1000, 400  # captions and images: fewer are too few to compare
_SEED = 0
_QUANTILES = (0.5, 0.9, 0.99)  # of a signal in random pairs
SIGNALS = ("text_cosine", "text_items", "text_missing", "text_siblings")  # distributions to compare
_WORD = re.compile(r"[^\W_]+")
_FUNCTION_WORDS = frozenset("a an the in on of with is are and to at by for from his her their".split())


@dataclass(frozen=True)
class Transfer:
    """Do probabilities carry over to these data? The reason is part of a sentence."""

    holds: bool
    reason: str
    distance: float | None = None  # from the judged photos; probabilities carry over up to 1; None: not measured

    @classmethod
    def of(cls, material: Material, table: SignalTable) -> Transfer:
        """Compare texts, and signals of random pairs, with those of the judged photos and captions.

        The distance is max |w x + b| over the numbers x of `signature`; w and b are fitted so that parts of two
        collections of photos stay below 1 (studies/audit/transfer.py, which also measures how often it is wrong).

        Args:
            material: what the audit knows of the data.
            table: signals, measured on random pairs.
        """
        relations = material.relations
        if not relations.sides.is_image_text:
            return cls(False, f"the sides are {relations.sides.text}, and judgements are of images and captions")
        if material.split is None or not set(SIGNALS) <= set(table.names) or material.first_texts is not None:
            return cls(False, "judgements are of images with captions, whose texts were not given, or not all compared")
        if material.models:
            return cls(False, "judgements are of one model's embeddings, and those of other models differ")
        if len(material.split.captions) < _LEAST_TEXTS or relations.first < _LEAST_ITEMS:
            return cls(
                False,
                f"{relations.first:,} images with {len(material.split.captions):,} captions are too few to compare: "
                f"{_LEAST_ITEMS:,} and {_LEAST_TEXTS:,} are needed",
            )
        stored = member(read_json(FILE), "transfer", dict, str(FILE))
        distance, name = compare(signature(material, table), stored["weights"])
        if distance <= 1:
            errors = f"a test that {stored['others that pass']} of {stored['others']} other data sets passed"
            return cls(True, f"captions and signals are like those of photos that people judged, by {errors}", distance)
        return cls(False, f"its captions are unlike those of photos that people judged: {name}", distance)


def signature(material: Material, table: SignalTable) -> dict[str, float]:
    """Return numbers without a unit that describe the captions and the signals of random pairs."""
    assert material.split is not None
    captions = material.split.captions
    random = np.random.default_rng(_SEED)
    texts = [captions[row] for row in random.permutation(len(captions))[:_TEXTS]]
    stemmed = [stems(text) for text in texts]
    lengths = np.array([len(words) for words in stemmed])
    words = [word for text in texts for word in _WORD.findall(text.casefold())]
    names = find_names(texts)
    first = [stem for text in stemmed for stem in text][:_STEMS]
    number = max(len(words), 1)
    values = {
        "words a caption": float(np.log(max(lengths.mean(), 1e-3))),
        "spread of words a caption": float(lengths.std() / max(lengths.mean(), 1e-3)),
        "share of English function words": sum(word in _FUNCTION_WORDS for word in words) / number,
        "share of names and numbers": sum(word in names for word in words) / number,
        "different words": float(np.log(len(set(first)) / max(len(first), 1) + 1e-3)),
        "repeated captions": 1 - len(set(texts)) / len(texts),
    }
    for name in SIGNALS:
        column = table.of_random[:, table.names.index(name)]
        column = column[np.isfinite(column)]
        quantiles = np.quantile(column, _QUANTILES) if len(column) else np.zeros(len(_QUANTILES))
        for share, value in zip(_QUANTILES, quantiles.tolist(), strict=True):
            values[f"{name} at {share:.0%} of random pairs"] = value
    return values


def compare(values: Mapping[str, float], weights: Any) -> tuple[float, str]:
    """Return max |w x + b| over the names of a signature, and the name of the maximum.

    Args:
        values: of `signature`, x.
        weights: name -> (w, b), fitted so that |w x + b| is at most 1 for photos with captions.
    """
    size = {name: abs(weight * values[name] + offset) for name, (weight, offset) in weights.items()}
    worst = max(size, key=lambda name: size[name])
    return size[worst], worst
