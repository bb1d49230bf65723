"""Does the weight by rank of negatives and positives, and by difference, equal what losses say by construction?"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import ModuleType

import numpy as np
import pytest
import torch
from torch import Tensor

from lossscope.errors import InputError
from lossscope.probes.by_rank import DIFFERENCES, RANKS, ByRank
from lossscope.registry import build
from tests.each import each
from tests.probes import lab

Oracle = Callable[[str], ModuleType]
OBJECTIVES = ["ntxent", "triplet:margin=0.5", "triplet_sh", "siglip", "smoothap:tau=0.1"]
NUMBERS = ("exponent", "ridge", "near_share", "mean_rank")


def rows_of(S: Tensor) -> lab.Batches:
    """Return a batch with these similarities, (q, c), the positive of each query first."""
    match = torch.zeros(1, *S.shape, dtype=torch.bool)
    match[:, :, 0] = True
    return lab.Batches(
        S.double()[None], torch.eye(S.shape[1], dtype=torch.float64)[None], match, torch.ones_like(match)
    )


def curve_of(actual: lab.Numbers, name: str) -> dict[float, float]:
    """Return point -> number of the first batch, without empty bins."""
    points = ByRank(curve=True).points()[name]
    return {x: float(y) for x, y in zip(points, actual[name][0], strict=True) if not np.isnan(y)}


@each("objective", OBJECTIVES, "seed", range(2))
def test_every_number_equals_the_oracle(objective: str, seed: int, oracle: Oracle) -> None:
    many = objective.startswith("smoothap")
    batches = lab.random_batches(seed, k=2, q=40, c=40, many=many)
    actual = lab.statistics(lab.run("by_rank:near=0.2,curve=true", batches, objective))
    for b, batch in enumerate(batches.single_batches()):
        rows = batch.rows()
        W = build("objectives", objective)(rows.S, rows.mask).W
        masks = (rows.mask.positives.tolist(), rows.mask.negatives.tolist())
        expected = oracle("probes_by_rank").by_rank(rows.S.tolist(), W.tolist(), *masks, 0.2)
        of_batch = {name: values[b : b + 1] for name, values in actual.items()}
        assert {name: float(of_batch[name][0]) for name in NUMBERS} == pytest.approx(
            {name: expected[name] for name in NUMBERS}, rel=1e-9, nan_ok=True
        )
        for name in ("candidate_weight", "query_weight", "difference_weight"):
            assert curve_of(of_batch, name) == pytest.approx(expected[name])
        for name in ("query_share", "weight_share"):
            shares = {x: y for x, y in curve_of(of_batch, name).items() if x in expected[name]}
            assert shares == pytest.approx(expected[name])
            assert sum(shares.values()) == pytest.approx(1)


def test_the_weight_of_smoothap_falls_with_the_square_of_the_rank() -> None:
    """R − 1 negatives are far above the positive and another one is near it: G (1 − G) / R² is left, with G = 0.5 %."""
    tau, G = 0.01, 0.005
    near = 0.3 + tau * float(torch.tensor(G).logit())
    ranks = [2, 3, 4, 7, 8, 13, 16, 30]
    S = torch.full((len(ranks), 32), -1.0)
    S[:, 0], S[:, 1] = 0.3, near
    for row, R in zip(S, ranks, strict=True):
        row[2 : R + 1] = 0.9
    actual = lab.statistics(lab.run("by_rank:curve=true", rows_of(S), f"smoothap:tau={tau}"))
    assert actual["exponent"][0] == pytest.approx(-2, abs=0.01)
    assert actual["near_share"][0] == pytest.approx(1)
    assert curve_of(actual, "query_weight")[16] / curve_of(actual, "query_weight")[4] < (4 / 13) ** 2


def test_the_weight_of_smoothap_has_its_ridge_where_the_negative_equals_the_positive() -> None:
    grid = torch.arange(-12, 13) * 0.05
    S = torch.cat([torch.zeros(1), grid]).repeat(10, 1)
    actual = lab.statistics(lab.run("by_rank:curve=true", rows_of(S), "smoothap:tau=0.1"))
    assert actual["ridge"][0] == 0
    by_difference = curve_of(actual, "difference_weight")
    G = 1 / (1 + np.exp(-np.array(list(by_difference)) / 0.1))
    expected = G * (1 - G) / 0.1 / (1 + G.sum()) ** 2
    np.testing.assert_allclose(list(by_difference.values()), expected, rtol=1e-6)


def test_the_weight_of_triplet_is_flat_above_the_margin_and_has_no_ridge() -> None:
    S = torch.cat([torch.zeros(1), torch.arange(-12, 13) * 0.05 + 0.01]).repeat(10, 1)
    actual = lab.statistics(lab.run("by_rank:curve=true", rows_of(S), "triplet:margin=0.2"))
    assert curve_of(actual, "difference_weight") == {x: float(x > -0.21) for x in DIFFERENCES if abs(x) < 0.61}
    assert np.isnan(actual["ridge"][0])


def test_the_weight_of_triplet_sh_is_on_the_hardest_negative() -> None:
    actual = lab.statistics(lab.run("by_rank:curve=true", lab.random_batches(gaps=False), "triplet_sh:margin=2"))
    assert actual["mean_rank"].tolist() == [1, 1, 1]
    assert curve_of(actual, "candidate_weight") == {1: 1, 2: 0, 4: 0, 8: 0}


def test_the_weight_of_ntxent_rises_as_the_exponential_of_the_difference() -> None:
    S = torch.cat([torch.zeros(1), torch.arange(-8, 9) * 0.05]).repeat(10, 1)
    actual = lab.statistics(lab.run("by_rank:curve=true", rows_of(S), "ntxent:tau=0.2"))
    x, y = map(np.array, zip(*curve_of(actual, "difference_weight").items(), strict=True))
    np.testing.assert_allclose(np.diff(np.log(y)) / np.diff(x), 1 / 0.2, rtol=1e-6)
    assert actual["ridge"][0] == 0.4


def test_ranks_of_few_bins_have_no_exponent() -> None:
    S = torch.full((4, 8), -1.0)
    S[:, 0] = 0.3
    for row, R in zip(S, [1, 2, 3, 4], strict=True):
        row[1:R] = 0.35
    assert np.isnan(lab.measure("by_rank", rows_of(S), "ntxent")["exponent"][0])


def test_differences_beyond_cosines_are_in_the_last_bins() -> None:
    S = torch.tensor([0.0, 30.0, -30.0]).repeat(10, 1)
    actual = lab.statistics(lab.run("by_rank:curve=true", rows_of(S), "triplet:margin=0.2"))
    assert curve_of(actual, "difference_weight") == {-2: 0, 2: 1}
    assert actual["ridge"][0] == 2


def test_panels_give_the_numbers_of_the_whole_batch() -> None:
    rows = lab.random_batches(k=1, q=9, c=12).rows()
    whole, parts = lab.run("by_rank:curve=true", rows), lab.run_in_panels("by_rank:curve=true", rows, [4, 5])
    lab.assert_same(lab.statistics(parts), lab.statistics(whole))


@each("kind", lab.DEGENERATE, "objective", OBJECTIVES)
def test_degenerate_batches_give_no_infinity(objective: str, kind: str) -> None:
    actual = lab.measure("by_rank:curve=true", lab.degenerate(kind), objective)
    assert not any(np.isinf(values).any() for values in actual.values())
    if "all skipped" in kind:
        assert all(np.isnan(values).all() for values in actual.values())


def test_the_points_are_those_of_the_curves() -> None:
    probe = ByRank(curve=True)
    result = lab.run("by_rank:curve=true", lab.random_batches())
    curves = {s.name for s in probe.statistics(None) if s.reducer == "curve"}
    assert curves == set(probe.points())
    assert {name: result.columns[name].shape[1] for name in curves} == {k: len(v) for k, v in probe.points().items()}
    assert (len(RANKS), DIFFERENCES[0], DIFFERENCES[40], DIFFERENCES[-1]) == (21, -2, 0, 2)


@each("near", [0, -1.0, float("nan"), float("inf")])
def test_a_distance_that_is_none_is_refused(near: float) -> None:
    with pytest.raises(InputError, match=r"near must be a number above 0, as 0.1; got"):
        ByRank(near=near)


def test_another_positive_below_the_best_one_changes_no_rank() -> None:
    batch = rows_of(torch.tensor([[0.5, 0.1, 0.7, 0.6, 0.2]]))
    match = batch.match.clone()
    match[:, :, 1] = True
    actual = lab.statistics(lab.run("by_rank:curve=true", replace(batch, match=match), "smoothap:tau=0.1"))
    assert curve_of(actual, "query_share")[4] == 1  # two negatives are above the best positive
