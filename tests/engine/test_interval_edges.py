"""Do intervals hold with short batches, further candidates, skipped queries, totals and percentages?"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch

from lossscope.core.embedded import SplitEmbeddings
from lossscope.core.intervals import ItemSums
from lossscope.core.relations import Relations
from lossscope.core.sides import Sides
from lossscope.engine import result_group
from lossscope.engine import sweep as sweep_module
from lossscope.engine.item_sums import QuerySample
from lossscope.engine.sweep import Sweep
from lossscope.engine.sweep_intervals import clip_interval, join_sums, name_of
from lossscope.engine.terms import units_of_items

from .test_intervals import split


def queries_and_documents(n: int = 60, m: int = 90, negatives: bool = False) -> SplitEmbeddings:
    """Return queries with one or two documents; two of the documents belong to two queries each."""
    generator = torch.Generator().manual_seed(0)
    q = torch.nn.functional.normalize(torch.randn(n, 8, generator=generator))
    owners = np.arange(m) % n
    d = torch.nn.functional.normalize(q[owners] + 0.5 * torch.randn(m, 8, generator=generator))
    pairs = np.concatenate([np.stack([owners, np.arange(m)], 1), [[1, 0], [3, 2]]])
    pairs = pairs[np.lexsort((pairs[:, 1], pairs[:, 0]))]
    mined = np.array([[(i + 5) % m, (i + 7) % m] for i in range(n)]) if negatives else None
    ids = [f"q{i}" for i in range(n)], [f"d{i}" for i in range(m)]
    relations = Relations(n, m, pairs, Sides("query", "document"), negatives=mined)
    return SplitEmbeddings("drawn", q, d, None, None, *ids, "f" * 64, relations=relations)


def test_a_short_last_part_does_not_speak_for_the_others() -> None:
    """Rows of 300 candidates had no measured effects; those of the last batch had, and gave the interval of all."""
    embedded = split(110, k=3)
    result = Sweep(("ntxent",), ("contributors",), "pairs", 300, part=1).run(embedded)
    assert result.summary["n"].max() == 2
    assert result.summary["low"].isna().all()
    assert result.without_interval is not None and "contributors" in result.without_interval


def test_sums_that_are_not_known_in_one_part_are_not_known() -> None:
    known = ItemSums(np.ones(20), np.arange(20.0), np.zeros(20), 0.0)
    unknown = replace(known, overlap=float("nan"))
    assert known.is_known and not join_sums([{"a": known}, {"a": unknown}])["a"].is_known
    assert np.isnan(unknown.interval().low)


def test_queries_among_the_candidates_are_of_their_own_units(monkeypatch: pytest.MonkeyPatch) -> None:
    """The code took −1 − row for an index from the end."""
    units = units_of_items(np.array([[0, 2, -1, -3]]), np.array([7, 8, 9]), np.array([4, 5, 6]))
    assert units.tolist() == [[4, 6, 7, 9]]
    monkeypatch.setattr(QuerySample, "of", classmethod(lambda cls, *_: cls(1.0, 0)))
    embedded = split(60, k=1)
    rows = Sweep(("ntxent:tau=0.05",), ("cocos",), "pairs", 12, terms=("q2q", "d2d")).run(embedded).summary
    row = rows[(rows["statistic"] == "W_neg") & (rows["direction"] == "i2t")].iloc[0]
    assert row["high"] - row["low"] == pytest.approx(0.208, abs=0.01)  # the wrong units gave 0.156


def test_more_queries_than_documents_can_be_candidates() -> None:
    embedded = queries_and_documents(60, 20)
    rows = Sweep(("ntxent",), ("cocos",), "pairs", 8, terms=("q2q",)).run(embedded).summary
    assert rows["mean"].notna().any()


@pytest.mark.parametrize("probe", ["contributors", "false_negatives", "influence"])
def test_a_last_batch_of_one_pair_leaves_nothing_out(probe: str) -> None:
    rows = Sweep(("ntxent",), (probe,), "pairs", 16, part=1).run(split(33, k=1)).summary
    assert len(rows)


def test_skipped_queries_do_not_take_the_intervals_of_others() -> None:
    embedded = queries_and_documents(negatives=True)
    rows = Sweep(("ntxent:tau=0.05",), ("tangent",), "pairs", 16).run(embedded).summary
    assert (rows.groupby("direction")["low"].apply(lambda low: low.notna().sum()) > 0).all()


@pytest.mark.parametrize("spec", ["ntxent:tau=0.05", "ntxent:tau=0.02", "triplet", "triplet_sh"])
def test_the_effect_on_the_share_above_eps_is_that_of_leaving_out(spec: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """To first order, the effect was up to a third too small."""
    monkeypatch.setattr(QuerySample, "of", classmethod(lambda cls, *_: cls(1.0, 0)))
    embedded = split(120, k=1, d=32)
    assert embedded.images is not None and embedded.captions is not None
    embedded = replace(embedded, images=embedded.images.double(), captions=embedded.captions.double())
    sweep = Sweep((spec,), ("weight_mass",), "pairs", 32)
    widths = []
    for protocol in (result_group.HasEffects, type("Nothing", (), {})):
        monkeypatch.setattr(result_group, "HasEffects", protocol)
        rows = sweep.run(embedded).summary
        rows = rows[rows["statistic"] == "share_above"]
        widths.append((rows["high"] - rows["low"]).to_numpy())
    np.testing.assert_allclose(widths[0], widths[1], rtol=0.04)


def test_totals_of_grouped_batches_count_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches with other numbers of queries weighed more in the interval than in the number."""
    kept = {}
    monkeypatch.setattr(sweep_module, "join_sums", lambda parts: kept.update(join_sums(parts)) or kept)
    rows = Sweep(("smoothap:tau=0.05",), ("cocos",), batch_size=12).run(queries_and_documents()).summary
    totals = rows[rows["statistic"] == "C_0"]
    assert len(totals) == 2
    for record in totals.to_dict("records"):
        assert kept[name_of(record, "C_0")].mean == pytest.approx(record["mean"], rel=1e-6)


def test_ends_are_possible_numbers() -> None:
    assert clip_interval(-1.0, 101.0, "%") == (0.0, 100.0)
    assert clip_interval(-1.0, 101.0, "samples") == (0.0, 101.0)
    assert clip_interval(-1.0, 101.0, "similarity") == (-1.0, 101.0)
    assert clip_interval(-0.1, 1.1, "1") == (-0.1, 1.1)
    assert clip_interval(-0.1, 1.1, "1", within_one=True) == (0.0, 1.0)
    rows = Sweep(("ntxent",), ("recall",), "pairs", 16).run(split(60, k=1, hubs=0.0)).summary
    percent = rows[rows["unit"] == "%"]
    assert percent["high"].notna().any() and float(percent["high"].max()) <= 100


@pytest.mark.parametrize("groups", [None, 10])
def test_ends_of_shares_and_of_mrr_are_from_0_to_1(groups: int | None) -> None:
    sweep = Sweep(("ntxent",), ("recall", "similarity", "hubness"), "pairs", 10, interval_groups=groups)
    rows = sweep.run(split(20, k=1, hubs=0.0)).summary.set_index("statistic")
    shares = rows[rows.index.isin(["MRR", "inverted", "never_hardest", "hub_share"])]
    shares = shares[shares["low"].notna()]
    assert {"MRR", "inverted"} <= set(shares.index)
    assert shares.loc["MRR", "high"].max() == 1 and shares.loc["inverted", "low"].min() == 0
    assert shares["low"].min() >= 0 and shares["high"].max() <= 1


def test_a_jackknife_ends_where_numbers_end() -> None:
    sweep = Sweep(("goal:triplet=cir,pair=sig-ms",), ("cocos",), "pairs", 16, interval_groups=10)
    result = sweep.run(split(60, k=1))
    weights = result.summary[result.summary["unit"] == "weight"]
    assert weights["low"].notna().any() and (weights["low"].dropna() >= 0).all()
    assert result.without_interval is None  # the advice is not repeated


def test_intervals_of_many_parts_do_not_depend_on_their_number() -> None:
    embedded = split(60)
    single, many = (
        Sweep(("ntxent", "triplet"), ("cocos", "similarity"), "pairs", 16, part=part).run(embedded).summary
        for part in (100, 1)
    )
    quantiles = single["statistic"].str.contains("_q[0-9]")
    columns = ["low", "high"]
    pd.testing.assert_frame_equal(single.loc[~quantiles, columns], many.loc[~quantiles, columns], rtol=0.15)
