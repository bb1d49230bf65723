"""Does the doctor show the batch size that its numbers belong to?"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lossscope
from lossscope.core.facts import Missing
from lossscope.doctor.examination.open_source import open_patient
from lossscope.doctor.examination.options import Options
from lossscope.doctor.parts.batches import Batches
from lossscope.doctor.temperature_too_high import TemperatureTooHigh
from lossscope.registry import build
from tests.planted.base import Size, aligned, pairs


@pytest.mark.parametrize(("n", "batch", "reached"), [(300, 4096, 300), (300, 300, 300), (300, 64, 64)])
def test_the_batch_size_is_the_one_reached(n: int, batch: int, reached: int, tmp_path: Path) -> None:
    path = pairs(tmp_path, *aligned(Size(n)))
    (examination,) = lossscope.doctor(path, objective="ntxent:tau=0.07", batch_size=batch, cache=False).examinations
    assert examination.patient is not None and examination.patient.part(Batches).batch_size == reached
    said = [notice for notice in examination.notices if "batches of" in notice]
    assert said == ([] if reached == batch else ["loss and weights are those of batches of 300: the source is too "
                                                 "small for batches of 4,096"])  # fmt: skip


def test_a_ceiling_is_that_of_the_batches_that_were_looked_at(tmp_path: Path) -> None:
    same = aligned(Size(300))[0]
    found = lossscope.doctor(
        pairs(tmp_path, same, same), objective="ntxent:tau=0.05", batch_size=4096, cache=False
    ).findings
    ceiling = next(finding for finding in found if finding.id == "batch-ceiling")
    assert (
        ceiling.title == "in-batch negatives are too easy at batch size 300"
        and f"{math.log(300):.3g} nats" in ceiling.why
    )
    assert "16384" in ceiling.advice[0].text


@pytest.mark.parametrize("size", [2, 128, 2048, 8192, 65_536])
def test_the_loss_of_perfect_embeddings_is_that_of_the_batch_size(size: int) -> None:
    """log(1 + (B − 1) e^(−1 / tau)) / log B, also for batches too large to build."""
    closed = math.log1p((size - 1) * math.exp(-1 / 0.2)) / math.log(size)
    assert TemperatureTooHigh._floor(build("objectives", "ntxent:tau=0.2"), size) == pytest.approx(closed, rel=1e-4)


@pytest.mark.parametrize(
    ("options", "is_used"),
    [({}, False), ({"objective": "ntxent"}, True), ({"objective": "ntxent", "batch_size": 128}, False)],
)
def test_a_batch_size_that_is_assumed_is_said_once_where_it_is_used(
    options: dict[str, Any], is_used: bool, tmp_path: Path
) -> None:
    (examination,) = lossscope.doctor(pairs(tmp_path, *aligned(Size())), cache=False, **options).examinations
    said = [notice for notice in examination.notices if "batch size" in notice]
    assert said == ["assuming batch size 128; set it with --batch-size"] * is_used


def test_batches_without_a_query_that_has_a_negative_are_not_judged() -> None:
    """Each caption belongs to each image."""
    first, second = aligned(Size(20))
    owners = np.stack(np.meshgrid(np.arange(20), np.arange(20)), -1).reshape(-1, 2)
    arrays = {"queries": first, "documents": second, "positives": owners}
    patient = open_patient(arrays, Options(objective="ntxent", batch_size=16))
    patient.recipe = {"same_image": "mask"}
    with pytest.raises(Missing, match="no query of its batches"):
        patient.part(Batches)
