"""Train a sigmoid of each pair of a batch (SigLIP), with a learnt scale and bias."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from .base import Item
from .pairs import Pairs, Setup, items_of
from .world import train

KIND = "sigmoid loss"
HEALTHY = (
    Setup("small", n=500, d=64, batch=32, seed=1, steps=400),
    Setup("usual", n=800, d=128, batch=128, seed=2),
    Setup("wide", n=600, d=384, batch=64, seed=3, noise=0.2),
    Setup("noisy", n=1000, d=96, batch=256, seed=4, noise=0.5, steps=200),
)
_SICK = Setup("", n=500, d=96, batch=64, seed=11, groups=40, rank=48)
SICK = (
    (replace(_SICK, name="two loaders", two_loaders=True, planted=("no-learning", "complete-collapse")), ("end",)),
    (replace(_SICK, name="shifted rows", order="shifted", planted=("misaligned-pairs",)), ("end",)),
    (replace(_SICK, name="shuffled in topics", order="groups", planted=("order-lost",)), ("end",)),
    (replace(_SICK, name="a sixth wrong", order="share", planted=("shuffled-share",)), ("end",)),
    (replace(_SICK, name="captions not read", constant=True, planted=("dead-tower",)), ("end",)),
    (replace(_SICK, name="hardest negative at once", hardest=True, noise=1.5, lr=0.02, planted=("complete-collapse",)),
     ("end",)),
    (replace(_SICK, name="bias 0", batch=256, planted=("siglip-start",)), ("log",)),
    (replace(_SICK, name="bias -10", batch=16, planted=("siglip-start",)), ("log",)),
    (replace(_SICK, name="rank 2", bottleneck=2, planted=("dimensional-collapse",)), ("end",)),
)  # fmt: skip


def items(shift: int = 0) -> Iterator[Item]:
    """Yield dumps, and logs with the scale and the bias.

    Args:
        shift: added to every seed.
    """
    for setup in (*HEALTHY, *(setup for setup, _ in SICK)):
        parts = dict(SICK).get(setup, ("middle", "end", "log"))
        setup = replace(setup, seed=setup.seed + shift)
        pairs = Pairs(setup)
        start = {"bias 0": 0.0, "bias -10": -10.0}.get(setup.name, -math.log(setup.batch - 1))
        log_scale, bias = torch.tensor(math.log(10.0)).requires_grad_(), torch.tensor(start).requires_grad_()
        scales: list[float] = []
        biases: list[float] = []
        loss = partial(_loss, pairs, log_scale, bias, scales, biases)
        at = (setup.steps // 2, setup.steps)
        trained = train([*pairs.parameters, log_scale, bias], loss, setup.steps, setup.lr, pairs.dump, at)
        options = {"objective": f"siglip:scale={scales[-1]:.4g},bias={biases[-1]:.4g}", "batch_size": setup.batch}
        log_options = {"batch_size": setup.batch, "objective": "siglip"}
        columns = {"logit_scale": scales, "logit_bias": biases}
        yield from items_of(KIND, setup, trained, options, parts, log_options, **columns)


def _loss(pairs: Pairs, log_scale: Tensor, bias: Tensor, scales: list[float], biases: list[float], step: int) -> Tensor:
    """Return the loss of a step; append scale and bias to their columns of the log."""
    scales.append(float(log_scale.detach().exp()))
    biases.append(float(bias.detach()))
    if pairs.setup.hardest:
        return pairs.hardest(step)
    x, y = pairs.encode(pairs.draw())
    logits = log_scale.exp() * x @ y.T + bias
    return -logsigmoid((2 * torch.eye(len(x)) - 1) * logits).sum(1).mean()
