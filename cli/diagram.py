"""`lossscope diagram`: the weight field and the pair-weight curves of an objective, and where data are on them."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from . import _output, _sources
from .app import (
    DataSpec,
    Debug,
    Device,
    Format,
    Objectives,
    Quiet,
    Seed,
    TrustCode,
    batch_size_of,
    chosen,
    command,
    usage,
)

if TYPE_CHECKING:
    import pandas as pd

STYLES = ("screen", "paper")


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
    points: Annotated[
        int | None,
        typer.Option(
            help="Grid points along each axis. Default 201; 41 for a loss called once a point.", min=2, max=2001
        ),
    ] = None,
    arrows: Annotated[bool, typer.Option("--arrows", help="Also where a step of descent moves each triplet.")] = False,
    overlay: Annotated[
        list[Path] | None,
        typer.Option(help="Source whose queries are drawn on the field, as clouds; repeat for several."),
    ] = None,
    path: Annotated[
        bool, typer.Option("--path", help="The cloud of every epoch; --overlay is then one run folder.")
    ] = False,
    data: DataSpec = None,
    split: Annotated[str, typer.Option(help="Split that is drawn over.")] = "train",
    batch_size: Annotated[
        str, typer.Option(help="Pairs of a batch, of which the negative is the hardest; or `all`.")
    ] = ("128"),
    direction: Annotated[str, typer.Option(help="Queries drawn over: i2t, t2i or both.")] = "both",
    seed: Seed = 0,
    device: Device = "auto",
    trust_code: TrustCode = False,
    look: Annotated[str, typer.Option("--style", help="screen, or paper: 8 pt, columns of 3.3 inches.")] = "screen",
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Picture: .png, .pdf or .svg.")] = None,
    format: Format = "table",
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Draw how much an objective pushes for each (positive, negative) similarity.

    **Examples**

    `lossscope diagram --triplet cir --tau 10`

    `lossscope diagram --pair lin --pair sig -o pairs.pdf`

    `lossscope diagram --objective unified:gamma=60 --objective triplet-sh --arrows`

    `lossscope diagram --triplet nca --overlay checkpoints/tiny.pt --low 0`

    `lossscope diagram --triplet nca --overlay runs/mine --path --style paper -o path.pdf`

    `lossscope diagram` alone draws GOAL's Figures 2 and 3. The path of each picture is printed; `--format csv`
    prints the numbers drawn instead.
    """
    import pandas as pd

    from lossscope.engine.similarity_clouds import DIRECTIONS
    from lossscope.engine.weight_fields import (
        FINE,
        PAIRS,
        TRIPLETS,
        fields,
        goal_specs,
        objective_curves,
        pair_curves,
        weights_of,
    )
    from lossscope.registry import expand

    chosen(format, ("table", "csv"), "--format")
    chosen(look, STYLES, "--style")
    chosen(direction, DIRECTIONS, "--direction")
    if objective and (triplet or pair):
        raise usage("--objective draws any objective; give it alone, or --triplet and --pair")
    if path and len(overlay or []) != 1:
        raise usage("--path needs one --overlay, a run folder")
    for value in triplet or []:
        chosen(value, TRIPLETS, "--triplet")
    for value in pair or []:
        chosen(value, PAIRS, "--pair")
    everything = not (triplet or pair or objective)
    goal = {"tau": tau, "margin": margin, "alpha": alpha, "beta": beta, "lam": lam}
    specs = {spec: spec for spec in objective or []} or goal_specs(
        TRIPLETS if everything else triplet or [], pair or [], goal, relative
    )
    frames: dict[str, pd.DataFrame] = {}
    if specs:
        frames["fields"] = fields(specs, low, high, points)
    held = None
    if overlay:
        asked = {"data": data, "split": split, "trust_code": trust_code}
        settings = {"batch_size": batch_size_of(batch_size), "seed": seed, "direction": direction}
        cloud = frames["cloud"] = _clouds(overlay, path, quiet, device, asked, settings)
        held = (float(cloud["s_pos"].median()), float(cloud["s_neg"].median()))
    if pair or everything:
        words = "".join(f",{name}={value!r}" for name, value in goal.items())
        frames["pairs"] = pair_curves(pair or PAIRS, words, relative, max(low, 0.0), high, points or FINE)
    elif objective:
        each = [one for spec in objective for one in expand("objectives", spec)]
        frames["pairs"] = pd.concat([objective_curves(one, low, high, points, held) for one in each])
    if overlay and specs:
        frames["weights"] = weights_of(specs, cloud)
    if format == "csv":
        shown = [frame.to_csv(index=False, lineterminator="\n") for frame in frames.values()]
        typer.echo("\n".join(shown).rstrip("\n"))
        return
    margins = {title: margin for title in specs if title.startswith("T con, margin")}
    _draw(frames, out or Path("diagram.png"), look, arrows, margins)


def _clouds(
    overlay: list[Path], path: bool, quiet: bool, device: str, asked: dict[str, Any], settings: dict[str, Any]
) -> pd.DataFrame:
    """(s+, hardest s-) of the queries of each source, or of each epoch of one run."""
    from lossscope.engine.similarity_clouds import join_clouds, similarity_cloud
    from lossscope.io.run_folder import epoch_checkpoints

    sources = (
        [(float(epoch), file) for epoch, file in epoch_checkpoints(overlay[0])]
        if path
        else [(math.nan, one) for one in overlay]
    )
    found = []
    with _output.progress(quiet, False) as bar:
        for epoch, file in sources:
            embedded = _sources.embedded(file, bar, quiet, device, **asked)
            cloud = similarity_cloud(embedded, **settings, progress=bar, epoch=epoch)
            found.append(cloud.assign(source=str(overlay[0])) if path else cloud)
    return join_clouds(found)


def _draw(frames: dict[str, pd.DataFrame], out: Path, look: str, arrows: bool, margins: dict[str, float]) -> None:
    """Save each picture beside the first, and print where it is."""
    from lossscope.plots import direction_field, overlay, pair_cloud, pair_curves, style, triplet_field

    fields, curves, cloud, weights = (frames.get(name) for name in ("fields", "pairs", "cloud", "weights"))
    with style.paper() if look == "paper" else style.screen():
        drawn: list[tuple[str, Any, str]] = []
        if fields is not None:
            figure = triplet_field.draw_many(fields, margin=margins, pale=cloud is not None)
            told = triplet_field.alt(fields)
            if cloud is not None:
                put = overlay.draw_path if cloud["epoch"].nunique() > 1 else overlay.draw
                for ax in triplet_field.panels(figure):
                    put(cloud, ax)
                overlay.legend(figure, cloud)
                told = f"{told} {overlay.alt(cloud)}"
            drawn.append(("fields", figure, told))
            if arrows:
                drawn.append(("arrows", direction_field.draw_many(fields), direction_field.alt(fields)))
        if curves is not None:
            figure = pair_curves.draw_many(curves)
            if cloud is not None:
                for ax, similarity in zip(list(figure.axes), ("s_pos", "s_neg"), strict=True):
                    pair_cloud.beneath(cloud[similarity], ax)
            drawn.append(("pairs", figure, pair_curves.alt(curves)))
        if weights is not None:
            drawn.append(("weights", pair_cloud.draw_many(weights), pair_cloud.alt(weights)))
        for place, (name, figure, told) in enumerate(drawn):
            typer.echo(style.save(figure, out.with_name(f"{out.stem}-{name}{out.suffix}") if place else out, told))
