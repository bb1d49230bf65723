"""`lossscope compare`: which differences between systems are more than chance?"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from lossscope.core.choices import Choice
from lossscope.core.request import Request
from lossscope.stats.metric_names import extra_cutoffs, is_statistic
from lossscope.stats.options import Comparison, Resampling

from ._app import command
from ._options import File, Format, require_choice
from ._output import notice, print_results
from ._progress import progress
from ._sources import OF_TEST, join_splits, load_source

if TYPE_CHECKING:
    import pandas as pd

    from lossscope.core.types import Progress

SCHEMA = "lossscope.comparison/3"


@command(first=("metric", "baseline", "all_pairs", "data", "split", "format", "out"))
def compare(
    runs: Annotated[
        tuple[Path, ...],
        Choice(
            None,
            "Run folders, checkpoints or other sources; runs that differ in their seed alone are one system.",
            argument=True,
        ),
    ],
    comparison: Comparison,
    request: Request = OF_TEST,
    resampling: Resampling = Resampling(),  # noqa: B008 - never changed
    format: Format = "table",
    out: File = None,
) -> None:
    """Which system retrieves better? Tests over queries and seeds.

    **Examples**

    `lossscope compare runs/triplet-seed* runs/triplet-sh-seed*`

    `lossscope compare runs/* --metric rsum --metric t2i_R@1 --baseline triplet --format latex --out table.tex`

    `lossscope compare saf.npz sgr.npz --metric all --all-pairs --format csv`

    A difference is system − baseline. Of two systems A and B the baseline is A, as in `lossscope diff A B`. Of more
    systems it is the best by its mean, unless --baseline names another. `diff` shows what the loss does in two
    models, batch by batch; `compare` tests retrieval, of any number of systems and seeds. Runs that differ in their
    seed alone are a single system; its name is its objective and whatever else differs. A source without a recipe has
    the name of its file. Where p is above 0.05 the table shows the MDD, the smallest difference that the test would
    find. P(A > B) is how often a system beats the baseline with a new seed. docs/compare.md explains the tests.
    """
    from lossscope.stats.compare import compare as compare_systems
    from lossscope.stats.per_image import metrics_of
    from lossscope.tables import comparison as tables

    with progress() as report:
        queries = _queries(runs, request, report, extra_cutoffs(comparison.metric))
    known = metrics_of(queries)
    for name in comparison.metric:
        if is_statistic(name):  # without its direction, whose name the runs say
            require_choice(name, (*known, "all"), "--metric")
    metrics = known if "all" in comparison.metric else comparison.metric or tuple(known[:1])
    baseline = _system(comparison.baseline, queries)
    rows = compare_systems(queries, metrics, baseline, comparison.all_pairs, resampling)
    for left_out in dict.fromkeys(str(row["left_out"]) for _, row in rows.iterrows() if row["left_out"]):
        notice(f"Note: left out, because the other system has no such seed: {left_out}.")
    arguments = {
        "name": "compare", "runs": [str(run) for run in runs], "metrics": list(metrics),
        "baseline": comparison.baseline, "all_pairs": comparison.all_pairs, "split": join_splits(queries["split"]),
        "resamples": resampling.resamples, "level": resampling.level, "seed": resampling.seed,
    }  # fmt: skip
    print_results(rows, lambda: [tables.build(rows)], arguments, format, out, SCHEMA)


def _queries(
    runs: Iterable[Path], request: Request, report: Progress | None, cutoffs: Sequence[int] | None
) -> pd.DataFrame:
    """Every query of every run, beside what the run is. One model at a time is kept."""
    import pandas as pd

    from lossscope.retrieval.per_query import per_query
    from lossscope.stats.naming import TrainedModel, name_systems
    from lossscope.training.recipe_files import printed_choices

    models: list[TrainedModel] = []
    used: dict[str, None] = {}
    parts: list[pd.DataFrame] = []
    for run in runs:
        embedded = load_source(run, request, report)
        models.append(TrainedModel(embedded.name, embedded.seed, printed_choices(embedded.recipe)))
        used |= dict.fromkeys([embedded.used] if embedded.used else [])
        parts.append(per_query(embedded, report, cutoffs).assign(split=embedded.split))
    tested = ", ".join(used) or request.data
    systems = name_systems(models, tested)
    return pd.concat([rows.assign(**system) for rows, system in zip(parts, systems, strict=True)], ignore_index=True)


def _system(baseline: str | None, queries: pd.DataFrame) -> str | None:
    """The system that is meant: by its name, with - or _, or by one of its runs."""
    if baseline is None:
        return None
    for run, label in queries[["run", "objective_label"]].drop_duplicates().itertuples(index=False):
        if baseline.rstrip("/") == run or baseline.replace("-", "_") == label.replace("-", "_"):
            return str(label)
    return baseline
