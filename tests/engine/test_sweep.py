"""Does a sweep visit each batch once, resume after a stop, and write per-query rows that add up to the batch?"""

from __future__ import annotations

import gc
import weakref
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from lossscope.core.embedded import SplitEmbeddings
from lossscope.core.relations import Relations
from lossscope.core.sides import QUERY_DOCUMENT
from lossscope.engine import small_batches
from lossscope.engine.batch_runner import BatchRunner
from lossscope.engine.sweep import Sweep
from lossscope.errors import InputError
from lossscope.io.frames import SUMMARY, Frame
from lossscope.objectives.circle import Circle
from lossscope.registry import build

N, K = 20, 3


@pytest.fixture(scope="module")
def embedded() -> SplitEmbeddings:
    random = torch.Generator().manual_seed(0)
    images = torch.nn.functional.normalize(torch.randn(N, 8, generator=random), dim=1)
    owner = np.repeat(np.arange(N), K)
    noise = torch.randn(N * K, 8, generator=random)
    captions = torch.nn.functional.normalize(images[owner] + 0.5 * noise, dim=1)
    ids = [[str(row) for row in range(n)] for n in (N, N * K)]
    return SplitEmbeddings("source", images, captions, None, owner, ids[0], ids[1], "f" * 64, split="test")


def sweep(*objectives: str, **options: Any) -> Sweep:
    return Sweep(objectives or ("triplet",), **{"batch_size": 8, "part": 2, **options})


def value(summary: pd.DataFrame, statistic: str, direction: str = "i2t", column: str = "mean", **keys: Any) -> float:
    chosen = summary[(summary["statistic"] == statistic) & (summary["direction"] == direction)]
    for key, expected in keys.items():
        chosen = chosen[chosen[key] == expected]
    (number,) = chosen[column]
    return float(number)


def same(a: pd.DataFrame, b: pd.DataFrame) -> None:
    pd.testing.assert_frame_equal(a.reset_index(drop=True), b.reset_index(drop=True), check_dtype=False)


def test_a_sweep_into_a_frame_gives_the_same_as_one_in_memory(embedded: SplitEmbeddings, tmp_path: Path) -> None:
    plan = sweep("triplet", "smoothap", probes=("cocos:unit=paper",))
    frame = Frame.open(tmp_path / "frame", {})
    same(plan.run(embedded, frame).summary, plan.run(embedded).summary)
    assert frame.manifest()["done"]
    assert frame.keys() == {"pairs-0-2", "pairs-2-2", "pairs-4-2", "pairs-6-2", "images-0-2", "images-2-1"}


@pytest.mark.parametrize("after", [0, 1, 2, 3, 4, 9])
def test_a_stopped_sweep_resumes_without_doing_anything_twice(
    after: int, embedded: SplitEmbeddings, tmp_path: Path
) -> None:
    plan = sweep("triplet", "ntxent", per_query=True)
    whole = plan.run(embedded).summary
    seen: list[int] = []

    def stop(_label: str, done: int, _total: int) -> None:
        if len(seen) == after:
            raise KeyboardInterrupt
        seen.append(done)

    if after < 5:  # eight batches in four parts; the last part has two shapes
        with pytest.raises(KeyboardInterrupt):
            plan.run(embedded, Frame.open(tmp_path / "frame", {}), stop)
    frame = Frame.open(tmp_path / "frame", {})
    kept = 2 * len(frame.keys())
    assert kept == (2 * min(after, 3) if after < 5 else 0)
    rest: list[int] = []
    resumed = plan.run(embedded, frame, lambda _label, done, _total: rest.append(done)).summary
    assert [done for done in rest if done > kept] == rest
    assert rest[-1:] == [8] * (kept < 8)
    same(resumed, whole)
    assert len(frame.read("query")) == 2 * 2 * N * K
    again: list[int] = []
    same(plan.run(embedded, frame, lambda *_: again.append(1)).summary, whole)
    assert again == []


def test_a_frame_with_other_parts_is_not_resumed(embedded: SplitEmbeddings, tmp_path: Path) -> None:
    """Only its first batch named a part: a sweep with another part size took old parts for finished."""
    sweep("triplet").run(embedded, Frame.open(tmp_path / "frame", {}))
    with pytest.raises(InputError, match=r"parts of this sweep, such as pairs-0-5; it has pairs-0-2, which another"):
        sweep("triplet", part=5).run(embedded, Frame.open(tmp_path / "frame", {}))


@pytest.mark.parametrize(
    ("objective", "probe", "scored", "batches"),
    [
        ("ntxent", "cocos", False, 512),
        ("ntxent", "effective_rank", False, 64),
        ("circle", "cocos", False, 64),
        ("smoothap", "cocos", False, 64),
        ("ntxent", "cocos", True, 16),
    ],
)
def test_parts_are_small_where_batches_take_long(
    objective: str, probe: str, scored: bool, batches: int, embedded: SplitEmbeddings
) -> None:
    source = replace(embedded, pair_scorer=lambda _v, _t: torch.zeros(1, 1)) if scored else embedded
    plan = Sweep((objective,), (probe,)).plan
    (batching,) = plan.batchings
    assert plan._part_size(batching, source) == batches


def test_the_summary_is_the_population_mean_over_batches(embedded: SplitEmbeddings) -> None:
    result = sweep("triplet").run(embedded)
    summary, rows = result.summary, result.batches
    of_t2i = rows[rows["direction"] == "t2i"]
    counts, full = of_t2i["C_B"], of_t2i["queries"] == 8
    assert list(summary) == list(SUMMARY)
    assert of_t2i["queries"].tolist() == [8] * 7 + [4]
    assert value(summary, "C_B", "t2i") == pytest.approx(counts[full].mean())
    assert value(summary, "C_q_all", "t2i") == pytest.approx(np.average(of_t2i["C_q_all"], weights=of_t2i["queries"]))
    assert value(summary, "C_B", "t2i", "std") == pytest.approx(counts[full].std(ddof=0))
    assert (value(summary, "C_B", "t2i", "n"), len(counts), value(summary, "C_B", "t2i", "n_spread")) == (8, 8, 7)
    assert set(summary["short_batch"]) == {4}


def test_the_published_convention_averages_every_batch_alike(embedded: SplitEmbeddings) -> None:
    result = sweep("triplet", probes=("cocos:convention=released",)).run(embedded)
    counts = result.batches[result.batches["direction"] == "t2i"]["C_B"]
    assert value(result.summary, "C_B", "t2i") == pytest.approx(counts.mean())
    assert value(result.summary, "C_B", "t2i", "std") == pytest.approx(counts.std(ddof=0))
    assert result.summary["short_batch"].isna().all()


def test_a_batch_in_which_no_query_counts_is_left_out_of_C_q(embedded: SplitEmbeddings) -> None:
    summary = sweep("triplet:margin=0").run(embedded).summary
    nothing = sweep("triplet", probes=("cocos:eps=5",)).run(embedded).summary
    assert value(summary, "C_q", column="n_defined") <= value(summary, "C_q", column="n") == 8
    assert np.isnan(value(nothing, "C_q"))
    assert value(nothing, "C_q", column="n_defined") == 0
    assert value(nothing, "C_0", column="n_defined") == 8


def test_every_pair_is_in_one_batch(embedded: SplitEmbeddings) -> None:
    rows = sweep("ntxent").run(embedded).batches
    assert rows[rows["direction"] == "i2t"]["queries"].tolist() == [8] * 7 + [4]
    less = sweep("ntxent", drop_last=True).run(embedded).batches
    assert less[less["direction"] == "i2t"]["queries"].tolist() == [8] * 7
    images = sweep("smoothap").run(embedded).batches
    assert images[images["direction"] == "i2t"]["queries"].tolist() == [8, 8, 4]
    assert images[images["direction"] == "t2i"]["queries"].tolist() == [24, 24, 12]


def test_all_in_one_batch(embedded: SplitEmbeddings) -> None:
    result = sweep("ntxent", batch_size=None, shuffle=False, captions="first").run(embedded)
    summary, rows = result.summary, result.batches
    assert rows["queries"].tolist() == [N, N]
    assert set(summary["batch_size"]) == {N}
    assert summary["std"].isna().all()  # one batch has no deviation
    S = embedded.images @ embedded.captions[::K].T  # type: ignore[operator, index]
    negative = (S / 0.1).softmax(1).fill_diagonal_(0)
    assert value(summary, "C_neg") == pytest.approx(float((negative > 0.01).sum(1).float().mean()))
    assert value(summary, "W_pos") == pytest.approx(float(negative.sum(1).mean()), rel=1e-5)


def test_batches_larger_than_the_split_are_refused_when_the_last_is_dropped(embedded: SplitEmbeddings) -> None:
    with pytest.raises(InputError, match="Use a smaller one, or --keep-last"):
        sweep("ntxent", batch_size=1000, drop_last=True).run(embedded)


def test_each_objective_gets_the_sampling_it_needs(embedded: SplitEmbeddings) -> None:
    summary = sweep("triplet", "smoothap", "ntxent", probes=("cocos:unit=paper",)).run(embedded).summary
    used = {str(o).partition(":")[0]: s for o, s in zip(summary["objective"], summary["sampling"], strict=True)}
    assert used == {"triplet": "pairs", "smoothap": "images", "ntxent": "pairs"}


def test_an_explicit_sampling_wins(embedded: SplitEmbeddings) -> None:
    assert set(sweep("smoothap", sampling="pairs").run(embedded).summary["sampling"]) == {"pairs"}
    assert set(sweep("smoothap", sampling="images").run(embedded).summary["sampling"]) == {"images"}


def test_one_positive_with_images_is_refused_before_any_work() -> None:
    with pytest.raises(InputError, match=r"--sampling images gives each query several positives, which triplet"):
        _ = sweep("triplet", "smoothap", sampling="images").plan


def test_a_convention_the_objective_does_not_support_is_refused_before_any_work() -> None:
    with pytest.raises(InputError, match="convention of Goal must be one of corrected; got 'released'"):
        _ = sweep("goal", probes=("cocos:convention=released",)).plan


def test_masking_takes_other_captions_of_the_image_out(embedded: SplitEmbeddings) -> None:
    options: dict[str, Any] = {"batch_size": None, "shuffle": False, "per_query": True}
    kept, masked = (
        sweep("ntxent:tau=1000000", same_image=how, probes=("cocos:eps=0",), **options).run(embedded).summary
        for how in ("keep", "mask")
    )
    assert value(kept, "C_neg") == N * K - 1
    assert value(masked, "C_neg") == N * K - K


def test_rows_of_queries_add_up_to_the_batches(embedded: SplitEmbeddings, tmp_path: Path) -> None:
    frame = Frame.open(tmp_path / "frame", {})
    rows = (
        sweep("triplet", "ntxent", per_query=True, probes=("cocos:eps=0.01", "cocos:eps=0.1"))
        .run(embedded, frame)
        .batches
    )
    queries = frame.read("query")
    keys = ["batch", "objective", "direction", "eps"]
    assert len(queries) == 2 * 2 * 2 * N * K
    for key, group in queries.groupby(keys):
        (batch,) = rows[(rows[keys] == pd.Series(key, index=keys)).all(axis=1)].to_dict("records")
        assert batch["queries"] == len(group)
        assert batch["N_eff"] == pytest.approx(group["n_eff"].mean(), rel=1e-5, nan_ok=True)
        if "C_B" in batch["statistics"].split():
            assert batch["C_B"] == group["count"].sum()
            assert batch["C_0"] == (group["count"] == 0).sum()
        else:
            assert batch["C_neg"] == pytest.approx(group["count"].mean())
            assert batch["W_neg"] == pytest.approx(group["mass_high"].mean(), rel=1e-5)
    chosen = queries[(queries["direction"] == "t2i") & (queries["eps"] == 0.1)]
    assert sorted(chosen[chosen["objective"] == "triplet:margin=0.2"]["query"]) == list(range(N * K))


def test_two_thresholds_are_two_rows(embedded: SplitEmbeddings) -> None:
    summary = sweep("ntxent", probes=("cocos:eps=0.01", "cocos:eps=0.1")).run(embedded).summary
    low, high = (value(summary, "C_neg", eps=eps) for eps in (0.01, 0.1))
    assert low > high
    assert value(summary, "C_neg", column="n", eps=0.1) == 8


def test_the_seed_decides_the_batches(embedded: SplitEmbeddings) -> None:
    first, again, other = (value(sweep("triplet", seed=seed).run(embedded).summary, "C_B") for seed in (0, 0, 1))
    assert first == again != other


def test_units_come_from_the_probe() -> None:
    assert build("probes", "cocos").statistics(build("objectives", "triplet"))[0].unit == "samples"
    assert sweep("triplet", "ntxent").plan.units["W_neg"] == "weight"


def test_W_is_computed_once_per_direction_of_a_batch_whatever_the_number_of_thresholds(
    embedded: SplitEmbeddings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sweep computed W for each view, and again for each eps."""
    calls = []
    once = Circle.__call__
    monkeypatch.setattr(Circle, "__call__", lambda self, S, mask: calls.append(S.shape) or once(self, S, mask))
    probes = ("cocos:eps=0.01", "cocos:eps=0.1", "cocos:eps=0.5")
    rows = Sweep(("circle",), probes, batch_size=None, sampling="pairs", interval=None).run(embedded).batches
    assert len(rows) == 2 * len(probes)
    assert len(calls) == 2


@pytest.mark.parametrize("jobs", [1, 3])
@pytest.mark.parametrize("engine", ["dense", "tiled"])
def test_a_part_is_written_before_a_stack_of_the_next_can_fail(
    engine: str, jobs: int, embedded: SplitEmbeddings, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """The sweep knew the last stack of a part only from the next part's first, and a Ctrl-C waited for that."""
    method = "_run_stack" if engine == "dense" else "_results_of_large"
    compute = getattr(BatchRunner, method)

    def interrupted(runner: BatchRunner, stack: Any, *further: Any) -> Any:
        if stack.index >= 4:
            raise KeyboardInterrupt
        return compute(runner, stack, *further)

    monkeypatch.setattr(BatchRunner, method, interrupted)
    monkeypatch.setattr(small_batches, "STACK_ENTRIES", 1)  # one batch a stack, two stacks a part
    frame = Frame.open(tmp_path / "frame", {})
    with pytest.raises(KeyboardInterrupt):
        sweep("ntxent", part=2, engine=engine).run(embedded, frame, jobs=jobs)
    assert len(frame.keys()) == 2


def test_a_stack_that_does_not_fit_into_memory_is_run_batch_by_batch(
    embedded: SplitEmbeddings, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = sweep("ntxent", per_query=True, part=8).run(embedded).summary
    rows_of_stack = small_batches.rows_of_stack

    def scarce(source: SplitEmbeddings, stack: Any, *further: Any) -> Any:
        if len(stack) > 1:
            raise RuntimeError("[enforce fail at alloc_cpu.cpp] DefaultCPUAllocator: not enough memory")
        return rows_of_stack(source, stack, *further)

    monkeypatch.setattr(small_batches, "rows_of_stack", scarce)
    result = sweep("ntxent", per_query=True, part=8).run(embedded)
    summary, rows = result.summary, result.batches
    pd.testing.assert_frame_equal(summary, whole)
    assert sorted(rows["batch"]) == sorted([*range(8), *range(8)])


def test_probes_without_an_objective_take_any_sampling(embedded: SplitEmbeddings) -> None:
    """`similarity --sampling images` was refused because ntxent takes one positive."""
    summary = sweep("triplet", sampling="images", probes=("similarity", "recall")).run(embedded).summary
    assert set(summary["sampling"]) == {"images"}
    assert summary["objective"].isna().all()
    with pytest.raises(InputError, match=r"which triplet:margin=0\.2 does not take"):
        sweep("triplet", sampling="images", probes=("similarity", "cocos")).run(embedded)


def test_curves_stand_beside_probes_that_have_none(embedded: SplitEmbeddings, tmp_path: Path) -> None:
    plan = sweep("ntxent", probes=("similarity", "cocos:curve=true"))
    rows = plan.run(embedded, Frame.open(tmp_path / "frame", {})).batches
    curves = rows[rows["probe"] == "cocos"]["curve"]
    assert {len(curve) for curve in curves} == {101}
    assert rows[rows["probe"] == "similarity"]["curve"].isna().all()


def test_a_sweep_plans_a_source_once_and_lets_it_go_with_the_next(embedded: SplitEmbeddings) -> None:
    options, first = sweep("ntxent"), replace(embedded)
    assert options.plan_for(first) is options.plan_for(first)
    known = weakref.ref(first)
    del first
    assert known() is not None  # the plan belongs to a source that still exists
    options.plan_for(embedded)
    gc.collect()
    assert known() is None


def test_a_plan_names_what_it_sweeps_after_the_sides_of_each_source() -> None:
    plan = Sweep(("ntxent",), ("false-negatives", "recall"), batch_size=8).plan
    pairs = Relations(N, N, np.stack([np.arange(N)] * 2, 1), QUERY_DOCUMENT)
    for name in ("units", "within_one", "totals"):  # without a source these are still unknown
        getattr(plan, name)
    bound, fresh = plan.for_relations(pairs), Sweep(("ntxent",), ("false-negatives", "recall"), batch_size=8).plan
    fresh = fresh.for_relations(pairs)
    for name in ("units", "within_one", "totals"):
        assert getattr(bound, name) == getattr(fresh, name)
    assert "same_item" in bound.units and "same_image" in plan.units


UNITS = (
    (("ntxent", "triplet"), "cocos", "relative"),  # each paper has its own unit
    (("ntxent:tau=0.05", "ntxent:tau=0.2"), "cocos", "paper"),  # one paper, as in a range
    (("supcon",), "weight_mass", "paper"),
    (("ntxent", "triplet"), "cocos:unit=paper", "paper"),
    (("ntxent", "triplet"), "cocos:unit=cosine", "cosine"),
    (("ntxent", "triplet"), "cocos:convention=released", "paper"),  # published counters have no other unit
)


@pytest.mark.parametrize(("objectives", "probe", "unit"), UNITS)
def test_objectives_of_several_names_are_counted_in_one_unit(
    objectives: tuple[str, ...], probe: str, unit: str, embedded: SplitEmbeddings
) -> None:
    setup = sweep(*objectives, sampling="pairs", probes=(probe,))
    rows = setup.run(embedded).summary
    assert set(rows["weight_unit"]) == {unit}
    assert set(rows["probe"]) == {probe.partition(":")[0]}
    [stated] = setup.record()["probes"]
    assert stated.endswith(f"unit={unit}") or stated == probe == "cocos:convention=released"
    same(sweep(*objectives, sampling="pairs", probes=(stated,)).run(embedded).summary, rows)


def test_one_function_has_one_count_whatever_its_papers_unit(embedded: SplitEmbeddings) -> None:
    """With one positive, supcon and npair at the scale of ntxent have its gradient, up to a factor."""
    specs = ("ntxent:tau=0.05", "supcon:tau=0.05", "npair:scale=20")
    counts = {unit: counts_of(sweep(*specs, sampling="pairs", probes=(f"cocos{unit}",)), embedded) for unit in UNIT}
    assert len(set(counts[""])) == 1
    assert len(set(counts[":unit=paper"])) > 1


UNIT = ("", ":unit=paper")


def counts_of(setup: Sweep, embedded: SplitEmbeddings) -> list[float]:
    rows = setup.run(embedded).summary
    return rows.loc[(rows["statistic"] == "C_neg") & (rows["direction"] == "i2t"), "mean"].tolist()


def test_losses_beside_one_without_a_saturated_weight_are_counted_as_slopes_and_a_note_says_so() -> None:
    plan = sweep("smoothap", "supcon").plan
    assert [probe.unit for probe in plan.probes if hasattr(probe, "unit")] == ["cosine"]
    assert "unit cosine" in plan.assumed[0] and "--unit paper" in plan.assumed[0]
    assert sweep("smoothap").plan.probes[0].unit == "paper" and not sweep("smoothap").plan.assumed
    assert not sweep("smoothap", "supcon", probes=("cocos:unit=paper",)).plan.assumed
    with pytest.raises(InputError, match=r"smoothap .* --unit cosine, .* or that of each paper, --unit paper"):
        _ = sweep("smoothap", "supcon", probes=("cocos:unit=relative",)).plan


def test_a_sweep_beside_others_has_their_unit() -> None:
    setup = sweep("ntxent", probes=("cocos:eps=0.1", "similarity"))
    assert setup.beside(()) is setup
    assert setup.beside(sweep("ntxent:tau=0.2").plan.objectives) is setup
    other = setup.beside(sweep("triplet").plan.objectives)
    assert other.probes == ("cocos:eps=0.1,convention=corrected,curve=false,unit=relative", "similarity")
    stated = sweep("ntxent", probes=("cocos:unit=paper",))
    assert stated.beside(sweep("triplet").plan.objectives).plan.probes == stated.plan.probes
