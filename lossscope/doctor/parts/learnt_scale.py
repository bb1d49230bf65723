"""The scale and bias that a training learns, over its steps or epochs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from ..logs.base import TrainingLog
from ..logs.scales import is_logarithm
from ..types import NotChecked
from .curve import Curve

if TYPE_CHECKING:
    from .patient import Patient


@dataclass(frozen=True)
class LearntScale:
    """Scale and bias in order of training; either may be empty."""

    scale: npt.NDArray[np.float64]  # the factor on cosines
    bias: npt.NDArray[np.float64]
    is_start: bool  # whether the first bias is that at which training began, not that of a log which begins later

    @classmethod
    def of(cls, patient: Patient) -> LearntScale:
        """Take those of the log. Raises NotChecked where it has none."""
        if not patient.has(TrainingLog):
            raise NotChecked("it has no log of a learnt scale")
        log, curve = patient.part(TrainingLog), patient.part(Curve)
        steps, biases = curve.column("step"), curve.column("logit_bias")
        scale, bias = (x[np.isfinite(x)] for x in (curve.column("logit_scale"), biases))
        if not len(scale) and not len(bias):
            raise NotChecked("its log has no learnt scale")
        if "logit_scale" not in log.columns and is_logarithm(scale):  # of a running loop; files are read as factors
            scale = np.exp(scale)
        begins = steps[: len(biases)][np.isfinite(biases)][:1]
        return cls(scale, bias, bool((begins <= max(float(np.median(np.diff(steps))), 1.0)).all()))
