"""`lossscope analyse transfer`: is a count of the loss or of the model?"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

from lossscope.core.choices import OUTPUT, Choice
from lossscope.errors import OptionError

from ._app import command
from ._options import Unit, require_picture, usage
from ._output import notice, print_path, print_results
from ._processes import writes_results
from ._sources import objectives_for
from ._sweep import SWEEP_WORK, SweepArguments, run_sweep
from .analyse import analyse

SCHEMA = "lossscope.transfer/1"


@dataclass(frozen=True)
class TransferCounting:
    """What counts, in which unit."""

    eps: Annotated[float, Choice(None, "Threshold: a weight strictly above it counts.")] = 0.01
    unit: Unit = None

    def __post_init__(self) -> None:
        if not 0 <= self.eps < float("inf"):
            raise OptionError(f"--eps must be a finite number >= 0; got {self.eps:g}")

    @property
    def specs(self) -> list[str]:
        """Specs of the probes."""
        unit = "none" if self.unit is None else self.unit
        return [f"{probe}:eps={self.eps!r},unit={unit}" for probe in ("cocos", "weight_mass")]


_USUAL = TransferCounting()


@command(
    group=analyse,
    work=SWEEP_WORK,
    first=("objective", "eps", "unit", "batch_size", "data", "split", "picture", "format"),
)
def transfer(
    options: SweepArguments,
    counting: TransferCounting = _USUAL,
    picture: Annotated[
        Path | None, Choice(OUTPUT, "Picture of the matrices: .png, .pdf or .svg.", flags="--picture,-o")
    ] = None,
) -> None:
    """Is a count of the loss or of the model? Count every loss at the optimum of every loss.

    **Examples**

    `lossscope analyse transfer a.pt b.pt`

    `lossscope analyse transfer a.pt b.pt --eps 0.001 --unit cosine -o transfer.png`

    `lossscope analyse transfer a.pt b.pt --objective triplet --objective unified --format csv > rows.csv`

    A paper counts each loss at the optimum of that very loss, the diagonal of the matrix, where the loss and the model
    differ at once. A row of the matrix holds the loss fixed, a column the model. Without --objective the losses are
    those that the sources were trained with. Several models of one loss give a mean and an interval over them.
    `lossscope render transfer rows.csv` draws the rows. docs/analyses/transfer.md explains the numbers.
    """
    from lossscope.engine.selection import Selection
    from lossscope.sources.base import trained_objective
    from lossscope.stats import transfer as matrix
    from lossscope.tables import transfer as tables

    require_picture(picture, "-o")
    stated = [trained_objective(source, options.source_request) for source in options.sources]
    unknown = [str(source) for source, spec in zip(options.sources, stated, strict=True) if spec is None]
    if unknown:
        silent = ", ".join(unknown)
        raise usage(f"each source must say what it was trained with, as a checkpoint does; {silent} does not")
    trained = [objectives_for((), spec, source)[0] for source, spec in zip(options.sources, stated, strict=True)]
    if len(set(trained)) < 2:
        raise usage(f"sources must be trained with two losses or more; got {', '.join(dict.fromkeys(trained))}")
    objectives = options.sweep.objectives or tuple(dict.fromkeys(trained))
    options = replace(options, sweep=replace(options.sweep, objectives=objectives))
    swept = run_sweep(options, "transfer", Selection.of(counting.specs))
    if not writes_results():
        return
    names = [str(name) for name in swept.summary["source"].unique()]
    if len(names) != len(trained):
        raise usage(f"sources must have different names, and one width; got {', '.join(map(str, options.sources))}")
    rows = matrix.transfer(swept.summary, dict(zip(names, trained, strict=True)), swept.split)
    sources = dict(zip(map(str, options.sources), trained, strict=True))
    typed = {"name": "analyse transfer", "sources": sources, "split": swept.split, "eps": counting.eps}
    more = {"shares": matrix.effect_shares(rows).to_dict("records")}

    print_results(rows, lambda: tables.build(rows), typed, options.format, schema=SCHEMA, more=more)
    if picture is not None:
        from lossscope.plots import style
        from lossscope.plots import transfer as drawing

        with style.screen():
            path = style.save(drawing.draw_many(rows), picture, drawing.alt(rows))
        notice(f"Wrote {path}.") if options.format != "table" else print_path(path)
