"""Is C(eps) of batches the mean over the batches in which a query took part, one line for each key?"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch

from lossscope.core.embedded import SplitEmbeddings
from lossscope.engine.eps_curves import eps_curves
from lossscope.engine.sweep import Sweep
from lossscope.errors import InputError
from lossscope.probes.views.eps_histogram import EDGES


@pytest.fixture(name="rows")
def batches() -> pd.DataFrame:
    random = torch.Generator().manual_seed(0)
    V, T = (torch.nn.functional.normalize(torch.randn(20, 6, generator=random)) for _ in range(2))
    ids = [str(row) for row in range(20)]
    embedded = SplitEmbeddings("s", V, T, None, np.arange(20), ids, ids, "f" * 64)
    probes = ("cocos:eps=0.01,curve=true", "cocos:eps=0.1")
    return Sweep(("triplet", "ntxent"), probes, batch_size=8).run(embedded).batches


def test_a_line_for_each_objective_and_direction(rows: pd.DataFrame) -> None:
    curves = eps_curves(rows)
    assert len(curves) == 2 * 2 * len(EDGES)
    assert set(curves["n"]) == {3}
    chosen = rows[(rows["objective"] == "ntxent:tau=0.1") & (rows["direction"] == "t2i") & (rows["eps"] == 0.01)]
    line = curves[(curves["objective"] == "ntxent:tau=0.1") & (curves["direction"] == "t2i")]
    stacked = np.stack([np.asarray(curve) for curve in chosen["curve"]])
    assert chosen["queries"].tolist() == [8, 8, 4]
    np.testing.assert_allclose(line["mean"], np.average(stacked, axis=0, weights=[8, 8, 4]))
    np.testing.assert_allclose(line["std"], stacked[:2].std(0))
    assert line["eps"].tolist() == list(EDGES)


def test_at_the_eps_of_the_sweep_it_is_the_count(rows: pd.DataFrame) -> None:
    curves = eps_curves(rows)
    for objective, column in (("triplet:margin=0.2", "C_q_all"), ("ntxent:tau=0.1", "C_neg")):
        for eps in (0.01, 0.1):
            for direction in ("i2t", "t2i"):
                same = (rows["objective"] == objective) & (rows["direction"] == direction) & (rows["eps"] == eps)
                near = (curves["objective"] == objective) & (curves["direction"] == direction)
                near &= np.isclose(curves["eps"], eps)
                assert curves.loc[near, "mean"].tolist() == pytest.approx(
                    [np.average(rows.loc[same, column], weights=rows.loc[same, "queries"])]
                )


def test_counts_never_rise(rows: pd.DataFrame) -> None:
    for _, line in eps_curves(rows).groupby(["objective", "direction"]):
        assert (line["mean"].diff().dropna() <= 0).all()


def test_batches_of_skipped_queries_are_left_out(rows: pd.DataFrame) -> None:
    kept = rows[rows["curve"].notna()].reset_index(drop=True)
    kept["curve"] = [np.full(len(EDGES), np.nan), *kept["curve"][1:]]
    curves = eps_curves(kept)
    assert sorted(set(curves["n"])) == [2, 3]
    assert curves["mean"].notna().all()
    empty = eps_curves(kept.assign(curve=[np.full(len(EDGES), np.nan)] * len(kept)))
    assert set(empty["n"]) == {0} and empty["mean"].isna().all()


def test_rows_without_a_curve_are_refused(rows: pd.DataFrame) -> None:
    for wrong in (rows.drop(columns="curve"), rows.assign(curve=None)):
        with pytest.raises(InputError, match="rows must have a column curve"):
            eps_curves(wrong)
