"""Many answers without a label among the negatives, where the truth is known."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from lossscope.training import loop
from tests.tiny import RECIPE

from .base import Case, Size

_RECIPE = replace(RECIPE, encoder="biencoder:dim=32", epochs=14, lr=0.005, min_count=1, batch_size=32)


def _trained(size: Size, folder: Path, share: float) -> Case:
    data = f"passages:train=200,val=40,test=20,false_negatives={share},mined_answers={share / 5},duplicates=0"
    recipe = replace(_RECIPE, data=data, objective="ntxent:tau=0.05", seed=size.seed)
    path = loop.train(recipe, folder / f"run{share}").path
    return Case((str(path / "best.pt"),))


def unlabelled(size: Size, folder: Path) -> Case:
    return _trained(size, folder, 0.9)


SICK = ()
SICK_RUNS = (unlabelled,)


def healthy_run(size: Size, folder: Path) -> Case:
    """Data whose answers all have a label."""
    return _trained(size, folder, 0.0)
