"""Results of runs -> the report: compared, drawn chapter by chapter, and written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pandas as pd

from lossscope.io.scores import score_of
from lossscope.io.versions import versions
from lossscope.plots import directions, style
from lossscope.stats.compare import compare, significance
from lossscope.stats.options import Resampling
from lossscope.stats.per_image import headline_metrics
from lossscope.tables.base import Table
from lossscope.tables.choice import Choice

from .chapters import retrieval
from .chapters.base import Diagrams as Diagrams
from .chapters.base import ReportData, build_sections, has_seeds, split_of
from .findings.answer import answer
from .page import write_page
from .papers import build_paper_tables
from .results import Results
from .sections import Section


def write_report(
    results: Results,
    diagrams: Diagrams,
    out: Path,
    title: str | None,
    command: str,
    resamples: int = 9999,
    choice: Choice | None = None,
) -> Path:
    """Write the page, LaTeX, CSV and pictures; return index.html.

    Args:
        results: of the runs.
        diagrams: weight fields of the report.
        out: folder to write.
        title: of the page; None: the name of the study.
        command: that makes this report, for its provenance.
        resamples: of the tests.
        choice: of the columns that are shown; None: all.

    Raises:
        InputError: runs that cannot stand in one table or picture, or a chosen column that no table has.
    """
    data = gather(results, diagrams, resamples)
    drawn_as = directions.named_after(None if data.sides.is_image_text else data.sides)
    with style.screen(), style.same_colours(results.runs["objective_label"]), drawn_as:
        sections = choose_columns(build_sections(data), choice or Choice())
    found = answer(data, sections)
    provenance = {"command": command, **_provenance(results)}
    numbers = {"rows": results.rows, **({"comparisons": data.comparisons} if len(data.comparisons) else {})}
    return write_page(out, title or f"lossscope: {results.name}", _lead(results), sections, provenance, found, numbers)


def choose_columns(sections: Sequence[Section], choice: Choice) -> list[Section]:
    """Return the sections with the tables showing the chosen columns."""
    choice.require_known(table for section in sections for table in section.tables)
    return [
        replace(
            section,
            items=tuple(choice.apply(item) if isinstance(item, Table) else item for item in section.items),
            more=tuple(choice.apply(item) if isinstance(item, Table) else item for item in section.more),
        )
        for section in sections
    ]


def gather(results: Results, diagrams: Diagrams | None = None, resamples: int = 9999) -> ReportData:
    """Return the data of the chapters: the results, and comparisons of every system with the best of its block."""
    comparisons = _compare(results, resamples)
    tests = significance(comparisons) if len(comparisons) else None
    return ReportData(results, comparisons, tests, diagrams or Diagrams())


def paper_tables(results: Results, resamples: int = 9999) -> list[Table]:
    """Return the tables of the study's paper, published values beside; without a paper retrieval."""
    data = gather(results, resamples=resamples)
    paper, rows = results.paper, results.rows
    tables = [
        table
        for counts in (False, True)
        for table in build_paper_tables(paper, rows, data.tests, counts, results.all_printed)
    ]
    return tables or [retrieval.plain(rows)]


def _compare(results: Results, resamples: int) -> pd.DataFrame:
    """Return the comparisons of every system with the best of its block; empty where no block has two."""
    queries = results.retrieval
    systems = queries.groupby(["data", "encoder"], observed=True)["objective_label"].nunique()
    if not (systems > 1).any():
        return pd.DataFrame()
    several = systems[systems > 1].reset_index()[["data", "encoder"]]
    compared = queries.merge(several, on=["data", "encoder"])
    return compare(compared, headline_metrics(compared), resampling=Resampling(resamples=resamples))


def _lead(results: Results) -> str:
    """Return what was run."""
    done = results.runs[results.runs["status"] == "done"]
    runs = f"{len(done)} {'runs' if len(done) > 1 else 'run'}"
    parts = [f"{runs} of {len(results.runs)}" if len(done) < len(results.runs) else runs]
    nouns = (("objective_label", "objectives"), ("encoder", "models"), ("data", "data sets"), ("seed", "seeds"))
    for name, noun in nouns:
        parts.append(f"{done[name].nunique()} {noun if done[name].nunique() > 1 else noun[:-1]}")
    return f"{', '.join(parts)}. Retrieval on the {_split(results, 'recall')} split."


def _provenance(results: Results) -> dict[str, str]:
    rows = results.rows
    counted = rows[rows["probe"] == "cocos"]
    batches = "; ".join(
        f"{', '.join(map(str, group['objective_label'].unique()))}: {size:g}, sampling {sampling}"
        for (size, sampling), group in counted.groupby(["batch_size", "sampling"], observed=True)
    )
    seeds = ", ".join(str(seed) for seed in sorted(results.runs["seed"].unique()))
    spent = results.runs["seconds"].dropna().sum()
    return {
        "data": "; ".join(map(str, results.runs["data"].unique())),
        "eps": ", ".join(f"{eps:g}" for eps in sorted(counted["eps"].dropna().unique())),
        "batches that were counted": batches,
        "seeds": seeds,
        "deviation": ("over seeds: sample standard deviation (n - 1); " if has_seeds(results.runs) else "")
        + "over batches: population standard deviation",
        "checkpoint": _checkpoint(results),
        "splits": f"counted: {_split(results, 'cocos')}; ranked: {_split(results, 'recall')}",
        **({"work": f"{spent / 60:.0f} minutes of training and evaluation"} if spent else {}),
        "versions": ", ".join(f"{k} {v}" for k, v in versions().items()),
    }


def _checkpoint(results: Results) -> str:
    """Return how the evaluated epoch was selected, as the recipes say."""
    recipes = results.recipes.values()
    score = score_of(results.rows["statistic"]).name  # what rsum stands for where there is none
    select_by = sorted({str(recipe.get("select_by", "rsum")).replace("rsum", score) for recipe in recipes})
    precisions = sorted({str(recipe.get("precision", "fp32")) for recipe in recipes})
    return f"best epoch by {', '.join(select_by)} on the validation split, frozen; encoder in {', '.join(precisions)}"


def _split(results: Results, probe: str) -> str:
    """Return the split, or splits, that a probe ran on."""
    rows = results.rows[results.rows["probe"] == probe]
    return split_of(rows) if len(rows) else "no"
