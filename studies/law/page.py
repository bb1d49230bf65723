"""The report of the law: one page, one picture, and the tables behind them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from design import FEW_RATES, KEPT, OBJECTIVES, RATES
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from words import LIMITS, sentences, signed

from lossscope.io.files import write_text
from lossscope.plots import style
from lossscope.tables.base import Table
from lossscope.tables.cells import Cell

_LEFT = 0.002  # percent at which rate 0 is drawn
_NAMES = {
    "C_neg": "C_neg, eps 0.01", "N_eff": "N_eff", "k95": "fidelity k95", "false_weight": "weight on false negatives",
    "utility_margin": "one-step utility, margin", "utility_nDCG": "one-step utility, nDCG",
}  # fmt: skip
HEAD = """# Does a loss learn better if fewer samples count?

[The plan](../../studies/law/PLAN.md) was written before the first run. `python studies/law/run.py` trains and resumes,
`python studies/law/analyse.py` writes this page from [results.csv](../../studies/law/results.csv). A contrast is the
final rsum of a run that keeps the k heaviest negatives of its loss, less that of the same run with all negatives.

"""


def write_state(report: Path, rows: pd.DataFrame, missing: Sequence[str]) -> None:
    """Write a README.md that says how far the study is, and no result: the plan allows none before all runs have ended.

    Args:
        report: folder.
        rows: results.csv.
        missing: blocks with missing runs.
    """
    done = f"{len(rows):,} runs have ended, in {rows['seconds'].sum() / 3600:.1f} core hours"
    text = (
        f"**The study is not finished.** {done}; missing: {', '.join(missing)}. The plan allows no look at a contrast"
    )
    write_text(report / "README.md", f"{HEAD}{text}\nbefore all have ended.\n")


def write_page(report: Path, rows: pd.DataFrame, found: Mapping[str, pd.DataFrame]) -> None:
    """Write README.md and law.png.

    Args:
        report: folder.
        rows: results.csv.
        found: the tables of `analyse`.
    """
    with style.screen():
        style.save(draw(found), report / "law.png", alt(found))
    diverged = int(rows["rsum"].isna().sum())
    state = f"All {len(rows):,} runs have ended, in {rows['seconds'].sum() / 3600:.1f} core hours; {diverged} diverged."
    parts = [
        HEAD, f"{state}\n", "\n## What was found\n", sentences(found), f"![{alt(found)}](law.png)\n", LIMITS,
        "## H1 and H2: is it the cause, and does the sign turn?\n", contrast_table(found["contrasts"]).to_markdown(),
        turn_table(found["turns"]).to_markdown(),
        count_table(found["counts"]).to_markdown(),
        "## H3: how many negatives?\n", dose_table(found["doses"]).to_markdown(),
        "## H4: what predicts the end at epoch 1?\n", skill_table(found["skills"]).to_markdown(),
        "## H5 and elsewhere\n", elsewhere_table(found["contrasts"]).to_markdown(),
    ]  # fmt: skip
    write_text(report / "README.md", "\n".join(part.rstrip("\n") + "\n" for part in parts))


def draw(found: Mapping[str, pd.DataFrame]) -> Figure:
    """Where does it help to keep few negatives, and which number says so after one epoch?"""
    fig = style.set_headline(style.new_figure(style.PAGE, 1.0), "Does a loss learn better if fewer negatives count?")
    doses = found["doses"]
    first, second = fig.add_subplot(1, 3, 1), fig.add_subplot(1, 3, 2)
    for ax, data in ((first, "scenes"), (second, "passages")):
        _draw_doses(ax, doses[doses["data"] == data], data)
    _draw_skills(fig.add_subplot(1, 3, 3), found["skills"])
    first.set_ylabel("rsum, less that of all negatives")
    second.legend(fontsize=style.small(), frameon=False, loc="upper left")
    return fig


def _draw_doses(ax: Axes, doses: pd.DataFrame, data: str) -> None:
    """Mean over losses of rsum(top k) − rsum(all), against the rate of false negatives."""
    x = [max(rate, _LEFT) for rate in RATES]
    colours = style.colours(list(KEPT[:-1]))
    for kept in KEPT[:-1]:
        of_kept = doses[doses["kept"] == kept]
        means = of_kept.groupby("rate")["mean"]
        y = means.mean().reindex(RATES).to_numpy(float)
        ax.plot(x, y, marker="o", markersize=4, label=kept, color=colours[kept])
        if kept == KEPT[0]:
            low, high = (means.agg(name).reindex(RATES).to_numpy(float) for name in ("min", "max"))
            ax.fill_between(x, low, high, color=colours[kept], alpha=0.12, linewidth=0, label="top 1, range of losses")
    ax.axhline(0, color="black", linewidth=0.8)
    ax.set_xscale("log")
    ax.set_xticks(x, [f"{rate:g}" for rate in RATES])
    ax.minorticks_off()
    ax.set_xlabel("false negatives of a batch, %")
    ax.set_title(f"{data}\nmean of four losses")


def _draw_skills(ax: Axes, skills: pd.DataFrame) -> None:
    """Skill of each predictor on a left-out loss, with its interval."""
    ordered = skills.iloc[::-1].reset_index(drop=True)
    for y, row in enumerate(ordered.to_dict("records")):
        ax.plot([row["low"], row["high"]], [y, y], color="black", linewidth=1.2)
        ax.plot([row["skill"]], [y], marker="o", color="black", markersize=5)
    ax.axvline(0, color="black", linewidth=0.8)
    names = [
        style.wrap_words(_NAMES[name].replace("C_neg", "C neg").replace("N_eff", "N eff"), 16)
        for name in ordered["predictor"]
    ]
    ax.set_yticks(range(len(ordered)), names, fontsize=style.small())
    ax.set_xlabel("skill on a left-out loss")
    ax.set_title("prediction at epoch 1\nof the final rsum")


def alt(found: Mapping[str, pd.DataFrame]) -> str:
    """Return a description of the picture for readers who cannot see it."""
    doses, skills = found["doses"], found["skills"]
    parts = []
    for data in ("scenes", "passages"):
        of_top = doses[(doses["data"] == data) & (doses["kept"] == "top 1")].groupby("rate")["mean"].mean()
        parts.append(
            f"{data}: top 1 less all {', '.join(f'{value:+.0f} at {rate:g} %' for rate, value in of_top.items())}"
        )
    best = skills.iloc[0]
    predictor = f"Best predictor: {_NAMES[best['predictor']]}, skill {best['skill']:.2f}"
    return f"Mean difference of rsum, {'; '.join(parts)}. {predictor}."


def _interval(row: Mapping[Any, Any], digits: int = 1) -> Cell:
    return Cell() if math.isnan(row["low"]) else Cell(interval=(row["low"], row["high"]), digits=digits)


def _p_value(p: float) -> str:
    return "< 0.0001" if p < 0.0001 else f"{p:.2g}"


def _headers(*names: str) -> tuple[tuple[str, str], ...]:
    return tuple(("", name) for name in names)


def contrast_table(contrasts: pd.DataFrame) -> Table:
    """Return H1, H2 and their parts."""
    rows = contrasts[contrasts["family"].isin(["H1", "H2", "parts"])]
    body = tuple(
        (Cell(text=row["family"]), Cell(text=row["what"]), Cell(mean=row["n"], digits=0), Cell(mean=row["mean"]),
         _interval(row), Cell(text=_p_value(row["p_holm"])))
        for row in rows.to_dict("records")
    )  # fmt: skip
    caption = "rsum of top 1 less that of all negatives, strong start, batch 128, first encoder; t over seeds."
    return Table(
        "contrasts", caption, _headers("family", "contrast", "seeds", "mean", "95 % interval", "p, Holm"), body
    )


def turn_table(turns: pd.DataFrame) -> Table:
    """Return where the contrast changes its sign."""
    body = tuple(
        (Cell(text=row["data"]), Cell(text=row["objective"]), Cell(mean=row["at_0"]), Cell(mean=row["at_8"]),
         Cell(text="none") if math.isnan(row["rate"]) else Cell(text=f"{row['rate']:.2g} %"),
         Cell(text=f"{row['low']:.2g} to {row['high']:.2g} %" if not math.isnan(row["low"]) else None),
         Cell(mean=100 * row["turned"], digits=0))
        for row in turns.to_dict("records")
    )  # fmt: skip
    headers = _headers(
        "data", "loss", "at 0 %", "at 8 %", "first turn", "95 % of resamples that turn", "resamples that turn, %"
    )
    return Table("turns", "The rate of false negatives at which top 1 less all changes its sign.", headers, body)


def count_table(counts: pd.DataFrame) -> Table:
    """Return how many negatives count at epoch 1, and how much of their weight lies on false ones, by loss and kept."""
    table = {(line["objective"], line["kept"]): line for line in counts.to_dict("records")}
    body = tuple(
        (Cell(text=objective), *(
            Cell(text=f"{line['C_neg']:.1f}, {100 * line['false_weight']:.0f} %")
            for line in (table[objective, kept] for kept in KEPT)
        ))
        for objective in OBJECTIVES
    )  # fmt: skip
    caption = (
        f"What the parts change at epoch 1: C_neg at eps 0.01, and the share of the weight on false negatives at "
        f"{RATES[-1]:g} %."
    )
    return Table("counts", caption, _headers("loss", *KEPT), body)


def dose_table(doses: pd.DataFrame) -> Table:
    """Return rsum(top k) − rsum(all) of each data set, loss and rate."""
    body = []
    for data in ("scenes", "passages"):
        for objective in OBJECTIVES:
            for rate in RATES:
                part = doses[(doses["data"] == data) & (doses["objective"] == objective) & (doses["rate"] == rate)]
                of_kept = part.set_index("kept")
                cells = [_with_interval(of_kept.loc[kept].to_dict()) for kept in KEPT[:-1]]
                body.append(
                    (
                        Cell(text=data),
                        Cell(text=objective),
                        Cell(text=f"{rate:g}"),
                        Cell(mean=part["all"].iloc[0]),
                        *cells,
                    )
                )
    headers = _headers("data", "loss", "rate %", "rsum, all", *KEPT[:-1])
    return Table(
        "doses",
        "rsum of the k heaviest negatives less that of all, with 95 % t-intervals over seeds.",
        headers,
        tuple(body),
    )


def skill_table(skills: pd.DataFrame) -> Table:
    """Return the skill of each predictor."""
    body = tuple(
        (Cell(text=_NAMES[row["predictor"]]), Cell(mean=row["skill"], digits=2), _interval(row, 2),
         Cell(mean=row["skill_scenes"], digits=2), Cell(mean=row["skill_passages"], digits=2),
         Cell(interval=(row["behind_low"], row["behind_high"]), digits=2))
        for row in skills.to_dict("records")
    )  # fmt: skip
    caption = (
        "Skill of leave-one-loss-out prediction, 1 − Σ (y − ŷ)² / Σ y², with a bootstrap over "
        f"{skills['groups'].iloc[0]} groups. The other seeds of the same run have {skills['ceiling'].iloc[0]:.2f}."
    )
    return Table(
        "skills",
        caption,
        _headers("predictor", "skill", "95 % interval", "scenes", "passages", "behind the best"),
        body,
    )


def elsewhere_table(contrasts: pd.DataFrame) -> Table:
    """Return the tail, and the contrasts of the other blocks: a row for each block, data and kept."""
    rows = contrasts[contrasts["family"].isin(["tail", "elsewhere"])]
    body = []
    for cell, of_cell in rows.groupby("cell", sort=False):
        by_rate = of_cell.set_index("rate").to_dict("index")
        numbers = (_with_interval(by_rate[rate]) if rate in by_rate else Cell() for rate in FEW_RATES)
        body.append((Cell(text=f"{cell} - all"), Cell(mean=of_cell["n"].iloc[0], digits=0), *numbers))
    caption = "Contrasts of the other blocks, with 95 % t-intervals over seeds; * p < 0.05 of the 18 of H5, by Holm."
    return Table(
        "elsewhere", caption, _headers("contrast", "seeds", *(f"{rate:g} %" for rate in FEW_RATES)), tuple(body)
    )


def _with_interval(line: Mapping[Any, Any]) -> Cell:
    """Return mean and interval; a star where Holm's p says so."""
    if math.isnan(line["low"]):
        return Cell() if math.isnan(line["mean"]) else Cell(text=signed(line["mean"]))
    star = "*" if line.get("p_holm", math.nan) < 0.05 else ""
    return Cell(
        text=f"{line['mean']:+.1f} [{line['low']:.0f}, {line['high']:.0f}]{star}".replace("-", "\N{MINUS SIGN}")
    )
