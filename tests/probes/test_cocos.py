"""Are the counts of COCOS those by hand, equal in panels and stacks, and averaged as the paper says?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import pytest
import torch
from torch import Tensor

from lossscope.core.counts import CountedWeights
from lossscope.core.similarity import Mask, pair_mask
from lossscope.core.types import Convention
from lossscope.engine.reducers import reduce_column
from lossscope.engine.run_probes import ProbePlan, ProbeResult
from lossscope.errors import InputError
from lossscope.objectives.base import Objective, Traits
from lossscope.probes.base import Accumulator, ReducerName, Statistic, concatenate
from lossscope.probes.cocos import Cocos
from lossscope.probes.views.eps_histogram import EDGES
from lossscope.probes.views.view import BatchShape, DenseRows
from lossscope.registry import build, names
from tests.each import each
from tests.probes import lab

NAN = float("nan")


@dataclass(frozen=True)
class Entrywise(Objective):
    """An objective that counts S itself, entry by entry."""

    traits: ClassVar[Traits] = Traits(positives="many")

    def counted_weights(self, S: Tensor, mask: Mask, convention: Convention = "corrected") -> CountedWeights:
        positive = S.masked_fill(~mask.positives, 0).sum(1)
        never = torch.zeros(len(S), dtype=torch.bool)
        return CountedWeights((S * mask.negatives)[:, None, :], torch.ones(len(S)), positive, never)


def rows(S: Tensor, mask: Mask | None = None, has_all_queries: bool = True) -> DenseRows:
    """Return the rows of one batch of similarities."""
    ids = torch.arange(S.shape[0]), torch.arange(S.shape[1])[None]
    return DenseRows(BatchShape(1, "i2t", *ids, has_all_queries), S, mask or pair_mask(torch.arange(len(S))))


def count(objective: Objective, S: Tensor, mask: Mask | None = None, probe: Cocos | None = None) -> ProbeResult:
    (result,) = ProbePlan.of([objective], [probe or Cocos()]).run(rows(S, mask))
    return result


def statistics(result: ProbeResult) -> dict[str, float]:
    columns = result.columns
    return {s.name: float(reduce_column(s, columns, 1)) for s in result.statistics()}


@each(
    "objective, convention, panels",
    [
        ("triplet", "corrected", True),
        ("triplet", "released", False),  # counts of a query depend on other queries (E1, E2)
        ("ntxent", "corrected", True),
        ("goal:pair=sig-ms", "corrected", False),  # rows are coupled
        ("smoothap:tau=0.3", "corrected", True),
        ("smoothap:tau=0.3", "released", False),
    ],
)
def test_a_stack_has_the_counts_of_its_batches(objective: str, convention: str, panels: bool) -> None:
    batches = lab.random_batches(c=6, many=objective.startswith("smoothap"), gaps=False)
    batches = replace(batches, direction="t2i")
    lab.assert_invariant_to_cuts(f"cocos:eps=0.02,convention={convention}", batches, objective, panels)


def test_columns_of_a_batch_by_hand() -> None:
    S = torch.tensor([[0.9, 0.02, 0.005, 0.04], [0.03, 0.8, 0.0, 0.01]], dtype=torch.float64)
    match = torch.tensor([[True, False, False, False], [False, True, False, False]])
    columns = count(Entrywise(), S, Mask(match, torch.ones_like(match))).columns
    assert columns["count"].tolist() == [2, 1]
    assert columns["mass_high"].tolist() == pytest.approx([0.06, 0.03])
    assert columns["mass_below"].tolist() == pytest.approx([0.005, 0.01])
    assert columns["positive"].tolist() == [0.9, 0.8]
    assert columns["n_eff"].tolist() == pytest.approx([0.065**2 / 0.002025, 0.04**2 / 0.001])


def test_each_objective_reports_what_its_paper_counts() -> None:
    def reported(name: str) -> list[str]:
        return [statistic.name for statistic in Cocos().statistics(build("objectives", name))]

    assert reported("triplet") == ["C_q", "C_q_all", "C_B", "C_0", "N_eff", "skipped"]
    assert reported("ntxent") == ["C_neg", "W_neg", "W_low", "W_pos", "C_0", "N_eff", "skipped"]
    assert reported("smoothap") == ["C_q", "C_q_all", "C_0", "N_eff", "skipped"]


@each("name", names("objectives"))
def test_every_objective_can_be_counted(name: str) -> None:
    result = count(build("objectives", name), torch.rand(6, 6, dtype=torch.float64))
    assert all(len(column) == 6 for column in result.columns.values())
    assert set(statistics(result)) >= {"C_0", "N_eff", "skipped"}


def test_c_q_averages_over_queries_with_a_count_and_c_q_all_over_all() -> None:
    S = torch.tensor([[0.9, 0.0, 0.0], [0.8, 0.9, 0.85], [0.0, 0.8, 0.9]], dtype=torch.float64)
    values = statistics(count(build("objectives", "triplet:margin=0.2"), S))
    assert (values["C_q"], values["C_q_all"], values["C_B"], values["C_0"]) == (1.5, 1.0, 3, 1)


def test_c_q_of_a_batch_without_any_count_is_undefined() -> None:
    values = statistics(count(build("objectives", "triplet"), torch.eye(3, dtype=torch.float64)))
    assert str(values["C_q"]) == str(values["N_eff"]) == "nan"
    assert (values["C_q_all"], values["C_B"], values["C_0"]) == (0, 0, 3)


def test_skipped_queries_are_counted_apart_and_never_averaged() -> None:
    mask = pair_mask(torch.arange(4))
    mask = replace(mask, match=mask.match & (torch.arange(4) < 2)[:, None])
    S = torch.full((4, 4), 0.5, dtype=torch.float64)
    values = statistics(count(build("objectives", "triplet"), S, mask))
    assert values == {"C_q": 3, "C_q_all": 3, "C_B": 6, "C_0": 0, "N_eff": 3, "skipped": 2}


def test_a_batch_of_skipped_queries_has_no_mean() -> None:
    mask = Mask(torch.zeros(3, 3, dtype=torch.bool), torch.ones(3, 3, dtype=torch.bool))
    values = statistics(count(build("objectives", "ntxent"), torch.rand(3, 3), mask))
    assert {name for name, value in values.items() if value != value} == {"C_neg", "W_neg", "W_low", "W_pos", "N_eff"}
    assert (values["skipped"], values["C_0"]) == (3, 0)


@each("objective", ["ntxent", "triplet", "smoothap:tau=0.3"])
def test_the_curve_is_the_count_at_every_threshold(objective: str) -> None:
    batches = lab.random_batches(many=objective.startswith("smoothap")).rows()
    result = lab.run("cocos:curve=true", batches, objective)
    curve = result.columns["curve"]
    counted = build("objectives", objective).counted_weights(batches.S, batches.mask)
    assert curve.shape == (18, len(EDGES))
    for column, eps in enumerate(EDGES):
        torch.testing.assert_close(curve[:, column], counted.threshold(eps).above.to(curve.dtype), rtol=1e-12, atol=0)
    mean = lab.statistics(result)["curve"]
    usable = ~result.skipped.view(3, 6)
    for b in range(3):
        np.testing.assert_allclose(mean[b], curve.view(3, 6, -1)[b, usable[b]].mean(0))


@each("reducer, expected", [
    ("mean", 2.0),
    ("mean_nonzero", 3.0),
    ("sum", 6.0),
    ("zeros", 1.0),
    ("true", NAN),
    ("std", 2**0.5),
    ("min", 0.0),
    ("max", 3.0),
    ("q10", 0.0),
    ("q50", 3.0),
    ("q90", 3.0),
])  # fmt: skip
def test_undefined_and_skipped_entries_are_left_out(reducer: ReducerName, expected: float) -> None:
    columns = {"x": torch.tensor([0.0, 3.0, NAN, 3.0, 9.0]), "skipped": torch.tensor([0, 0, 0, 0, 1])}
    statistic = Statistic("x", "x", reducer, "1")
    assert float(reduce_column(statistic, columns, 1)) == pytest.approx(expected, nan_ok=True)


@each("reducer", ["mean", "mean_nonzero", "std", "min", "max", "q10", "q50", "q90"])
def test_without_elements_the_statistic_is_nan(reducer: ReducerName) -> None:
    columns = {"x": torch.tensor([NAN, 1.0, NAN, 2.0]), "skipped": torch.tensor([0, 1, 0, 0])}
    first, second = reduce_column(Statistic("x", "x", reducer, "1"), columns, 2).tolist()
    assert first != first
    assert second == (0.0 if reducer == "std" else 2.0)


@each("merge, expected", [("sum", [5, 7]), ("max", [4, 5]), ("min", [1, 2])], "axis", ["candidate", "batch", "layer"])
def test_views_of_the_same_elements_are_merged_by_their_accumulator(
    axis: Any, merge: Any, expected: Sequence[float]
) -> None:
    a, b = (Accumulator(torch.tensor(values), merge) for values in ([1.0, 5.0], [4.0, 2.0]))
    assert concatenate(axis, [{"x": a}, {"x": b}])["x"].value.tolist() == expected


def test_queries_of_other_views_are_other_elements() -> None:
    a, b = (Accumulator(torch.tensor(values)) for values in ([1.0, 5.0], [4.0]))
    assert concatenate("query", [{"x": a}, {"x": b}])["x"].value.tolist() == [1, 5, 4]


@each("eps", [-0.01, NAN])
def test_a_threshold_below_zero_raises(eps: float) -> None:
    with pytest.raises(InputError, match="eps must be a number >= 0"):
        Cocos(eps=eps)


def test_a_convention_that_does_not_exist_raises_before_any_work() -> None:
    with pytest.raises(InputError, match="convention must be one of corrected, released, text; got 'old'"):
        build("probes", "cocos:convention=old")
    with pytest.raises(InputError, match="convention of VLC must be one of corrected; got 'released'"):
        Cocos(convention="released").check(build("objectives", "vlc"))
    Cocos(convention="released").check(build("objectives", "triplet"))
