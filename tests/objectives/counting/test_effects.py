"""Is a candidate's effect on the counts of a query, by its rule, that of leaving the candidate out?"""

from __future__ import annotations

import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from lossscope.core.counts import CountEffects
from lossscope.core.similarity import Mask
from lossscope.objectives.base import Objective
from lossscope.objectives.counting.rows import WholeRows
from lossscope.registry import build
from tests.each import each

COLUMNS = ("above", "mass_above", "mass_below", "positive", "n_eff")
EXACT = ("triplet:margin=0.2", "triplet_sh:margin=0.2", "goal:triplet=cir,pair=lin", "ssp:margin=0.2")
SOFT = ("ntxent:tau=0.05", "dcl:tau=0.05", "infonce:tau=0.05", "unified:gamma=30,margin=0.1", "smoothap:tau=0.02")


def rows(seed: int, queries: int = 12, candidates: int = 15, positives: int = 1) -> WholeRows:
    generator = torch.Generator().manual_seed(seed)
    S = (0.3 * torch.randn(queries, candidates, generator=generator)).clamp(-1, 1).double()
    match = torch.zeros(queries, candidates, dtype=torch.bool)
    match[:, :positives] = True
    S[:, :positives] += 0.5
    return WholeRows.from_rows(S, Mask(match, torch.ones_like(match)))


def effects(objective: Objective, whole: WholeRows, eps: float) -> CountEffects:
    assert objective.counting_rule is not None
    stated = objective.counting_rule.count_rows(whole).effects(eps)
    assert stated is not None
    return stated


def left_out(objective: Objective, whole: WholeRows, eps: float) -> dict[str, Tensor]:
    """Count − count without the candidate, candidate by candidate; NaN where no weight is left."""
    assert objective.counting_rule is not None
    now = objective.counting_rule.count_rows(whole).counts(eps)
    found = {name: torch.zeros(whole.S.shape, dtype=torch.float64) for name in (*COLUMNS, "any_above")}
    for column in range(whole.S.shape[1]):
        valid = whole.mask.valid.clone()
        valid[:, column] &= whole.mask.match[:, column]
        without = WholeRows.from_rows(whole.S, Mask(whole.mask.match, valid))
        counts = objective.counting_rule.count_rows(without).counts(eps)
        for name in COLUMNS:
            before, after = getattr(now, name), getattr(counts, name)
            found[name][:, column] = (before - after).where(~before.isnan(), 0.0)
        found["any_above"][:, column] = (now.above > 0).double() - (counts.above > 0).double()
    return found


@each("spec", EXACT)
@given(seed=st.integers(0, 10_000))
@settings(max_examples=15, deadline=None)
def test_effects_of_a_hinge_and_of_the_hardest_negative_are_exact(spec: str, seed: int) -> None:
    objective, whole = build("objectives", spec), rows(seed)
    stated, measured = effects(objective, whole, 0.01), left_out(objective, whole, 0.01)
    for name, expected in measured.items():
        assert torch.allclose(getattr(stated, name).double(), expected, atol=1e-9, equal_nan=True), name


@each("spec", SOFT)
@given(seed=st.integers(0, 10_000))
@settings(max_examples=15, deadline=None)
def test_effects_on_sums_of_a_softmax_and_of_a_smooth_rank_are_exact(spec: str, seed: int) -> None:
    objective, whole = build("objectives", spec), rows(seed)
    stated, measured = effects(objective, whole, 0.01), left_out(objective, whole, 0.01)
    for name in ("positive", "n_eff"):
        assert torch.allclose(getattr(stated, name).double(), measured[name], atol=1e-5, rtol=1e-5, equal_nan=True), (
            name
        )
    both = stated.mass_above + stated.mass_below
    assert torch.allclose(both.double(), measured["mass_above"] + measured["mass_below"], atol=1e-6)


@each("spec", SOFT)
def test_effects_on_what_is_above_eps_are_right_on_average(spec: str) -> None:
    """The rule knows the weights that cross eps only by their number near eps."""
    objective, whole = build("objectives", spec), rows(1, queries=600, candidates=60)
    stated, measured = effects(objective, whole, 0.01), left_out(objective, whole, 0.01)
    for name in ("above", "mass_above"):
        of_candidate = getattr(stated, name).double().sum(0)[1:], measured[name].sum(0)[1:]
        scale = measured[name].abs().sum(0)[1:].mean()
        assert float((of_candidate[0] - of_candidate[1]).abs().max() / scale) < 0.25, name
        assert float((of_candidate[0].mean() - of_candidate[1].mean()).abs() / scale) < 0.1, name


@each("spec", ["smoothap:tau=0.02", "unified:gamma=30,margin=0.1"])
def test_effects_with_several_positives(spec: str) -> None:
    objective, whole = build("objectives", spec), rows(3, positives=3)
    stated, measured = effects(objective, whole, 0.01), left_out(objective, whole, 0.01)
    negatives = whole.mask.negatives
    for name in ("positive", "n_eff"):
        assert torch.allclose(getattr(stated, name).double()[negatives], measured[name][negatives], atol=1e-5), name
        assert not bool(getattr(stated, name)[~negatives].any())


@each("spec", [*EXACT, *SOFT])
def test_a_query_without_negatives_has_no_effects(spec: str) -> None:
    match = torch.tensor([[True, False, False], [True, False, False]])
    whole = WholeRows.from_rows(
        torch.tensor([[0.5, 0.4, 0.3], [0.5, 0.4, 0.3]]), Mask(match, match | torch.tensor([[True], [False]]))
    )
    stated = effects(build("objectives", spec), whole, 0.01)
    for name in (*COLUMNS, "any_above"):
        assert not bool(getattr(stated, name)[1].nan_to_num(9).any()), name


def test_effects_scale_with_weights() -> None:
    found = effects(build("objectives", "ntxent"), rows(0), 0.01)
    scaled = found.scale_weights(2.0)
    assert torch.equal(scaled.mass_above, 2 * found.mass_above) and torch.equal(scaled.above, found.above)
    assert found.scale_weights(1.0) is found


@each("spec", ["ntxent:tau=0.01", "ntxent:tau=0.05", "dcl:tau=0.01", "unified:gamma=60,margin=0.1"])
def test_effects_of_float32_similarities_are_those_of_float64(spec: str) -> None:
    """1 − p was rounding where one candidate has nearly all of the softmax; W_low had ten times its interval."""
    objective, whole = build("objectives", spec), rows(4, queries=400, candidates=32)
    single = WholeRows.from_rows(whole.S.float(), whole.mask)
    double = WholeRows.from_rows(single.S.double(), whole.mask)
    exact, stated = (effects(objective, entries, 0.01) for entries in (double, single))
    for name in ("positive", "mass_below", "n_eff"):
        expected, actual = getattr(exact, name).double(), getattr(stated, name).double()
        known = ~expected.isnan()
        assert torch.equal(known, ~actual.isnan())
        assert float((expected - actual)[known].square().sum()) <= 1e-4 * float(expected[known].square().sum()), name
