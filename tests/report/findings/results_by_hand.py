"""Make results by hand, with numbers that a reader can check by eye: the input of findings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from lossscope.report.chapters.base import ReportData
from lossscope.report.results import LABELS, Results

SUMMARY = (
    "objective",
    "probe",
    "statistic",
    "direction",
    "mean",
    "convention",
    "eps",
    "batch_size",
    "sampling",
    "n",
    "short_batch",
)
RUNS = ("run", "data", "encoder", "objective_label", "seed", "status", "reason", "seconds")


def row(loss: str, statistic: str, mean: float, direction: str = "both", **more: Any) -> dict[str, Any]:
    """Return a summary row of one run: of rsum, or of the statistics of `cocos` and `weight_mass`."""
    of_recall = statistic in ("rsum", "R@1", "true_negatives")
    probe = "recall" if of_recall else "weight_mass" if statistic in ("W_neg", "W_low") else "cocos"
    labels = {"data": "scenes", "encoder": "VSE++", "seed": 0, "spec": loss.lower(), "split": "test"}
    labels |= {"objective": loss.lower(), **more}
    counted = {"convention": "corrected", "eps": 0.01, "batch_size": 128.0, "sampling": "pairs", "n": 40}
    settings = dict.fromkeys(("convention", "eps", "batch_size", "sampling")) if of_recall else counted
    run = f"{loss}-{labels['data']}-{labels['encoder']}-{labels['seed']}"
    numbers = {"objective_label": loss, "probe": probe, "statistic": statistic, "direction": direction, "mean": mean}
    return {"short_batch": None, **settings, **numbers, **labels, "run": run}


def against_best(system: str, lead: float, p: float = 0.0012, **more: Any) -> dict[str, Any]:
    """Return a comparison with the best, `A`, which is ahead by `lead`."""
    interval = {"ci_low": -lead - 5, "ci_high": -lead + 5, "level": 0.95, "images": 100, "resamples": 9999}
    names = {"data": "scenes", "encoder": "VSE++", "system": system, "baseline": "A", "best": "A", "statistic": "rsum"}
    chance = {"p_images": p / 3, "p_images_holm": p, "p_at_floor": False, "family": 3}
    return {**names, "difference": -lead, **interval, **chance, "n_seeds": 1, "sd_seeds": float("nan"), **more}


def report_data(
    rows: Sequence[Mapping[str, Any]],
    tests: Sequence[Mapping[str, Any]] = (),
    epochs: pd.DataFrame | None = None,
    gaps: Sequence[Mapping[str, Any]] = (),
) -> ReportData:
    """Return the data of chapters from rows, comparisons, epochs, and runs without numbers."""
    frame = pd.DataFrame(rows).reindex(columns=[*dict.fromkeys((*LABELS, "seed", "split", *SUMMARY))])
    done = frame.drop_duplicates("run").assign(status="done", reason="", seconds=1.0)
    runs = pd.concat([done, pd.DataFrame(gaps)], ignore_index=True).reindex(columns=list(RUNS))
    empty = pd.DataFrame()
    recipes: dict[str, dict[str, Any]] = {str(run): {} for run in runs["run"]}
    none = dict.fromkeys(("retrieval", "curves", "what_if", "per_query", "hardest_negative_counts"), empty)
    columns = ["run", "data", "encoder", "objective_label", "split", "epoch", "rsum", "warmup"]
    of_epochs = pd.DataFrame(columns=columns) if epochs is None else epochs
    results = Results(rows=frame, **none, epochs=of_epochs, runs=runs, recipes=recipes, name="x")
    return ReportData(results, pd.DataFrame(tests))
