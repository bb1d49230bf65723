"""The optimiser of a recipe over the groups of a model's parameters, and the rate of each at any step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import nn

from lossscope.encoders.base import Encoder
from lossscope.errors import InputError

from .recipe import Recipe


def optimiser_of(recipe: Recipe, model: Encoder, beside: Sequence[nn.Parameter] = ()) -> torch.optim.Optimizer:
    """Over the model's trainable parameters, one group for each name in `rates` or `freeze`, and those beside it.

    Raises InputError for a name that the model does not have, and without the library of ranger.
    """
    groups = {name: [p for p in found if p.requires_grad] for name, found in model.groups().items()}
    wanted = dict.fromkeys((*recipe.factors, *recipe.waits))
    for name in wanted:
        if name not in groups:
            known = ", ".join(groups) or "none"
            raise InputError(f"groups in rates and freeze must be of those of {recipe.encoder} ({known}); got {name!r}")
    apart = {id(p) for name in wanted for p in groups[name]}
    rest = [p for p in model.parameters() if p.requires_grad and id(p) not in apart]
    spared = {id(p) for name, p in model.named_parameters() if not model.decays(name)} if recipe.weight_decay else set()
    parts: list[dict[str, Any]] = []
    for name, held in (("", [*rest, *beside]), *((name, groups[name]) for name in wanted)):
        for decays in (True, False):
            part: dict[str, Any] = {"params": [p for p in held if (id(p) in spared) is not decays], "name": name}
            part |= {"factor": recipe.factors.get(name, 1.0)} | ({} if decays else {"weight_decay": 0.0})
            parts += [part] if part["params"] else []
    return _made(recipe, parts)


def set_rates(optimiser: torch.optim.Optimizer, recipe: Recipe, epoch: int, step: int, steps: int) -> float:
    """Give every group its rate of a step; groups that still wait take no gradient. Returns the rate of the rest."""
    rate = recipe.rate(epoch, step, steps)
    for group in optimiser.param_groups:
        waiting = epoch < recipe.waits.get(group.get("name", ""), 0)
        group["lr"] = rate * group.get("factor", 1.0)
        if step == 0 or waiting:
            for parameter in group["params"]:
                parameter.requires_grad_(not waiting)
                if waiting:
                    parameter.grad = None
    return rate


def _made(recipe: Recipe, parts: list[dict[str, Any]]) -> torch.optim.Optimizer:
    if recipe.optimiser == "ranger":
        try:
            from pytorch_optimizer import Ranger
        except ImportError as error:
            raise InputError("--optimiser ranger needs pytorch-optimizer; install lossscope[ranger]") from error
        return Ranger(parts, lr=recipe.lr, weight_decay=recipe.weight_decay, use_gc=False)
    kind = torch.optim.AdamW if recipe.optimiser == "adamw" else torch.optim.Adam
    return kind(parts, lr=recipe.lr, betas=(0.9, recipe.beta2), weight_decay=recipe.weight_decay)
