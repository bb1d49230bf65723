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
    objective_spec: str | None = None  # that it was, or shall be, trained with
    stated_batch_size: int | None = None
    sides: Sides = IMAGE_TEXT
    recipe: Mapping[str, Any] = field(default_factory=dict)  # how it was trained, of an own checkpoint or run
    run: Path | None = None  # folder of an own run, whose recipe a command can train again
    is_held_out: bool = False  # whether its items are known not to be those that it was trained on
    takes_products: bool = False  # whether its loss is known to take products of the rows, whatever their length
    epoch: int | None = None  # of training, where it is known: 0 is a model that was not trained
    steps: int | None = None  # of training, where they are known
    notices: list[str] = field(default_factory=list)  # what was assumed
    signals: dict[str, float] = field(default_factory=dict)  # id -> the number that its check compares with a threshold

    @property
    def objective(self) -> Objective:
        """What it was trained with. Raises Missing where neither the source nor the user says it."""
        return self.part(TrainedWith).objective

    @property
    def batch_size(self) -> int:
        """Pairs of a batch; a notice says where they are assumed."""
        if self.stated_batch_size is None and _ASSUMED not in self.notices:
            self.notices.append(_ASSUMED)
        return self.stated_batch_size or BATCH_SIZE

    def require_trained(self) -> None:
        """Raise Missing for a model whose training has hardly begun: its state is that of its initial weights."""
        if self.epoch == 0 or (self.steps is not None and self.steps < LEAST_STEPS):
            raise TooLittle(
                f"it was trained for {self.steps or 0} steps; its state says something from {LEAST_STEPS} on"
            )

    def masks(self, *names: str) -> bool:
        """Return whether it was trained with a rule of one of these names that leaves out negatives."""
        rules = (
            rule.partition(":")[0].strip().replace("-", "_") for rule in str(self.recipe.get("mask") or "").split(";")
        )
        return not set(rules).isdisjoint(names)

    def train_command(self, *changes: object) -> str | None:
        """Return the command that trains the run again with other choices; None where it is no run of lossscope.

        Args:
            changes: options and their values, `"--lr", 1e-4`.
        """
        if self.run is None:
            return None
        own = ("--config", self.run / "config.toml", *changes, "--out", f"{self.run}-again")
        return "lossscope train " + shlex.join(str(part) for part in own)

    def source_command(self, verb: str, *options: object) -> str | None:
        """Return a command of lossscope on the source; None where it is no file that can be named, as a running loop.

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
    """What a source was, or shall be, trained with."""

    objective: Objective

    @classmethod
    def of(cls, patient: Patient) -> TrainedWith:
        """Build it. Raises Missing where neither the source nor the user says it."""
        if patient.objective_spec is None:
            raise Missing("its training objective is unknown; name it with --objective", "the objective (--objective)")
        return cls(build_objective(patient.objective_spec))


def build_objective(spec: str) -> Objective:
    """Return the objective of a spec. Raises Missing where it cannot be built, as one of a file without trust."""
    try:
        objective: Objective = build("objectives", spec)
    except InputError as error:
        raise Missing(f"{spec} cannot be built: {error}") from None
    return objective
