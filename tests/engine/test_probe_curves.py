"""Are the curves of a probe means over the batches in which each point is defined, beside its single numbers?"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch

from lossscope.core.embedded import SplitEmbeddings
from lossscope.engine.probe_curves import probe_curves
from lossscope.engine.sweep import Sweep
from lossscope.errors import InputError
from lossscope.probes.by_rank import DIFFERENCES, RANKS, ByRank
from lossscope.probes.fidelity import GRID, Fidelity

LINE = {"objective": "ntxent:tau=0.1", "direction": "t2i"}


@pytest.fixture(scope="module")
def embedded() -> SplitEmbeddings:
    random = torch.Generator().manual_seed(0)
    V, T = (torch.nn.functional.normalize(torch.randn(20, 6, generator=random)) for _ in range(2))
    ids = [str(row) for row in range(20)]
    return SplitEmbeddings("s", V, T, None, np.arange(20), ids, ids, "f" * 64)


def of_line(rows: pd.DataFrame) -> pd.DataFrame:
    return rows[(rows["objective"] == LINE["objective"]) & (rows["direction"] == LINE["direction"])]


def test_a_curve_is_the_mean_over_batches_weighted_by_queries(embedded: SplitEmbeddings) -> None:
    batches = Sweep(("triplet", "ntxent"), ("fidelity:curve=true",), batch_size=8).run(embedded).batches
    curves = probe_curves(batches, Fidelity(curve=True))
    assert curves.groupby(["objective", "direction"]).ngroups == 4
    line = of_line(curves)[lambda rows: rows["statistic"] == "curve"]
    stacked = np.stack([np.asarray(curve) for curve in of_line(batches)["curve"]])
    assert line["x"].tolist() == list(GRID)
    np.testing.assert_allclose(line["mean"], np.average(stacked, axis=0, weights=[8, 8, 4]))
    np.testing.assert_allclose(line["std"], stacked[:2].std(0), atol=1e-12)
    assert set(line["n"]) == {3}


def test_single_numbers_are_those_of_the_summary(embedded: SplitEmbeddings) -> None:
    result = Sweep(("ntxent",), ("fidelity:curve=true",), batch_size=8).run(embedded)
    singles = probe_curves(result.batches, Fidelity(curve=True))[lambda rows: rows["x"].isna()]
    key = ["direction", "statistic"]
    summary = result.summary.set_index(key)["mean"]
    assert singles.set_index(key)["mean"].to_dict() == pytest.approx(summary.to_dict(), nan_ok=True)


def test_each_point_has_the_batches_in_which_it_is_defined(embedded: SplitEmbeddings) -> None:
    batches = Sweep(("ntxent",), ("by_rank:curve=true",), batch_size=8).run(embedded).batches
    line = of_line(probe_curves(batches, ByRank(curve=True)))
    ranks = line[line["statistic"] == "candidate_weight"]
    assert ranks["x"].tolist() == list(RANKS)
    assert ranks["n"].tolist() == [3, 3, 3, 2, *[0] * 17]  # the short batch has ranks up to 3
    assert ranks["mean"].isna().tolist() == [False] * 4 + [True] * 17
    differences = line[line["statistic"] == "difference_weight"]
    assert differences["x"].tolist() == list(DIFFERENCES)


def test_rows_without_curves_are_refused(embedded: SplitEmbeddings) -> None:
    batches = Sweep(("ntxent",), ("fidelity",), batch_size=8).run(embedded).batches
    with pytest.raises(InputError, match="rows must have the curve curve; sweep with curve=true"):
        probe_curves(batches, Fidelity())
