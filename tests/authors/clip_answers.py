"""Known answers of CLIP and open_clip, and files of the models that gave them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from lossscope.core.embedded import SplitEmbeddings
from lossscope.retrieval.evaluate import evaluate
from lossscope.sources.base import load
from lossscope.text.byte_pairs import MERGES_FILE
from lossscope.text.subwords import Subwords
from tests.authors.answers import TOLERANCE, difference
from tests.authors.clip_files import CAPTIONS, write_data, write_merges
from tests.authors.rule import Floats


def open_model(path: Path, folder: Path, **request: Any) -> SplitEmbeddings:
    """Return the embeddings of a model in `path` on data and byte pairs that are written to the folder."""
    data = write_data(folder / "data")
    vocabulary = write_merges(folder / MERGES_FILE)
    return load(path, data=data, vocabulary=vocabulary, split="test", cache=False, **request)


def require_answers(embedded: SplitEmbeddings, images: Floats, captions: Floats, recalls: dict[str, float]) -> None:
    """Raise AssertionError unless vectors are the authors' and recalls equal."""
    assert difference(embedded.images, images) <= TOLERANCE
    assert difference(embedded.captions, captions) <= TOLERANCE
    ours = evaluate([embedded]).set_index(["direction", "statistic"])["mean"]
    for name, value in recalls.items():
        assert abs(ours[tuple(name.split())] - value) < 1e-9, name


def require_ids(
    ids: npt.NDArray[np.integer[Any]], folder: Path, captions: Sequence[str] = CAPTIONS, cleaning: str = "clip"
) -> None:
    """Raise AssertionError unless the ids of each caption are those of a row, which ends in zeros, also when stored."""
    plain = Subwords.from_merges(write_merges(folder / MERGES_FILE), max_length=ids.shape[1])
    words = Subwords.from_json(replace(plain, cleaning=cleaning).to_json())
    for caption, row in zip(captions, ids, strict=True):
        ours = words.encode(caption)
        assert ours == row[: len(ours)].tolist() and not row[len(ours) :].any(), caption
