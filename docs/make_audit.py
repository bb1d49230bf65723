"""docs/audit.in.md -> docs/audit.md: every signal from its file, and the results of the audit's studies.

The docstring of a signal's file is its question. The docstring of its class begins with the formula and may end with
`Source:`. The script reads numbers from studies/audit/results and runs no study. `--check` writes nothing and exits 1
with a diff if the page is out of date.
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
    """Return a table of the signals: name, what the signal reads, question, formula."""
    built: list[Signal] = [build("signals", name) for name in names("signals")]
    built.sort(key=lambda signal: (list(GROUPS).index(signal.group), signal.name()))
    rows: list[tuple[str, ...]] = []
    for signal in built:
        question = (inspect.getdoc(inspect.getmodule(type(signal))) or "").splitlines()[0]
        text = " ".join((inspect.getdoc(type(signal)) or "").split())
        formula, _, source = text.partition("Source: ")
        shown = f"{formula.strip()} ({source.strip().rstrip('.')})" if source else formula.strip()
        rows.append((f"`{signal.name()}`", GROUPS[signal.group], escape(question), escape(shown).replace("|", "\\|")))
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
            row = of[kind].loc[(group, by)]
            cells += [_format_interval(row, "AUC"), _format_interval(row, "AP")]
            error = float(row["calibration error"])
            cells.append("" if error != error else f"{error:.3f}")
        lines.append(tuple(cells))
    expert, crowd = (of[kind].iloc[0] for kind in ("expert", "crowd"))
    judged = [f"{int(row['pairs']):,} pairs, {int(row['matches'])} of them matches" for row in (expert, crowd)]
    text = (
        f"Flickr8k, test split. Three experts judged {judged[0]} (mean of at least 3 of 4). A crowd judged "
        f"{judged[1]} (most said so). The table leaves out a picture's own captions. The model is VSE++, trained from "
        "scratch on 64 × 64 pixels. `cross-validated` is the audit's calibration, fitted on other images. The default "
        "weights come from a fit on these pairs. So the table also shows them with a fit on other images. In brackets: "
        "95 %, bootstrap over images."
    )
    header = ("", "expert AUC", "AP", "calibration error", "crowd AUC", "AP", "calibration error")
    return f"{text}\n\n{markdown_table(header, lines)}"


def minilm(rows: pd.DataFrame) -> str:
    """Return AUC and AP of the same judgements with embeddings of a text model, and with each of its signals."""
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
            cells += [_format_interval(row, "AUC"), _format_interval(row, "AP")]
        lines.append(tuple(cells))
    text = (
        "The next table has the embeddings of MiniLM, a model of texts, in place of VSE++. A picture is the mean of "
        "the vectors of its captions. `candidate_neighbours` is the model's cosine of the candidate with the nearest "
        "caption of the picture."
    )
    return f"{text}\n\n{markdown_table(('', 'expert AUC', 'AP', 'crowd AUC', 'AP'), lines)}"


def kinds(rows: pd.DataFrame) -> str:
    """Return a row for each kind of data: how good weights are if their fit leaves the kind out."""
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
        "Signals of texts. Numbers are means over the data sets of a kind that have a match. The fit of the weights of "
        "queries and documents leaves out the kind of the row. The last three columns show how wrong probabilities "
        "would be there. So the audit prints none."
    )
    return f"{text}\n\n{markdown_table(header, lines)}"


def transfer(rows: pd.DataFrame) -> str:
    """Return a row for each collection: how many data sets pass the test, how wrong the stated rate would be."""
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


def _format_interval(row: pd.Series, name: str) -> str:
    return f"{row[name]:.3f} ({row[f'{name} low']:.3f} to {row[f'{name} high']:.3f})"


def coverage(rows: pd.DataFrame) -> str:
    """Return a row for each data set: how often the interval has the true rate, and what labels change."""
    lines = []
    for data, group in rows.groupby("data", sort=False):
        cells = [str(data), f"{group['rate'].mean():.3%}"]
        cells.append(f"{group['estimate, labelled'].median():.3%}")
        cells.append(f"{group['low, labelled'].median():.3%} to {group['high, labelled'].median():.2%}")
        cells.append(f"{int(group['inside'].sum())} of {len(group)}")
        for name in ("uncalibrated", "labelled"):
            cells.append(f"{group[f'AUC, {name}'].mean():.3f}, {group[f'AP, {name}'].mean():.2f}")
        for name in ("precision", "recall"):
            both = group[[f"{name}, labelled", f"true {name}, labelled"]].dropna()  # NaN: no pair above the threshold
            few = "" if len(both) == len(group) else f" ({len(both)} seeds)"
            cells.append(", ".join(f"{value:.2f}" for value in both.mean()) + few)
        lines.append(tuple(cells))
    seeds = int(rows.groupby("data").size().min())
    more = int((rows["labels"] > 100).sum())
    again = f"; twice as many pairs replaced {more} of {len(rows)} sheets without a yes" if more else ""
    (threshold,) = rows["threshold"].unique()
    text = (
        f"These data sets know which pairs match. We drew each with {seeds} seeds and audited it without a model. The "
        f"truth answered a sheet of 100 pairs{again}. Rates and intervals are medians, the other numbers means. "
        f"Precision and recall belong to the threshold {threshold:g} after labels. The first number is the audit's, of "
        "batches. The second is the truth of all pairs, over the seeds in which a pair is above the threshold."
    )
    header = (
        "data", "true rate", "100 labels", "interval", "rate inside", "AUC, AP without labels", "with",
        "precision", "recall",
    )  # fmt: skip
    return f"{text}\n\n{markdown_table(header, lines)}"


def sixty(rows: pd.DataFrame) -> str:
    """Return a row for each data set and score: bias of the counted rate, how often its interval has the truth."""
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
        "We drew each data set with 20 seeds, and ten sheets from each draw. The truth answered 60 pairs of a sheet in "
        "the order of the page. Rates are means. The bounds of intervals are medians, as is the factor that they span "
        "where there is a yes. ± is a standard error of the bias over seeds. A score of chance is a random number in "
        "place of the score of the texts."
    )
    header = ("data", "true rate", "counted", "bias", "interval", "spans a factor of", "true rate inside")
    return f"{text}\n\n{markdown_table(header, lines)}"


def worth(rows: pd.DataFrame) -> str:
    """Return a row for each loss and mask: retrieval on the test split, and how much of the gap the mask closes."""
    lines = []
    for (data, objective), group in rows.groupby(["data", "objective"], sort=False):
        for mask, runs in group.groupby("mask", sort=False):
            numbers = [pd.to_numeric(runs[name]) for name in ("hidden", "precision", "recall")]
            shown = ["–"] * 3
            if mask != "none":
                shown = [f"{numbers[0].mean():.3%}", *(f"{number.mean():.2f}" for number in numbers[1:])]
            values = runs["mAP_truth"].astype(float)
            found = f"{values.mean():.3f} ± {values.std():.3f}"
            others = [f"{runs[name].astype(float).mean():{spec}}" for name, spec in _OTHERS]
            lines.append((str(data), f"`{objective}`", str(mask), *shown, found, share(group, str(mask)), *others))
    text = (
        "We trained the same models without a mask, with a mask of exactly the false negatives, and with the mask of "
        "an audit. The audit had no model and a sheet of 100 pairs. Its threshold is 0.1, or the one in the table. "
        "We chose 0.1 as the default after we knew the numbers of scenes at 0.2, before we trained passages with it. "
        "There are three seeds, and each has another sheet. mAP is over the whole ranking of the test split, with "
        "all true pairs as positives, the mean of both directions. ± is over seeds."
    )
    header = (
        "data", "loss", "mask", "left out, of all pairs", "precision", "recall", "mAP, truth", "of the gap",
        "MAP@R, truth", "nDCG@10, truth", "rsum, truth", "rsum, labels",
    )  # fmt: skip
    return f"{text}\n\n{markdown_table(header, lines)}"


_OTHERS = (("MAP@R_truth", ".3f"), ("nDCG@10_truth", ".3f"), ("rsum_truth", ".1f"), ("rsum_labels", ".1f"))


def gap(runs: pd.DataFrame, mask: str, measure: str = "mAP_truth") -> float:
    """Return the gain of a mask / the gain of the perfect mask, from means over seeds."""
    mean = runs.assign(value=runs[measure].astype(float)).groupby("mask")["value"].mean()
    return float((mean[mask] - mean["none"]) / (mean["perfect"] - mean["none"]))


def share(group: pd.DataFrame, mask: str) -> str:
    """Return the share of the gap, in per cent; "no gap" if the gap is within the scatter of seeds."""
    if mask in ("none", "perfect"):
        return ""
    values = {name: runs["mAP_truth"].astype(float) for name, runs in group.groupby("mask")}
    gain = values["perfect"].mean() - values["none"].mean()
    return f"{gap(group, mask):.0%}" if gain > values["none"].std() / len(values["none"]) ** 0.5 else "no gap"


WAYS = ("by probability", "by truth", "left out", "as labelled")  # how a suspect counts in the ranking


def trials(rows: pd.DataFrame, trainings: pd.DataFrame) -> str:
    """Return the gains of masks in the trial, beside their gains in full trainings."""
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
        f"The table has differences in mAP, in points, as means of {number} seeds. The brackets say for how many seeds "
        "the interval lies above 0, and below. Each seed draws data, model, audit and batches. We set the trial's "
        "learning rate, width and steps on seed 0 of the same data sets, and left them alone after we saw these "
        "numbers. The vectors come from a model trained without a mask: VSE++ on scenes, a bi-encoder on passages. The "
        "truth judges the exact mask. The audit's probabilities and the truth judge the audit's mask. The audit's "
        "probabilities judge a random mask of as many pairs. [Full trainings](#what-the-mask-is-worth) used the data "
        "of seed 0, with another encoder on scenes. The brackets list their three seeds."
    )
    gained = sum(bool(row[0] > 0) for row in signs)
    agreement = (
        "The mean of the trial has the sign of the mean of the full trainings in "
        + ", ".join(f"{count} of {len(signs)} rows {way}" for count, way in zip(agree, WAYS, strict=True))
        + f". {gained} of these trainings gained, so the constant answer “a mask helps” agrees in {gained}. By "
        f"probability, {helped} of {len(random)} trials of random masks had an interval above 0, and {harmed} below."
    )
    header = ("data", "loss", "mask", "precision", *WAYS, "full trainings")
    return f"{text}\n\n{markdown_table(header, lines)}\n\n{agreement}"


def trial_cell(group: pd.DataFrame, way: str) -> str:
    """Return the mean difference of the seeds, and how many seeds have an interval above and below 0."""
    if group[way].isna().any():
        return "–"
    above, below = (group[f"{way} low"] > 0).sum(), (group[f"{way} high"] < 0).sum()
    return f"{round(group[way].mean(), 3) + 0.0:+.3f} ({above}, {below})"


def training_gains(trainings: pd.DataFrame, data: str, objective: str, mask: str) -> np.ndarray | None:
    """Return the gain in mAP of each seed of full trainings, in points; None for a mask without a training."""
    chosen = trainings[(trainings["data"] == data) & (trainings["objective"] == objective)]
    found = {str(name): runs["mAP_truth"].astype(float).to_numpy() for name, runs in chosen.groupby("mask")}
    return 100 * (found[mask] - found["none"]) if mask in found else None


def training_cell(gains: np.ndarray | None) -> str:
    """Return the mean gain, and the gain of each seed."""
    return "–" if gains is None else f"{gains.mean():+.2f} ({', '.join(f'{gain:+.2f}' for gain in gains)})"


def main(arguments: list[str]) -> int:
    """Write the page, or compare it."""
    return write_or_compare(PAGE, page(SOURCE.read_text(encoding="utf-8")), arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
