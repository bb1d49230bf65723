"""Does every objective keep the contract, whatever its formula? A new file in lossscope/objectives/ is included."""

from __future__ import annotations

import ast
import dataclasses
from collections.abc import Callable
from itertools import product
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
from torch import Tensor

from lossscope.core.similarity import Mask, group_mask, pair_mask
from lossscope.core.stop_gradient import replay_stopped
from lossscope.core.types import CONVENTIONS
from lossscope.core.weights import both, reduce_weights
from lossscope.engine.reducers import reduce_column
from lossscope.engine.run_probes import ProbePlan
from lossscope.errors import InputError
from lossscope.objectives.base import LossObjective, Objective
from lossscope.objectives.counting.block import Block, Tile
from lossscope.objectives.counting.concentration import Concentration
from lossscope.objectives.counting.rows import WholeRows
from lossscope.probes.views.view import BatchShape, DenseRows
from lossscope.registry import build, names
from tests.each import each

Oracle = Callable[[str], ModuleType]
ORACLES = Path(__file__).parents[1] / "oracles"
NAMES = names("objectives")


def more_specs(name: str) -> list[str]:
    """Return the list MORE of the oracle's file, specs to test beside the bare name, without importing the file."""
    path = ORACLES / f"{name}.py"
    for node in ast.parse(path.read_text(encoding="utf-8")).body if path.is_file() else ():
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "MORE":
            return list(ast.literal_eval(node.value))
    return []


OBJECTIVES: list[Any] = [build("objectives", spec) for name in NAMES for spec in (name, *more_specs(name))]
LOSSES = [objective for objective in OBJECTIVES if isinstance(objective, LossObjective)]
ONE = [objective for objective in OBJECTIVES if objective.traits.positives == "one"]


def shift_free(objective: Objective) -> bool:
    """Does an objective depend on differences of similarities alone? goal's cir also depends on their squares."""
    return objective.rows_sum_to_zero and getattr(objective, "triplet", "con") != "cir"


TILED = [objective for objective in OBJECTIVES if objective.counting_rule is not None]
DIFFERENCES = [objective for objective in OBJECTIVES if objective.rows_sum_to_zero]
SHIFT_FREE = [objective for objective in OBJECTIVES if shift_free(objective)]


def random_batch(objective: Objective, seed: int = 0, queries: int = 7, candidates: int = 9) -> tuple[Tensor, Mask]:
    """Return similarities around 0.3; row 2 has no positive, row 4 no negative; a few entries are not valid."""
    rng = np.random.default_rng(seed)
    S = torch.from_numpy(rng.normal(0.3, 0.12, (queries, candidates)))
    match = torch.zeros(queries, candidates, dtype=torch.bool)
    for q in range(queries):
        number = 1 if objective.traits.positives == "one" else int(rng.integers(1, 4))
        match[q, rng.choice(candidates, number, replace=False)] = True
    valid = torch.from_numpy(rng.random((queries, candidates)) < 0.8) | match
    if queries > 4:
        valid[2] &= ~match[2]
        valid[4] = match[4]
    return S, Mask(match, valid)


def arrays(S: Tensor, mask: Mask) -> tuple[npt.NDArray[Any], ...]:
    return S.numpy(), mask.match.numpy(), mask.valid.numpy()


def hyper(objective: Any) -> dict[str, Any]:
    values = {item.name: getattr(objective, item.name) for item in dataclasses.fields(objective)}
    return {name: value for name, value in values.items() if name != "positive"}  # test_several_positives.py


@each("name", NAMES)
def test_every_objective_has_an_oracle(name: str, oracle: Oracle) -> None:
    try:
        module = oracle(name)
    except FileNotFoundError:
        pytest.fail(f"objective {name} has no oracle: write tests/oracles/{name}.py")
    missing = [part for part in ("values", "weights", "counted_weights") if not hasattr(module, part)]
    assert not missing, f"tests/oracles/{name}.py must define {missing}"


@each("objective", OBJECTIVES)
def test_w_has_the_shape_of_s_is_finite_and_zero_off_valid(objective: Objective) -> None:
    S, mask = random_batch(objective)
    weights = objective(S, mask)
    assert weights.W.shape == S.shape
    assert weights.W.dtype == S.dtype
    assert torch.isfinite(weights.W).all()
    assert (weights.W[~mask.valid] == 0).all()
    assert weights.W.abs().sum() > 0
    assert not weights.W.requires_grad


@each("objective", OBJECTIVES)
def test_losses_have_a_value_per_query_and_gradients_none(objective: Objective) -> None:
    S, mask = random_batch(objective)
    values = objective(S, mask).values
    assert (values is not None) == isinstance(objective, LossObjective)
    assert values is None or (values.shape == (7,) and not values.requires_grad)


@each("objective", OBJECTIVES, "seed", range(3))
def test_values_and_w_equal_the_oracle(objective: Objective, oracle: Oracle, seed: int) -> None:
    slow, options = oracle(objective_name(objective)), hyper(objective)
    S, mask = random_batch(objective, seed)
    weights = objective(S, mask)
    assert_close(weights.W, slow.weights(*arrays(S, mask), **options))
    expected = slow.values(*arrays(S, mask), **options)
    assert (weights.values is None) == (expected is None)
    if weights.values is not None:
        assert_close(weights.values, expected)


@each("objective", OBJECTIVES)
def test_w_equals_the_oracle_among_many_ties(objective: Objective, oracle: Oracle) -> None:
    S, mask = random_batch(objective, seed=5)
    S = (S * 10).round() / 10
    expected = oracle(objective_name(objective)).weights(*arrays(S, mask), **hyper(objective))
    assert_close(objective(S, mask).W, expected)


@each("objective", OBJECTIVES)
def test_of_equal_negatives_the_first_has_at_least_as_much_weight(objective: Objective) -> None:
    S = torch.tensor([[0.4, 0.1, 0.3, 0.3]], dtype=torch.float64)
    match = torch.tensor([[True, False, False, False]])
    W = objective(S, Mask(match, torch.ones_like(match))).W[0]
    assert W[2] == W[3] or W[3] == 0


@each("loss", LOSSES)
def test_w_equals_central_differences_of_the_values(loss: LossObjective) -> None:
    S, mask = random_batch(loss, seed=1, queries=6, candidates=7)
    step, numeric = 1e-6, torch.zeros_like(S)
    with replay_stopped() as rewind:
        W = loss(S, mask).W
        for q, c in product(*map(range, S.shape)):
            change = torch.zeros_like(S)
            change[q, c] = step
            values = []
            for moved in (S + change, S - change):
                rewind()
                values.append(value_of(loss, moved, mask))
            numeric[q, c] = (values[0] - values[1]) / (2 * step)
    torch.testing.assert_close(W, numeric, rtol=1e-6, atol=1e-5)


def value_of(loss: LossObjective, S: Tensor, mask: Mask) -> Tensor:
    values = loss(S, mask).values
    assert values is not None
    return values.sum()


@each("loss", LOSSES)
def test_a_stated_gradient_is_that_of_the_values(loss: LossObjective) -> None:
    S, mask = random_batch(loss, seed=4)
    S, mask = S[mask.usable], mask.rows(mask.usable)
    closed_form = loss.closed_form(S, mask)
    if closed_form is None:
        return
    leaf = S.clone().requires_grad_()
    values = loss.values(leaf, mask)
    torch.testing.assert_close(closed_form[0], values.detach(), rtol=1e-10, atol=1e-10)
    W = torch.autograd.grad(values.sum(), leaf)[0]
    torch.testing.assert_close(
        closed_form[1] * mask.valid, W * mask.valid, rtol=1e-10, atol=1e-10 * float(W.abs().max())
    )


@each("objective", OBJECTIVES)
def test_permuting_candidates_permutes_w(objective: Objective) -> None:
    S, mask = random_batch(objective)
    order = torch.randperm(S.shape[1], generator=torch.Generator().manual_seed(0))
    moved = objective(S[:, order], Mask(mask.match[:, order], mask.valid[:, order])).W
    assert_close(moved, objective(S, mask).W[:, order])


@each("objective", OBJECTIVES)
def test_rows_are_independent_unless_coupled(objective: Objective) -> None:
    S, mask = random_batch(objective)
    changed = S.clone()
    changed[0] = torch.where(mask.match[0], -0.6, S[0] - 0.1)
    before, after = objective(S, mask).W[1:], objective(changed, mask).W[1:]
    assert torch.equal(before, after) != objective.coupled


@each("objective", DIFFERENCES)
def test_rows_of_w_sum_to_zero_for_objectives_of_differences(objective: Objective) -> None:
    W = objective(*random_batch(objective)).W
    assert float(W.sum(1).abs().max()) <= 1e-12 * float(W.abs().max())


@each("objective", OBJECTIVES)
def test_float32_is_near_float64(objective: Objective) -> None:
    S, mask = random_batch(objective)
    S = S.float()
    exact, fast = objective(S.double(), mask).W, objective(S, mask).W
    assert fast.dtype == torch.float32
    torch.testing.assert_close(fast.double(), exact, rtol=1e-4, atol=1e-4 * float(exact.abs().max()))


@each("objective", OBJECTIVES, "dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_computed_in_float32(objective: Objective, dtype: torch.dtype) -> None:
    S, mask = random_batch(objective)
    half = S.to(dtype)
    W = objective(half, mask).W
    assert W.dtype == torch.float32
    assert torch.equal(W, objective(half.float(), mask).W)
    counted = objective.counts(half, mask, 0.01)
    assert torch.equal(counted.above, objective.counts(half.float(), mask, 0.01).above)


@each("objective", OBJECTIVES)
def test_rows_without_positive_or_negative_are_skipped_with_zeros(objective: Objective) -> None:
    S, mask = random_batch(objective)
    weights, counts = objective(S, mask), objective.counts(S, mask, 0.01)
    assert (~weights.usable).nonzero().flatten().tolist() == [2, 4]
    assert (weights.W[[2, 4]] == 0).all()
    assert weights.values is None or (weights.values[[2, 4]] == 0).all()
    assert counts.skipped.nonzero().flatten().tolist() == [2, 4]
    for column in (counts.above, counts.mass_above, counts.mass_below, counts.positive):
        assert (column[[2, 4]] == 0).all()


@each("objective", OBJECTIVES)
def test_skipped_rows_change_nothing_for_the_others(objective: Objective) -> None:
    S, mask = random_batch(objective)
    all_rows, usable = objective(S, mask), mask.usable
    alone = objective(S[usable], mask.rows(usable))
    assert_close(all_rows.W[usable], alone.W)
    assert all_rows.values is None or alone.values is None or torch.equal(all_rows.values[usable], alone.values)


@each("objective", OBJECTIVES)
def test_skipped_rows_are_left_out_of_every_denominator(objective: Objective) -> None:
    S, mask = random_batch(objective)
    usable = mask.usable
    probe = build("probes", "cocos")
    batches = ((S, mask), (S[usable], mask.rows(usable)))
    columns = [ProbePlan(((objective, probe),)).run(dense_rows(*batch))[0].columns for batch in batches]
    for statistic in probe.statistics(objective):
        if statistic.name != "skipped":
            with_skipped, without = (float(reduce_column(statistic, sums, 1)) for sums in columns)
            assert with_skipped == pytest.approx(without, nan_ok=True)
    square = pair_mask(torch.arange(4))
    left_out = Mask(square.match & (torch.arange(4) != 1)[:, None], square.valid)
    both_ways = both(objective, S[:4, :4], left_out)
    assert [int(w.usable.sum()) for w in both_ways] == [3, 3]
    gradient = reduce_weights(both_ways, 1.0, "mean", 4).gradient
    assert_close(gradient, both_ways.i2t.W / 3 + both_ways.t2i.W.T / 3)


@each("objective", OBJECTIVES, "filler", [0.99, -5.0, float("nan"), float("inf")])
def test_invalid_candidates_change_nothing_whatever_their_similarity(objective: Objective, filler: float) -> None:
    S, mask = random_batch(objective)
    other = S.masked_fill(~mask.valid, filler)
    before, after = objective(S, mask), objective(other, mask)
    assert torch.equal(before.W, after.W)
    assert before.values is None or after.values is None or torch.equal(before.values, after.values)
    for convention in objective.traits.conventions:
        expected, counts = (objective.counts(s, mask, 0.01, convention) for s in (S, other))
        for name in ("above", "mass_above", "mass_below", "positive"):
            assert torch.equal(getattr(expected, name), getattr(counts, name)), (convention, name)


@each("objective", OBJECTIVES)
def test_a_batch_with_nothing_usable_has_zeros(objective: Objective) -> None:
    mask = Mask(torch.zeros(3, 4, dtype=torch.bool), torch.ones(3, 4, dtype=torch.bool))
    weights, counts = objective(torch.rand(3, 4), mask), objective.counts(torch.rand(3, 4), mask, 0.01)
    assert not weights.W.any()
    assert not counts.above.any()
    assert counts.skipped.all()


@each("objective", ONE)
def test_two_positives_raise_naming_the_row(objective: Objective) -> None:
    match = torch.eye(3, 4, dtype=torch.bool)
    match[1, 3] = True
    with pytest.raises(InputError, match=r"one positive; row 1 has 2"):
        objective(torch.rand(3, 4), Mask(match, torch.ones_like(match)))


@each("objective", OBJECTIVES, "bad", [float("nan"), float("inf")])
def test_a_valid_similarity_that_is_not_finite_raises_naming_row_and_column(objective: Objective, bad: float) -> None:
    S = torch.rand(3, 3)
    S[1, 2] = bad
    with pytest.raises(InputError, match=rf"finite; got {bad} at row 1, column 2"):
        objective(S, pair_mask(torch.arange(3)))


@each("objective", OBJECTIVES)
def test_wrong_shapes_and_types_raise(objective: Objective) -> None:
    mask = pair_mask(torch.arange(3))
    with pytest.raises(InputError, match=r"one shape; got \(3, 4\) and \(3, 3\)"):
        objective(torch.rand(3, 4), mask)
    with pytest.raises(InputError, match="floating point"):
        objective(torch.ones(3, 3, dtype=torch.int64), mask)


@each("objective", OBJECTIVES)
def test_similarities_are_left_as_they_are_and_need_no_graph(objective: Objective) -> None:
    S, mask = random_batch(objective)
    S.requires_grad_()
    before = S.detach().clone()
    W = objective(S, mask).W
    assert torch.equal(S.detach(), before)
    assert S.grad is None
    with torch.inference_mode():
        assert torch.equal(objective(before.clone(), mask).W, W)


@each("objective", OBJECTIVES, "eps", [0.0, 0.01, 0.3], "direction", ["i2t", "t2i"])
def test_counts_equal_the_oracle(objective: Objective, oracle: Oracle, direction: str, eps: float) -> None:
    S, mask = square_batch(objective, direction)
    slow, options = oracle(objective_name(objective)), hyper(objective)
    for convention in objective.traits.conventions:
        counts = objective.counts(S, mask, eps, convention)
        count, mass = slow.counted_weights(*arrays(S, mask), eps, convention, direction, **options)
        assert_close(counts.above.double(), np.asarray(count, float))
        assert_close(counts.mass_above, np.asarray(mass, float))


@each("objective", OBJECTIVES)
def test_counting_is_strict_and_splits_the_weight(objective: Objective) -> None:
    S, mask = random_batch(objective, seed=2)
    counted = objective.counted_weights(S, mask)
    weights = counted.weights
    largest = float(weights.max())
    assert float(counted.threshold(largest).above.max()) == 0
    counts = counted.threshold(largest / 3)
    assert_close(counts.mass_above + counts.mass_below, weights.sum((1, 2)) / counted.divisor)
    with pytest.raises(InputError, match="eps must be"):
        counted.threshold(-0.1)


def test_a_probability_equal_to_eps_is_low_weight_but_in_neither_part_of_the_released_counter() -> None:
    ntxent = build("objectives", "ntxent:tau=1")
    match = torch.tensor([[True, False]])
    S, mask = torch.zeros(1, 2, dtype=torch.float64), Mask(match, torch.ones_like(match))
    for convention, low in (("corrected", 0.5), ("text", 0.5), ("released", 0.0)):
        counts = ntxent.counts(S, mask, 0.5, convention)
        assert (float(counts.above), float(counts.mass_above), float(counts.mass_below)) == (0, 0, low)


@each("objective", OBJECTIVES)
def test_unsupported_conventions_raise(objective: Objective) -> None:
    S, mask = random_batch(objective)
    for convention in {*CONVENTIONS, "other"} - set(objective.traits.conventions):
        with pytest.raises(InputError, match="convention of"):
            objective.counts(S, mask, 0.01, convention)  # type: ignore[arg-type]


@each("objective", SHIFT_FREE, "seed, shift", [(0, 0.5), (1, -0.31)])
def test_shifting_a_row_leaves_w_of_objectives_of_differences(objective: Objective, seed: int, shift: float) -> None:
    S, mask = random_batch(objective, seed, 4, 6)
    moved = S.clone()
    moved[1] += shift
    assert_close(objective(moved, mask).W, objective(S, mask).W, 1e-8)


@each("objective", OBJECTIVES, "seed", range(2))
def test_permuting_queries_permutes_rows(objective: Objective, seed: int) -> None:
    S, mask = random_batch(objective, seed)
    order = torch.randperm(7, generator=torch.Generator().manual_seed(seed))
    weights, moved = objective(S, mask), objective(S[order], mask.rows(order))
    assert_close(moved.W, weights.W[order])
    if weights.values is not None and moved.values is not None:
        assert_close(moved.values, weights.values[order])


def objective_name(objective: Any) -> str:
    return type(objective).__module__.rsplit(".", 1)[1]


def square_batch(objective: Objective, direction: str) -> tuple[Tensor, Mask]:
    """Return a direction of pairs, or of images with three captions each, as the published counters take it."""
    rng = np.random.default_rng(3)
    images = torch.arange(6)
    mask = pair_mask(images) if objective.traits.positives == "one" else group_mask(images, images.repeat_interleave(3))
    S = torch.from_numpy(rng.normal(0.3, 0.05, mask.match.shape))
    return (S, mask) if direction == "i2t" else (S.T.contiguous(), mask.t())


@each("objective", TILED, "eps", [0.0005, 0.01, 0.3], "width", [1e-3, 0.12, 0.6])
def test_counting_by_sums_equals_counting_weights(objective: Objective, eps: float, width: float) -> None:
    S, mask = random_batch(objective, queries=9, candidates=60)
    S = 0.3 + (S - 0.3) * width / 0.12
    expected = objective.counted_weights(S, mask).threshold(eps)
    actual = objective.counting_rule.count_rows(WholeRows.from_rows(S, mask)).counts(eps)
    assert torch.equal(actual.above.double(), expected.above.double())
    for name in ("mass_above", "mass_below", "positive"):
        assert_close(getattr(actual, name), getattr(expected, name), 1e-9)
    torch.testing.assert_close(actual.n_eff, expected.n_eff, rtol=1e-6, atol=0, equal_nan=True)


@each("objective", TILED, "width, candidates", [(1e-3, 60), (0.12, 5), (0.6, 60)])
def test_concentration_by_sums_equals_that_of_weights(objective: Objective, width: float, candidates: int) -> None:
    S, mask = random_batch(objective, queries=9, candidates=candidates)
    S = 0.3 + (S - 0.3) * width / 0.12
    expected = Concentration.from_weights(objective.counted_weights(S, mask))
    actual = objective.counting_rule.count_rows(WholeRows.from_rows(S, mask)).concentration()
    has_many = objective.traits.positives == "many"  # with several positives it is computed from weights
    assert (actual is None) == has_many
    if actual is not None:
        for name in ("n_eff", "perplexity", "top1", "top5"):
            torch.testing.assert_close(
                getattr(actual, name), getattr(expected, name), rtol=1e-9, atol=0, equal_nan=True
            )


def test_shared_rows_give_the_same_counts_in_any_order() -> None:
    """Objectives and thresholds use the same buffers one after the other."""
    whole, specs = (
        random_batch(build("objectives", "ntxent"), queries=9, candidates=40),
        ["ntxent", "unified", "triplet", "vlc"],
    )
    order = [(spec, eps) for eps in (0.01, 0.2) for spec in specs]
    shared = WholeRows.from_rows(*whole)
    row_counts = {spec: build("objectives", spec).counting_rule.count_rows(shared) for spec in specs}
    for spec, eps in [*order, *reversed(order)]:
        rule = build("objectives", spec).counting_rule
        expected = rule.count_rows(WholeRows.from_rows(*whole)).counts(eps)
        for name, value in vars(row_counts[spec].counts(eps)).items():
            torch.testing.assert_close(value, getattr(expected, name), rtol=0, atol=0, equal_nan=True)


@each("objective", TILED, "heights, widths, levels, keep", [(1, 9, 1, "some"), (5, 4, 6, "none"), (8, 25, 40, "all")])
def test_blocks_of_any_shape_give_the_counts_of_whole_rows(
    objective: Objective, heights: int, widths: int, levels: int, keep: Any
) -> None:
    """A grid of few levels makes ties and collapsed rows; either direction, in merged folds or in one."""
    S, mask = random_batch(objective, seed=levels, queries=8, candidates=25)
    S = (S * levels).round().float() / 64
    thresholds, row_counts = (1e-3, 0.05, 0.25), objective.counting_rule.count_rows(WholeRows.from_rows(S, mask))
    fold = objective.counting_rule.fold(WholeRows.from_rows(S, mask).query_positives, thresholds, keep)
    for dim, is_merged in product((0, 1), (False, True)):
        blocks = []
        for top, left in product(range(0, 8, heights), range(0, 25, widths)):
            tile = (S + mask.negative_bias)[top : top + heights, left : left + widths]
            slices = slice(top, top + len(tile)), slice(left, left + tile.shape[1])
            memory, slices = (tile, slices) if dim == 1 else (tile.T, slices[::-1])
            blocks.append(Block(Tile(memory.contiguous(), *slices), dim))
        state = fold_blocks(fold, blocks, is_merged)
        second = state.again()
        if second is not None:
            state.finish(fold_blocks(second, blocks, is_merged))
        for eps in thresholds:
            actual, expected = state.counts(eps), row_counts.counts(eps)
            assert torch.equal(actual.above, expected.above)
            assert torch.equal(actual.skipped, expected.skipped)
            size = max(1, float(expected.positive.max()))
            for name in ("mass_above", "mass_below", "positive"):
                assert_close(getattr(actual, name), getattr(expected, name), 2e-6 * size)
            torch.testing.assert_close(actual.n_eff, expected.n_eff, rtol=1e-5, atol=0, equal_nan=True)


def fold_blocks(fold: Any, blocks: list[Block], is_merged: bool) -> Any:
    """Return the fold of all blocks; each has a fold of its own, which passes through plain values, if merged."""
    state = fold.start()
    for block in blocks:
        if not is_merged:
            state.add(block)
            continue
        later, loaded = fold.start(state.known()), fold.start()
        later.add(block)
        loaded.load(later.numbers())
        state.merge(loaded)
    return state


def dense_rows(S: Tensor, mask: Mask) -> DenseRows:
    """Return a batch as probes read it."""
    rows, columns = (torch.arange(n) for n in S.shape)
    return DenseRows(BatchShape(1, mask.direction, rows, columns[None]), S, mask)


def assert_close(actual: Tensor, expected: Any, tolerance: float = 1e-10) -> None:
    """Assert that both are equal up to rounding, relative to the largest entry."""
    expected = torch.as_tensor(np.asarray(expected), dtype=torch.float64)
    scale = max(1.0, float(expected.abs().max()))
    torch.testing.assert_close(actual.double(), expected, rtol=0, atol=tolerance * scale)


@each("spec", ["ntxent:tau=0.02", "vlc", "unified", "infonce:tau=0.01", "npair:scale=60"])
def test_pull_equals_push_where_p_plus_is_nearly_1(spec: str) -> None:
    """1 − p₊ was once computed from log p₊ in float32, which is 0 or a rounding error where p₊ is nearly 1."""
    objective = build("objectives", spec)
    S = 0.1 + 0.1 * torch.rand(40, 40, generator=torch.Generator().manual_seed(0)) + 0.6 * torch.eye(40)
    exact, actual = (objective(s, pair_mask(torch.arange(40))).W for s in (S.double(), S))
    torch.testing.assert_close(actual.diag().double(), exact.diag(), rtol=1e-4, atol=0)


@each("spec", ["infonce:tau=0.01", "smoothap", "vlc", "unified", "dcl:tau=0.01"])
def test_n_eff_of_small_weights_does_not_underflow(spec: str) -> None:
    """Squares of small weights once underflowed in float32, and N_eff with them."""
    objective = build("objectives", spec)
    S = 0.1 + 0.1 * torch.rand(40, 40, generator=torch.Generator().manual_seed(0)) + 0.6 * torch.eye(40)
    mask = pair_mask(torch.arange(40))
    w = objective.counted_weights(S.double(), mask).weights.flatten(1)
    expected = w.sum(1).square() / w.square().sum(1)
    for actual in (
        objective.counts(S, mask, 0.01),
        objective.counting_rule.count_rows(WholeRows.from_rows(S, mask)).counts(0.01),
    ):
        torch.testing.assert_close(actual.n_eff.double(), expected, rtol=1e-3, atol=0)
    state = objective.counting_rule.fold(WholeRows.from_rows(S, mask).query_positives, [0.01]).start()
    for left in range(0, 40, 9):
        part = (S + mask.negative_bias)[:, left : left + 9].contiguous()
        state.add(Block(Tile(part, slice(0, 40), slice(left, left + part.shape[1]))))
    torch.testing.assert_close(state.counts(0.01).n_eff.double(), expected, rtol=1e-3, atol=0)


@each("objective", [tiled for tiled in TILED if tiled in ONE])
def test_counting_by_sums_also_requires_one_positive(objective: Objective) -> None:
    mask = group_mask(torch.arange(3), torch.arange(3).repeat_interleave(2))
    with pytest.raises(InputError, match="each query must have one positive; row 0 has 2"):
        dense_rows(torch.rand(3, 6), mask).counts(objective, 0.01)
