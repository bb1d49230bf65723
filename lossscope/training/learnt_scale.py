"""Learn scale and bias of z = scale · S + bias, beside the encoder."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from lossscope.objectives.base import Objective


class LearntScale(nn.Module):
    """log scale, and a bias if the objective has any, as parameters that begin at the objective's values.

    W is the gradient with respect to the cosine, scale included, so dL/d log scale = Σ S ∘ W and
    dL/d bias = Σ W / scale: the W that probes see is enough to train them.
    """

    def __init__(self, objective: Objective) -> None:
        super().__init__()
        self.log_scale = nn.Parameter(torch.tensor(math.log(objective.learnable["scale"])))
        self.bias = nn.Parameter(torch.tensor(objective.learnable["bias"])) if "bias" in objective.learnable else None

    def with_learnt(self, objective: Objective) -> Objective:
        """Return the objective at the current scale and bias."""
        values = {"scale": float(self.log_scale.detach().double().exp())}
        if self.bias is not None:
            values["bias"] = float(self.bias.detach())
        return objective.with_learnt(values)

    def gradients(self, S: Tensor, G: Tensor, objective: Objective) -> list[Tensor]:
        """Return the gradients of scale and bias from G = dL/dS, (images, captions), of this objective."""
        found = [(S.detach() * G).sum().to(self.log_scale)]
        if self.bias is not None:
            found.append((G.sum() / objective.learnable["scale"]).to(self.bias))
        return found

    def set_gradients(self, S: Tensor, G: Tensor, objective: Objective) -> None:
        """Set the gradients of scale and bias."""
        for parameter, gradient in zip(self.parameters(), self.gradients(S, G, objective), strict=True):
            parameter.grad = gradient


def learnt_scale_of(objective: Objective) -> LearntScale | None:
    """Return the scale and bias to learn; None for most objectives."""
    return LearntScale(objective) if objective.learnable else None
