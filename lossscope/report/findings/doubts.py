"""What should make a reader careful: runs that are missing, one seed, the best epoch in the warm-up, a collapse."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd

from lossscope.core.sides import plural
from lossscope.io.scores import score_of

from ..chapters import runs, training
from ..chapters._counts import has_mixed_batches
from ..chapters.base import ReportData
from ..sections import Finding
from .base import join, setting
from .best_loss import scores
from .warmup_alone import warmup_alone


def build(data: ReportData) -> Iterator[Finding]:
    """Yield every doubt as a warning."""
    for text, chapter in (*_missing_runs(data), *_undefined(data), *_one_seed(data), *_training(data), *_batches(data)):
        yield Finding(text, chapter, warning=True)


def _missing_runs(data: ReportData) -> Iterator[tuple[str, str]]:
    gaps = data.results.gaps
    if gaps.empty:
        return
    number = gaps["status"].value_counts()
    each = join(f"{count} {status}" for status, count in number.items())
    yield f"{len(gaps)} of {len(data.results.runs)} runs have no numbers: {each}.", runs.TITLE


def _undefined(data: ReportData) -> Iterator[tuple[str, str]]:
    means = scores(data)
    undefined = means[means["mean"].isna()]
    if len(undefined):
        names = join(f"{row['objective_label']} on {row['data']}" for row in undefined.to_dict("records"))
        yield f"{data.score.name} is not defined for {names}.", runs.TITLE


def _one_seed(data: ReportData) -> Iterator[tuple[str, str]]:
    done = data.results.runs[data.results.runs["status"] == "done"]
    keys = ["data", "encoder", "objective_label"]
    seeds = done.groupby(keys, sort=False, observed=True)["seed"].nunique()
    if seeds.max() == 1:
        what = "One run" if len(done) == 1 else "One seed of each system"
        yield (
            f"{what}: what another training would give is not known; tests are over test {plural(data.sides.first)}.",
            "",
        )
    elif seeds.min() == 1:
        names = join(f"{label} on {name}" for name, _, label in seeds[seeds == 1].index)
        yield f"One seed alone of {names}: its chance of training is not known.", ""


def _training(data: ReportData) -> Iterator[tuple[str, str]]:
    for text in (*_best_in_warmup(data.results.epochs), *_collapsed(data)):
        yield text, training.TITLE


def _best_in_warmup(epochs: pd.DataFrame) -> Iterator[str]:
    """Yield a sentence on each loss with runs whose validation score is highest while another loss still trains.

    Args:
        epochs: with a column warmup, the loss of an epoch of the warm-up, None in all others.
    """
    if "warmup" not in epochs:
        return
    for (data, encoder, loss), other in warmup_alone(epochs).items():
        where = setting(data, encoder, epochs)
        yield f"{loss} on {where}: every epoch is of the warm-up, in which {other} trains. No number is one of {loss}."
    score = score_of(epochs.columns).name
    after = epochs[(epochs["split"] == "val") & (epochs["epoch"] > 0)].dropna(subset=[score])
    trained = after[after.groupby("run", sort=False)["warmup"].transform(lambda values: values.isna().any())]
    if trained.empty:
        return
    best = trained.loc[trained.groupby("run", sort=False)[score].idxmax()]
    early = best[best["warmup"].notna()]
    for label, group in early.groupby("objective_label", sort=False, observed=True):
        of = int(((best["objective_label"] == label) & best["data"].isin(group["data"])).sum())
        other = join(group["warmup"].unique())
        which = f" of {len(group)} of its {of} runs" if of > 1 else ""
        names = group["data"].unique()
        where = f" on {join(names)}" if best["data"].nunique() > len(names) else ""
        yield (
            f"{label}{where}: validation {score}{which} is highest within the warm-up, in which {other} trains. "
            "The loss itself did not improve the model."
        )


def _collapsed(data: ReportData) -> Iterator[str]:
    """Yield a sentence on each loss that ended at its plateau."""
    found = training.collapses(data)
    for label in dict.fromkeys(collapse.label for collapse in found):
        same = [collapse for collapse in found if collapse.label == label]
        where = (
            same[0].setting
            if len(same) == 1
            else f"{len(same)} settings ({'; '.join(collapse.setting for collapse in same)})"
        )
        numbers = f" ({same[0].loss:.1f}, and {same[0].plateau:.1f} there)" if len(same) == 1 else ""
        yield f"{label} collapsed on {where}: its loss ended where every similarity is equal{numbers}."


def _batches(data: ReportData) -> Iterator[tuple[str, str]]:
    if has_mixed_batches(data.corrected_rows("cocos")):
        yield (
            "Losses were counted in batches of different sizes, so over different numbers of negatives.",
            "",
        )
