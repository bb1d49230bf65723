"""What does guessing cost, for each objective and batch size?"""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest

import lossscope
from lossscope.doctor.parts.guesses import guesses_of
from lossscope.engine import loss_levels
from lossscope.engine.loss_levels import Layout, is_margin, is_unreachable
from lossscope.objectives.base import Objective
from lossscope.registry import build, names
from tests.planted.base import SIZES, log, pairs, unit


def _build(spec: str) -> Objective:
    objective: Objective = build("objectives", spec)
    return objective


@pytest.mark.parametrize("spec", ["triplet:margin=0.3", "triplet-sh:margin=0.2"])
def test_equal_similarities_cost_the_margin_of_triplets(spec: str) -> None:
    assert is_margin(_build(spec))


@pytest.mark.parametrize("spec", ["circle", "lifted-structure", "contrastive", "contrastive:distance=cosine", "ntxent"])
def test_the_margin_of_other_losses_is_not_what_guessing_costs(spec: str) -> None:
    objective = _build(spec)
    assert not is_margin(objective) and not is_margin(None)
    for size in (None, 64):
        assert not any("margin" in guess.name for guess in guesses_of(objective, size))


@pytest.mark.parametrize("spec", ["circle", "lifted-structure"])
def test_a_loss_near_another_margin_is_no_plateau_of_triplets(spec: str, tmp_path: Path) -> None:
    size = SIZES[0]
    centre = unit(size.rng.normal(size=(1, size.d)))
    sides = [unit(centre + 0.003 / 8 * np.random.default_rng(seed).normal(size=(size.n, size.d))) for seed in (1, 2)]
    found = lossscope.doctor(pairs(tmp_path, *sides), objective=spec, batch_size=64, cache=False)
    assert "margin-plateau" not in [id for finding in found.findings for id in (finding.id, *finding.explains)]
    loss = _build(spec).margin * (1 + 0.002 * size.rng.normal(size=300))  # type: ignore[attr-defined]
    of_log = lossscope.doctor(log=log(tmp_path, loss=loss), objective=spec)
    assert "margin-plateau" not in of_log.ids


@pytest.mark.parametrize("reduction", ["sum", "mean", "pairs", "cells"])
@pytest.mark.parametrize("spec", ["ntxent", "triplet:margin=0.2", "triplet-sh:margin=0.2"])
def test_the_guess_of_a_large_batch_follows_from_a_small_one(
    spec: str, reduction: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    objective, recipe = _build(spec), {"reduction": reduction}
    (whole,) = guesses_of(objective, 96, recipe)
    monkeypatch.setattr(loss_levels, "_ROWS", 32)
    (extrapolated,) = guesses_of(objective, 96, recipe)
    assert extrapolated.value == pytest.approx(whole.value, rel=1e-5)
    assert next(guesses_of(objective, 10**6, recipe)).value > 0
    assert math.isfinite(next(guesses_of(objective, 10**6)).value)


@pytest.mark.parametrize("spec", names("objectives"))
def test_the_guess_of_a_large_batch_is_that_of_computing_it_or_not_known(
    spec: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """cmpm, lifted-structure and smoothap are no sum, logarithm or constant. dcl is log(n - 1)."""
    objective = _build(spec)
    for recipe in (None, {"reduction": "mean"}):
        monkeypatch.setattr(loss_levels, "_ROWS", 2048)
        direct = [guess for guess in guesses_of(objective, 1024, recipe) if guess.is_certain]
        monkeypatch.setattr(loss_levels, "_ROWS", 512)
        followed = [guess for guess in guesses_of(objective, 1024, recipe) if guess.is_certain]
        if spec in ("cmpm", "lifted_structure", "smoothap"):
            assert direct and not followed
        else:
            assert [guess.value for guess in followed] == pytest.approx([guess.value for guess in direct], rel=1e-4)
            assert [guess.name for guess in followed] == [guess.name for guess in direct]


@pytest.mark.parametrize(
    ("layout", "candidates"),
    [
        (Layout(64), 64),
        (Layout(64, views=True), 127),
        (Layout(4, mined=7), 32),
        (Layout(1, queue=65536), 65537),
        (Layout(32, queue=1024), 1056),
    ],
)
def test_guessing_costs_the_logarithm_of_the_candidates_of_a_layout(layout: Layout, candidates: int) -> None:
    objective = _build("ntxent:tau=0.07")
    levels, collapsed = loss_levels.loss_levels(objective, layout), loss_levels.equal_losses(objective, layout, 1.0)
    assert layout.candidates == candidates and f"log {candidates:,}" in layout.name
    assert levels is not None and levels.guess == pytest.approx(math.log(candidates), rel=1e-5)
    assert collapsed is not None and float(collapsed.mean()) == pytest.approx(levels.guess, rel=1e-5)
    assert levels.apart <= levels.perfection < 0.1 * levels.guess


@pytest.mark.parametrize("spec", names("objectives"))
def test_no_objective_of_the_registry_has_a_margin_that_vectors_cannot_reach(spec: str) -> None:
    assert not is_unreachable(_build(spec))


@pytest.mark.parametrize("spec", ["triplet:margin=2.5", "triplet-sh:margin=3", "contrastive:margin=5"])
def test_a_margin_beyond_every_distance_of_unit_vectors_is_unreachable(spec: str) -> None:
    assert is_unreachable(_build(spec))


@pytest.mark.parametrize(
    ("level", "what"),
    [
        (math.log(127), "two views"),
        (0.1 / 0.07 * math.log(127), "as SupContrast's code scales it"),
        (math.log(64 * 8), "7 mined negatives a query"),
        (math.log(65537), "log 65,53"),
        (64 * math.log(64), "64 × log 64"),
    ],
)
def test_a_loss_that_always_was_that_of_guessing_in_a_layout_is_named(level: float, what: str, tmp_path: Path) -> None:
    loss = level * (1 + 0.002 * SIZES[0].rng.normal(size=300))
    (first, *_) = lossscope.doctor(log=log(tmp_path, loss=loss), batch_size=64).findings
    assert first.id == "no-learning" and what in first.title, first.title


@pytest.mark.parametrize("end", [4.35, math.log(64), 4.3])
def test_a_supcon_loss_that_began_at_guessing_and_left_it_has_learnt(end: float, tmp_path: Path) -> None:
    """SupContrast issue 42: with two views guessing costs (T / 0.07) log(2 B − 1), and log B is no level of it."""
    start = math.log(127)
    loss = (end + (start - end) * np.exp(-np.arange(400) / 40)) * (1 + 0.001 * SIZES[0].rng.normal(size=400))
    found = lossscope.doctor(log=log(tmp_path, loss=loss), batch_size=64, objective="supcon:tau=0.1")
    assert "no-learning" not in found.ids, found


def test_a_healthy_plateau_near_the_log_of_a_batch_of_a_trainer_is_no_guessing(tmp_path: Path) -> None:
    """FlagEmbedding issue 891: 1.40 is 1.01 log 4, and a query has 32 candidates."""
    rows = [{"loss": 1.388 + 2.0 * math.exp(-step / 6), "step": 10 * step} for step in range(200)]
    (tmp_path / "trainer_state.json").write_text(json.dumps({"log_history": rows, "train_batch_size": 4}))
    assert not lossscope.doctor(log=tmp_path / "trainer_state.json").ids
