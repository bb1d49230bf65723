"""Call each vector function once on one element, so that its first call is never made by several threads at once.

MKL selects the kernel of exp, log, sqrt ... at the first call. Where several threads make that call together, one of
them may use a kernel of low precision for its part, once (pytorch issue 188792: relative errors of 1e-9 in float64 and
1e-4 in float32 in about one fresh process of a hundred). A call by one thread fixes the selection.
"""

from __future__ import annotations

import torch

FUNCTIONS = (torch.exp, torch.expm1, torch.log, torch.log1p, torch.sqrt, torch.sin, torch.tanh)


def warm_up() -> None:
    """Call each function once in float32 and once in float64."""
    for dtype in (torch.float32, torch.float64):
        entry = torch.ones(1, dtype=dtype)
        for function in FUNCTIONS:
            function(entry)
