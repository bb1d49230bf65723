"""docs/doctor.in.md -> docs/doctor.md: every finding from its file, the wall, the planted cases and the advice.

The docstring of a finding begins with its question, then states the signal, and ends with `Source:`. The comment beside
a field explains its threshold. The script reads numbers from studies/doctor/results and runs no study. `--check` writes
nothing and exits 1 with a diff if the page is out of date.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Hashable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from generated_page import escape, write_or_compare

from lossscope.declarations import Declaration, declarations
from lossscope.doctor.base import Check
from lossscope.registry import build, names

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "docs" / "doctor.in.md"
PAGE = ROOT / "docs" / "doctor.md"
RESULTS = ROOT / "studies" / "doctor" / "results"
NOTE = (
    "<!-- Made by docs/make_doctor.py from docs/doctor.in.md, the docstrings of lossscope/doctor and the results of "
    "studies/doctor. Change those, then `make docs`. -->\n\n"
)
LOW = 0.25  # recall@1; below it a reader may ask what is wrong
LOWER_IS_ILL = ("dimensional-collapse", "misaligned-pairs", "no-learning", "one-direction", "scale-falling")
HURT = 5.0  # points of recall@1; a fault that costs fewer did not hurt
CLOSED = 0.8  # share of the gap to the healthy twin; advice that closes it works


def page(source: str) -> str:
    """Return the page."""
    wall, planted = (pd.read_csv(RESULTS / f"{name}.csv", keep_default_na=True) for name in ("wall", "planted"))
    checks = {name: build("findings", name) for name in names("findings")}
    checks = dict(sorted(checks.items(), key=lambda item: (_severity_rank(item[1]), item[1].order, item[0])))
    parts = {
        "table": table(checks, planted),
        "wall": wall_text(wall),
        "roc": roc(wall, planted),
        "cures": cures(planted),
        "kinds": kinds(pd.read_csv(RESULTS / "kinds.csv")),
        "advice": advice(pd.read_csv(RESULTS / "advice.csv")),
        "sections": "\n".join(section(name, check) for name, check in checks.items()).rstrip("\n"),
    }
    for name, text in parts.items():
        source = source.replace(f"<!-- {name} -->", text)
    return NOTE + source


def _severity_rank(check: Check) -> int:
    return ("error", "warning", "note").index(check.severity)


def table(checks: dict[str, Check], planted: pd.DataFrame) -> str:
    """Return a table of the findings: id, severity, question, how many planted cases put it first."""
    rows = ["| id | severity | question | planted, found first |", "|---|---|---|---|"]
    for check in checks.values():
        cases = planted[(planted["id"] == check.id()) & (planted["planted"] == "sick")]
        found = f"{int((cases['first'] == cases['id']).sum())} of {len(cases)}" if len(cases) else "–"
        rows.append(f"| [`{check.id()}`](#{check.id()}) | {check.severity} | {escape(question(check))} | {found} |")
    return "\n".join(rows)


def question(check: Check) -> str:
    """Return the first line of the check's file."""
    return (inspect.getdoc(inspect.getmodule(type(check))) or "").splitlines()[0]


def wall_text(wall: pd.DataFrame) -> str:
    """Return how many healthy items the wall has, and what the doctor found in them."""
    found = wall["findings"].fillna("")
    lines = [f"The wall of healthy runs has {len(wall)} items: " + _count_kinds(wall) + "."]
    for severity in ("error", "warning"):
        ill = wall[found.str.contains(f" {severity}")]
        each = "; ".join(_list_findings(row, severity) for row in ill.to_dict("records"))
        number = f"{len(ill) or 'no'} {severity}{'' if len(ill) == 1 else 's'}"
        lines.append(f"It has {number}{f': {each}' if each else ''}.")
    is_low, is_unexplained = wall["val_recall"] < LOW, wall["verdict"] == "cannot explain"
    lines.append(
        f"In {is_low.sum()} items recall@1 is below {LOW:.0%} on validation data: they are in the midst of a training, "
        f"or at the end of a hard one. {(is_low & is_unexplained).sum()} of these items have the verdict “cannot "
        f"explain”, and {(~is_low & is_unexplained).sum()} of the others."
    )
    return " ".join(lines)


def _list_findings(row: dict[Hashable, Any], severity: str) -> str:
    ids = ", ".join(part.partition(" ")[0] for part in str(row["findings"]).split(";") if severity in part)
    return f"{row['name']} ({row['half']}): {ids}"


def _count_kinds(wall: pd.DataFrame) -> str:
    counts = wall["kind"].value_counts()
    return ", ".join(f"{number} {kind}{'s' if number > 1 else ''}" for kind, number in counts.items())


def roc(wall: pd.DataFrame, planted: pd.DataFrame) -> str:
    """Return a row for each number with a threshold: how well it separates planted from healthy cases."""
    columns = (
        "id",
        "healthy, calibration",
        "healthy, held-out",
        "planted",
        "AUC",
        "beyond all healthy",
        "false alarms",
    )
    rows = [f"| {' | '.join((*columns, 'found first'))} |", "|---|---|---|---|---|---|---|---|"]
    for id in sorted(set(wall.columns) & set(planted["id"])):
        sign = -1 if id in LOWER_IS_ILL else 1
        halves = [wall.loc[wall["half"] == half, id].dropna() for half in ("calibration", "held-out")]
        sick = planted[(planted["id"] == id) & (planted["planted"] == "sick")]
        signal = sick["signal"].dropna()
        if not len(signal) or not any(map(len, halves)):
            continue
        healthy = pd.concat(halves)
        area = auc(sign * signal.to_numpy(), sign * healthy.to_numpy())
        alarms = wall["findings"].fillna("").str.contains(rf"(?:^|;){id} (?:error|warning)").sum()
        worst = ["–" if not len(values) else f"{_find_worst(values, sign):.3g} ({len(values)})" for values in halves]
        least = signal.min() if sign > 0 else signal.max()
        beyond = float((sign * signal > (sign * healthy).max()).mean())
        first = f"{int((sick['first'] == id).sum())} of {len(sick)}"
        cells = (
            f"`{id}`",
            *worst,
            f"{least:.3g} ({len(signal)})",
            f"{area:.3f}",
            f"{beyond:.0%}",
            f"{alarms} of {len(wall)}",
            first,
        )
        rows.append(f"| {' | '.join(cells)} |")
    below = "Healthy: the worst item. Planted: the mildest case. In brackets: the number of items or cases."
    return "\n".join([*rows, "", below])


def _find_worst(values: pd.Series, sign: int) -> float:
    return float(values.max() if sign > 0 else values.min())


def auc(sick: np.ndarray, healthy: np.ndarray) -> float:
    """Return the probability that a sick number is above a healthy number; ties count half."""
    above = (sick[:, None] > healthy[None, :]).mean() + 0.5 * (sick[:, None] == healthy[None, :]).mean()
    return float(above)


def cures(planted: pd.DataFrame) -> str:
    """Return a row for each finding and statistic: what undoing the finding restored on its planted cases."""
    lines = ["| finding | statistic | cases | before | after | undone |", "|---|---|---|---|---|---|"]
    undone = planted[(planted["planted"] == "sick") & planted["before"].notna()]
    undone = undone.assign(what=undone["cure"].str.replace(r"\d[\d,.]*", "#", regex=True).str.split(",").str[0])
    undone = undone.assign(cured=undone["cured"].str.replace(r" [a-z]\d?2[a-z]", "", regex=True))
    for (id, statistic), rows in undone.groupby(["id", "cured"]):
        before, after = (f"{rows[name].min():.3g} to {rows[name].max():.3g}" for name in ("before", "after"))
        what = "; ".join(sorted(rows["what"].unique()))
        lines.append(f"| `{id}` | {statistic} | {len(rows)} | {before} | {after} | {escape(what)} |")
    return "\n".join(lines)


def kinds(rows: pd.DataFrame) -> str:
    """Return a row for each kind of data without a part in the thresholds, and a list of wrong verdicts."""
    columns = ("kind of data", "planted, found first", "healthy, with an alarm", "healthy, cannot explain")
    lines = [f"| {' | '.join(columns)} |", "|---|---|---|---|"]
    is_planted = rows["planted"].notna()
    for kind, group in [*rows.groupby("kind", sort=False), ("all", rows)]:
        sick, healthy = group[is_planted[group.index]], group[~is_planted[group.index]]
        unexplained = int((healthy["verdict"] == "cannot explain").sum())
        cells = (
            str(kind),
            f"{int(sick['right'].sum())} of {len(sick)}",
            f"{int((~healthy['right']).sum())} of {len(healthy)}",
            f"{unexplained} of {len(healthy)}",
        )
        lines.append(f"| {' | '.join(cells)} |")
    lines += ["", "Not right:", ""]
    for row in rows[~rows["right"]].to_dict("records"):
        found = f"`{row['first']}` first" if isinstance(row["first"], str) else str(row["verdict"])
        truth = " or ".join(f"`{id}`" for id in str(row["planted"]).split()) if isinstance(row["planted"], str) else ""
        lines.append(f"- {row['kind']}, {row['name']}: {found}{f'; planted {truth}' if truth else '; healthy'}.")
    return "\n".join(lines)


def advice(rows: pd.DataFrame) -> str:
    """Return the effect of the advice on every sick run, and how many runs closed the gap to the healthy twin."""
    lines = [
        "| finding | fault | command | seed | before | after | healthy twin | gap closed | finding after |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    rows = rows.assign(closed=gaps_closed(rows))
    for row in rows.to_dict("records"):
        command = f"`{row['command']}`" if isinstance(row["command"], str) else "–"
        recalls = (f"{row[name]:.1f}" for name in ("before", "after", "twin"))
        closed = f"{row['closed']:.0%}" if np.isfinite(row["closed"]) else "–"
        cells = (f"`{row['id']}`", f"`{row['fault']}`", command, str(row["seed"]), *recalls, closed)
        lines.append(f"| {' | '.join(cells)} | {'still there' if row['found_after'] else 'gone'} |")
    hurt = rows["closed"].dropna()
    gone, most = int((~rows["found_after"].astype(bool)).sum()), int((hurt >= CLOSED).sum())
    lines += [
        "",
        f"The finding is gone in {gone} of {len(rows)} runs. In {len(hurt)} runs the fault cost {HURT:g} points or "
        f"more. The advice closes at least {CLOSED:.0%} of the gap to the twin in {most} of them ("
        f"{most / len(hurt):.0%}).",
    ]
    return "\n".join(lines)


def gaps_closed(rows: pd.DataFrame) -> pd.Series:
    """Return the share of the gap to the twin that advice closed; NaN if the fault did not hurt recall.

    Without a command the share is 0.
    """
    gap = rows["twin"] - rows["before"]
    return ((rows["after"].fillna(rows["before"]) - rows["before"]) / gap).where(gap >= HURT)


def section(name: str, check: Check) -> str:
    """Return the section of a finding: question, signal, thresholds, what it explains, source."""
    text = inspect.getdoc(type(check)) or ""
    body = " ".join(text.partition("Source:")[0].split())
    lines = [f"### {check.id()}", "", f"{check.severity.capitalize()}. {escape(body)}", ""]
    declaration = next(item for item in declarations("findings") if item.name == name)
    lines += [*thresholds(declaration), *([""] if declaration.fields else [])]
    if check.explains:
        lines += [f"Explains: {', '.join(f'`{id}`' for id in check.explains)}.", ""]
    return "\n".join([*lines, f"Source: {escape(check.reference())}.", ""])


def thresholds(declaration: Declaration) -> list[str]:
    """Return a line for each threshold."""
    return [f"- `{field.name}` = {field.default}: {escape(field.help)}" for field in declaration.fields]


def main(arguments: list[str]) -> int:
    """Write the page, or compare it."""
    return write_or_compare(PAGE, page(SOURCE.read_text(encoding="utf-8")), arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
