"""Which checkpoints of a run are first, earlier and last, and on which of its data did it train?"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lossscope.core.facts import Missing
from lossscope.doctor.examination.open_source import open_patient
from lossscope.doctor.examination.options import Options
from lossscope.doctor.overfitting import Overfitting
from lossscope.doctor.parts.generalisation import Generalisation
from lossscope.doctor.parts.learnt_scale import LearntScale
from lossscope.doctor.parts.parameters import Parameters
from lossscope.doctor.parts.patient import Patient
from lossscope.doctor.parts.splits import Splits
from lossscope.io.run_folder import Run
from lossscope.sources.checkpoints.checkpoint import Checkpoint
from tests.planted.base import SIZES, curve, log, unit


@pytest.fixture
def long_run(tiny_run: Path, tmp_path: Path) -> Callable[[int], Path]:
    """Make a run; its last checkpoint is that of an epoch."""

    def make(last: int) -> Path:
        copied = Path(shutil.copytree(tiny_run, tmp_path / "run"))
        (copied / "checkpoints" / "epoch-02.pt").rename(Run(copied).epoch(last))
        return copied

    return make


@pytest.mark.parametrize("last", [3, 99, 100, 1000])
def test_the_last_checkpoint_is_that_of_the_last_epoch(long_run: Callable[[int], Path], last: int) -> None:
    run = long_run(last)
    shutil.copy(Run(run).epoch(1), Run(run).epoch(min(last - 1, 99)))
    parameters = open_patient(run, Options.of(cache=False)).part(Parameters)
    assert parameters.path == Run(run).epoch(last) and parameters.epochs == (1, last)


def test_scales_of_a_run_are_in_the_order_of_epochs_each_once(tiny_run: Path, tmp_path: Path) -> None:
    run = Run(Path(shutil.copytree(tiny_run, tmp_path / "run")))
    checkpoint = Checkpoint.load(run.epoch(1))
    epochs = (1, 2, 99, 100, 101)
    for epoch in epochs:
        training = {**checkpoint.training, "objective": "siglip:scale=0.5"}
        replace(checkpoint, epoch=epoch, objective=f"siglip:scale={epoch}", training=training).save(run.epoch(epoch))
    scales = open_patient(run.path, Options.of(cache=False)).part(LearntScale).scale
    np.testing.assert_allclose(scales, [0.5, *epochs])


def test_held_out_data_are_not_taken_for_the_training_data(tiny_run: Path) -> None:
    """Their recall is not the recall of training data, and they may share items with other held-out data."""
    for split in ("train", "val", "test"):
        patient = open_patient(tiny_run, Options.of(cache=False, split=split))
        assert patient.is_held_out == (split != "train")
        for kind in (Splits, Generalisation):
            assert (f"its {split} data are examined" in _reason(patient, kind)) == (split != "train")


def _reason(patient: Patient, kind: type[Any]) -> str:
    """Return why a part is missing; empty where it is present."""
    try:
        patient.part(kind)
    except Missing as missing:
        return missing.reason
    return ""


def test_a_low_recall_on_held_out_data_does_not_hide_overfitting(tmp_path: Path) -> None:
    fallen = np.concatenate([np.linspace(0.2, 0.5, 10), np.linspace(0.5, 0.05, 20)])
    path = log(
        tmp_path,
        loss=curve(SIZES[0], 4.0, 0.2),
        validation={"val_recall": fallen, "val_train_recall": np.full(30, 0.9)},
    )
    guessing = SIZES[0].rng.normal(size=(2, 200, 32))
    patient = open_patient((unit(guessing[0]), unit(guessing[1])), Options.of(cache=False), path)
    assert Overfitting().examine(patient) is None
    patient.is_held_out = True
    assert Overfitting().examine(patient) is not None
