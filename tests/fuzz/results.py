"""Return the compared parts of a source, a data set and a run: numbers, ids and texts, no fingerprints of files."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lossscope.core.embedded import SplitEmbeddings
from lossscope.datasets.base import Split, Texts
from lossscope.io.run_folder import Run
from lossscope.registry import build
from lossscope.sources.base import load

_COMPARED = ("images", "captions", "similarity", "caption_image", "image_ids", "caption_ids", "objective")


def numbers_of(path: Path, **request: Any) -> object:
    """Open a source and return its vectors, ids and equal inputs."""
    embedded: SplitEmbeddings = load(path, **{"cache": False, **request})
    return {name: getattr(embedded, name) for name in _COMPARED}, embedded.input_keys


@contextlib.contextmanager
def using_cache(folder: Path) -> Iterator[None]:
    """Keep vectors in a folder."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LOSSSCOPE_CACHE", str(folder))
        yield


def rows_of(spec: str, *names: str) -> object:
    """Build a data set and return every item, caption and id of splits."""
    data = build("datasets", spec)
    return data.splits(), [_split(data.split(name)) for name in names]


def texts_of(spec: str) -> object:
    """Build a data set of two texts and return every text, id, pair and notice of all its splits."""
    data = build("datasets", spec)
    return data.splits(), [_texts(data.split(name)) for name in data.splits()]


def tables_of(run: Run) -> object:
    """Return the tables of a run, without the seconds that steps took."""
    return [table.drop(columns="seconds", errors="ignore") for table in (run.epochs(), run.curves())]


def _split(split: Split) -> object:
    items = split.images.take(np.arange(len(split.images), dtype=np.int64))
    words = None if split.words is None else split.words.take(np.arange(len(split.words), dtype=np.int64))
    return items, split.captions, split.caption_image, split.image_ids, split.caption_ids, split.tokens, words


def _texts(split: Split) -> object:
    assert isinstance(split.images, Texts)
    pairs = split.relations.positives, split.relations.negatives
    return list(split.images.texts), split.captions, split.image_ids, split.caption_ids, pairs, split.notices
