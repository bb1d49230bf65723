"""Does the retrieval protocol equal sorting every row: ranks, recalls, average precision, ties, folds, ensembles?"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest
import torch
from torch import Tensor

from lossscope.core.embedded import SplitEmbeddings
from lossscope.core.pair import Pair
from lossscope.core.similarity import normalise
from lossscope.engine.blocks.matrix import TiledMatrix
from lossscope.errors import InputError
from lossscope.io.frames import SUMMARY
from lossscope.retrieval import metrics as module
from lossscope.retrieval.evaluate import evaluate, metric_values
from lossscope.retrieval.metrics import Retrieval, retrieve, retrieve_by_tiles
from tests.each import each

Oracle = Callable[[str], ModuleType]
Rows = npt.NDArray[np.int64]
DIRECTIONS = ("i2t", "t2i")


def random_similarities(images: int, captions: int, seed: int = 0, levels: int | None = None) -> tuple[Tensor, Rows]:
    """Return similarities and the image of each caption; `levels` makes ties; a few images have no caption."""
    rng = np.random.default_rng(seed)
    S = rng.random((images, captions))
    owner = rng.integers(0, images, captions)
    S[owner, np.arange(captions)] += 0.3
    return torch.from_numpy(S if levels is None else np.round(S * levels) / levels), owner


def make_source(seed: int = 0, **changes: Any) -> SplitEmbeddings:
    """Return a source of twelve images with two captions each."""
    generator = torch.Generator().manual_seed(seed)
    v, t = (normalise(torch.randn(n, 6, generator=generator).double()) for n in (12, 24))
    owner = np.repeat(np.arange(12), 2)
    ids = {"image_ids": [str(i) for i in range(12)], "caption_ids": [str(c) for c in range(24)]}
    fields = {"images": v, "captions": t, "similarity": None, "caption_image": owner, "fingerprint": "", **ids}
    return SplitEmbeddings(name=f"source {seed}", **{**fields, **changes})


def mean_of(rows: pd.DataFrame, direction: str, statistic: str, column: str = "mean") -> float:
    selected = rows[(rows["direction"] == direction) & (rows["statistic"] == statistic)]
    assert len(selected) == 1
    return float(selected[column].iloc[0])


SHAPES = [
    (5, 9, None),
    (30, 90, None),
    (100, 70, None),
    (9, 130, None),
    (30, 90, 10),
    (80, 80, 4),
    (90, 150, 1),
    (9, 900, 1),
]


@each("images, captions, levels", SHAPES)
def test_retrieval_equals_sorting_every_row(images: int, captions: int, levels: int | None, oracle: Oracle) -> None:
    slow = oracle("retrieval")
    S, owner = random_similarities(images, captions, levels=levels)
    for retrieval, direction in zip(retrieve(S, owner), DIRECTIONS, strict=True):
        queries = slow.queries(S.numpy(), owner, direction)
        assert retrieval.ranks.tolist() == [slow.rank(*query) for query in queries]
        assert retrieval.ties.tolist() == [slow.ties(*query) for query in queries]
        assert retrieval.relevant.tolist() == [len(relevant) for _, relevant in queries]
        assert retrieval.hits.tolist() == [[c in r for c in slow.order(s)[:10]] for s, r in queries]
        for k in (1, 5, 10):
            assert retrieval.recall(k) == pytest.approx(100 * np.mean([slow.rank(*query) < k for query in queries]))
            for divisor in ("relevant", "hits"):
                expected = np.mean([slow.average_precision(*query, k, divisor) for query in queries])
                assert retrieval.average_precision(k, divisor) == pytest.approx(float(expected))


@each("levels", [None, 5], "tile", [1, 100, 1000])
def test_the_size_of_tiles_changes_nothing(monkeypatch: pytest.MonkeyPatch, tile: int, levels: int | None) -> None:
    S, owner = random_similarities(40, 70, seed=1, levels=levels)
    whole = retrieve(S, owner)
    monkeypatch.setattr(module, "_rows_per_tile", lambda columns: max(1, tile // columns))
    for expected, tiled in zip(whole, retrieve(S, owner), strict=True):
        for column in ("ranks", "ties", "hits", "relevant"):
            assert np.array_equal(getattr(expected, column), getattr(tiled, column))


def of_hits(ranks: list[int], relevant: int = 5) -> Retrieval:
    """Return the retrieval of one query whose hits are at these ranks, counted from 1."""
    hits = np.array([[rank in ranks for rank in range(1, 11)]])
    first = np.array([min(ranks, default=99) - 1])
    return Retrieval(first, np.zeros(1, np.int64), hits, np.array([relevant]))


@each(
    "ranks, by_hits, standard",
    [([1], 1, 1 / 5), ([2], 0.5, 0.5 / 5), ([1, 3], (1 + 2 / 3) / 2, (1 + 2 / 3) / 5), ([], 0, 0), ([6], 0, 0)],
)
def test_average_precision_at_5_by_hand(ranks: list[int], by_hits: float, standard: float) -> None:
    retrieval = of_hits(ranks)
    assert retrieval.average_precision(5, "hits") == pytest.approx(by_hits)
    assert retrieval.average_precision(5) == pytest.approx(standard)


def test_standard_average_precision_divides_by_the_most_hits_there_can_be() -> None:
    assert of_hits([1, 2], relevant=2).average_precision(5) == 1.0
    assert of_hits([1, 2, 3, 4, 5], relevant=8).average_precision(5) == 1.0


@each("k, divisor", [(0, "hits"), (11, "relevant"), (5, "all")])
def test_average_precision_beyond_ten_or_by_another_divisor_raises(k: int, divisor: str) -> None:
    with pytest.raises(InputError, match=r"k must be 1\.\.10 and divisor relevant or hits"):
        of_hits([1]).average_precision(k, divisor)


def test_equal_candidates_do_not_worsen_the_rank_and_are_counted() -> None:
    S = torch.tensor([[0.5, 0.5, 0.5], [0.1, 0.9, 0.2]])
    i2t, t2i = retrieve(S, np.array([0, 1, 1]))
    assert (i2t.ranks.tolist(), i2t.ties.tolist()) == ([0, 0], [2, 0])
    assert (t2i.ranks.tolist(), t2i.ties.tolist()) == ([0, 0, 1], [0, 0, 0])
    assert i2t.statistics()["ties"] == 1


def test_images_without_a_caption_are_candidates_but_no_queries() -> None:
    S = torch.tensor([[0.9, 0.1], [0.8, 0.7], [0.2, 0.6]])
    i2t, t2i = retrieve(S, np.array([0, 2]))
    assert len(i2t.ranks) == 2
    assert t2i.ranks.tolist() == [0, 1]


def test_medians_and_means_of_ranks_count_from_one() -> None:
    retrieval = Retrieval(np.array([0, 1, 4, 8]), np.zeros(4, np.int64), np.zeros((4, 10), bool), np.ones(4, np.int64))
    statistics = retrieval.statistics()
    assert (statistics["medr"], statistics["meanr"]) == (3.0, 4.25)
    assert retrieval.statistics(floor_median=False)["medr"] == 3.5
    assert statistics["MRR"] == pytest.approx((1 + 1 / 2 + 1 / 5 + 1 / 9) / 4)
    assert (retrieval.recall(1), retrieval.recall(5), retrieval.recall(10)) == (25.0, 75.0, 100.0)


def test_retrieval_without_captions_raises() -> None:
    with pytest.raises(InputError, match="needs captions"):
        retrieve(torch.zeros(3, 0), np.zeros(0, np.int64))


def test_summary_rows_have_both_directions_and_their_sum() -> None:
    source = make_source()
    rows = evaluate([replace(source, split="val")])
    i2t, t2i = retrieve(source.similarity_block(np.arange(12), np.arange(24)), source.caption_image)
    assert list(rows.columns) == list(SUMMARY)
    assert mean_of(rows, "i2t", "R@1") == i2t.recall(1)
    assert mean_of(rows, "t2i", "meanr") == t2i.statistics()["meanr"]
    assert mean_of(rows, "both", "rsum") == pytest.approx(sum(x.recall(k) for x in (i2t, t2i) for k in (1, 5, 10)))
    assert (mean_of(rows, "i2t", "R@1", "n"), mean_of(rows, "t2i", "R@1", "n")) == (12, 24)
    assert np.isnan(mean_of(rows, "i2t", "R@1", "std"))
    assert set(rows["sampling"]) == {"val split"}


def test_metric_values_are_those_of_the_summary() -> None:
    source = make_source()
    assert source.images is not None
    assert source.captions is not None
    S = source.images @ source.captions.T
    values = metric_values(Pair(S, S.T), source.caption_image)
    rows = evaluate([source])
    for direction, statistic, mean in zip(rows["direction"], rows["statistic"], rows["mean"], strict=True):
        assert values[statistic if direction == "both" else f"{direction}_{statistic}"] == pytest.approx(mean)


def test_folds_are_runs_of_images_whose_metrics_are_averaged() -> None:
    source = make_source()
    rows = evaluate([source], folds=3)
    S = source.similarity_block(np.arange(12), np.arange(24))
    parts = [retrieve(S[i : i + 4, 2 * i : 2 * i + 8], np.repeat(np.arange(4), 2)) for i in (0, 4, 8)]
    for position, direction in enumerate(DIRECTIONS):
        values = [part[position].recall(1) for part in parts]
        assert mean_of(rows, direction, "R@1") == pytest.approx(np.mean(values))
        assert mean_of(rows, direction, "R@1", "std") == pytest.approx(np.std(values))
        assert mean_of(rows, direction, "R@1", "n") == 3
    assert set(rows["sampling"]) == {"3 folds"}


@each("folds", [0, 5, -1])
def test_folds_must_divide_the_images(folds: int) -> None:
    with pytest.raises(InputError, match=f"divide the number of images, 12; got {folds}"):
        evaluate([make_source()], folds)


def test_an_ensemble_is_the_mean_of_similarities() -> None:
    sources = [make_source(seed=seed) for seed in (0, 1)]
    mean = (
        sum(
            (s.similarity_block(np.arange(12), np.arange(24)) for s in sources),
            torch.zeros(12, 24, dtype=torch.float64),
        )
        / 2
    )
    rows = evaluate(sources)
    assert set(rows["source"]) == {"mean of source 0, source 1"}
    expected = evaluate([make_source(images=None, captions=None, similarity=mean)])
    pd.testing.assert_series_equal(rows["mean"], expected["mean"])
    assert not rows["mean"].equals(evaluate([sources[0]])["mean"])


@each("changes", [
    {"caption_ids": ["x"] * 24},
    {"caption_image": np.repeat(np.arange(12), 2)[::-1]},
    {"image_ids": [str(i) for i in reversed(range(12))]},
    {"image_ids": [str(i) for i in range(13)], "images": torch.eye(13, 6).double()},
])  # fmt: skip
def test_an_ensemble_of_different_items_raises(changes: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="must hold the same items; source 0 and source 1 differ"):
        evaluate([make_source(), make_source(seed=1, **changes)])


def test_nan_is_refused_rather_than_ranked_first() -> None:
    S = torch.rand(3, 3)
    S[1, 2] = float("nan")
    with pytest.raises(InputError, match="must be numbers; got NaN"):
        retrieve(S, np.arange(3))


@each("seed", range(4), "levels", [None, 3])
def test_tiles_give_the_ranks_of_the_whole_matrix(
    seed: int, levels: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Images have zero to four captions, in random order; few levels make nearly all scores ties."""
    monkeypatch.setattr("lossscope.engine.blocks.matrix.ROWS", 9)
    monkeypatch.setattr("lossscope.engine.blocks.matrix.COLUMNS", 13)
    rng = np.random.default_rng(seed)
    owner = rng.integers(0, 40, 70)
    sides = [torch.from_numpy(rng.normal(size=(n, 12))).float() for n in (40, 70)]
    v, t = (x.sign() if levels else (x * 16).round() / 16 for x in sides)
    source = SplitEmbeddings("x", v, t, None, owner, [str(i) for i in range(40)], [str(i) for i in range(70)], "f")
    tiled = retrieve_by_tiles(TiledMatrix(source, np.arange(40), np.arange(70)), owner)
    for retrieval, expected in zip(tiled, retrieve(v @ t.T, owner), strict=True):
        for name in ("ranks", "ties", "hits", "relevant"):
            np.testing.assert_array_equal(getattr(retrieval, name), getattr(expected, name), err_msg=name)


@each("tiled", [True, False])
def test_a_fold_without_captions_is_refused(tiled: bool) -> None:
    owner = np.repeat(np.arange(8), 3)
    source = make_source(caption_image=owner)
    if not tiled:
        source = replace(source, images=None, captions=None, similarity=torch.rand(12, 24))
    assert len(evaluate([source])) > 0
    with pytest.raises(InputError, match=r"must have captions; images have none in fold 3 of 3, rows 8\.\.11"):
        evaluate([source], folds=3)


def test_a_query_without_a_scored_positive_has_the_last_rank() -> None:
    """Image i has captions 2 i and 2 i + 1; images 0 to 2 score a caption each: a positive, a negative, a positive."""
    i2t, t2i = torch.full((4, 8), torch.nan), torch.rand(8, 4)
    i2t[0, 0], i2t[1, 7], i2t[2, 5], i2t[3] = 0.5, 0.5, 0.5, torch.arange(8.0)
    t2i[0, 0] = torch.nan
    first, second = retrieve(Pair(i2t, t2i), np.repeat(np.arange(4), 2))
    assert first.ranks.tolist() == [0, 7, 0, 0]
    assert first.ties.tolist() == [0, 0, 0, 0]
    assert first.hits.sum(1).tolist() == [1, 0, 1, 2]
    assert first.recall(5) == 75.0
    assert (second.ranks[0], second.ties[0], second.hits[0].any()) == (3, 0, False)


def test_recall_is_zero_where_no_positive_was_scored() -> None:
    i2t = torch.full((30, 30), torch.nan)
    i2t[torch.arange(30), torch.arange(30).roll(1)] = 1.0
    for retrieval in retrieve(Pair(i2t, i2t.T.clone()), np.arange(30)):
        assert retrieval.statistics() | {"ties": 0.0} == {
            "R@1": 0, "R@5": 0, "R@10": 0, "medr": 30, "meanr": 30, "MRR": pytest.approx(1 / 30), "mAP@5": 0,
            "mAP@5_hits": 0, "ties": 0,
        }  # fmt: skip


@each("floors, medr", [(True, 1.0), (False, 1.5)])
def test_a_source_says_whether_its_median_rank_is_rounded(floors: bool, medr: float) -> None:
    S = torch.tensor([[0.9, 0.1], [0.8, 0.7]])  # captions of rank 1 and 1, images of rank 1 and 2
    embedded = SplitEmbeddings(
        "s", None, None, S, np.array([0, 1]), ["a", "b"], ["c", "d"], "f", floors_median_rank=floors
    )
    rows = evaluate([embedded]).set_index(["direction", "statistic"])["mean"]
    assert rows["i2t", "medr"] == medr
