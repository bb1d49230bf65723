"""`lossscope study power`: which differences can a number of seeds, or of images, show?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from lossscope.core.choices import Choice
from lossscope.stats.metric_names import METRICS
from lossscope.stats.options import PlanOptions, Resampling

from ._app import command
from ._options import Format
from ._output import notice, print_results
from ._progress import progress
from .study import Out, StudyFile, open_study, study

if TYPE_CHECKING:
    import pandas as pd

SCHEMA = "lossscope.power/1"


_OF_BOOTSTRAP = Resampling(resamples=1999)


@command(group=study)
def power(
    file: StudyFile,
    out: Out = None,
    metric: Annotated[
        tuple[str, ...],
        Choice(
            None,
            "Metric of `lossscope compare`, or a count such as i2t_C_neg; repeat for several. Default: "
            "rsum, for other sides nDCG@10 of the first direction.",
            shown=False,
            words=METRICS,
        ),
    ] = (),
    baseline: Annotated[str | None, Choice(None, "System to pair all others with.", shown="every pair")] = None,
    options: PlanOptions = PlanOptions(),  # noqa: B008 - never changed
    resampling: Resampling = _OF_BOOTSTRAP,
    format: Format = "table",
) -> None:
    """Compute the smallest difference that n seeds, or n images, can show, from the spread of a study's runs.

    **Examples**

    `lossscope study power runs/li2022-small`

    `lossscope study power runs/li2022-small --difference 2 --seeds 3,5,10,20,40 --images 1000,5000`

    `lossscope study power runs/li2022-small --metric i2t_R@1 --metric i2t_C_0 --format csv > power.csv`

    The finished runs are the pilot; it needs two seeds or more of each system. Three give a rough answer, with its
    interval. `lossscope render power power.csv` draws it. docs/study.md defines the numbers.
    """
    from lossscope.stats.pilot import plan
    from lossscope.studies.report import read_runs
    from lossscope.tables import power as tables

    results = read_runs([open_study(file, out).path])
    with progress() as bar:
        rows = plan(results.retrieval, metric or None, baseline, options, resampling, bar, results.rows)
    for left_out in dict.fromkeys(text for text in rows["left_out"] if text):
        notice(f"Note: left out, because the other system has no such seed: {left_out}.")
    for left_out in _absent(rows, set(results.retrieval["objective_label"])):
        notice(f"Note: {left_out}.")
    if len(results.gaps):
        notice(f"Note: {len(results.gaps)} of {len(results.runs)} runs have not finished; power leaves them out.")
    command = {
        "name": "study power", "study": str(file), "metrics": list(metric), "baseline": baseline,
        "seeds": list(options.seeds), "images": list(options.images), "difference": options.difference,
        "power": options.design.power, "alpha": options.design.alpha, "level": resampling.level,
        "resamples": resampling.resamples, "seed": resampling.seed,
    }  # fmt: skip
    print_results(rows, lambda: tables.build(rows), command, format, schema=SCHEMA)


def _absent(rows: pd.DataFrame, systems: set[str]) -> list[str]:
    """Return which systems have no pair of a metric: `i2t C_q is of no pair with NT-Xent`."""
    absent = []
    for (direction, statistic), group in rows.groupby(["direction", "statistic"], sort=False, observed=True):
        names = sorted(systems - set(group["system"]) - set(group["baseline"]))
        if names:
            absent.append(f"{direction} {statistic} is of no pair with {', '.join(names)}")
    return absent
