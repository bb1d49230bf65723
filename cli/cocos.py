"""`lossscope cocos`: which samples carry the gradient, how many, how much."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from . import _output, _processes, _sweep
from ._sweep import Asked
from .app import chosen, command, usage

if TYPE_CHECKING:
    import pandas as pd

PICTURES = (".csv", ".pdf", ".png", ".svg")


@command(processes=True)
@_sweep.sweeping
def cocos(
    asked: Asked,
    eps: Annotated[list[float] | None, typer.Option(help="Threshold; repeat for several. Default 0.01.")] = None,
    convention: Annotated[str, typer.Option(help="corrected, released or text.")] = "corrected",
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

    A checkpoint knows its objective and its data; for a dump name --objective, or see the three usual ones. Means and
    population standard deviations are over batches.
    """
    from lossscope.engine.selection import Selection

    chosen(convention, ("corrected", "released", "text"), "--convention")
    for value in eps or []:
        if not 0 <= value < float("inf"):
            raise usage(f"--eps must be a finite number >= 0; got {value:g}")
    if curve is not None and curve.suffix.lower() not in PICTURES:
        raise usage(f"--curve must end in .csv, .pdf, .png or .svg; got {curve.name!r}")
    specs = [f"cocos:eps={value!r},convention={convention}" for value in dict.fromkeys(eps or [0.01])]
    if curve is not None:
        specs[0] += ",curve=true"
    rows, batches = _sweep.swept(asked, "cocos", Selection.of(specs))
    if curve is not None and _processes.speaks():
        _write(batches, curve, eps[0] if eps else 0.01)
        _output.notice(f"Wrote {curve}.", asked.quiet)
    _sweep.presented(asked, rows, {"name": "cocos", "convention": convention})


def _write(batches: pd.DataFrame, path: Path, at: float) -> None:
    """C(eps) as a picture in which one eps is marked, or as numbers."""
    from lossscope.engine.eps_curves import eps_curves
    from lossscope.io.files import write_text

    found: Any = eps_curves(batches)
    if path.suffix.lower() == ".csv":
        write_text(path, found.to_csv(index=False, lineterminator="\n"))
        return
    from lossscope.plots import eps_curve, style

    with style.screen():
        style.save(eps_curve.draw(found, at=at).figure, path)  # type: ignore[arg-type]
