"""How much does rounding change the mean loss and counts of a query, also where they are 0 in float32?"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from lossscope.doctor.examination.open_source import open_patient
from lossscope.doctor.examination.options import Options
from lossscope.doctor.half_precision import HalfPrecision
from lossscope.doctor.parts.alignment import Alignment
from lossscope.doctor.types import Evidence
from tests.planted.base import SIZES, aligned


def _rows(folder: Path, first: Any, second: Any) -> str:
    """Write rows of bfloat16; return their path."""
    sides = {"images": first, "captions": second}
    path = folder / "dump.safetensors"
    save_file({name: torch.from_numpy(x).to(torch.bfloat16) for name, x in sides.items()}, path)
    return str(path)


def _cosines(folder: Path, n: int, cosine: float) -> str:
    """Write pairs of one cosine; their negatives have cosine 0."""
    eye = np.eye(n, 2 * n, dtype=np.float32)
    second = cosine * eye + np.sqrt(1 - cosine**2, dtype=np.float32) * np.eye(n, 2 * n, n, dtype=np.float32)
    lengths = 1 + np.arange(n, dtype=np.float32)[:, None] % 64 / 64  # enough digits to reveal the type
    return _rows(folder, lengths * eye, second.astype(np.float32))


def _evidence(path: str, objective: str, batch: int) -> dict[str, Evidence]:
    """Return the finding's numbers, by name; where there is a threshold, the signal is above it."""
    check, patient = HalfPrecision(), open_patient(path, Options.of(cache=False, objective=objective, batch_size=batch))
    found = check.examine(patient)
    assert (patient.signals["half-precision"] > check.change) == (found is not None)
    return {} if found is None else {entry.statistic: entry for entry in found.evidence}


def test_a_loss_that_is_0_in_float32_gives_its_difference(tmp_path: Path) -> None:
    """Cosines of 0.8995 are 0.8984 in bfloat16, below a margin at which a triplet loss of float32 is 0."""
    path = _cosines(tmp_path, 64, 0.8995)
    patient = open_patient(path, Options.of(cache=False))
    margin = float(patient.part(Alignment).S.i2t.diagonal().min()) - 1e-4
    found = _evidence(path, f"triplet:margin={margin}", 32)
    loss, count = found["loss in bfloat16 (0 in float32)"], found["count in bfloat16 (0 in float32)"]
    assert loss.value == pytest.approx(31 * (margin - 0.8984375), rel=0.01) and loss.threshold == 0.01
    assert count.value == 31


def test_a_change_is_that_of_a_query_not_the_sum_over_batches(tmp_path: Path) -> None:
    """The loss of a query changes by 1e-4 nats; over 192 batches that adds up to more than 0.01."""
    assert not _evidence(_cosines(tmp_path, 768, 0.9002), "ntxent:tau=0.13", 8)


@pytest.mark.parametrize("tau", [0.01, 0.07, 1])
@pytest.mark.parametrize("noise", [0.3, 1, 4])
def test_the_signal_is_above_its_threshold_where_there_is_a_finding(noise: float, tau: float, tmp_path: Path) -> None:
    _evidence(_rows(tmp_path, *aligned(SIZES[0], noise)), f"ntxent:tau={tau}", 64)
