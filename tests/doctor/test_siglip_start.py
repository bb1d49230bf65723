"""Does the doctor judge the bias with which training began?"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import lossscope
from lossscope.core.facts import Missing
from lossscope.doctor.examination.open_source import open_patient
from lossscope.doctor.examination.options import Options
from lossscope.doctor.parts.patient import Patient
from lossscope.doctor.siglip_start import SiglipStart
from tests.planted.base import SIZES, aligned, curve, log, pairs

FAR = "siglip:bias=-10"


def test_the_bias_of_a_typed_objective_is_not_taken_for_the_initial_one(tmp_path: Path) -> None:
    """It is the bias of the examined model, as far as the user says."""
    arrays = aligned(SIZES[0])
    losses = log(tmp_path, loss=curve(SIZES[0], 3.0, 0.5))
    for sources, options in (((pairs(tmp_path, *arrays),), {}), ((arrays,), {}), ((), {"log": losses})):
        found = lossscope.doctor(*sources, objective=FAR, batch_size=64, cache=False, **options)
        assert "siglip-start" in found.examinations[0].reasons


def test_the_bias_of_a_recipe_is_the_initial_one() -> None:
    patient = Patient("ckpt.pt", recipe={"objective": FAR}, objective_spec="siglip:bias=-4.1", stated_batch_size=64)
    found = SiglipStart().examine(patient)
    assert found is not None and found.evidence[0].value == -10


@pytest.mark.parametrize(
    ("first", "every", "is_start"), [(0, 1, True), (100, 100, True), (5001, 1, False), (5000, 100, False)]
)
def test_a_log_that_begins_later_does_not_say_where_the_bias_began(
    first: int, every: int, is_start: bool, tmp_path: Path
) -> None:
    steps = first + every * np.arange(400)
    path = tmp_path / "log.csv"
    rows = "".join(f"{step},{loss},-10\n" for step, loss in zip(steps, curve(SIZES[0], 3.0, 0.5), strict=True))
    path.write_text(f"step,loss,logit_bias\n{rows}")
    patient = open_patient(None, Options(batch_size=64), path)
    if is_start:
        assert SiglipStart().examine(patient) is not None
    else:
        with pytest.raises(Missing, match="begins after the first steps"):
            SiglipStart().examine(patient)


@pytest.mark.parametrize("size", [None, 1])
def test_without_a_batch_size_no_prior_is_made_up(size: int | None) -> None:
    """A batch of one pair has no negatives, and therefore no prior."""
    patient = Patient("ckpt.pt", recipe={"objective": FAR}, objective_spec=FAR, stated_batch_size=size)
    with pytest.raises(Missing, match="its batch size is unknown; set it with --batch-size"):
        SiglipStart().examine(patient)
