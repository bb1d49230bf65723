"""`lossscope cocos`: which samples carry the gradient, how many, how much?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lossscope.core.types import Convention, WeightUnit

from ._app import command
from ._options import usage, with_options
from ._output import notice
from ._processes import writes_results
from ._sweep import SWEEP, SweepArguments, print_summary, run_sweep

if TYPE_CHECKING:
    import pandas as pd

PICTURES = (".csv", ".pdf", ".png", ".svg")


@command(processes=True, keeps=True, imports=SWEEP)
@with_options(SweepArguments)
def cocos(
    options: SweepArguments,
    eps: Annotated[
        list[float], typer.Option(help="Threshold: what is strictly above it counts; repeat for several.")
    ] = [0.01],  # noqa: B006 - read by typer, never changed
    unit: Annotated[
        WeightUnit,
        typer.Option(
            help="Of weights and eps: each paper's own, shares of the loss's saturated weight, or dL/ds itself."
        ),
    ] = "paper",
    convention: Annotated[Convention, typer.Option(help="Way of counting.")] = "corrected",
    curve: Annotated[
        Path | None, typer.Option(help="Also count for every eps: a picture (.pdf, .png, .svg) or .csv.")
    ] = None,
) -> None:
    """Count the samples that carry the gradient of each query (COCOS), and weigh them.

    **Examples**

    `lossscope cocos ckpt.pt --eps 0.01`

    `lossscope cocos embeddings.npz --objective triplet --objective ntxent:tau=0.05 --format json`

    `lossscope cocos a.pt b.pt --eps 0.001 --eps 0.01 --convention released --out frame/`

    `lossscope cocos ckpt.pt --objective ntxent:tau=0.02..0.2/4 --curve curve.pdf`

    `lossscope cocos shards/ --objective ntxent --queries 2000`

    `lossscope cocos ckpt.pt --objective ./my_loss.py:my_loss --objective triplet --unit relative`

    A checkpoint knows its objective and its data; for a dump name --objective, or see the three usual ones. Means are
    over queries, standard deviations over full batches. Your own loss has no paper, and is counted in shares of its
    saturated weight, as a softmax is; --unit relative puts every loss on this scale.
    """
    from lossscope.engine.selection import Selection

    for value in eps:
        if not 0 <= value < float("inf"):
            raise usage(f"--eps must be a finite number >= 0; got {value:g}")
    if curve is not None and curve.suffix.lower() not in PICTURES:
        raise usage(f"--curve must end in .csv, .pdf, .png or .svg; got {curve.name!r}")
    specs = [f"cocos:eps={value!r},convention={convention},unit={unit}" for value in dict.fromkeys(eps)]
    if curve is not None:
        specs[0] += ",curve=true"
    rows, batches = run_sweep(options, "cocos", Selection.of(specs))
    if curve is not None and writes_results():
        _write_curve(batches, curve, eps[0])
        notice(f"Wrote {curve}.", options.quiet)
    print_summary(options, rows, {"name": "cocos", "convention": convention, "unit": unit})


def _write_curve(batches: pd.DataFrame, path: Path, at: float) -> None:
    """C(eps) as a picture in which one eps is marked, or as numbers."""
    from lossscope.engine.eps_curves import eps_curves
    from lossscope.io.csv_tables import format_csv
    from lossscope.io.files import write_text

    curves: Any = eps_curves(batches)
    if path.suffix.lower() == ".csv":
        write_text(path, format_csv(curves))
        return
    from lossscope.plots import eps_curve, style

    with style.screen():
        style.save(eps_curve.draw(curves, at=at).figure, path)  # type: ignore[arg-type]
