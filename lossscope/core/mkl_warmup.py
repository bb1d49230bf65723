"""A first, one-element call of each vector function, so that no later one is the first of several threads at once.

MKL picks the kernel of exp, log, sqrt ... when it is first called; where threads make that call together, one of them
may use a kernel of low precision for its part, once (pytorch issue 188792: relative errors of 1e-9 in float64 and 1e-4
in float32 in about one fresh process of a hundred). A call by one thread settles the choice.
"""

from __future__ import annotations

import torch

FUNCTIONS = (torch.exp, torch.expm1, torch.log, torch.log1p, torch.sqrt, torch.sin, torch.tanh)


def warm_up() -> None:
    """Call each function once in each precision that is computed in."""
    for dtype in (torch.float32, torch.float64):
        one = torch.ones(1, dtype=dtype)
        for function in FUNCTIONS:
            function(one)
