"""What does guessing cost, of which objective, at which batch size?"""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

import lossscope
from lossscope.doctor.parts.guesses import guesses_of
from lossscope.engine import loss_levels
from lossscope.engine.loss_levels import is_margin
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
        assert not any("margin" in one.name for one in guesses_of(objective, size))


@pytest.mark.parametrize("spec", ["circle", "lifted-structure"])
def test_a_loss_near_another_margin_is_no_plateau_of_triplets(spec: str, tmp_path: Path) -> None:
    size = SIZES[0]
    centre = unit(size.rng.normal(size=(1, size.d)))
    sides = [unit(centre + 0.003 / 8 * np.random.default_rng(seed).normal(size=(size.n, size.d))) for seed in (1, 2)]
    found = lossscope.doctor(pairs(tmp_path, *sides), objective=spec, batch_size=64, cache=False)
    assert "margin-plateau" not in [id for one in found.findings for id in (one.id, *one.explains)]
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
    """Neither a sum, a logarithm nor constant: cmpm, lifted-structure and smoothap. dcl is log(n - 1)."""
    objective = _build(spec)
    for recipe in (None, {"reduction": "mean"}):
        monkeypatch.setattr(loss_levels, "_ROWS", 2048)
        direct = [one for one in guesses_of(objective, 1024, recipe) if one.is_certain]
        monkeypatch.setattr(loss_levels, "_ROWS", 512)
        followed = [one for one in guesses_of(objective, 1024, recipe) if one.is_certain]
        if spec in ("cmpm", "lifted_structure", "smoothap"):
            assert direct and not followed
        else:
            assert [one.value for one in followed] == pytest.approx([one.value for one in direct], rel=1e-4)
            assert [one.name for one in followed] == [one.name for one in direct]
