"""Build the optimiser of a recipe over groups of parameters, and compute the learning rate of a step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import nn

from lossscope.encoders.base import Encoder
from lossscope.errors import InputError, needing

from .recipe import Recipe


def learning_rate(recipe: Recipe, epoch: int, step: int = 0, steps: int = 1) -> float:
    """lr · lr_gamma^⌊epoch / lr_step⌋, or a linear rise and fall over all steps; an epoch has `steps` steps."""
    if recipe.schedule == "step":
        return float(recipe.lr * recipe.lr_gamma ** (epoch // recipe.lr_step))
    total = recipe.epochs * steps
    done, rise = epoch * steps + step, recipe.lr_warmup * total
    return float(recipe.lr * min((done + 1) / rise if rise else 1.0, (total - done) / max(total - rise, 1)))


def loss_factor(recipe: Recipe, epoch: int, step: int, steps: int) -> float:
    """Return the factor on the loss of a step: it rises from 0 to 1 over epoch `loss_ramp_epoch`, else it is 1."""
    return step / steps if recipe.loss_ramp_epoch == epoch + 1 else 1.0


def build_optimiser(recipe: Recipe, model: Encoder, more: Sequence[nn.Parameter] = ()) -> torch.optim.Optimizer:
    """Build the optimiser over the model's trainable parameters, a group for each name in lr_groups and freeze.

    Args:
        recipe: rates, weight decay and groups.
        model: to train.
        more: further parameters, in no group.

    Raises:
        InputError: a group that the model does not have, or ranger without its library.
    """
    groups = {name: [p for p in of_group if p.requires_grad] for name, of_group in model.parameter_groups().items()}
    wanted = dict.fromkeys((*recipe.lr_factors, *recipe.frozen_epochs))
    for name in wanted:
        if name not in groups:
            has = ", ".join(groups) or "none"
            raise InputError(f"lr-groups and freeze must name groups of {recipe.encoder} ({has}); got {name!r}")
    apart = {id(p) for name in wanted for p in groups[name]}
    rest = [p for p in model.parameters() if p.requires_grad and id(p) not in apart]
    no_decay = [p for name, p in model.named_parameters() if not model.uses_weight_decay(name)]
    undecayed = {id(p) for p in no_decay} if recipe.weight_decay else set()
    parts: list[dict[str, Any]] = []
    for name, parameters in (("", [*rest, *more]), *((name, groups[name]) for name in wanted)):
        for decays in (True, False):
            chosen = [p for p in parameters if (id(p) in undecayed) is not decays]
            part: dict[str, Any] = {"params": chosen, "name": name, "factor": recipe.lr_factors.get(name, 1.0)}
            parts += [part | ({} if decays else {"weight_decay": 0.0})] if chosen else []
    return _optimiser(recipe, parts)


def set_rates(optimiser: torch.optim.Optimizer, recipe: Recipe, epoch: int, step: int, steps: int) -> None:
    """Set the rate of each group for a step; frozen groups take no gradient."""
    rate, frozen_epochs = learning_rate(recipe, epoch, step, steps), recipe.frozen_epochs
    for group in optimiser.param_groups:
        frozen = epoch < frozen_epochs.get(group.get("name", ""), 0)
        group["lr"] = rate * group.get("factor", 1.0)
        if step == 0 or frozen:
            for parameter in group["params"]:
                parameter.requires_grad_(not frozen)
                if frozen:
                    parameter.grad = None


def _optimiser(recipe: Recipe, parts: list[dict[str, Any]]) -> torch.optim.Optimizer:
    if recipe.optimiser == "ranger":
        with needing("ranger", "--optimiser ranger needs pytorch-optimizer"):
            from pytorch_optimizer import Ranger
        return Ranger(parts, lr=recipe.lr, weight_decay=recipe.weight_decay, use_gc=False)
    kind = torch.optim.AdamW if recipe.optimiser == "adamw" else torch.optim.Adam
    return kind(parts, lr=recipe.lr, betas=(0.9, recipe.beta2), weight_decay=recipe.weight_decay)
