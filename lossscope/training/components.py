"""Build the objects behind the specs of a recipe once: data set, encoder, objective, batches."""

from __future__ import annotations

from dataclasses import dataclass, replace

from lossscope.core.batches import Sampling
from lossscope.core.masks.base import NegativeMask
from lossscope.datasets.base import Dataset
from lossscope.encoders.base import EncoderSpec, encoder_spec
from lossscope.engine.false_negatives import build_rule
from lossscope.errors import InputError
from lossscope.objectives.base import Objective
from lossscope.registry import build, short_spec, spec_of

from .batching import sampling_of
from .recipe import Recipe


@dataclass(frozen=True)
class Components:
    """The objects behind the specs of a recipe."""

    recipe: Recipe  # with all specs written in full, so that they mean the same after a default changes
    dataset: Dataset
    encoder: EncoderSpec
    objective: Objective  # its network, if it has one, learns
    warmup_objective: Objective | None  # of the first epochs
    sampling: Sampling
    masks: tuple[NegativeMask, ...] = ()  # rules that leave out negatives


def resolve(recipe: Recipe) -> Components:
    """Build what a recipe names. Raises SpecError or InputError for parts that cannot be built or trained together."""
    dataset: Dataset = build("datasets", recipe.data)
    encoder = encoder_spec(recipe.encoder)
    objective: Objective = build("objectives", recipe.objective)
    warmup = build("objectives", objective.warmup) if recipe.warmup and objective.warmup is not None else None
    masks = tuple(build_rule(spec.strip()) for spec in recipe.mask.split(";") if spec.strip())
    for rule in masks:
        if rule.needs == "guide":
            raise InputError(f"mask {spec_of(rule)} needs a guide, which training does not have; take another rule")
    mask = ";".join(spec_of(rule) for rule in masks)
    return Components(
        recipe=replace(
            recipe, data=spec_of(dataset), encoder=spec_of(encoder), objective=spec_of(objective), mask=mask
        ),
        dataset=dataset,
        encoder=encoder,
        objective=objective,
        warmup_objective=warmup,
        sampling=sampling_of(recipe, objective),
        masks=masks,
    )


def warmup_warning(recipe: Recipe) -> str | None:
    """Warn if no epoch trains the objective that names the run; None if an epoch does."""
    objective: Objective = build("objectives", recipe.objective)
    if not 0 < recipe.epochs <= recipe.warmup or objective.warmup is None:
        return None
    epochs = f"all {recipe.epochs} epochs lie" if recipe.epochs > 1 else "the one epoch lies"
    return (
        f"{epochs} in the warm-up: the model is trained with {objective.warmup}, never with {short_spec(objective)}. "
        f"Take more epochs than --warmup {recipe.warmup}, or --warmup 0"
    )


def require_trainable(recipe: Recipe, objective: Objective) -> None:
    """Raise InputError when the objective cannot be trained as the recipe says."""
    if "offline" in objective.traits.required_info and not recipe.offline:
        raise InputError(
            f"{recipe.objective} needs offline candidates. Mine those of the training split under a trained "
            "model with `lossscope mine CKPT --out FOLDER`, then train with --offline FOLDER (and --init CKPT)"
        )
    if recipe.offline and "offline" not in objective.traits.required_info:
        raise InputError(f"--offline is for objectives with offline candidates (aoq); got {recipe.objective}")
    if objective.traits.square and recipe.mask:
        raise InputError(f"--mask must be left out for {recipe.objective}, which takes whole batches only")
    if objective.network() is not None and recipe.mask:
        raise InputError(f"--mask must be left out for {recipe.objective}, whose network learns from whole batches")
    if objective.traits.square and recipe.same_image == "mask":
        raise InputError(f"--same-image must be keep for {recipe.objective}, which takes whole batches only; got mask")
    learnt = getattr(objective, "own_parameters", ())
    if learnt:
        raise InputError(
            f"{recipe.objective} must have no parameters of its own for train; it has {', '.join(learnt)}, "
            "which would stay as they are. train learns a scale or bias if the loss takes logit_scale and "
            "learn=true"
        )
    if getattr(objective, "keeps_memory", False):
        raise InputError(
            f"{recipe.objective} must be a function of one batch for train; it keeps a state between calls, "
            "such as a queue or a moving average. That state would stay as it is. Switch that memory off"
        )
