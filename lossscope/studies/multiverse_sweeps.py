"""Which numbers has a checkpoint in the universes of a multiverse? A sweep with a batch size, or an evaluation."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from lossscope.core.embedded import SplitEmbeddings
from lossscope.errors import InputError
from lossscope.registry import build, short_spec
from lossscope.retrieval.evaluate import evaluate

from .examine import trained_sweep
from .kept_numbers import RECALL, KeptNumber
from .study_file import StudyRun


def rank(source: SplitEmbeddings) -> tuple[list[KeptNumber], dict[str, str]]:
    """Return the numbers of retrieval of a test split."""
    rows = evaluate([source]).to_dict("records")
    return [_kept(RECALL, row) for row in rows], {}


def count(
    source: SplitEmbeddings, run: StudyRun, probes: tuple[str, ...], size: int
) -> tuple[list[KeptNumber], dict[str, str]]:
    """Return the numbers of a sweep with batches of a size, and the probes that have none, with the reason.

    Args:
        source: the checkpoint of a run, loaded.
        run: its training.
        probes: specs of `cocos`.
        size: queries of a batch.
    """
    objective = str(source.objective)
    built = build("objectives", objective)
    refused: dict[str, str] = {}
    for spec in probes:
        try:
            build("probes", spec).check(built)
        except InputError as error:
            refused[spec] = f"{short_spec(built)}: {str(error).partition('. ')[0]}"
        if "convention=released" in spec and not source.sides.is_image_text:
            refused[spec] = "the convention released is for images and captions alone"
    counted = tuple(spec for spec in probes if spec not in refused)
    if not counted:
        return [], refused
    sweep = replace(trained_sweep(run.recipe, objective, counted, size), interval=None)
    full = replace(sweep, drop_last=True).plan_for(source).batchings[0].sampling
    if not full.count(source.relations):
        return [], refused | dict.fromkeys(counted, f"split {source.split} has no full batch of {size}")
    by_way = {_way_of(spec): spec for spec in counted}
    return [
        _kept(by_way[row["convention"], row["weight_unit"], row["eps"]], row)
        for row in sweep.run(source).summary.to_dict("records")
    ], refused


def _kept(probe: str, row: Mapping[Any, Any]) -> KeptNumber:
    mean = float(row["mean"])
    return KeptNumber(probe, row["direction"], row["statistic"], mean if math.isfinite(mean) else None, int(row["n"]))


def _way_of(spec: str) -> tuple[str, str | None, float]:
    probe = build("probes", spec)
    return probe.convention, probe.unit, probe.eps
