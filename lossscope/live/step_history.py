"""Keep the numbers of past steps in bounded memory, as a log: the first, a thinned middle, and the newest."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pandas as pd
import torch
from torch import Tensor

from lossscope.doctor.logs.base import EVALUATION_COLUMNS, STEP_COLUMNS, TrainingLog
from lossscope.errors import InputError

NAMES = (*STEP_COLUMNS, *EVALUATION_COLUMNS)  # names that a loop may log
_OF_BATCH = ("loss", "train_recall", "positive", "hardest_negative", "chance")  # see BatchNumbers
_FIRST, _MIDDLE, _NEWEST = 50, 400, 500  # rows; half of a full middle is dropped
_SMOOTH = 25  # steps in the mean of a recall of the log


@dataclass
class _Step:
    step: int
    of_batch: Tensor | tuple[float, ...] | None  # a tensor until the history is read
    logged: dict[str, float]  # logged by the loop


@dataclass
class StepHistory:
    """The numbers of past steps.

    A loss that the loop logs replaces that of the batches if it covers at least half as many steps: an occasional
    loss is no curve.
    """

    _first: list[_Step] = field(default_factory=list, init=False)
    _middle: list[_Step] = field(default_factory=list, init=False)
    _newest: deque[_Step] = field(default_factory=deque, init=False)
    _evaluations: deque[dict[str, float]] = field(default_factory=lambda: deque(maxlen=_MIDDLE), init=False)
    _stride: int = field(default=1, init=False)  # of the middle: every `_stride`-th step is kept
    _left: int = field(default=0, init=False)  # steps that left the newest ones

    def add(self, step: int, of_batch: Tensor | None, logged: Mapping[str, float]) -> None:
        """Append a step.

        Args:
            step: its number.
            of_batch: numbers of its batch, see BatchNumbers; None: not finite.
            logged: numbers that the loop logs, under the names of the field.
        """
        (self._first if len(self._first) < _FIRST else self._newest).append(_Step(step, of_batch, {}))
        self.say(logged)
        if len(self._newest) <= _NEWEST:
            return
        oldest = self._newest.popleft()
        if self._left % self._stride == 0:
            self._middle.append(oldest)
        self._left += 1
        if len(self._middle) > _MIDDLE:
            self._middle, self._stride = self._middle[::2], 2 * self._stride

    def say(self, logged: Mapping[str, float]) -> None:
        """Add numbers to the newest step."""
        steps = self._newest or self._first
        if steps:
            self._take(steps[-1], logged)

    def log(
        self, objective: str | None, batch_size: int | None, with_broken: bool = False, with_middle: bool = True
    ) -> TrainingLog:
        """Return the steps as the log of a training.

        Args:
            objective: spec of the training.
            batch_size: pairs of a step.
            with_broken: keep steps whose numbers are not finite.
            with_middle: keep the steps between the first and the newest.
        """
        steps = self._read()
        if not with_middle:
            steps = [*self._first, *self._newest]
        columns = self._columns(steps)
        logged = {name for step in steps for name in step.logged}
        frame = {
            "step": np.array([step.step for step in steps], float),
            **{name: columns[name] for name in _OF_BATCH[:4]},
        }
        frame["train_recall"] = _running_mean(frame["train_recall"])
        for name in logged & set(STEP_COLUMNS) - {"loss"}:
            frame[name] = _logged_column(steps, name)
        losses = np.array([step.logged.get("loss", 0.0) for step in steps])
        broken = np.array([step.of_batch is None for step in steps], bool) | ~np.isfinite(losses)
        loss = (
            pd.Series(frame["loss"]).where(~broken, np.inf).ffill().bfill()
        )  # an unknown loss is that of the step before
        frame["loss"] = loss.replace(np.inf, np.nan).to_numpy()
        table = pd.DataFrame(frame)
        table = table if with_broken else table[~broken & table["loss"].notna().to_numpy()]
        evaluations = pd.DataFrame(list(self._evaluations)) if self._evaluations else pd.DataFrame({"step": []})
        is_of_batches = not _takes_place(_logged_column(steps, "loss"), self._of_batches(steps)["loss"])
        rows = table.reset_index(drop=True)
        return TrainingLog(
            "the running loop", rows, evaluations, {}, objective, batch_size, is_of_batches=is_of_batches
        )

    @property
    def says_loss(self) -> bool:
        """Whether the loss of the log is the loss that the loop logs."""
        steps = self._read()
        return _takes_place(_logged_column(steps, "loss"), self._of_batches(steps)["loss"])

    def columns(self) -> dict[str, npt.NDArray[np.float64]]:
        """Return the columns of batches for all kept steps, NaN where a number is unknown."""
        return self._columns(self._read())

    def newest(self, number: int) -> dict[str, npt.NDArray[np.float64]]:
        """Return the columns of batches and lr for the newest steps, NaN where a number is unknown."""
        steps = self._read()[-number:]
        return {**self._columns(steps), "lr": _logged_column(steps, "lr")}

    def _take(self, step: _Step, logged: Mapping[str, float]) -> None:
        for name, value in logged.items():
            if name in EVALUATION_COLUMNS:
                if not self._evaluations or self._evaluations[-1]["step"] != step.step:
                    self._evaluations.append({"step": float(step.step)})
                self._evaluations[-1][name] = value
            else:
                step.logged[name] = value

    def _read(self) -> list[_Step]:
        """Return all steps with their numbers on the host, in one transfer for all new steps."""
        steps = [*self._first, *self._middle, *self._newest]
        new = [step for step in steps if isinstance(step.of_batch, Tensor)]
        if new:
            device = new[-1].of_batch.device  # type: ignore[union-attr]
            rows = torch.stack([step.of_batch.to(device) for step in new]).tolist()  # type: ignore[union-attr]
            for step, row in zip(new, rows, strict=True):
                step.of_batch = tuple(row)
        return steps

    def _columns(self, steps: list[_Step]) -> dict[str, npt.NDArray[np.float64]]:
        columns, logged = self._of_batches(steps), _logged_column(steps, "loss")
        if _takes_place(logged, columns["loss"]):
            columns["loss"] = logged
        return columns

    @staticmethod
    def _of_batches(steps: list[_Step]) -> dict[str, npt.NDArray[np.float64]]:
        none = (np.nan,) * len(_OF_BATCH)
        rows = np.array([step.of_batch if isinstance(step.of_batch, tuple) else none for step in steps], float)
        return dict(zip(_OF_BATCH, rows.reshape(-1, len(_OF_BATCH)).T, strict=True))


def _takes_place(logged: npt.NDArray[np.float64], of_batches: npt.NDArray[np.float64]) -> bool:
    """Return whether the logged loss replaces that of the batches: it must cover half of the steps."""
    return bool(2 * np.isfinite(logged).sum() >= max(np.isfinite(of_batches).sum(), 1))


def _logged_column(steps: list[_Step], name: str) -> npt.NDArray[np.float64]:
    """Return a logged number of each step, NaN where there is none."""
    return np.array([step.logged.get(name, np.nan) for step in steps], float)


def validate_logged(numbers: Mapping[str, object]) -> dict[str, float]:
    """Return the logged numbers of a step. Raises InputError for other names, and for values that are no numbers."""
    checked = {}
    for name, value in numbers.items():
        if name not in NAMES:
            raise InputError(f"numbers of a step must be of {', '.join(NAMES)}; got {name!r}")
        try:
            checked[name] = float(value)  # type: ignore[arg-type]
        except (TypeError, ValueError, RuntimeError) as error:
            raise InputError(f"{name} of a step must be a number; got {type(value).__name__}") from error
    return checked


def _running_mean(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return means over the steps around, as the recall of a single batch is noisy."""
    smooth: npt.NDArray[np.float64] = (
        pd.Series(values).rolling(_SMOOTH, center=True, min_periods=1).mean().to_numpy(dtype=np.float64)
    )
    return smooth
