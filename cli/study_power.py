"""`lossscope study power`: which differences can a number of seeds, or of images, show?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from lossscope.stats.metric_names import METRICS

from ._app import command
from ._options import Debug, Format, Quiet, require_choice, typed_alone, usage
from ._output import FORMATS, notice, print_results
from ._progress import progress
from .study import File, Out, open_study, study

if TYPE_CHECKING:
    import pandas as pd

SCHEMA = "lossscope.power/1"


def _complete_metrics(incomplete: str) -> list[str]:
    return [name for name in METRICS if name.startswith(incomplete)]


@command(group=study)
def power(
    file: File,
    out: Out = None,
    metric: Annotated[
        list[str] | None,
        typer.Option(
            help="As of `lossscope compare`, or a count such as i2t_C_neg; repeat for several. Unless given: rsum, of "
            "other sides nDCG@10 of the first direction.",
            autocompletion=_complete_metrics,
            show_default=False,
        ),
    ] = None,
    baseline: Annotated[
        str | None, typer.Option(help="System that all others are paired with.", show_default="every pair")
    ] = None,
    seeds: Annotated[str, typer.Option(help="Numbers of seeds.")] = "3,5,10,20",
    images: Annotated[
        str, typer.Option(help="Numbers of images or queries, besides that of the study: 1000,5000.")
    ] = "",
    difference: Annotated[
        float | None, typer.Option(help="That should be shown, in units of the metric: how many does it take?")
    ] = None,
    power: Annotated[float, typer.Option(help="Probability that a difference is found.")] = 0.8,
    alpha: Annotated[float, typer.Option(help="Two-sided level of the test, of one comparison.")] = 0.05,
    level: Annotated[float, typer.Option(help="Of the confidence intervals.")] = 0.95,
    resamples: Annotated[int, typer.Option(help="Of the bootstrap over images.", min=99, max=1_000_000)] = 1999,
    seed: Annotated[int, typer.Option(help="Seed of the bootstrap.", min=0)] = 0,
    format: Format = "table",
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """The smallest difference that n seeds, or n images, can show, by the spread of a study's runs.

    **Examples**

    `lossscope study power runs/li2022-small`

    `lossscope study power runs/li2022-small --difference 2 --seeds 3,5,10,20,40 --images 1000,5000`

    `lossscope study power runs/li2022-small --metric i2t_R@1 --metric i2t_C_0 --format csv > power.csv`

    The runs that are done are the pilot, with two seeds or more of each system; three give a rough answer, with its
    interval. `lossscope plot power power.csv` draws it. What is computed: docs/study.md.
    """
    from lossscope.stats.paired_tests import Resampling
    from lossscope.stats.pilot import PlanOptions, plan
    from lossscope.stats.power import Design
    from lossscope.studies.report import read_runs
    from lossscope.tables import power as tables

    require_choice(format, FORMATS, "--format")
    numbers = {name: _numbers(text, f"--{name}") for name, text in (("seeds", seeds), ("images", images))}
    if not numbers["seeds"]:
        raise usage("--seeds must be numbers such as 3,5,10; got none")
    with typed_alone():
        options = PlanOptions(**numbers, difference=difference, design=Design(power, alpha))
        resampling = Resampling(resamples, seed, level)
    results = read_runs([open_study(file, out).path])
    with progress(quiet) as bar:
        rows = plan(results.retrieval, metric, baseline, options, resampling, bar, results.rows)
    for left_out in dict.fromkeys(text for text in rows["left_out"] if text):
        notice(f"Note: left out, because the other system has no such seed: {left_out}.", quiet)
    for left_out in _absent(rows, set(results.retrieval["objective_label"])):
        notice(f"Note: {left_out}.", quiet)
    if len(results.gaps):
        notice(f"Note: {len(results.gaps)} of {len(results.runs)} runs are not done, and left out.", quiet)
    command = {
        "name": "study power", "study": str(file), "metrics": list(metric or []), "baseline": baseline,
        "seeds": numbers["seeds"], "images": numbers["images"], "difference": difference, "power": power,
        "alpha": alpha, "level": level, "resamples": resamples, "seed": seed,
    }  # fmt: skip
    print_results(rows, lambda: tables.build(rows), command, format, schema=SCHEMA)


def _absent(rows: pd.DataFrame, systems: set[str]) -> list[str]:
    """Return which systems have no pair of a metric: `i2t C_q is of no pair with NT-Xent`."""
    absent = []
    for (direction, statistic), own in rows.groupby(["direction", "statistic"], sort=False, observed=True):
        names = sorted(systems - set(own["system"]) - set(own["baseline"]))
        if names:
            absent.append(f"{direction} {statistic} is of no pair with {', '.join(names)}")
    return absent


def _numbers(text: str, option: str) -> list[int]:
    """Return the whole numbers of `3,5,10`. Raises a usage error for anything else."""
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if not all(part.isascii() and part.isdecimal() and len(part) < 10 for part in parts):
        raise usage(f"{option} must be whole numbers such as 3,5,10; got {text!r}")
    return sorted({int(part) for part in parts})
