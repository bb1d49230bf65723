"""Sentences of captions and footnotes of a paper's table: settings, parameters, deviations, published rows."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from lossscope.declarations import published_caveat

from . import runs
from ._lines import Line
from ._printed import PrintedTable
from ._protocol import sizes
from ._summary import format_value, span

_ORIENTATION = "Published numbers are for other data and models than ours; they only give an orientation."


def settings(rows: pd.DataFrame) -> list[str]:
    """Return those of eps, batch size and sampling that all rows share: `eps 0.01`."""
    parts = []
    for column in runs.SETTINGS:
        values = rows[column].dropna().map(format_value).unique()
        if len(values) == 1 and rows[column].notna().all():
            parts.append(values[0] if values[0].endswith(" split") else f"{column.replace('_', ' ')} {values[0]}")
    return parts


def sentence(parts: Sequence[str]) -> str:
    """Return `Data scenes; eps 0.01.`, or an empty text without parts."""
    text = "; ".join(dict.fromkeys(parts))
    return f"{text[:1].upper()}{text[1:]}." if text else ""


def parameters(lines: Sequence[Line]) -> str:
    """Return the objectives and their parameters, each once: `Objectives: triplet (margin 0.2), ntxent (tau 0.1).`"""
    labels: dict[tuple[str | None, str], list[str]] = {}
    for line in lines:
        if line.spec:
            labels.setdefault((line.key[0], line.parameters), []).append(line.objective_label)
    parts = []
    for (name, values), same in labels.items():
        label = str(name) if len(set(same)) > 1 else same[0]
        parts.append(f"{label} ({values})" if values and ":" not in label else label)
    return f"Objectives: {', '.join(parts)}." if parts else ""


def deviation(lines: Sequence[Line]) -> str:
    """Return the number of runs, their seeds, and the meaning of ±."""
    with_runs = [line for line in lines if len(line.rows)]
    rows = pd.concat([line.rows for line in with_runs])
    sizes = sorted({len(line.runs) for line in with_runs})
    seeds = sorted(rows["seed"].dropna().unique())
    names = f" (seed{'s' if len(seeds) > 1 else ''} {', '.join(map(format_value, seeds))})" if seeds else ""
    batches = sorted({int(n) for n in rows["n"].dropna()}) if (rows["probe"] == "cocos").all() else []
    each = f", each a mean over {span(batches)} batches" if batches else ""
    if sizes == [1]:
        return f"Ours: one run{names}{each}, no deviation."
    alone = "; where n = 1, no deviation" if sizes[0] == 1 else ""
    return f"Ours: mean ± sample standard deviation over n = {span(sizes)} runs{names}{each}{alone}."


def published_notes(lines: Sequence[Line], printed: PrintedTable) -> list[str]:
    """Return footnotes on the published rows: the matching rows of ours, their numbers, and differing parameters."""
    matched = [line for line in lines if len(line.rows) and len(line.printed)]
    apart = list(dict.fromkeys(line.apart for line in lines if line.apart))
    if not matched and all(len(line.rows) for line in lines):
        return apart or [f"{printed.about.cite} has no row for these data, models and objectives."]
    notes = [f"Published, {printed.about.cite}: {printed.about.deviation}."]
    pairs = dict.fromkeys(_pair(line) for line in matched)
    notes += [f"Published rows: {'; '.join(pairs)}."] if pairs else []
    if any(runs.is_other_data(line.data, str(line.printed["dataset"].iloc[0])) for line in matched):
        numbers = "; ".join(dict.fromkeys(filter(None, (sizes(line.rows, line.printed) for line in matched))))
        notes.append(_ORIENTATION + (f" Ranked at a time: {numbers}." if numbers else ""))
    caveats = dict.fromkeys(caveat for line in matched if line.spec and (caveat := published_caveat(line.spec)))
    notes += [f"{caveat[:1].upper()}{caveat[1:]}." for caveat in caveats]
    return notes + apart + _differences(matched, printed)


def _pair(line: Line) -> str:
    row = line.printed.iloc[0]
    return f"{row['dataset']} ({row['split']}), {row['method']} beside {line.data}, {line.encoder}"


def _differences(lines: Sequence[Line], printed: PrintedTable) -> list[str]:
    each: dict[str, None] = {}
    for line in lines:
        row = line.rows.iloc[0]
        stated = {column: format_value(row[column]) for column in ("eps", "batch_size")}
        differences = printed.differences(line.printed, line.spec, stated)
        each |= dict.fromkeys([f"{line.objective_label}: {', '.join(differences)}"] if differences else [])
    return [f"Parameters that differ from the published row: {'; '.join(each)}."] if each else []
