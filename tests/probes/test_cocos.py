"""COCOS: what is counted per query, how tiles add up, and what a batch's statistics average over."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import ClassVar, Literal

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from lossscope.errors import InputError
from lossscope.objectives.base import Convention, Counted, Objective
from lossscope.probes.base import Accumulated, Statistic, View, fold, reduce
from lossscope.probes.cocos import Cocos
from lossscope.registry import build, names
from lossscope.similarity import Mask, pair_mask

NAN = float("nan")


@dataclass(frozen=True)
class Entrywise(Objective):
    """Counts S itself, entry by entry: a tile knows all there is to know of its entries."""

    positives: ClassVar[Literal["one", "many"]] = "many"

    def counted(self, S: Tensor, mask: Mask, convention: Convention = "corrected") -> Counted:
        positive = S.masked_fill(~mask.positives, 0).sum(1)
        never = torch.zeros(len(S), dtype=torch.bool)
        return Counted((S * mask.negatives)[:, None, :], torch.ones(len(S)), positive, never)


def view(objective: Objective, S: Tensor, mask: Mask) -> View:
    rows, columns = (torch.arange(n) for n in S.shape)
    return View(S, mask, objective, None, None, rows, columns)


def dense(objective: Objective, S: Tensor, mask: Mask | None = None) -> dict[str, Tensor]:
    return fold(Cocos(), [view(objective, S, mask or pair_mask(torch.arange(len(S))))])


def statistics(objective: Objective, columns: dict[str, Tensor]) -> dict[str, float]:
    return {s.name: reduce(s, columns) for s in Cocos().statistics(objective)}


@given(st.sets(st.integers(1, 19)), st.integers(0, 1000))
def test_a_fold_of_tiles_equals_dense(cuts: set[int], seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    S = torch.rand(5, 20, generator=generator).double() * 0.03
    mask = Mask(torch.rand(5, 20, generator=generator) < 0.2, torch.rand(5, 20, generator=generator) < 0.8)
    edges = [0, *sorted(cuts), 20]
    tiles = [view(Entrywise(), S[:, a:b], Mask(mask.match[:, a:b], mask.valid[:, a:b])) for a, b in pairwise(edges)]
    whole, folded = dense(Entrywise(), S, mask), fold(Cocos(), tiles)
    assert whole.keys() == folded.keys()
    for name in whole:
        torch.testing.assert_close(folded[name], whole[name], rtol=1e-12, atol=0, equal_nan=True)


def test_tiles_of_queries_side_by_side_are_the_rows_of_the_whole() -> None:
    objective, S = build("objectives", "ntxent"), torch.rand(6, 6, dtype=torch.float64)
    mask = pair_mask(torch.arange(6))
    whole = dense(objective, S, mask)
    parts = [dense(objective, S[rows], mask.rows(rows)) for rows in torch.arange(6).split(4)]
    for name, column in whole.items():
        assert torch.equal(torch.cat([part[name] for part in parts]), column)


def test_columns_of_a_batch_by_hand() -> None:
    S = torch.tensor([[0.9, 0.02, 0.005, 0.04], [0.03, 0.8, 0.0, 0.01]], dtype=torch.float64)
    match = torch.tensor([[True, False, False, False], [False, True, False, False]])
    found = dense(Entrywise(), S, Mask(match, torch.ones_like(match)))
    assert found["count"].tolist() == [2, 1]
    assert found["mass_high"].tolist() == pytest.approx([0.06, 0.03])
    assert found["mass_low"].tolist() == pytest.approx([0.005, 0.01])
    assert found["positive"].tolist() == [0.9, 0.8]
    assert found["n_eff"].tolist() == pytest.approx([0.065**2 / 0.002025, 0.04**2 / 0.001])


def test_each_objective_reports_what_its_paper_counts() -> None:
    def reported(name: str) -> list[str]:
        return [statistic.name for statistic in Cocos().statistics(build("objectives", name))]

    assert reported("triplet") == ["C_q", "C_q_all", "C_B", "C_0", "N_eff", "skipped"]
    assert reported("ntxent") == ["C_neg", "W_neg", "W_low", "W_pos", "C_0", "N_eff", "skipped"]
    assert reported("smoothap") == ["C_q", "C_q_all", "C_0", "N_eff", "skipped"]


@pytest.mark.parametrize("name", names("objectives"))
def test_every_objective_can_be_counted(name: str) -> None:
    objective = build("objectives", name)
    columns = dense(objective, torch.rand(6, 6, dtype=torch.float64))
    assert all(len(column) == 6 for column in columns.values())
    assert set(statistics(objective, columns)) >= {"C_0", "N_eff", "skipped"}


def test_c_q_averages_over_queries_with_a_count_and_c_q_all_over_all() -> None:
    S = torch.tensor([[0.9, 0.0, 0.0], [0.8, 0.9, 0.85], [0.0, 0.8, 0.9]], dtype=torch.float64)
    objective = build("objectives", "triplet:margin=0.2")
    found = statistics(objective, dense(objective, S))
    assert (found["C_q"], found["C_q_all"], found["C_B"], found["C_0"]) == (1.5, 1.0, 3, 1)


def test_c_q_of_a_batch_without_any_count_is_undefined() -> None:
    objective = build("objectives", "triplet")
    found = statistics(objective, dense(objective, torch.eye(3, dtype=torch.float64)))
    assert str(found["C_q"]) == str(found["N_eff"]) == "nan"
    assert (found["C_q_all"], found["C_B"], found["C_0"]) == (0, 0, 3)


def test_skipped_queries_are_counted_apart_and_never_averaged() -> None:
    mask = pair_mask(torch.arange(4))
    mask = replace(mask, match=mask.match & (torch.arange(4) < 2)[:, None])
    S = torch.full((4, 4), 0.5, dtype=torch.float64)
    objective = build("objectives", "triplet")
    found = statistics(objective, dense(objective, S, mask))
    assert found == {"C_q": 3, "C_q_all": 3, "C_B": 6, "C_0": 0, "N_eff": 3, "skipped": 2}


def test_nothing_but_skipped_queries_leaves_nothing_to_average() -> None:
    mask = Mask(torch.zeros(3, 3, dtype=torch.bool), torch.ones(3, 3, dtype=torch.bool))
    objective = build("objectives", "ntxent")
    found = statistics(objective, dense(objective, torch.rand(3, 3), mask))
    assert {name for name, value in found.items() if value != value} == {"C_neg", "W_neg", "W_low", "W_pos", "N_eff"}
    assert (found["skipped"], found["C_0"]) == (3, 0)


@pytest.mark.parametrize(
    ("reducer", "expected"), [("mean", 2.0), ("mean_nonzero", 3.0), ("sum", NAN), ("zeros", 1.0), ("true", NAN)]
)
def test_undefined_entries_are_left_out_of_means_but_not_of_sums(
    reducer: Literal["mean", "mean_nonzero", "sum", "zeros", "true"], expected: float
) -> None:
    columns = {"x": torch.tensor([0.0, 3.0, NAN, 3.0, 9.0]), "skipped": torch.tensor([0, 0, 0, 0, 1])}
    assert reduce(Statistic("x", "x", reducer, "1"), columns) == pytest.approx(expected, nan_ok=True)


def test_tiles_are_merged_as_their_accumulator_says() -> None:
    a, b = torch.tensor([1.0, 5.0]), torch.tensor([4.0, 2.0])
    assert Accumulated(a, "sum").with_(Accumulated(b, "sum")).value.tolist() == [5, 7]
    assert Accumulated(a, "histogram").with_(Accumulated(b, "histogram")).value.tolist() == [5, 7]
    assert Accumulated(a, "max").with_(Accumulated(b, "max")).value.tolist() == [4, 5]


def test_of_equal_maxima_the_first_index_is_kept_in_either_order() -> None:
    a = Accumulated(torch.tensor([[0.5, 7.0], [0.2, 1.0], [0.9, 3.0]]), "first_argmax")
    b = Accumulated(torch.tensor([[0.5, 2.0], [0.3, 4.0], [0.1, 0.0]]), "first_argmax")
    expected = torch.tensor([[0.5, 2.0], [0.3, 4.0], [0.9, 3.0]])
    assert torch.equal(a.with_(b).value, expected)
    assert torch.equal(b.with_(a).value, expected)


@pytest.mark.parametrize("eps", [-0.01, NAN])
def test_a_threshold_below_zero_raises(eps: float) -> None:
    with pytest.raises(InputError, match="eps must be a number >= 0"):
        Cocos(eps=eps)


def test_a_convention_that_does_not_exist_raises_before_any_work() -> None:
    with pytest.raises(InputError, match="convention must be one of corrected, released, text; got 'old'"):
        build("probes", "cocos:convention=old")
    with pytest.raises(InputError, match="convention of VLC must be one of corrected; got 'released'"):
        Cocos(convention="released").check(build("objectives", "vlc"))
    Cocos(convention="released").check(build("objectives", "triplet"))
