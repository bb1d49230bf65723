"""`lossscope diagram`: the weight field and the pair-weight curves of an objective, and where data are on them."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from lossscope.core.choices import Choice
from lossscope.core.request import Request
from lossscope.engine.options import read_batch_size

from ._app import command
from ._form import Only
from ._options import require_choice, usage
from ._output import notice, print_csv, print_path
from ._progress import progress
from ._running import is_typed
from ._sources import OF_TRAIN, load_source

if TYPE_CHECKING:
    import pandas as pd

_WEIGHTS, _GOAL, _GRID, _OVERLAY, _PICTURE = "Weights", "Parameters of GOAL", "Grid", "Data on the diagram", "Picture"


def _read_similarities(text: str) -> tuple[float, ...]:
    """Read --on-circle: similarities with commas."""
    try:
        return tuple(float(word) for word in text.split(","))
    except ValueError:
        raise usage(f"--on-circle must be similarities with commas, as 0.5,0.7,0.2; got {text!r}") from None


@dataclass(frozen=True)
class DiagramOptions:
    """The options of `lossscope diagram`, as they are typed."""

    triplet: Annotated[
        tuple[str, ...],
        Choice(_WEIGHTS, "Triplet weight of GOAL: con, nca or cir; repeat for several.", words=("con", "nca", "cir")),
    ] = ()
    pair: Annotated[
        tuple[str, ...],
        Choice(
            _WEIGHTS,
            "Pair weight of GOAL: con, lin, sig, lin-ms or sig-ms; repeat for several.",
            words=("con", "lin", "sig", "lin-ms", "sig-ms"),
        ),
    ] = ()
    objective: Annotated[
        tuple[str, ...],
        Choice(
            _WEIGHTS,
            "Objective spec; repeat for several. all, with --tangent: every one that takes the batches of --overlay.",
            names="objectives",
        ),
    ] = ()
    tau: Annotated[float, Choice(_GOAL, "Scale of nca and cir.")] = 10.0
    margin: Annotated[float, Choice(_GOAL, "Margin of con.")] = 0.2
    alpha: Annotated[float, Choice(_GOAL, "Slope of the positive sigmoid.")] = 2.0
    beta: Annotated[float, Choice(_GOAL, "Slope of the negative sigmoid.")] = 10.0
    lam: Annotated[float, Choice(_GOAL, "Midpoint of the sigmoids.")] = 0.5
    m: Annotated[float, Choice(_GOAL, "Relative term m of the -ms pair weights.", flags="--m")] = 0.1
    low: Annotated[
        float,
        Choice(
            _GRID,
            "Smallest similarity to draw.",
            shown="-1; 0 for pair weights; with --overlay that of the queries",
        ),
    ] = -1.0
    high: Annotated[float, Choice(_GRID, "Largest similarity to draw.")] = 1.0
    points: Annotated[
        int | None,
        Choice(
            _GRID,
            "Points along each axis.",
            shown="201; 41 for a loss that is called once a point",
            low=2,
            high=2001,
        ),
    ] = None
    overlay: Annotated[
        tuple[Path, ...],
        Choice(_OVERLAY, "Source whose queries appear on the field as clouds; repeat for several."),
    ] = ()
    path: Annotated[
        bool, Choice(_OVERLAY, "Draw the cloud of every epoch of a run folder, --overlay.", flags="--path")
    ] = False
    request: Annotated[Request, Only("data", "split", "device", "trust_code", panel=_OVERLAY)] = OF_TRAIN
    batch_size: Annotated[
        int | None,
        Choice(
            _OVERLAY,
            "Pairs per batch, which holds the hardest negative; or `all`.",
            shown="128",
            read=read_batch_size,
        ),
    ] = 128
    direction: Annotated[
        str,
        Choice(_OVERLAY, "Queries to draw: i2t, t2i, q2d, ..., or both.", words=("i2t", "t2i", "both")),
    ] = "both"
    seed: Annotated[int, Choice(_OVERLAY, "Seed of batches and of initial weights.", low=0)] = 0
    arrows: Annotated[
        bool, Choice(_PICTURE, "Also draw where a gradient step moves each triplet.", flags="--arrows")
    ] = False
    tangent: Annotated[
        bool,
        Choice(
            _OVERLAY,
            "Also draw what turns the hardest negative of each query of --overlay, against its similarity; a map alone "
            "where objectives are more than 6.",
            flags="--tangent",
        ),
    ] = False
    on_circle: Annotated[
        tuple[float, ...],
        Choice(
            _PICTURE,
            "Also draw the steps of a query, its positive and its negatives on the circle: their similarities with "
            "commas, as 0.5,0.7,0.2.",
            shown=False,
            read=_read_similarities,
        ),
    ] = ()
    style: Annotated[Literal["screen", "paper"], Choice(_PICTURE, "Style; paper: 8 pt, columns of 3.3 inches.")] = (
        "screen"
    )
    out: Annotated[
        Path | None,
        Choice(
            _PICTURE,
            "Picture: .png, .pdf or .svg.",
            shown="diagram-WHAT.png, named after what is drawn",
            flags="--out,-o",
        ),
    ] = None
    format: Annotated[Literal["table", "csv"], Choice(_PICTURE, "Picture, or csv to print its numbers instead.")] = (
        "table"
    )

    @property
    def goal(self) -> dict[str, float]:
        """Fields of the objective goal."""
        names = ("tau", "margin", "alpha", "beta", "lam")
        return {name: getattr(self, name) for name in names}


@command(first=("triplet", "pair", "objective", "tau", "overlay", "style", "out", "format"))
def diagram(options: DiagramOptions) -> None:
    """How hard does a loss push? Draw its weights.

    **Examples**

    `lossscope diagram --triplet cir --tau 10`

    `lossscope diagram --pair lin --pair sig -o pairs.pdf`

    `lossscope diagram --objective unified:gamma=60 --objective triplet-sh --arrows`

    `lossscope diagram --triplet nca --overlay checkpoints/tiny.pt --low 0`

    `lossscope diagram --triplet nca --overlay runs/mine --path --style paper -o path.pdf`

    `lossscope diagram --objective triplet-sh --objective unified --on-circle 0.5,0.7,0.6,0.1,-0.5`

    `lossscope diagram --objective triplet-sh --objective unified --overlay runs/mine --path --tangent`

    `lossscope diagram --objective all --overlay runs/mine --path --tangent -o map.png`

    `lossscope diagram` alone draws GOAL's Figures 2 and 3. The command prints the path of each picture; with
    `--format csv` it prints the numbers instead.
    """
    from lossscope.engine.weight_fields import PAIRS, TRIPLETS, goal_specs
    from lossscope.stats.metric_names import is_direction

    for value in options.triplet:
        require_choice(value, TRIPLETS, "--triplet")
    for value in options.pair:
        require_choice(value, PAIRS, "--pair")
    if options.objective and (options.triplet or options.pair):
        raise usage("--objective draws any objective; give it alone, or --triplet and --pair")
    if options.path and len(options.overlay) != 1:
        raise usage("--path needs one --overlay, a run folder")
    if options.tangent and not options.overlay:
        raise usage("--tangent needs an --overlay: a checkpoint or dump, or a run folder with --path")
    if options.direction != "both" and not is_direction(options.direction):
        raise usage(f"--direction must be i2t, t2i, q2d, ..., or both; got {options.direction!r}")
    if "all" in options.objective and not options.tangent:
        raise usage("--objective all needs --tangent and an --overlay: its map has a row for each objective")
    everything = not (options.triplet or options.pair or options.objective)
    specs = {spec: spec for spec in options.objective} or goal_specs(
        TRIPLETS if everything else options.triplet, options.pair, options.goal, options.m
    )
    frames = _map(options, specs) if _is_map(options, specs) else _frames(options, specs, everything)
    if options.format == "csv":
        print_csv(*frames.values())
        return
    margins = {title: options.margin for title in specs if title.startswith("T con, margin")}
    _draw(frames, options, margins)


def _is_map(options: DiagramOptions, specs: dict[str, str]) -> bool:
    """Whether so many objectives are drawn that a map of what turns hardest negatives stands for all pictures."""
    from lossscope.plots.vanishing_map import MOST
    from lossscope.registry import expand

    if not options.tangent:
        return False
    return "all" in specs or sum(len(expand("objectives", spec)) for spec in specs.values()) > MOST


def _map(options: DiagramOptions, specs: dict[str, str]) -> dict[str, pd.DataFrame]:
    """What the map shows; it stands for the other pictures, which have a panel for each objective."""
    from lossscope.plots.vanishing_map import MOST

    notice(f"Note: more than {MOST} objectives: a map of what turns hardest negatives stands for the other pictures.")
    _, pairs = _clouds(options, specs)
    assert pairs is not None
    return {"map": pairs}


def _runnable(embedded: Any, specs: dict[str, str], told: set[str]) -> dict[str, str]:
    """Title -> spec of the objectives that take the batches of a source, where all are meant; name others once."""
    if "all" not in specs:
        return specs
    from lossscope.engine.fitting_objectives import fitting_objectives
    from lossscope.registry import spec_of

    fitting = fitting_objectives(embedded, specs)
    for text in fitting.notes:
        if text not in told:
            notice(f"Note: {text}.")
    told.update(fitting.notes)
    return {title: spec_of(objective) for title, objective in fitting.objectives.items()}


def _frames(options: DiagramOptions, specs: dict[str, str], everything: bool) -> dict[str, pd.DataFrame]:
    """What is drawn: fields, the cloud of the queries, curves, and the weights that the queries get."""
    import pandas as pd

    from lossscope.engine.weight_fields import (
        FINE,
        PAIRS,
        circle_steps,
        fields,
        objective_curves,
        pair_curves,
        weights_of,
    )
    from lossscope.registry import expand

    low, high, points = options.low, options.high, options.points
    frames: dict[str, pd.DataFrame] = {}
    cloud, pairs = _clouds(options, specs) if options.overlay else (None, None)
    medians = None if cloud is None else (float(cloud["s_pos"].median()), float(cloud["s_neg"].median()))
    if cloud is not None and options.format != "csv" and not (is_typed("low") or is_typed("high")):
        low, high = _around(cloud)
    pairs_low = low if cloud is not None or is_typed("low") else max(low, 0.0)  # GOAL's Figure 3 begins at 0
    if specs:
        frames["fields"] = fields(specs, low, high, points)
    if cloud is not None:
        frames["cloud"] = cloud
    if options.pair or everything:
        goal = "".join(f",{name}={value!r}" for name, value in options.goal.items())
        frames["pairs"] = pair_curves(options.pair or PAIRS, goal, options.m, pairs_low, high, points or FINE)
    elif options.objective:
        expanded = [each for spec in options.objective for each in expand("objectives", spec)]
        frames["pairs"] = pd.concat([objective_curves(spec, low, high, points, medians) for spec in expanded])
    if options.overlay and specs:
        frames["weights"] = weights_of(specs, frames["cloud"])
    if pairs is not None:
        frames["tangent"] = pairs
    if options.on_circle:
        frames["circle"] = circle_steps(specs, options.on_circle)
    for frame in frames.values():
        _require_finite_weights(frame)
    return frames


def _around(cloud: pd.DataFrame) -> tuple[float, float]:
    """Return the tenths between which nearly all queries of a cloud lie, for both axes, so that it fills them."""
    import numpy as np

    values = cloud[["s_pos", "s_neg"]].to_numpy(float)
    low, high = np.nanquantile(values, [0.005, 0.995])
    return max(math.floor(10 * low - 0.5) / 10, -1.0), min(math.ceil(10 * high + 0.5) / 10, 1.0)


def _require_finite_weights(frame: pd.DataFrame) -> None:
    """Raise InputError for a weight that is infinite, as relative terms that cancel others make it."""
    import numpy as np

    from lossscope.errors import InputError

    weights = frame[frame.columns.intersection(["weight", "w_pos", "w_neg"])].to_numpy(float)
    infinite = np.isinf(weights).any(axis=1)
    if infinite.any():
        name = frame.loc[infinite, "label" if "label" in frame else "objective"].iloc[0]
        raise InputError(f"weights must be finite for a picture; those of {name} are not. Choose other options")


def _clouds(options: DiagramOptions, specs: dict[str, str]) -> tuple[pd.DataFrame, pd.DataFrame | None]:
    """(s+, hardest s-) of the queries of each source, or of each epoch of one run; with --tangent also tangents."""
    from lossscope.engine.similarity_clouds import join_clouds, similarity_cloud, tangent_cloud
    from lossscope.io.run_folder import epoch_checkpoints

    overlay = options.overlay
    if options.path:
        sources = [(float(epoch), file) for epoch, file in epoch_checkpoints(overlay[0])]
    else:
        sources = [(math.nan, source) for source in overlay]
    clouds, tangents = [], []
    told: set[str] = set()
    with progress() as report:
        for epoch, file in sources:
            embedded = load_source(file, options.request, report)
            cloud = similarity_cloud(
                embedded, options.batch_size, options.seed, options.direction, epoch=epoch, progress=report
            )
            clouds.append(cloud.assign(source=str(overlay[0])) if options.path else cloud)
            if options.tangent:
                runnable = _runnable(embedded, specs, told)
                pairs = tangent_cloud(
                    embedded, runnable, options.batch_size, options.seed, options.direction, progress=report
                )
                tangents.append(pairs.assign(source=clouds[-1]["source"].iloc[0], epoch=epoch))
    return join_clouds(clouds), join_clouds(tangents) if tangents else None


def _draw(frames: dict[str, pd.DataFrame], options: DiagramOptions, margins: dict[str, float]) -> None:
    """Save each picture beside the first, and print where it is."""
    from lossscope.plots import (
        circle_steps,
        direction_field,
        overlay,
        pair_cloud,
        pair_curves,
        style,
        tangent_cloud,
        triplet_field,
        vanishing_map,
    )

    fields, curves, cloud, weights = (frames.get(name) for name in ("fields", "pairs", "cloud", "weights"))
    with style.paper() if options.style == "paper" else style.screen():
        pictures: list[tuple[str, Any, str]] = []
        if fields is not None:
            figure = triplet_field.draw_many(fields, margin=margins, pale=cloud is not None)
            alt = triplet_field.alt(fields)
            if cloud is not None:
                draw = overlay.draw_path if cloud["epoch"].nunique() > 1 else overlay.draw
                for ax in triplet_field.panels(figure):
                    draw(cloud, ax)
                overlay.legend(figure, cloud)
                alt = f"{alt} {overlay.alt(cloud)}"
            pictures.append(("fields", figure, alt))
            if options.arrows:
                pictures.append(("arrows", direction_field.draw_many(fields), direction_field.alt(fields)))
        if curves is not None:
            figure = pair_curves.draw_many(curves)
            if cloud is not None:
                for ax, similarity in zip(list(figure.axes), ("s_pos", "s_neg"), strict=True):
                    pair_cloud.background_histogram(cloud[similarity], ax)
            pictures.append(("pairs", figure, pair_curves.alt(curves)))
        if weights is not None:
            pictures.append(("weights", pair_cloud.draw_many(weights), pair_cloud.alt(weights)))
        for name, module in (("map", vanishing_map), ("tangent", tangent_cloud), ("circle", circle_steps)):
            if name in frames:
                pictures.append((name, module.draw_many(frames[name]), module.alt(frames[name])))
        out = options.out or Path(f"{_default_stem(options)}.png")
        for index, (name, figure, alt) in enumerate(pictures):
            path = out.with_name(f"{out.stem}-{name}{out.suffix}") if index else out
            print_path(style.save(figure, path, alt))


def _default_stem(options: DiagramOptions) -> str:
    """Name the picture after what is drawn, so that another diagram does not replace it."""
    words = [*(options.triplet), *(options.pair), *(options.objective)]
    words += [f"{name}-{value:g}" for name, value in options.goal.items() if value != getattr(DiagramOptions, name)]
    words += [path.stem for path in options.overlay] + ["path"] * options.path
    slug = re.sub(r"[^A-Za-z0-9.]+", "-", "-".join(words)).strip("-.")
    return "-".join(filter(None, ("diagram", slug[:80])))
