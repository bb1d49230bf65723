"""Which choices of a run's recipe keep it from learning, and what command trains it without them?"""

from __future__ import annotations

from dataclasses import fields, replace

from lossscope.engine.loss_levels import Layout, equal_losses
from lossscope.objectives.base import Objective
from lossscope.registry import spec_of

from .parts.patient import Patient
from .types import Advice

_PAIRS = 8  # of a batch of equal embeddings; the result does not depend on their number
_DECAY = 0.1  # of Adam, which adds it to the gradient: recall@1 of passages is 3 %; with 0.01 it is 68 of 71
_RATES = (1e-5, 1e-2)  # learning rates of Adam within which a training may work
_USUAL_RATE = 1e-3
_USUAL_TAU = 0.07  # the start of CLIP's


def decay_advice(patient: Patient) -> tuple[Advice, ...]:
    """Advise to train without weight decay where it outweighs the gradient of the loss."""
    decay = patient.recipe.get("weight_decay")
    if patient.recipe.get("optimiser") != "adam" or not isinstance(decay, float) or decay < _DECAY:
        return ()
    return (
        Advice(
            f"Train without weight decay: Adam adds {decay:g} times the weights to the gradient, which outweighs "
            "the loss.",
            patient.train_command("--weight-decay", 0),
        ),
    )


def rate_advice(patient: Patient) -> tuple[Advice, ...]:
    """Advise a usual learning rate where that of the run is not."""
    rate = patient.recipe.get("lr")
    if not isinstance(rate, float) or _RATES[0] <= rate <= _RATES[1]:
        return ()
    low, high = _RATES
    return (
        Advice(
            f"Train at a learning rate of {low:g} to {high:g} instead of {rate:g}.",
            patient.train_command("--lr", _USUAL_RATE),
        ),
    )


def least_advice(patient: Patient) -> tuple[Advice, ...]:
    """Advise a margin where the loss is 0 when all embeddings are equal."""
    if patient.objective_spec is None:
        return ()
    objective = patient.objective
    losses = equal_losses(objective, Layout(_PAIRS), 1.0)
    if losses is None or bool(losses.any()):
        return ()
    return (
        Advice(
            f"Let the loss push negatives away: {patient.objective_spec} is 0 when all embeddings are equal.",
            margin_command(patient, objective),
        ),
    )


def warmup_advice(patient: Patient) -> tuple[Advice, ...]:
    """Advise a warm-up with all negatives where the loss uses, or may use, only the hardest."""
    if patient.objective_spec is None:
        return (Advice("With the hardest negative of a batch, train first with all negatives, then switch."),)
    if not patient.objective.traits.needs_warmup:
        return ()
    return (Advice("Train first with all negatives of a batch, then with the hardest.", patient.warmup_command()),)


def temperature_command(patient: Patient, objective: Objective) -> str | None:
    """Return the command that trains the run again at a usual temperature; None unless it is a run of lossscope."""
    if not hasattr(objective, "tau"):
        return patient.train_command("--objective", f"ntxent:tau={_USUAL_TAU}")
    return patient.train_command("--objective", spec_of(replace(objective, tau=_USUAL_TAU)))  # type: ignore[type-var]


def margin_command(patient: Patient, objective: Objective) -> str | None:
    """Return the command that trains the run again with the usual margin of its loss; None where it has none."""
    if patient.run is None:
        return None
    usual = next((field.default for field in fields(objective) if field.name == "margin"), None)  # type: ignore[arg-type]
    if usual is None or usual == objective.margin:  # type: ignore[attr-defined]
        return None
    return patient.train_command("--objective", spec_of(replace(objective, margin=usual)))  # type: ignore[type-var]
