"""Do intervals of statistics that do not add up over queries come from sweeps without one group of items each?"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch

from lossscope.core.batch_subsets import keep_items
from lossscope.core.batches import Sampling
from lossscope.core.relations import Relations
from lossscope.core.sides import Sides
from lossscope.engine.sweep import Sweep
from lossscope.errors import InputError
from lossscope.io.frames import INTERVAL
from tests.engine.test_intervals import row, split


@pytest.mark.parametrize("mode", ["pairs", "single", "images", "views"])
def test_batches_without_items_have_all_the_others(mode: str) -> None:
    relations = Relations.of_captions(np.repeat(np.arange(12), 3), 12)
    first = np.arange(12) % 4 != 0
    second = first[relations.caption_image]
    for batch in Sampling(mode, 8).batches(relations):  # type: ignore[arg-type]
        left = keep_items(batch, first, second)
        assert left is not None
        offset = 12 if mode == "views" else 0
        kept = np.concatenate([first, second]) if mode == "views" else first
        assert list(left.images) == [i for i in batch.images if kept[i]]
        of_captions = kept if offset else second
        assert list(left.captions) == [i for i in batch.captions if of_captions[i]]
        assert torch.equal(left.mask(relations).match.any(1), torch.ones(len(left.images), dtype=torch.bool))


def test_a_mined_negative_stays_with_its_query() -> None:
    negatives = np.array([[(i + 1) % 10, (i + 2) % 10] for i in range(10)])
    pairs = np.stack([np.arange(10), np.arange(10)], 1)
    relations = Relations(10, 10, pairs, Sides("query", "document"), negatives=negatives)
    kept = np.arange(10) != 3
    for batch in Sampling("pairs", 5).batches(relations):
        left = keep_items(batch, kept, kept)
        assert left is not None and left.negative_of is not None
        mined = left.captions[left.pairs :]
        assert 3 not in left.images and 3 not in mined
        for document, query_row in zip(mined, left.negative_of, strict=True):
            assert document in negatives[left.images[query_row]]


def test_a_batch_of_one_item_is_none() -> None:
    relations = Relations.of_captions(np.arange(4), 4)
    batch = next(Sampling("pairs", 4).batches(relations))
    only = np.arange(4) == 2
    assert keep_items(batch, only, only) is None


def test_it_is_close_to_the_interval_over_items() -> None:
    """The same statistic both ways: as a mean over queries, and as the mean over batches without a group."""
    embedded = split(300)
    stated = Sweep(("ntxent:tau=0.05",), ("cocos",), "pairs", 64).run(embedded).summary
    plan = Sweep(("ntxent:tau=0.05",), ("cocos",), "pairs", 64, interval_groups=40)
    from lossscope.core.distributed import ProcessGroup
    from lossscope.core.sampling_units import SamplingUnits
    from lossscope.engine.jackknife import Jackknife

    units = SamplingUnits.of(embedded.relations)
    without = stated.assign(**dict.fromkeys(INTERVAL))
    filled = Jackknife(plan.plan, embedded, units, 40, 0.95, ProcessGroup(0, 1)).fill(without)
    for statistic in ("C_neg", "W_neg", "N_eff"):
        for direction in ("i2t", "t2i"):
            a, b = (row(rows, "ntxent", direction, statistic) for rows in (stated, filled))
            assert b["method"] == "jackknife of 40 groups of images"
            assert 0.6 < (b["high"] - b["low"]) / (a["high"] - a["low"]) < 1.8
    assert filled[filled["statistic"].isin(["C_0", "skipped"])]["low"].isna().all()  # numbers of whole batches


def test_statistics_of_batches_and_coupled_objectives_get_intervals() -> None:
    probes = ("cocos", "uniformity", "effective_rank")
    options = {"probes": probes, "sampling": "pairs", "batch_size": 16}
    rows = Sweep(("goal:triplet=cir,pair=sig-ms",), **options, interval_groups=10).run(split(40)).summary
    plain = Sweep(("goal:triplet=cir,pair=sig-ms",), **options).run(split(40)).summary
    pd.testing.assert_frame_equal(rows.drop(columns=list(INTERVAL)), plain.drop(columns=list(INTERVAL)))
    for statistic in ("uniformity", "effective_rank", "W_neg"):
        chosen = rows[rows["statistic"] == statistic]
        assert len(chosen) and (chosen["low"] < chosen["mean"]).all() and (chosen["mean"] < chosen["high"]).all()
        assert plain[plain["statistic"] == statistic]["low"].isna().all()


def test_too_few_groups_or_no_level_are_refused() -> None:
    for options, message in (
        ({"interval_groups": 3}, "--interval-groups must be at least 10; got 3"),
        ({"interval_groups": 20, "interval": None}, "--interval-groups needs --interval and all queries"),
    ):
        with pytest.raises(InputError, match=message):
            Sweep(("triplet",), **options)  # type: ignore[arg-type]
