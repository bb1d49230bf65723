"""Are means over single queries the numbers of `evaluate`, and are their ids right?"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from lossscope.core.embedded import SplitEmbeddings
from lossscope.core.pair import Pair
from lossscope.core.similarity import normalise
from lossscope.errors import InputError
from lossscope.retrieval.evaluate import evaluate
from lossscope.retrieval.per_query import COLUMNS, per_query
from tests.each import each

OWNER = np.array([4, 0, 0, 2, 4, 4, 2, 5])  # images 1 and 3 have no caption; in no order


def make_source(**changes: Any) -> SplitEmbeddings:
    generator = torch.Generator().manual_seed(0)
    v, t = (normalise(torch.randn(n, 5, generator=generator).double()) for n in (6, 8))
    fields = {
        "images": v, "captions": t, "similarity": None, "caption_image": OWNER, "fingerprint": "",
        "image_ids": list("abcdef"), "caption_ids": [f"c{i}" for i in range(8)],
    }  # fmt: skip
    return SplitEmbeddings(**{"name": "x", **fields, **changes})


def as_matrix() -> SplitEmbeddings:
    source = make_source()
    assert source.images is not None
    assert source.captions is not None
    return make_source(images=None, captions=None, similarity=source.images @ source.captions.T)


def as_scorer() -> SplitEmbeddings:
    """Return a source whose model scores the directions differently and leaves pairs unscored."""
    rng = np.random.default_rng(1)
    i2t, t2i = torch.from_numpy(rng.random((6, 8))), torch.from_numpy(rng.random((8, 6)))
    i2t[0, :4], t2i[0, 4] = torch.nan, torch.nan

    def score(images: Any, captions: Any) -> Pair[torch.Tensor]:
        return Pair(i2t[images][:, captions], t2i[captions][:, images])

    return make_source(images=None, captions=None, pair_scorer=score)


SOURCES = {"vectors": make_source, "matrix": as_matrix, "scorer": as_scorer}


@each("kind", SOURCES)
def test_means_over_queries_are_the_numbers_of_evaluate(kind: str) -> None:
    source = SOURCES[kind]()
    rows, summary = per_query(source), evaluate([source])
    reported = summary.set_index(["direction", "statistic"])["mean"]
    for direction, queries in rows.groupby("direction"):
        for k in (1, 5, 10):
            assert 100 * (queries["rank"] < k).mean() == pytest.approx(reported[direction, f"R@{k}"])
        assert (1 / (queries["rank"] + 1)).mean() == pytest.approx(reported[direction, "MRR"])
        assert queries["ap5"].mean() == pytest.approx(reported[direction, "mAP@5"])
    assert tuple(rows.columns) == COLUMNS


@each("kind", SOURCES)
def test_images_without_a_caption_are_no_queries_and_ids_stay_in_order(kind: str) -> None:
    rows = per_query(SOURCES[kind]()).set_index("direction")
    assert rows.loc["i2t", "query"].tolist() == rows.loc["i2t", "image"].tolist() == ["a", "c", "e", "f"]
    assert rows.loc["i2t", "relevant"].tolist() == [2, 2, 3, 1]
    assert rows.loc["t2i", "query"].tolist() == [f"c{i}" for i in range(8)]
    assert rows.loc["t2i", "image"].tolist() == ["abcdef"[row] for row in OWNER]


def test_each_rank_is_that_of_its_query() -> None:
    source = as_matrix()
    assert source.similarity is not None
    S = source.similarity.numpy()
    rows = per_query(source).set_index(["direction", "query"])["rank"]
    for caption, image in enumerate(OWNER):
        assert rows["t2i", f"c{caption}"] == (S[:, caption] > S[image, caption]).sum()
    for image in set(OWNER):
        assert rows["i2t", "abcdef"[image]] == (S[image] > S[image, image == OWNER].max()).sum()


def test_vectors_and_their_products_give_the_same_rows() -> None:
    pd.testing.assert_frame_equal(per_query(make_source()), per_query(as_matrix()))


@each("what, ids", [("image", list("abcdea")), ("caption", [f"c{i % 7}" for i in range(8)])])
def test_repeated_ids_are_refused(what: str, ids: list[str]) -> None:
    first = ids[0]
    with pytest.raises(InputError, match=f"{what} ids of x must be unique .*; '{first}' is the id of rows"):
        per_query(make_source(**{f"{what}_ids": ids}))
