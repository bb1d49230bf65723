"""Studies and runs -> the report: what was not examined is, what was is read, compared, drawn and written."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import pandas as pd

from lossscope.engine.weight_fields import weight_field
from lossscope.errors import InputError
from lossscope.io.run_folder import Run
from lossscope.io.versions import versions
from lossscope.plots import style
from lossscope.registry import build, require_trusted, uses_file
from lossscope.report.chapters import retrieval
from lossscope.report.chapters.base import ReportData, build_sections
from lossscope.report.page import write_page
from lossscope.report.papers import papers
from lossscope.report.results import Results, read_results
from lossscope.stats.compare import Resampling, compare, significance
from lossscope.tables.base import Table

from .examine import examine, is_current
from .study_file import ExamineConfig

METRICS = ("rsum", *(f"{side}_R@{k}" for side in ("i2t", "t2i") for k in (1, 5, 10)))
Progress = Callable[[str, int, int], None]


def report(
    paths: Sequence[Path],
    out: Path,
    title: str | None = None,
    asked: ExamineConfig | None = None,
    device: str = "cpu",
    progress: Progress | None = None,
    trust_code: bool = False,
    resamples: int = 9999,
) -> Path:
    """Write the page, LaTeX, CSV and pictures of studies and run folders; returns index.html.

    Run folders that were not examined are, or all of them where something is `asked`. Raises InputError for folders
    that are neither, for runs that can not stand in one table or name code that is not trusted, and for a folder that
    can not be written; nothing is written then.
    """
    require_writable(out)
    for place, path in enumerate(paths):
        if (path / "config.toml").is_file() and (asked is not None or not is_current(Run(path))):
            examine(Run(path), asked or ExamineConfig(), device, progress, trust_code=trust_code)
        if progress:
            progress("reading", place + 1, len(paths))
    results = read_results(paths)
    for spec in results.cells[["data", "encoder", "spec"]].to_numpy().ravel():
        if uses_file(str(spec)):
            require_trusted(str(spec), trust_code)
    told = material(results, resamples)
    with style.screen():
        sections = build_sections(told)
    return write_page(out, title or f"lossscope: {results.name}", _lead(told), sections, _provenance(results, paths))


def material(results: Results, resamples: int = 9999) -> ReportData:
    """What chapters draw from: the results, their comparison, the fields of what was trained."""
    comparisons = _compared(results, resamples)
    tests = significance(comparisons) if len(comparisons) else None
    return ReportData(results, comparisons, tests, _fields(results))


def tables(results: Results, resamples: int = 9999) -> list[Table]:
    """The tables of the study's paper, published values beside; without a paper retrieval and counts."""
    comparisons = _compared(results, resamples)  # no fields: nothing here has to know the objectives themselves
    told = ReportData(results, comparisons, significance(comparisons) if len(comparisons) else None)
    found = [*papers(told, counted=False), *papers(told, counted=True)]
    return found or [retrieval.plain(results.rows)]


def require_writable(out: Path) -> None:
    """Raise InputError when nothing can be written to the folder, before any work is done for it."""
    there = out if out.exists() else next(parent for parent in out.absolute().parents if parent.exists())
    if out.is_dir() and any(out.iterdir()) and not (out / "index.json").is_file():
        raise InputError(f"{out} must be new, empty, or an earlier report; it holds other files. Choose another --out")
    if out.exists() and not out.is_dir():
        raise InputError(f"{out} must be a folder; it is a file. Choose another --out")
    try:
        with tempfile.NamedTemporaryFile(dir=there):
            pass
    except OSError as error:
        what = os.strerror(error.errno) if error.errno else error
        raise InputError(f"{out} must be a folder that can be written; {what}. Choose another --out") from error


def _compared(results: Results, resamples: int) -> pd.DataFrame:
    """Every system against the best of its block; empty where no block has two."""
    queries = results.queries
    systems = queries.groupby(["data", "encoder"], observed=True)["objective_label"].nunique()
    if not (systems > 1).any():
        return pd.DataFrame()
    several = systems[systems > 1].reset_index()[["data", "encoder"]]
    return compare(queries.merge(several, on=["data", "encoder"]), METRICS, chance=Resampling(resamples=resamples))


def _fields(results: Results) -> pd.DataFrame:
    """Weight fields of the objectives, called by their labels; those that can not be drawn alone are left out."""
    frames = []
    for label, spec in results.cells.drop_duplicates("objective_label").set_index("objective_label")["spec"].items():
        objective = build("objectives", str(spec))
        if not (objective.coupled and objective.relative):
            frames.append(weight_field(objective).assign(objective=str(label)))
    return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame()


def _lead(told: ReportData) -> str:
    results = told.results
    cells = results.cells
    done = cells[cells["status"] == "done"]
    runs = f"{len(done)} {'runs' if len(done) > 1 else 'run'}"
    parts = [f"{runs} of {len(cells)}" if len(done) < len(cells) else runs]
    for name, what in (
        ("objective_label", "objectives"),
        ("encoder", "models"),
        ("data", "data sets"),
        ("seed", "seeds"),
    ):
        parts.append(f"{done[name].nunique()} {what if done[name].nunique() > 1 else what[:-1]}")
    best = []
    rows = results.rows[(results.rows["statistic"] == "rsum") & (results.rows["probe"] == "recall")]
    for (data, encoder), own in rows.groupby(["data", "encoder"], sort=False, observed=True):
        means = own.groupby("objective_label", observed=True)["mean"].mean().dropna()
        best.append(
            f"{encoder} on {data}: {means.idxmax()} {means.max():.1f}" if len(means) else f"{encoder} on {data}: –"
        )
    return f"{', '.join(parts)}. Best mean rsum (of 600) on the {_split(results, 'recall')} split: {'; '.join(best)}."


def _provenance(results: Results, paths: Sequence[Path]) -> dict[str, str]:
    rows = results.rows
    counted = rows[rows["probe"] == "cocos"]
    batches = "; ".join(
        f"{', '.join(map(str, own['objective_label'].unique()))}: {size:g}, sampling {sampling}"
        for (size, sampling), own in counted.groupby(["batch_size", "sampling"], observed=True)
    )
    seeds = ", ".join(str(seed) for seed in sorted(results.cells["seed"].unique()))
    spent = results.cells["seconds"].dropna().sum()
    return {
        "command": "lossscope report " + " ".join(path.name for path in paths),
        "data": "; ".join(map(str, results.cells["data"].unique())),
        "eps": ", ".join(f"{eps:g}" for eps in sorted(counted["eps"].dropna().unique())),
        "batches that were counted": batches,
        "seeds": seeds,
        "deviation": "over seeds: sample standard deviation (n - 1); over batches: population standard deviation",
        "checkpoint": _selected(results),
        "splits": _splits(results),
        **({"work": f"{spent / 60:.0f} minutes of training and examination"} if spent else {}),
        "versions": ", ".join(f"{k} {v}" for k, v in versions().items()),
    }


def _selected(results: Results) -> str:
    """Which epoch the numbers are of, as the recipes say."""
    recipes = [json.loads(text) for text in results.cells["recipe"]]
    selects = sorted({str(recipe.get("select", "rsum")) for recipe in recipes})
    precisions = sorted({str(recipe.get("precision", "fp32")) for recipe in recipes})
    return f"best epoch by {', '.join(selects)} on the validation split, frozen; encoder in {', '.join(precisions)}"


def _split(results: Results, probe: str) -> str:
    """The split that a probe looked at, or several."""
    rows = results.rows[results.rows["probe"] == probe]
    return " and ".join(map(str, rows["split"].dropna().unique())) or "no"


def _splits(results: Results) -> str:
    return f"counted: {_split(results, 'cocos')}; ranked: {_split(results, 'recall')}"
