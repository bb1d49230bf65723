"""`lossscope diagram`: the weight field and the pair-weight curves of an objective."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .app import Debug, Format, Objectives, Quiet, chosen, command, usage

if TYPE_CHECKING:
    import pandas as pd


@command()
def diagram(
    triplet: Annotated[
        list[str] | None, typer.Option(help="Triplet weight: con, nca or cir; repeat for several.")
    ] = None,
    pair: Annotated[
        list[str] | None,
        typer.Option(help="Pair weight: con, lin, sig, lin-ms or sig-ms; repeat for several."),
    ] = None,
    objective: Objectives = None,
    tau: Annotated[float, typer.Option(help="Scale of nca and cir.")] = 10.0,
    margin: Annotated[float, typer.Option(help="Margin of con.")] = 0.2,
    alpha: Annotated[float, typer.Option(help="Slope of the positive sigmoid.")] = 2.0,
    beta: Annotated[float, typer.Option(help="Slope of the negative sigmoid.")] = 10.0,
    lam: Annotated[float, typer.Option(help="Midpoint of the sigmoids.")] = 0.5,
    relative: Annotated[float, typer.Option("--m", help="Relative term m of the -ms pair weights.")] = 0.1,
    low: Annotated[float, typer.Option(help="Smallest similarity drawn.")] = -1.0,
    high: Annotated[float, typer.Option(help="Largest similarity drawn.")] = 1.0,
    points: Annotated[int, typer.Option(help="Grid points along each axis.", min=2, max=2001)] = 201,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Picture: .png, .pdf or .svg.")] = None,
    format: Format = "table",
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Draw how much an objective pushes for each (positive, negative) similarity.

    **Examples**

    `lossscope diagram --triplet cir --tau 10`

    `lossscope diagram --pair lin --pair sig -o pairs.pdf`

    `lossscope diagram --objective unified:gamma=60 --objective triplet-sh`

    `lossscope diagram` alone draws GOAL's Figures 2 and 3. The path of each picture is printed; `--format csv`
    prints the numbers drawn instead.
    """
    from lossscope.diagram import PAIRS, TRIPLETS

    chosen(format, ("table", "csv"), "--format")
    if objective and (triplet or pair):
        raise usage("--objective draws any objective; give it alone, or --triplet and --pair")
    for value in triplet or []:
        chosen(value, TRIPLETS, "--triplet")
    for value in pair or []:
        chosen(value, PAIRS, "--pair")
    everything = not (triplet or pair or objective)
    options = f",tau={tau!r},margin={margin!r},alpha={alpha!r},beta={beta!r},lam={lam!r}"
    shown = [f"goal:triplet={t}{options}" for t in triplet or (TRIPLETS if everything else [])]
    if triplet and pair:
        m = f",m_plus={relative!r},m_minus={relative!r}"
        shown = [f"goal:triplet={t},pair={p}{options}{m if p.endswith('-ms') else ''}" for t in triplet for p in pair]
    fields = _fields(objective or shown, low, high, points)
    curves = _curves(pair or (list(PAIRS) if everything else []), options, relative, max(low, 0.0), high, points)
    if format == "csv":
        for frame in (fields, curves):
            if frame is not None:
                typer.echo(frame.to_csv(index=False, lineterminator="\n").rstrip("\n"))
        return
    _draw(fields, curves, out or Path("diagram.png"), "triplet weight" if triplet or everything else None)


def _fields(specs: list[str], low: float, high: float, points: int) -> pd.DataFrame | None:
    import pandas as pd

    from lossscope.diagram import weight_field
    from lossscope.registry import expand

    frames = [weight_field(one, low, high, points) for spec in specs for one in expand("objectives", spec)]
    return pd.concat(frames, ignore_index=True) if frames else None


def _curves(pairs: list[str], options: str, m: float, low: float, high: float, points: int) -> pd.DataFrame | None:
    from lossscope.diagram import pair_curves

    return pair_curves(pairs, options, m, low, high, points) if pairs else None


def _draw(fields: pd.DataFrame | None, curves: pd.DataFrame | None, out: Path, label: str | None) -> None:
    from lossscope.plots import pair_curves as lines
    from lossscope.plots import style, triplet_field

    several = fields is not None and curves is not None
    with style.screen():
        if fields is not None:
            style.save(triplet_field.draw_many(fields), out)
            typer.echo(out)
        if curves is not None:
            place = out.with_name(f"{out.stem}-pairs{out.suffix}") if several else out
            style.save(lines.draw_many(curves), place)
            typer.echo(place)
