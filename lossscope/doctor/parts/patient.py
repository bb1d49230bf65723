"""One source as the checks see it: its parts, and how it was trained."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lossscope.core.facts import Facts, Missing, TooLittle
from lossscope.core.sides import IMAGE_TEXT, Sides
from lossscope.errors import InputError
from lossscope.io.shipped import find_shipped
from lossscope.objectives.base import Objective
from lossscope.registry import build

from ..examination.options import Options

LEAST_STEPS = 20  # of a training whose state is judged
BATCH_SIZE = 128  # where neither the source nor the user says one
_ASSUMED = f"assuming batch size {BATCH_SIZE}; set it with --batch-size"


@dataclass(eq=False)
class Patient(Facts):
    """A source as the checks see it: its parts, `patient.part(Vectors)`, and how it was trained."""

    name: str  # of the source
    options: Options = field(default_factory=Options)  # of the user
    objective_spec: str | None = None  # of the training, past or planned
    stated_batch_size: int | None = None
    sides: Sides = IMAGE_TEXT
    recipe: Mapping[str, Any] = field(default_factory=dict)  # of the training, for a lossscope checkpoint or run
    run: Path | None = None  # folder of a lossscope run, which a command can train again
    is_held_out: bool = False  # whether its items are known to be outside the training data
    takes_products: bool = False  # whether its loss is known to take products of rows of any length
    epoch: int | None = None  # of training, where known; 0 is an untrained model
    steps: int | None = None  # of training, where known
    notices: list[str] = field(default_factory=list)  # what was assumed
    signals: dict[str, float] = field(default_factory=dict)  # id -> the number that its check compares with a threshold

    @property
    def objective(self) -> Objective:
        """The training objective. Raises Missing where neither the source nor the user names it."""
        return self.part(TrainedWith).objective

    @property
    def batch_size(self) -> int:
        """Pairs of a batch; a notice says if the number is assumed."""
        if self.stated_batch_size is None and _ASSUMED not in self.notices:
            self.notices.append(_ASSUMED)
        return self.stated_batch_size or BATCH_SIZE

    def require_trained(self) -> None:
        """Raise TooLittle for a model whose training has hardly begun: its state is that of its initial weights."""
        if self.epoch == 0 or (self.steps is not None and self.steps < LEAST_STEPS):
            raise TooLittle(
                f"it was trained for {self.steps or 0} steps; its state says something from {LEAST_STEPS} on"
            )

    def masks(self, *names: str) -> bool:
        """Return whether the training masked negatives by a rule with one of these names."""
        rules = (
            rule.partition(":")[0].strip().replace("-", "_") for rule in str(self.recipe.get("mask") or "").split(";")
        )
        return not set(rules).isdisjoint(names)

    def train_command(self, *changes: object) -> str | None:
        """Return the command that trains the run again with other choices; None unless it is a run of lossscope.

        Args:
            changes: options and their values, `"--lr", 1e-4`.
        """
        if self.run is None:
            return None
        options = ("--config", self.run / "config.toml", *changes, "--out", f"{self.run}-again")
        return "lossscope train " + shlex.join(str(part) for part in options)

    def source_command(self, verb: str, *options: object) -> str | None:
        """Return a command of lossscope on the source; None where the source is no file, such as a running loop.

        Args:
            verb: `cocos`, ...
            options: and their values.
        """
        if not find_shipped("checkpoints", Path(self.name).expanduser()).exists():
            return None
        return f"lossscope {verb} " + shlex.join(str(part) for part in (self.name, *options))

    def warmup_command(self) -> str | None:
        """Return the command that trains the run again, half of its epochs with all negatives."""
        epochs = self.recipe.get("epochs")
        return self.train_command("--warmup", max(epochs // 2, 1)) if isinstance(epochs, int) else None


@dataclass(frozen=True)
class TrainedWith:
    """The training objective of a source."""

    objective: Objective

    @classmethod
    def of(cls, patient: Patient) -> TrainedWith:
        """Build it. Raises Missing where neither the source nor the user names it."""
        if patient.objective_spec is None:
            raise Missing("its training objective is unknown; name it with --objective", "the objective (--objective)")
        return cls(build_objective(patient.objective_spec))


def build_objective(spec: str) -> Objective:
    """Return the objective of a spec. Raises Missing where it cannot be built, such as an untrusted file."""
    try:
        objective: Objective = build("objectives", spec)
    except InputError as error:
        raise Missing(f"{spec} cannot be built: {error}") from None
    return objective
