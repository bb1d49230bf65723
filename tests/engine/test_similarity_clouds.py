"""Is each row the query's own best positive and hardest negative of its batch?"""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy import stats

from lossscope.core.batches import Sampling
from lossscope.core.embedded import SplitEmbeddings
from lossscope.core.similarity import normalise
from lossscope.engine.similarity_clouds import (
    COLUMNS,
    PAIR_COLUMNS,
    hardest_negative_counts,
    join_clouds,
    similarity_cloud,
    tangent_cloud,
)
from lossscope.engine.sweep import Sweep
from lossscope.errors import InputError
from lossscope.io.run_folder import epoch_checkpoints

N, K = 20, 3
OWNER = np.repeat(np.arange(N), K)


@pytest.fixture(scope="module")
def embedded() -> SplitEmbeddings:
    random = torch.Generator().manual_seed(0)
    images = normalise(torch.randn(N, 8, generator=random))
    captions = normalise(images[OWNER] + 0.5 * torch.randn(N * K, 8, generator=random))
    ids = [[str(row) for row in range(n)] for n in (N, N * K)]
    return SplitEmbeddings("a.pt", images, captions, None, OWNER, ids[0], ids[1], "f" * 64, split="test")


def test_rows_are_the_extremes_of_every_batch(embedded: SplitEmbeddings) -> None:
    cloud = similarity_cloud(embedded, batch_size=8, seed=3)
    assert list(cloud.columns) == list(COLUMNS)
    assert len(cloud) == 2 * N * K
    expected = {"i2t": [], "t2i": []}
    for batch in Sampling("pairs", 8, 3).batches(OWNER):
        S = embedded.similarity_block(batch.images, batch.captions)
        for direction, rows in (("i2t", S), ("t2i", S.T)):
            others = rows.masked_fill(torch.eye(len(rows), dtype=torch.bool), -2)
            expected[direction] += zip(rows.diagonal().tolist(), others.amax(1).tolist(), strict=True)
    for direction, pairs in expected.items():
        rows = cloud[cloud["direction"] == direction][["s_pos", "s_neg"]].to_numpy()
        np.testing.assert_allclose(np.sort(rows, axis=0), np.sort(np.array(pairs), axis=0), atol=1e-6)
        np.testing.assert_allclose(np.unique(rows.round(5), axis=0), np.unique(np.round(pairs, 5), axis=0), atol=2e-5)


def test_rows_record_where_they_are_from(embedded: SplitEmbeddings) -> None:
    cloud = similarity_cloud(embedded, batch_size=8, seed=3, epoch=2)
    row = cloud.iloc[0]
    assert (row["source"], row["split"], row["epoch"], row["batch_size"], row["seed"], row["sampling"]) == (
        "a.pt", "test", 2, 8, 3, "pairs"
    )  # fmt: skip
    assert math.isnan(similarity_cloud(embedded).iloc[0]["epoch"])


def test_larger_batches_hold_harder_negatives(embedded: SplitEmbeddings) -> None:
    small, large, whole = (similarity_cloud(embedded, batch_size=size)["s_neg"].mean() for size in (4, 16, None))
    assert small < large < whole
    assert similarity_cloud(embedded, batch_size=None)["batch_size"].isna().all()


def test_one_direction_and_images_with_all_their_captions(embedded: SplitEmbeddings) -> None:
    both, i2t = similarity_cloud(embedded, 8), similarity_cloud(embedded, 8, direction="i2t")
    assert set(i2t["direction"]) == {"i2t"}
    assert len(i2t) * 2 == len(both)
    many = similarity_cloud(embedded, 8, sampling="images")
    assert many.groupby("direction").size().to_dict() == {"i2t": N, "t2i": N * K}


def test_a_query_without_a_negative_is_left_out(embedded: SplitEmbeddings) -> None:
    """A last batch of one pair has no negative: 60 pairs in batches of 59 leave one."""
    assert len(similarity_cloud(embedded, batch_size=59)) == 2 * 59


def test_another_direction_is_refused(embedded: SplitEmbeddings) -> None:
    with pytest.raises(InputError, match="direction must be one of i2t, t2i, both; got 'up'"):
        similarity_cloud(embedded, direction="up")


@pytest.mark.parametrize("direction", ["i2t", "t2i"])
def test_counts_of_the_hardest_are_those_of_the_probe(embedded: SplitEmbeddings, direction: str) -> None:
    cloud = hardest_negative_counts(embedded, batch_size=None, direction=direction)
    assert cloud["count"].sum() == N * K
    assert set(cloud["label"]) == {f"a.pt {direction}"}
    if direction == "i2t":  # the batch has each caption once, as the probe's columns do
        summary = Sweep(("triplet",), ("hubness",), batch_size=None).run(embedded).summary
        statistics = summary[summary["direction"] == direction].set_index("statistic")["mean"]
        assert statistics["hub_max_count"] == cloud["count"].max()
        assert statistics["never_hardest"] == pytest.approx((cloud["count"] == 0).mean())
        assert statistics["hub_skewness"] == pytest.approx(stats.skew(cloud["count"]))
    else:
        assert len(cloud) == N


def test_counts_are_of_one_direction(embedded: SplitEmbeddings) -> None:
    with pytest.raises(InputError, match="direction must be one of i2t, t2i; got 'both'"):
        hardest_negative_counts(embedded, direction="both")


def test_epochs_of_a_run_are_in_order(tmp_path: Path) -> None:
    (tmp_path / "checkpoints").mkdir()
    for name in ("epoch-10.pt", "epoch-02.pt", "last.pt", "epoch-x.pt", "epoch-100.pt"):
        (tmp_path / "checkpoints" / name).touch()
    assert [(number, path.name) for number, path in epoch_checkpoints(tmp_path)] == [
        (2, "epoch-02.pt"), (10, "epoch-10.pt"), (100, "epoch-100.pt")
    ]  # fmt: skip


def test_a_run_without_epochs_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"two checkpoints/epoch-NN.pt or more; it has 0"):
        epoch_checkpoints(tmp_path)


def test_sources_of_one_name_are_distinguished(embedded: SplitEmbeddings) -> None:
    cloud = similarity_cloud(embedded, 8)
    other = similarity_cloud(replace(embedded, name="b.pt"), 8)
    joined = join_clouds([cloud, cloud, other, cloud.assign(epoch=1.0), cloud.assign(epoch=2.0)])
    assert list(joined["source"].unique()) == ["a.pt", "a.pt (2)", "b.pt"]
    assert len(joined) == 5 * len(cloud)


def test_tangents_are_weight_times_sine_of_the_hardest_negatives_of_the_same_batches(embedded: SplitEmbeddings) -> None:
    specs = {"Triplet-HN": "triplet_sh:margin=0.2", "range": "unified:gamma=1..9/2"}
    pairs, cloud = tangent_cloud(embedded, specs, 8, 3), similarity_cloud(embedded, 8, 3)
    assert [*pairs.columns, "epoch"] == [*(name for name in PAIR_COLUMNS if name != "epoch"), "epoch"]
    assert set(pairs["objective"]) == {"Triplet-HN", "unified:gamma=1", "unified:gamma=9"}
    np.testing.assert_allclose(pairs["tangent"], pairs["weight"] * np.sqrt(1 - pairs["similarity"] ** 2), atol=1e-6)
    hardest = pairs[pairs["objective"] == "Triplet-HN"].sort_values(["direction", "query", "similarity"])
    cloud = cloud.sort_values(["direction", "query", "s_neg"])
    np.testing.assert_allclose(hardest["similarity"], cloud["s_neg"], atol=1e-6)
    np.testing.assert_array_equal(hardest["weight"], (0.2 + cloud["s_neg"] - cloud["s_pos"] > 0).astype(float))
