"""`lossscope cocos`: which samples carry the gradient, how many, how much?"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from lossscope.core.choices import Choice
from lossscope.core.types import Convention
from lossscope.errors import OptionError

from ._app import command
from ._curves import require_ending, write_curves
from ._options import Unit
from ._output import message
from ._processes import writes_results
from ._sweep import SWEEP_WORK, SweepArguments, print_summary, run_sweep

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Counting:
    """What counts, and how."""

    eps: Annotated[
        tuple[float, ...], Choice(None, "Threshold: a weight strictly above it counts; repeat for several.")
    ] = (0.01,)
    unit: Unit = None
    convention: Annotated[Convention, Choice(None, "Counting convention.")] = "corrected"
    curve: Annotated[
        Path | None, Choice(None, "Also count at every eps, into a picture (.pdf, .png, .svg) or .csv.")
    ] = None

    def __post_init__(self) -> None:
        for value in self.eps:
            if not 0 <= value < float("inf"):
                raise OptionError(f"--eps must be a finite number >= 0; got {value:g}")
        require_ending(self.curve)

    @property
    def specs(self) -> list[str]:
        """Specs of the probe, one for each eps; the first one has the curve."""
        counted = f"convention={self.convention},unit={'none' if self.unit is None else self.unit}"
        specs = [f"cocos:eps={value!r},{counted}" for value in dict.fromkeys(self.eps)]
        return specs if self.curve is None else [f"{specs[0]},curve=true", *specs[1:]]


@command(
    work=SWEEP_WORK, first=("objective", "eps", "unit", "show", "batch_size", "data", "split", "curve", "out", "format")
)
def cocos(counting: Counting, options: SweepArguments) -> None:
    """Which samples teach the model? Count and weigh them (COCOS).

    **Examples**

    `lossscope cocos ckpt.pt --eps 0.01`

    `lossscope cocos embeddings.npz --objective triplet --objective ntxent:tau=0.05 --format json`

    `lossscope cocos a.pt b.pt --eps 0.001 --eps 0.01 --convention released --out frame/`

    `lossscope cocos ckpt.pt --objective ntxent:tau=0.02..0.2/4 --curve curve.pdf`

    `lossscope cocos tiny --show 5`

    `lossscope cocos shards/ --objective ntxent --queries 2000`

    `lossscope cocos ckpt.pt --objective ./my_loss.py:my_loss --objective triplet --unit relative`

    A checkpoint knows its objective and its data. For a dump name --objective, or see the three usual losses. Means
    are over queries, standard deviations over full batches. A single objective has the unit of its paper. Several
    have a common scale, shares of each loss's saturated weight; --unit paper gives each its own unit. Your own loss
    has no paper, so its unit is always such shares.
    """
    from lossscope.engine.selection import Selection

    swept = run_sweep(options, "cocos", Selection.of(counting.specs))
    if writes_results() and counting.convention == "corrected":
        _warn_of_eps(swept.summary["objective"].unique(), counting)
    if counting.curve is not None and writes_results():
        _write_curve(swept.batches, counting.curve, counting.eps[0])
    print_summary(options, swept, {"name": "cocos", "convention": counting.convention, "unit": counting.unit})


def _warn_of_eps(specs: Iterable[str], counting: Counting) -> None:
    """Warn where eps is so large that nothing can count."""
    from lossscope.objectives.counting.units import answer_unit, largest_weight
    from lossscope.registry import build

    objectives = {spec: build("objectives", spec) for spec in specs}
    unit = counting.unit or answer_unit(objectives.values())
    for spec, objective in objectives.items():
        largest = largest_weight(objective, unit)
        above = [f"{eps:g}" for eps in counting.eps if largest is not None and eps >= largest]
        if above:
            message(
                f"Warning: no weight of {spec} exceeds {largest:.3g} in the unit {unit}, so every count is 0 "
                f"at --eps {' and '.join(above)}. The usual eps is 0.01."
            )


def _write_curve(batches: pd.DataFrame, path: Path, at: float) -> None:
    """C(eps) as a picture in which one eps is marked, or as numbers."""
    from lossscope.engine.eps_curves import eps_curves
    from lossscope.plots import eps_curve

    write_curves(eps_curves(batches), path, partial(eps_curve.draw, at=at))
