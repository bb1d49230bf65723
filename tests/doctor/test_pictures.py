"""Does the picture beside a finding show its proof?"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from lossscope.doctor.diverged import Diverged
from lossscope.doctor.examination.open_source import open_patient
from lossscope.doctor.examination.options import Options
from lossscope.doctor.examination.pictures import draw
from tests.planted import diverged
from tests.planted.base import SIZES, Case, Size


@pytest.mark.parametrize("plant", diverged.SICK)
def test_a_finding_of_a_curve_has_the_curve_beside_it(plant: Callable[[Size, Path], Case], tmp_path: Path) -> None:
    case = plant(SIZES[0], tmp_path)
    patient = open_patient(None, Options(batch_size=SIZES[0].batch), case.options["log"])
    found = Diverged().examine(patient)
    assert found is not None
    picture = draw(found, patient, "-2")
    assert picture is not None
    assert (picture.name, picture.caption.partition(";")[0]) == ("diverged-curve-2", "Loss against steps")
    figure: Any = picture.figure
    drawn = figure.axes[0].get_lines()[0].get_xydata()
    assert drawn[:, 1].max() == pytest.approx(pd.read_csv(case.options["log"])["loss"].max())
    assert picture.numbers is not None and "loss" in picture.alt.lower()
    assert picture.numbers["step"].is_monotonic_increasing
