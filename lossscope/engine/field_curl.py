"""Is a field of weights the gradient of any loss? Its curl, from the objective itself."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from lossscope.objectives.base import Objective
from lossscope.objectives.counting.units import two_candidate_weights

STEP = 1e-5  # of differences; at kinks also half of it
_HALVES = 0.75  # half a step halves what both sides of a smooth point differ by; at a kink it does not
_NOISE = 1e-7  # of the largest slope: what both sides may differ by anywhere


@dataclass(frozen=True)
class Curl:
    """∂w₊/∂s₋ − ∂w₋/∂s₊ over a grid of similarities, w = dL/ds of a query with two candidates."""

    largest: float  # |curl|; NaN where every point is at a kink
    relative: float  # its share of the largest slope of a weight; 0 where weights are constant
    points: int  # of the grid
    kinks: int  # points that are left out: a weight jumps or bends there


def field_curl(objective: Objective, low: float = 0.05, high: float = 0.95, points: int = 19) -> Curl:
    """Return the largest |∂w₊/∂s₋ − ∂w₋/∂s₊|: 0 where the weights are the gradient of a loss of both similarities.

    Differences are central, of a step of 5e-6. A point is left out as a kink where the slopes to its left and to its
    right do not come nearer to each other with a smaller step.

    Args:
        objective: whose weights depend on the similarities of a query alone.
        low: smallest similarity.
        high: largest similarity.
        points: along each side of the grid.

    Source: Xuan & Chen 2023, section 3.4.
    """
    steps = torch.linspace(low, high, points, dtype=torch.float64)
    s_pos, s_neg = (grid.flatten() for grid in torch.meshgrid(steps, steps, indexing="ij"))
    centre = two_candidate_weights(objective, s_pos, s_neg)
    slopes, apart = [], []
    for positive, negative in ((1.0, 0.0), (0.0, 1.0)):
        sides: dict[float, tuple[Tensor, Tensor]] = {}
        for step in (STEP, STEP / 2):
            ahead, behind = (
                two_candidate_weights(objective, s_pos + sign * step * positive, s_neg + sign * step * negative)
                for sign in (1, -1)
            )
            sides[step] = (ahead - centre) / step, (centre - behind) / step
        slopes.append((sides[STEP / 2][0] + sides[STEP / 2][1]) / 2)
        apart.append(tuple((right - left).abs() for right, left in sides.values()))
    by_positive, by_negative = slopes  # (n, 2): slopes of w₊ and w₋
    rounding = 64 * torch.finfo(centre.dtype).eps * float(centre.abs().max()) / STEP
    least = rounding + _NOISE * float(torch.stack(slopes).abs().median())
    smooth = torch.stack([half <= (_HALVES * whole).clamp(min=least) for whole, half in apart]).all(2).all(0)
    kinks = int((~smooth).sum())
    if not bool(smooth.any()):
        return Curl(float("nan"), float("nan"), len(smooth), kinks)
    curl = (by_negative[:, 0] - by_positive[:, 1])[smooth].abs().max()
    steepest = torch.stack(slopes)[:, smooth].abs().max()
    relative = float(curl / steepest) if float(steepest) > rounding else 0.0
    return Curl(float(curl), relative, len(smooth), kinks)
