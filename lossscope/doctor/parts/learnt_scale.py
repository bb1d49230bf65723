"""The scale and bias that a training learns, over its steps or epochs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from ..logs.base import TrainingLog
from ..types import NotChecked
from .curve import Curve

if TYPE_CHECKING:
    from .patient import Patient

_LOG_SPACE = 6.0  # a scale is logged as its logarithm where none is larger: e⁶ is 403, above every clamp in use


@dataclass(frozen=True)
class LearntScale:
    """Scale and bias in order of training; either may be empty."""

    scale: npt.NDArray[np.float64]  # the factor on cosines
    bias: npt.NDArray[np.float64]
    is_start: bool  # whether the first is that of the first step

    @classmethod
    def of(cls, patient: Patient) -> LearntScale:
        """Take those of the log. Raises NotChecked where it has none."""
        if not patient.has(TrainingLog):
            raise NotChecked("it has no log of a learnt scale")
        curve = patient.part(Curve)
        scale, bias = (x[np.isfinite(x)] for x in (curve.column("logit_scale"), curve.column("logit_bias")))
        if not len(scale) and not len(bias):
            raise NotChecked("its log has no learnt scale")
        return cls(factor_of(scale), bias, True)


def factor_of(scale: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return the factor on cosines where a scale was logged as its logarithm, as CLIP's parameter is (2.66 = log 14.3).

    A scale that begins between 2 and 3 and stays below 6 is a logarithm: as a factor it would be a temperature of 0.4.
    """
    if not len(scale):
        return scale
    near_clip = abs(float(scale[0]) - math.log(1 / 0.07)) < 0.5 or abs(float(scale[0]) - math.log(10)) < 0.2
    return np.exp(scale) if near_clip and float(np.max(scale)) < _LOG_SPACE else scale
