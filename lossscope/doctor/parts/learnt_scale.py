"""Read the scale and bias that a training learns, over its steps or epochs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from lossscope.core.embedded import SplitEmbeddings
from lossscope.core.facts import Missing
from lossscope.io.run_folder import list_checkpoints
from lossscope.io.trusted_code import is_trusted
from lossscope.registry import build
from lossscope.sources.checkpoints.checkpoint import Checkpoint

from ..logs.base import TrainingLog
from ..logs.scales import is_logarithm
from .curve import Curve
from .patient import Patient
from .trained_model import TrainedModel

_SCALES = 10  # epochs of a run whose learnt scale is read


@dataclass(frozen=True)
class LearntScale:
    """Scale and bias in order of training; either may be empty."""

    scale: npt.NDArray[np.float64]  # the factor on cosines
    bias: npt.NDArray[np.float64]
    is_start: bool  # whether the first bias is the initial bias; a log may begin later

    @classmethod
    def of(cls, patient: Patient) -> LearntScale:
        """Read them from the checkpoints of a lossscope model, else from the log. Raises Missing without either."""
        if patient.has(SplitEmbeddings) and patient.has(TrainedModel):
            model = patient.part(TrainedModel)
            start = model.checkpoint.training.get("objective")
            if start and is_trusted(start) and build("objectives", start).learnable:
                return cls.of_checkpoints(model.path, start, model.checkpoint)
        if not patient.has(TrainingLog):
            raise Missing("it has no log of a learnt scale", "a log of the learnt scale")
        log, curve = patient.part(TrainingLog), patient.part(Curve)
        steps, biases = curve.column("step"), curve.column("logit_bias")
        scale, bias = (x[np.isfinite(x)] for x in (curve.column("logit_scale"), biases))
        if not len(scale) and not len(bias):
            raise Missing("its log has no learnt scale", "a log of the learnt scale")
        if "logit_scale" not in log.columns and is_logarithm(scale):  # of a running loop; files are read as factors
            scale = np.exp(scale)
        begins = steps[: len(biases)][np.isfinite(biases)][:1]
        return cls(scale, bias, bool((begins <= max(float(np.median(np.diff(steps))), 1.0)).all()))

    @classmethod
    def of_checkpoints(cls, path: Path, start: str, checkpoint: Checkpoint) -> LearntScale:
        """Read them at the start and after epochs; in a long run after some epochs, evenly spread.

        Args:
            path: of a run folder, or of a checkpoint alone.
            start: spec of the objective at the start, which the recipe states.
            checkpoint: the newest.
        """
        earlier = [file for epoch, file in list_checkpoints(path) if epoch < checkpoint.epoch]
        specs = [start, *(Checkpoint.load(file).objective for file in earlier[:: max(len(earlier) // _SCALES, 1)])]
        learnt = [build("objectives", spec).learnable for spec in (*specs, checkpoint.objective) if is_trusted(spec)]
        scales = np.array([numbers["scale"] for numbers in learnt if "scale" in numbers])
        return cls(scales, np.array([numbers["bias"] for numbers in learnt if "bias" in numbers]), True)
