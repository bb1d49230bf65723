"""Do losses, gradients and counts equal those of the authors' released code on four small cases?"""

from __future__ import annotations

import json
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
from torch import Tensor

from lossscope.core.request import Request
from lossscope.core.similarity import Mask, both_masks, group_mask, pair_mask
from lossscope.core.weights import both, reduce_weights
from lossscope.engine.reducers import reduce_column
from lossscope.engine.run_probes import ProbePlan
from lossscope.engine.sweep import Sweep
from lossscope.objectives.base import Objective
from lossscope.probes.views.view import BatchShape, DenseRows
from lossscope.registry import build
from lossscope.retrieval.metrics import retrieve
from lossscope.sources.dump import Dump
from tests.each import each

DATA = Path(__file__).parents[1] / "data"
CASES = ("small_pairs", "early", "converged", "collapsed")
NAMES = ("triplet", "triplet_sh", "ntxent", "smoothap")
PUBLISHED = [pair for pair in product(CASES, NAMES) if pair != ("small_pairs", "smoothap")]
TRIPLET = {
    "i2t": {"C_q": "i2t_grads_mean", "C_B": "i2t_grads_sum", "C_0": "zeros_i2t"},
    "t2i": {"C_q": "t2i_grads_mean", "C_B": "t2i_grad_sum", "C_0": "zeros_t2i"},
}
NTXENT = {"W_pos": "1-s_{}.diag.mean", "W_low": "{}_low_grad", "W_neg": "{}_high_grad", "C_neg": "{}_n_high_grad"}
SMOOTHAP = {"C_q": "sum_{}", "C_0": "zeros_{}"}
RELEASED = {
    "triplet": TRIPLET,
    "triplet_sh": TRIPLET,
    "ntxent": {d: {ours: key.format(d) for ours, key in NTXENT.items()} for d in ("i2t", "t2i")},
    "smoothap": {d: {ours: key.format(d) for ours, key in SMOOTHAP.items()} for d in ("i2t", "t2i")},
}
WHOLE = ("C_0", "C_B")


class Case:
    """One case: float64 embeddings, and the expected results."""

    def __init__(self, folder: Path, name: str) -> None:
        self.path = folder / f"{name}.npz"
        with np.load(self.path) as arrays:
            self.arrays = {key: arrays[key] for key in arrays.files}
        self.expected: dict[str, Any] = json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))
        self.images, self.captions = (torch.from_numpy(self.arrays[key]).double() for key in ("images", "captions"))
        self.caption_image: npt.NDArray[np.int64] = self.arrays["caption_image"]
        self.per_image: int = self.expected["captions_per_image"]

    def inputs_of(self, objective: Objective) -> tuple[Tensor, Mask, Tensor]:
        """Return S (images, captions), its i2t mask, and the captions: all of them, or the first of each image."""
        rows = torch.arange(len(self.images))
        if objective.traits.positives == "many":
            return self.images @ self.captions.T, group_mask(rows, torch.from_numpy(self.caption_image)), self.captions
        captions = self.captions[:: self.per_image]
        return self.images @ captions.T, pair_mask(rows), captions


@cache
def case_of(stem: str) -> Case:
    return Case(DATA, stem)


published = each("stem, name", PUBLISHED)


def gradients(objective: Objective, case: Case) -> tuple[Tensor | None, Tensor, Tensor]:
    """Return the loss, and its gradient with respect to images and captions under a plain dot product."""
    S, mask, captions = case.inputs_of(objective)
    actual = reduce_weights(both(objective, S, mask), objective.traits.directions, objective.traits.reduction, len(S))
    return actual.value, actual.gradient @ captions, actual.gradient.T @ case.images


def assert_near(actual: Tensor, expected: npt.NDArray[Any], tolerance: float) -> None:
    assert actual.shape == expected.shape
    assert float(np.abs(actual.numpy() - expected).max()) <= tolerance * float(np.abs(expected).max())


@published
def test_losses_and_gradients_are_the_released_ones(stem: str, name: str) -> None:
    case = case_of(stem)
    value, images, captions = gradients(build("objectives", name), case)
    assert float(value if value is not None else np.nan) == pytest.approx(case.expected["losses"][name], rel=1e-5)
    tolerance = 5e-5 if (case.path.stem, name) == ("collapsed", "smoothap") else 1e-5
    assert_near(images, case.arrays[f"grad_images__{name}"], tolerance)
    assert_near(captions, case.arrays[f"grad_captions__{name}"], tolerance)


@each("stem", CASES, "triplet", ["con", "nca", "cir"], "pair", ["con", "lin", "sig", "lin-ms", "sig-ms"])
def test_goal_states_the_released_gradients(stem: str, triplet: str, pair: str) -> None:
    case = case_of(stem)
    objective = build("objectives", f"goal:triplet={triplet},pair={pair},variant=released")
    value, images, captions = gradients(objective, case)
    assert value is None
    assert_near(images, case.arrays[f"goal_images__{triplet}__{pair}"], 1e-5)
    assert_near(captions, case.arrays[f"goal_captions__{triplet}__{pair}"], 1e-5)


def count(case: Case, objective: Objective, convention: str) -> dict[str, dict[str, float]]:
    """Return direction -> statistic -> number of the probe, in float64."""
    S, mask, _ = case.inputs_of(objective)
    probe = build("probes", f"cocos:eps={case.expected['eps']},convention={convention}")
    actual: dict[str, dict[str, float]] = {}
    for oriented, rows in zip(both_masks(mask), (S, S.T), strict=True):
        items = [torch.arange(n) for n in rows.shape]
        dense_rows = DenseRows(BatchShape(1, oriented.direction, items[0], items[1][None]), rows, oriented)
        columns = ProbePlan(((objective, probe),)).run(dense_rows)[0].columns
        actual[oriented.direction] = {s.name: float(reduce_column(s, columns, 1)) for s in probe.statistics(objective)}
    return actual


def assert_counts(actual: dict[str, float], expected: dict[str, float]) -> None:
    """Assert that whole numbers differ by at most one query and means are equal; a published C_q of 0 is NaN here."""
    for name, value in expected.items():
        if name == "C_q" and value == 0:
            assert np.isnan(actual[name])
        elif name in WHOLE:
            assert abs(actual[name] - value) <= 1, name
        else:
            assert actual[name] == pytest.approx(value, rel=1e-5, abs=1e-7), name


@published
def test_counts_equal_brute_force(stem: str, name: str) -> None:
    case = case_of(stem)
    actual = count(case, build("objectives", name), "corrected")
    for direction in ("i2t", "t2i"):
        expected = case.expected["counts_corrected"][direction][name]
        assert_counts(actual[direction], {k: v for k, v in expected.items() if k in actual[direction]})


@published
def test_counts_of_an_objective_are_those_of_the_probe(stem: str, name: str) -> None:
    case = case_of(stem)
    objective: Objective = build("objectives", name)
    S, mask, _ = case.inputs_of(objective)
    for convention in objective.traits.conventions:
        through = count(case, objective, convention)
        for oriented, rows in zip(both_masks(mask), (S, S.T), strict=True):
            counts = objective.counts(rows, oriented, case.expected["eps"], convention)
            above, probed = counts.above, through[oriented.direction]
            assert float((above == 0).sum()) == probed.get("C_0", float((above == 0).sum()))
            assert float(above.mean()) == pytest.approx(probed.get("C_q_all", probed.get("C_neg")))
            if "W_pos" in probed:
                assert float(counts.positive.mean()) == pytest.approx(probed["W_pos"])
                assert float(counts.mass_above.mean()) == pytest.approx(probed["W_neg"])
                assert float(counts.mass_below.mean()) == pytest.approx(probed["W_low"])


@published
def test_convention_released_counts_as_the_released_counters_do(stem: str, name: str) -> None:
    case = case_of(stem)
    actual = count(case, build("objectives", name), "released")
    for direction, keys in RELEASED[name].items():
        expected = {ours: case.expected["counts_released"][name][theirs] for ours, theirs in keys.items()}
        assert_counts(actual[direction], expected)


@each("stem", CASES[1:])
def test_convention_text_counts_smoothap_as_printed(stem: str) -> None:
    case = case_of(stem)
    actual = count(case, build("objectives", "smoothap"), "text")
    for direction in ("i2t", "t2i"):
        expected = case.expected["counts_corrected"][direction]["smoothap_text"]
        assert_counts(actual[direction], {k: v for k, v in expected.items() if k in actual[direction]})


@each("stem, name", PUBLISHED, "convention", ["corrected", "released"])
def test_a_sweep_over_the_dump_has_the_same_counts(stem: str, name: str, convention: str) -> None:
    case = case_of(stem)
    probe = f"cocos:eps={case.expected['eps']},convention={convention}"
    captions = "all" if name == "smoothap" else "first"
    sweep = Sweep((name,), (probe,), batch_size=None, shuffle=False, captions=captions)
    result = sweep.run(Dump(case.path).read(Request()))
    summary, rows = result.summary, result.batches
    assert len(rows) == 2
    exact = count(case, build("objectives", name), convention)
    for direction in ("i2t", "t2i"):
        part = summary[summary["direction"] == direction]
        actual = dict(zip(part["statistic"], part["mean"], strict=True))
        for statistic, value in exact[direction].items():
            close = abs(actual[statistic] - value) <= 1 if statistic in WHOLE else False
            assert close or actual[statistic] == pytest.approx(value, rel=1e-5, nan_ok=True), statistic


@each("stem", CASES)
def test_retrieval_is_the_released_one(stem: str) -> None:
    case = case_of(stem)
    expected = case.expected["retrieval_released"]
    if expected is None:
        assert case.per_image == 1
        return
    for actual, direction in zip(
        retrieve(case.images @ case.captions.T, case.caption_image), ("i2t", "t2i"), strict=True
    ):
        statistics = actual.statistics()
        ours = [*(actual.recall(k) for k in (1, 5, 10)), statistics["medr"], statistics["meanr"]]
        if direction == "i2t":
            ours += [actual.average_precision(k, "hits") for k in (5, 10)]
        assert ours == pytest.approx(expected[direction], rel=1e-12)
