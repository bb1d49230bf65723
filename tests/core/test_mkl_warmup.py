"""The first calls are made before anything can be computed with an objective."""

from __future__ import annotations

import subprocess
import sys

from lossscope.core.mkl_warmup import FUNCTIONS, warm_up


def test_objectives_are_not_imported_without_the_first_calls() -> None:
    names = [function.__name__ for function in FUNCTIONS]
    code = f"""
import torch
made = []
for name in {names}:
    def first(x, name=name, function=getattr(torch, name)):
        made.append((name, x.dtype, x.numel()))
        return function(x)
    setattr(torch, name, first)
import lossscope.objectives.base
print(len(made), sorted({{(name, n) for name, _, n in made}}) == sorted((name, 1) for name in {names}))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == [str(2 * len(names)), "True"]


def test_they_can_be_made_again() -> None:
    warm_up()
