"""docs/audit.in.md -> docs/audit.md: every signal from its file, and what the studies of the audit measured.

The docstring of a signal's file is its question, that of its class begins with the formula and may end with `Source:`.
Numbers are read from studies/audit/results; nothing is run. `--check` writes nothing and exits 1 with a diff when the
page is out of date.
"""

from __future__ import annotations

import inspect
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from generated_page import escape, markdown_table, write_or_compare

from lossscope.audit.base import Signal
from lossscope.registry import build, names

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "docs" / "audit.in.md"
PAGE = ROOT / "docs" / "audit.md"
RESULTS = ROOT / "studies" / "audit" / "results"
NOTE = (
    "<!-- Made by docs/make_audit.py from docs/audit.in.md, the docstrings of lossscope/audit and the results of "
    "studies/audit. Change those, then `make docs`. -->\n\n"
)
GROUPS = {"texts": "texts", "embeddings": "embeddings", "copies": "texts or pictures; a copy matches"}
COMBINATIONS = ("cross-validated", "default weights, cross-validated", "default weights")


def page(source: str) -> str:
    """Return the page."""
    parts = {
        "signals": signals(),
        "judgements": judgements(pd.read_csv(RESULTS / "judgements.csv")),
        "minilm": minilm(pd.read_csv(RESULTS / "judgements_minilm.csv")),
        "coverage": coverage(pd.read_csv(RESULTS / "interval_coverage.csv")),
        "kinds": kinds(pd.read_csv(RESULTS / "kind_weights.csv")),
        "transfer": transfer(pd.read_csv(RESULTS / "transfer.csv")),
        "sixty": sixty(pd.read_csv(RESULTS / "sixty_labels.csv")),
        "worth": worth(pd.read_csv(RESULTS / "mask_worth.csv", keep_default_na=False)),
        "trials": trials(
            pd.read_csv(RESULTS / "worth.csv"), pd.read_csv(RESULTS / "mask_worth.csv", keep_default_na=False)
        ),
    }
    for name, text in parts.items():
        source = source.replace(f"<!-- {name} -->", text)
    return NOTE + source


def signals() -> str:
    """Return a row a signal: its name, what it reads, its question and its formula."""
    built: list[Signal] = [build("signals", name) for name in names("signals")]
    built.sort(key=lambda one: (list(GROUPS).index(one.group), one.name()))
    rows: list[tuple[str, ...]] = []
    for one in built:
        question = (inspect.getdoc(inspect.getmodule(type(one))) or "").splitlines()[0]
        text = " ".join((inspect.getdoc(type(one)) or "").split())
        formula, _, source = text.partition("Source: ")
        shown = f"{formula.strip()} ({source.strip().rstrip('.')})" if source else formula.strip()
        rows.append((f"`{one.name()}`", GROUPS[one.group], escape(question), escape(shown).replace("|", "\\|")))
    return markdown_table(("signal", "reads", "question", "formula"), rows)


def judgements(rows: pd.DataFrame) -> str:
    """Return AUC and AP of every signal, and of the combinations, for both kinds of judges."""
    of = {kind: rows[rows["judgements"] == kind].set_index(["signals", "scored by"]) for kind in ("expert", "crowd")}
    single = [key for key in of["expert"].index if key[1] not in COMBINATIONS]
    area: dict[Any, float] = of["expert"]["AUC"].to_dict()
    single.sort(key=lambda key: -area[key])
    both = [(group, by) for by in COMBINATIONS for group in ("texts", "embeddings", "both")]
    lines = []
    for group, by in [*both, *single]:
        cells = [f"`{by}`" if (group, by) in single else f"**{group}**, {by}"]
        for kind in ("expert", "crowd"):
            one = of[kind].loc[(group, by)]
            cells += [_interval(one, "AUC"), _interval(one, "AP")]
            error = float(one["calibration error"])
            cells.append("" if error != error else f"{error:.3f}")
        lines.append(tuple(cells))
    expert, crowd = (of[kind].iloc[0] for kind in ("expert", "crowd"))
    judged = [f"{int(one['pairs']):,} pairs, {int(one['matches'])} of them a match" for one in (expert, crowd)]
    text = (
        f"Flickr8k, test split. Three experts judged {judged[0]} (mean of at least 3 of 4), a crowd {judged[1]} (most "
        "said so). A picture's own captions are left out. The model is VSE++, trained from scratch on 64 × 64 pixels. "
        "`cross-validated` is the audit's calibration fitted on other images; the default weights were fitted on these "
        "pairs, so that they are shown with a fit on other images, too. In brackets: 95 %, bootstrap over images."
    )
    header = ("", "expert AUC", "AP", "calibration error", "crowd AUC", "AP", "calibration error")
    return f"{text}\n\n{markdown_table(header, lines)}"


def minilm(rows: pd.DataFrame) -> str:
    """Return AUC and AP of the same judgements with embeddings of a text model, and of its signals alone."""
    of = {kind: rows[rows["judgements"] == kind].set_index(["signals", "scored by"]) for kind in ("expert", "crowd")}
    wanted = [("texts", "cross-validated"), ("embeddings", "cross-validated"), ("both", "cross-validated")]
    single = rows[(rows["judgements"] == "expert") & ~rows["scored by"].isin(COMBINATIONS)]
    single = single[single["signals"] == "embeddings"].sort_values("AUC", ascending=False)
    wanted += [("embeddings", str(name)) for name in single["scored by"]]
    lines = []
    for group, by in wanted:
        cells = [f"**{group}**, {by}" if by in COMBINATIONS else f"`{by}`"]
        for kind in ("expert", "crowd"):
            row: Any = of[kind].loc[(group, by)]
            cells += [_interval(row, "AUC"), _interval(row, "AP")]
        lines.append(tuple(cells))
    text = (
        "The same with the embeddings of MiniLM, a model of texts, in place of VSE++: a picture is the mean of the "
        "vectors of its captions. `candidate_neighbours` is the model's cosine of the candidate with the nearest "
        "caption of the picture."
    )
    return f"{text}\n\n{markdown_table(('', 'expert AUC', 'AP', 'crowd AUC', 'AP'), lines)}"


def kinds(rows: pd.DataFrame) -> str:
    """Return, of each kind of data, how good weights are that were fitted without it."""
    lines = []
    texts = rows[(rows["signals"] == "texts") & rows["AUC"].notna()]
    others, photos = ("other kinds", "other kinds, without names"), "photos and captions"
    for kind in texts["kind"].unique().tolist():
        group = texts[texts["kind"] == kind]
        mean = group.groupby("weights")[["AUC", "AP", "calibration error", "true", "stated"]].mean()
        found = {name: f"{row['AUC']:.4f}, {row['AP']:.2f}" for name, row in mean.iterrows()}
        used = mean.loc[others[0] if others[0] in found else photos]
        cells = [str(kind).replace("_", " "), str(int(group["data"].nunique()))]
        cells += [found.get(name, "") for name in (*others, photos)]
        cells += [f"{used['calibration error']:.4f}", f"{used['true']:.3%}", f"{used['stated']:.3%}"]
        lines.append(tuple(cells))
    header = (
        "kind", "sets", "AUC, AP by the other kinds", "without `text_names`", "by photos and captions",
        "calibration error", "true rate", "stated",
    )  # fmt: skip
    text = (
        "Signals of texts; means over the data sets of a kind that have a match. Weights of queries and documents are "
        "fitted without the kind of the row. The last three columns are what probabilities would be worth there: that "
        "is why they are not shown."
    )
    return f"{text}\n\n{markdown_table(header, lines)}"


def transfer(rows: pd.DataFrame) -> str:
    """Return how many data sets of each collection pass the test, and how wrong the stated rate would be."""
    lines = []
    for name, group in rows.groupby("collection", sort=False):
        known = group[group["true rate"].notna()]
        ratio = known["stated"] / known["true rate"]
        wrong = "" if known.empty or name == "hidden" else f"{int(((ratio > 2) | (ratio < 0.5)).sum())} of {len(known)}"
        distance = group["distance"].dropna()
        span = f"{distance.min():.2f} to {distance.max():.2f}" if len(distance) else "other sides"
        left_out = group["without its collection"].dropna()
        rest = f"{left_out.min():.2f} to {left_out.max():.2f}" if name in ("Flickr8k", "Flickr30k") else ""
        lines.append((str(name), str(len(group)), str(int(group["transferred"].sum())), wrong, span, rest))
    header = ("data", "sets", "transferred", "rate off by more than 2", "distance, 1 is the limit", "fit without it")
    return markdown_table(header, lines)


def _interval(one: pd.Series, name: str) -> str:
    return f"{one[name]:.3f} ({one[f'{name} low']:.3f} to {one[f'{name} high']:.3f})"


def coverage(rows: pd.DataFrame) -> str:
    """Return, of each data set, how often the interval has the true rate, and what labels change."""
    lines = []
    for data, own in rows.groupby("data", sort=False):
        cells = [str(data), f"{own['rate'].mean():.3%}"]
        cells.append(f"{own['estimate, labelled'].median():.3%}")
        cells.append(f"{own['low, labelled'].median():.3%} to {own['high, labelled'].median():.2%}")
        cells.append(f"{int(own['inside'].sum())} of {len(own)}")
        for name in ("uncalibrated", "labelled"):
            cells.append(f"{own[f'AUC, {name}'].mean():.3f}, {own[f'AP, {name}'].mean():.2f}")
        for name in ("precision", "recall"):
            both = own[[f"{name}, labelled", f"true {name}, labelled"]].dropna()  # nothing is above the threshold
            few = "" if len(both) == len(own) else f" ({len(both)} seeds)"
            cells.append(", ".join(f"{value:.2f}" for value in both.mean()) + few)
        lines.append(tuple(cells))
    seeds = int(rows.groupby("data").size().min())
    more = int((rows["labels"] > 100).sum())
    again = f" ({more} of {len(rows)} had no yes, and were drawn again with twice as many)" if more else ""
    (threshold,) = rows["threshold"].unique()
    text = (
        f"Data sets that know which pairs match, drawn with {seeds} seeds each, are audited without a model; a sheet "
        f"of 100 pairs is answered by the truth{again}. Medians of rates and intervals, means of the rest. Precision "
        f"and recall are of the threshold {threshold:g} after labels: first what the audit says of batches, then the "
        "truth of all pairs, over the seeds in which a pair is above the threshold."
    )
    header = (
        "data", "true rate", "100 labels", "interval", "rate inside", "AUC, AP without labels", "with",
        "precision", "recall",
    )  # fmt: skip
    return f"{text}\n\n{markdown_table(header, lines)}"


def sixty(rows: pd.DataFrame) -> str:
    """Return, of each data set and score, the bias of the counted rate, and how often its interval has the truth."""
    lines = []
    for (data, score), part in rows.groupby(["data", "score"], sort=False):
        error = part["counted"] - part["rate"]
        of_seeds = error.groupby(part["seed"]).mean()
        scatter = of_seeds.std() / len(of_seeds) ** 0.5
        spans = (part["high"] / part["low"]).where(part["low"] > 0)
        none = f" ({int(spans.isna().sum())} without a yes)" if spans.isna().any() else ""
        lines.append(
            (
                f"{data}" if score == "texts" else f"{data}, a score of chance",
                f"{part['rate'].mean():.3%}",
                f"{part['counted'].mean():.3%}",
                f"{error.mean():+.3%} ± {scatter:.3%}",
                f"{part['low'].median():.3%} to {part['high'].median():.2%}",
                f"{spans.median():,.0f}{none}",
                f"{part['inside'].mean():.1%} of {len(part)}",
            )
        )
    text = (
        "From each data set, drawn with 20 seeds, ten sheets are drawn; 60 pairs of each are asked in the order of the "
        "page and answered by the truth. Means of rates, medians of the ends of intervals and, where there is a yes, "
        "of the factor that they span; ± is a standard error of the bias over seeds. A score of chance is a random "
        "number in place of what the texts say."
    )
    header = ("data", "true rate", "counted", "bias", "interval", "spans a factor of", "true rate inside")
    return f"{text}\n\n{markdown_table(header, lines)}"


def worth(rows: pd.DataFrame) -> str:
    """Return, of each loss and mask, what is found on the test split, and how much of the gap is closed."""
    lines = []
    for (data, objective), own in rows.groupby(["data", "objective"], sort=False):
        for mask, runs in own.groupby("mask", sort=False):
            numbers = [pd.to_numeric(runs[name]) for name in ("hidden", "precision", "recall")]
            shown = ["–"] * 3
            if mask != "none":
                shown = [f"{numbers[0].mean():.3%}", *(f"{one.mean():.2f}" for one in numbers[1:])]
            values = runs["mAP_truth"].astype(float)
            found = f"{values.mean():.3f} ± {values.std():.3f}"
            others = [f"{runs[name].astype(float).mean():{spec}}" for name, spec in _OTHERS]
            lines.append((str(data), f"`{objective}`", str(mask), *shown, found, share(own, str(mask)), *others))
    text = (
        "The same models trained with no mask, with one of exactly the false negatives, and with that of an audit "
        "without a model and with a sheet of 100 pairs, at the threshold 0.1 or the one that is named. "
        "0.1 became the default when the numbers of scenes at 0.2 were known, before passages were trained with it. "
        "Three seeds; the sheet is another for each. mAP is "
        "over the whole ranking of the test split with all true pairs as positives, the mean of both directions; ± is "
        "over seeds."
    )
    header = (
        "data", "loss", "mask", "left out, of all pairs", "precision", "recall", "mAP, truth", "of the gap",
        "MAP@R, truth", "nDCG@10, truth", "rsum, truth", "rsum, labels",
    )  # fmt: skip
    return f"{text}\n\n{markdown_table(header, lines)}"


_OTHERS = (("MAP@R_truth", ".3f"), ("nDCG@10_truth", ".3f"), ("rsum_truth", ".1f"), ("rsum_labels", ".1f"))


def gap(own: pd.DataFrame, mask: str, measure: str = "mAP_truth") -> float:
    """Return which share of the gain of the perfect mask a mask has, of means over seeds."""
    mean = own.assign(value=own[measure].astype(float)).groupby("mask")["value"].mean()
    return float((mean[mask] - mean["none"]) / (mean["perfect"] - mean["none"]))


def share(own: pd.DataFrame, mask: str) -> str:
    """Return the share of the gap, in per cent; no number where the gap is within the scatter of seeds."""
    if mask in ("none", "perfect"):
        return ""
    values = {name: runs["mAP_truth"].astype(float) for name, runs in own.groupby("mask")}
    gain = values["perfect"].mean() - values["none"].mean()
    return f"{gap(own, mask):.0%}" if gain > values["none"].std() / len(values["none"]) ** 0.5 else "no gap"


WAYS = ("by probability", "by truth", "left out", "as labelled")  # what a suspect is in the ranking


def trials(rows: pd.DataFrame, trainings: pd.DataFrame) -> str:
    """Return what the trial says of masks, beside what full trainings with them gained."""
    lines, signs = [], []
    for (data, objective, mask), group in rows.groupby(["data", "objective", "mask"], sort=False):
        gains = training_gains(trainings, str(data), str(objective), str(mask))
        head = (str(data), f"`{objective}`", str(mask), f"{group['precision'].mean():.2f}")
        lines.append((*head, *(trial_cell(group, way) for way in WAYS), training_cell(gains)))
        if gains is not None:
            signs.append((gains.mean(), *(group[way].mean() for way in WAYS)))
    agree = [sum(bool(row[0] * row[column] > 0) for row in signs) for column in range(1, len(WAYS) + 1)]
    number, random = rows["seed"].nunique(), rows[rows["mask"] == "random"]
    helped, harmed = ((random["by probability low"] > 0).sum(), (random["by probability high"] < 0).sum())
    text = (
        f"Differences in mAP, in points: means of {number} seeds, and in brackets of how many the interval lies above "
        "0, and below. Each seed draws data, model, audit and batches. The trial's learning rate, width and steps "
        "were set on seed 0 of the same data sets, and were not changed after these were seen. The vectors are those "
        "of a model that was trained without a mask, VSE++ on scenes and a bi-encoder on passages. The exact mask is "
        "judged by the truth, that of the audit by its probabilities and by the truth, and a random mask of as many "
        "pairs by those probabilities. Full trainings are [those below](#what-the-mask-is-worth), of the data of seed "
        "0, each of three seeds in brackets, with another encoder on scenes."
    )
    gained = sum(bool(row[0] > 0) for row in signs)
    said = (
        "The mean of the trial has the sign of the mean of the full trainings in "
        + ", ".join(f"{count} of {len(signs)} rows {way}" for count, way in zip(agree, WAYS, strict=True))
        + f"; {gained} of these trainings gained, so that always to say that a mask helps agrees in {gained}. "
        f"Of {len(random)} trials of random masks {helped} had an interval above 0, {harmed} below, by probability."
    )
    header = ("data", "loss", "mask", "precision", *WAYS, "full trainings")
    return f"{text}\n\n{markdown_table(header, lines)}\n\n{said}"


def trial_cell(group: pd.DataFrame, way: str) -> str:
    """Return the mean of the seeds' differences, and of how many the interval lies above and below 0."""
    if group[way].isna().any():
        return "–"
    above, below = (group[f"{way} low"] > 0).sum(), (group[f"{way} high"] < 0).sum()
    return f"{round(group[way].mean(), 3) + 0.0:+.3f} ({above}, {below})"


def training_gains(trainings: pd.DataFrame, data: str, objective: str, mask: str) -> np.ndarray | None:
    """Return what each seed of full trainings gained in mAP, in points; None of a mask that none was trained with."""
    chosen = trainings[(trainings["data"] == data) & (trainings["objective"] == objective)]
    found = {str(name): runs["mAP_truth"].astype(float).to_numpy() for name, runs in chosen.groupby("mask")}
    return 100 * (found[mask] - found["none"]) if mask in found else None


def training_cell(gains: np.ndarray | None) -> str:
    """Return the mean gain, and that of each seed."""
    return "–" if gains is None else f"{gains.mean():+.2f} ({', '.join(f'{gain:+.2f}' for gain in gains)})"


def main(arguments: list[str]) -> int:
    """Write the page, or compare it."""
    return write_or_compare(PAGE, page(SOURCE.read_text(encoding="utf-8")), arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
