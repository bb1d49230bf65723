"""Does advice about a recipe name the wrong choice, and a command that changes it alone?"""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import pytest

from lossscope.doctor._recipe_advice import (
    decay_advice,
    least_advice,
    margin_command,
    rate_advice,
    temperature_command,
    warmup_advice,
)
from lossscope.doctor.parts.patient import Patient
from lossscope.registry import build

RUN = Path("runs/ill")


def of(objective: str | None = None, run: Path | None = RUN, **recipe: Any) -> Patient:
    """Return a run with a recipe."""
    return Patient("ill", objective_spec=objective, run=run, recipe=recipe)


def changed(command: str | None) -> list[str]:
    """Return the options that a command changes."""
    assert command is not None
    words = shlex.split(command)
    assert words[:4] == ["lossscope", "train", "--config", "runs/ill/config.toml"]
    assert words[-2:] == ["--out", "runs/ill-again"]
    return words[4:-2]


@pytest.mark.parametrize(("decay", "is_found"), [(0.0, False), (1e-4, False), (0.01, False), (0.1, True), (1.0, True)])
def test_weight_decay_of_adam_is_named_where_it_outweighs_a_loss(decay: float, is_found: bool) -> None:
    advice = decay_advice(of(optimiser="adam", weight_decay=decay))
    assert bool(advice) == is_found
    assert not is_found or changed(advice[0].command) == ["--weight-decay", "0"]


def test_weight_decay_of_adamw_is_apart_from_the_gradient() -> None:
    assert not decay_advice(of(optimiser="adamw", weight_decay=0.1))


@pytest.mark.parametrize(("rate", "is_found"), [(1e-7, True), (1e-5, False), (0.002, False), (1.0, True)])
def test_learning_rates_beyond_the_usual_ones_are_named(rate: float, is_found: bool) -> None:
    advice = rate_advice(of(lr=rate))
    assert bool(advice) == is_found
    assert not is_found or changed(advice[0].command) == ["--lr", "0.001"]


@pytest.mark.parametrize("objective", ["contrastive:margin=0", "triplet:margin=0", "triplet_sh:margin=0"])
def test_a_loss_that_a_collapse_makes_least_gets_a_margin(objective: str) -> None:
    (advice,) = least_advice(of(objective))
    name = objective.partition(":")[0]
    option, spec = changed(advice.command)
    assert option == "--objective" and build("objectives", spec) == build("objectives", name)


@pytest.mark.parametrize("objective", [None, "contrastive", "triplet", "ntxent:tau=0.07", "goal", "smoothap"])
def test_other_losses_do_not(objective: str | None) -> None:
    assert not least_advice(of(objective))


@pytest.mark.parametrize("objective", ["triplet:margin=3", "contrastive:distance=euclidean,margin=3"])
def test_an_unreachable_margin_becomes_that_of_the_paper_and_all_else_stays(objective: str) -> None:
    patient = of(objective)
    _, spec = changed(margin_command(patient, patient.objective))
    assert build("objectives", spec) == build("objectives", objective.partition(":")[0])
    cosine = of("contrastive:distance=cosine,margin=3")
    assert "distance=cosine,margin=1" in changed(margin_command(cosine, cosine.objective))[1]


def test_a_temperature_is_changed_in_the_loss_that_was_trained_with() -> None:
    for objective, spec in (("supcon:tau=1,form=in", "supcon:tau=0.07,form=in"), ("npair", "ntxent:tau=0.07")):
        patient = of(objective)
        assert changed(temperature_command(patient, patient.objective)) == ["--objective", spec]


def test_a_warm_up_is_advised_to_losses_of_the_hardest_negative_and_where_the_loss_is_not_known() -> None:
    (advice,) = warmup_advice(of("triplet_sh", epochs=10))
    assert changed(advice.command) == ["--warmup", "5"]
    assert not warmup_advice(of("ntxent", epochs=10))
    (unknown,) = warmup_advice(of(epochs=10))
    assert unknown.command is None


def test_there_is_no_command_without_a_run() -> None:
    for advice in (*rate_advice(of(run=None, lr=1.0)), *least_advice(of("triplet:margin=0", run=None))):
        assert advice.command is None
