"""Do titles and evidence state the measurement?"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import lossscope
from lossscope.doctor.examination.open_source import open_patient
from lossscope.doctor.examination.options import Options
from lossscope.doctor.no_learning import NoLearning
from lossscope.doctor.same_item_negatives import SameItemNegatives
from tests.planted import normalised_over_wrong_axis
from tests.planted.base import SIZES, Plant, Size, aligned, log, pairs, unit


@pytest.mark.parametrize(
    ("plant", "what"),
    [
        (normalised_over_wrong_axis.columns, "a column"),
        (normalised_over_wrong_axis.batches, "a column"),
        (normalised_over_wrong_axis.whole, "the whole matrix"),
        (normalised_over_wrong_axis.whole_batches, "the whole matrix"),
    ],
)
def test_what_is_of_unit_length_has_its_name(plant: Plant, what: str, tmp_path: Path) -> None:
    found = lossscope.doctor(*plant(SIZES[0], tmp_path).sources, cache=False).findings[0]
    assert found.evidence[0].statistic == f"length of {what}"


def test_a_few_rows_of_another_length_are_counted(tmp_path: Path) -> None:
    first, second = aligned(Size(3000))
    first[5] *= 2
    found = lossscope.doctor(pairs(tmp_path, first, second), cache=False).findings[0]
    assert found.id == "not-normalised" and found.title == "1 of 3,000 images are not of unit length"


def test_a_log_is_examined_though_the_model_is_that_before_training(tmp_path: Path) -> None:
    sides = [unit(rng) for rng in SIZES[0].rng.normal(size=(2, 300, 32))]
    losses = log(tmp_path, loss=np.log(64) * (1 + 0.001 * SIZES[0].rng.normal(size=400)))
    patient = open_patient(tuple(sides), Options.of(objective="ntxent", batch_size=64, cache=False), losses)
    patient.epoch = 0
    found = NoLearning().examine(patient)
    assert found is not None and "log 64" in found.title


@pytest.mark.parametrize(
    ("batch_size", "title"),
    [
        (16, "1 query in 8 has another of its captions among its negatives"),
        (128, "a query has 1 of its other captions among its negatives"),
    ],
)
def test_other_captions_of_an_image_are_counted_for_a_query(batch_size: int, title: str) -> None:
    """It said "a batch has 0.12 captions of the query's own image as negatives", but the number belongs to a query."""
    images, captions = (unit(SIZES[0].rng.normal(size=(n, 16))) for n in (100, 500))
    arrays = {"images": images, "captions": captions, "caption_image": np.repeat(np.arange(100), 5)}
    patient = open_patient(arrays, Options.of(batch_size=batch_size, cache=False))
    found = SameItemNegatives().examine(patient)
    assert found is not None and found.title == title
