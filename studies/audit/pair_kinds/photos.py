"""Photos and captions that people judged: the test images of Flickr8k, of experts and of a crowd."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from lossscope.audit.parts.material import Material
from lossscope.audit.search.known import are_known
from lossscope.audit.types import PairRows
from lossscope.core.pair_rows import resolve_pairs
from lossscope.datasets.judgements.any_format import read_judgements
from lossscope.registry import build

from .base import DataSet, by_table

KIND = "photos and captions"
FILES = {"experts": "ExpertAnnotations.txt", "crowd": "CrowdFlowerAnnotations.txt"}


def data_sets(folder: Path) -> Iterator[DataSet]:
    """Yield the test split with the pairs of experts, then with those of the crowd.

    Args:
        folder: of Flickr8k in Karpathy's format, with the files of judgements in `text`.
    """
    data = build("datasets", f"karpathy:root={folder},name=flickr8k,size=64")
    split, training = data.split("test"), data.split("train")
    known = Material.of((), split)
    for name, file in FILES.items():
        found = read_judgements(folder / "text" / file)
        left, right = resolve_pairs(known, found.first, found.second, found.where)
        table = np.zeros((split.relations.first, split.relations.second), bool)
        matching = np.array(found.positive)
        table[left[matching], right[matching]] = True
        is_label = are_known(split.relations, PairRows(left, right))
        judged = left[~is_label], right[~is_label]
        yield DataSet(KIND, name, split, by_table(table), judged, training=training)
