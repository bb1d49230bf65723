"""Compute count(eps) for all eps at once: a histogram of the counted weights on a logarithmic scale."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from lossscope.core.counts import CountedWeights

EDGES = tuple(float(np.float32(10.0 ** (k / 10))) for k in range(-80, 21))  # 1e-8 ... 100, ten a decade, float32


def eps_histogram(counted: CountedWeights) -> Tensor:
    """(q, 101) number of weights strictly above each of EDGES, divided by |P| as counts are.

    The counts are exact, as weights are compared with the float32 edges. Weights of at most 1e-8 do not count.
    """
    weights = counted.weights
    edges = torch.tensor(EDGES, dtype=weights.dtype, device=weights.device)
    flat = weights.reshape(len(weights), -1)
    rows, columns = (flat > edges[0]).nonzero(as_tuple=True)
    bins = torch.bucketize(flat[rows, columns], edges)  # number of edges below the weight
    width = len(EDGES) + 1
    histogram = torch.bincount(rows * width + bins, minlength=len(flat) * width).view(len(flat), width)
    above = histogram.flip(1).cumsum(1).flip(1)[:, 1:]
    return above.to(weights.dtype) / counted.divisor[:, None]
