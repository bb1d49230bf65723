"""Does the import of objectives call each vector function once, before an objective computes anything?"""

from __future__ import annotations

import subprocess
import sys

from lossscope.core.mkl_warmup import FUNCTIONS, warm_up


def test_importing_objectives_warms_up_every_function() -> None:
    names = [function.__name__ for function in FUNCTIONS]
    code = f"""
import torch
calls = []
for name in {names}:
    def first(x, name=name, function=getattr(torch, name)):
        calls.append((name, x.dtype, x.numel()))
        return function(x)
    setattr(torch, name, first)
import lossscope.objectives.base
print(len(calls), sorted({{(name, n) for name, _, n in calls}}) == sorted((name, 1) for name in {names}))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == [str(2 * len(names)), "True"]


def test_warm_up_can_be_repeated() -> None:
    warm_up()
