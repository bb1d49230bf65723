"""What must a caption and the footnotes of a paper's table say, so that its numbers can be believed?"""

from __future__ import annotations

import re
from collections.abc import Sequence

import pandas as pd

from . import runs
from ._lines import Line
from ._printed import Printed
from ._summary import shown

_ORIENTATION = "Published numbers are of other data and models than ours, and stand for orientation."


def settings(rows: pd.DataFrame) -> list[str]:
    """eps, batch size and sampling, where all rows have one."""
    told = []
    for column in runs.SETTINGS:
        values = rows[column].dropna().map(shown).unique()
        if len(values) == 1 and rows[column].notna().all():
            told.append(values[0] if values[0].endswith(" split") else f"{column.replace('_', ' ')} {values[0]}")
    return told


def sentence(parts: Sequence[str]) -> str:
    """`Data scenes; eps 0.01.`, or nothing where there is nothing to say."""
    words = "; ".join(dict.fromkeys(parts))
    return f"{words[:1].upper()}{words[1:]}." if words else ""


def parameters(lines: Sequence[Line]) -> str:
    """What the objectives were given, each once: `Objectives: triplet (margin 0.2), ntxent (tau 0.1).`"""
    own = [line for line in lines if line.spec]
    labels: dict[tuple[str | None, str], list[str]] = {}
    for line in own:
        labels.setdefault((line.key[0], line.parameters), []).append(line.objective_label)
    told = []
    for (name, given), named in labels.items():
        label = str(name) if len(set(named)) > 1 else named[0]
        told.append(f"{label} ({given})" if given else label)
    return f"Objectives: {', '.join(told)}."


def deviation(lines: Sequence[Line]) -> str:
    """How many runs there are, of which seeds, and what stands behind ±."""
    own = [line for line in lines if len(line.rows)]
    rows = pd.concat([line.rows for line in own])
    sizes = sorted({len(line.runs) for line in own})
    seeds = sorted(rows["seed"].dropna().unique())
    named = f" (seed{'s' if len(seeds) > 1 else ''} {', '.join(map(shown, seeds))})" if seeds else ""
    batches = sorted({int(n) for n in rows["n"].dropna()}) if (rows["probe"] == "cocos").all() else []
    each = f", each a mean over {_span(batches)} batches" if batches else ""
    if sizes == [1]:
        return f"Ours: one run{named}{each}, no deviation."
    alone = "; where n = 1, no deviation" if sizes[0] == 1 else ""
    return f"Ours: mean ± sample standard deviation over n = {_span(sizes)} runs{named}{each}{alone}."


def beside(lines: Sequence[Line], printed: Printed) -> list[str]:
    """Which published rows stand beside which of ours, what their numbers are, and where their parameters differ."""
    matched = [line for line in lines if len(line.rows) and len(line.printed)]
    if not matched and all(len(line.rows) for line in lines):
        return [f"No row of {printed.about.cite} is of these data, models and objectives."]
    told = [f"Published, {printed.about.cite}: {printed.about.spread}."]
    pairs = dict.fromkeys(_pair(line) for line in matched)
    told += [f"Published rows: {'; '.join(pairs)}."] if pairs else []
    if any(_other(line.data, str(line.printed["dataset"].iloc[0])) for line in matched):
        told.append(_ORIENTATION)
    return told + _differences(matched, printed)


def _pair(line: Line) -> str:
    row = line.printed.iloc[0]
    return f"{row['dataset']} ({row['split']}), {row['method']} beside {line.data}, {line.encoder}"


def _differences(lines: Sequence[Line], printed: Printed) -> list[str]:
    told: dict[str, None] = {}
    for line in lines:
        row = line.rows.iloc[0]
        given = {column: shown(row[column]) for column in ("eps", "batch_size")}
        found = printed.differences(line.printed, line.spec, given)
        told |= dict.fromkeys([f"{line.objective_label}: {', '.join(found)}"] if found else [])
    return [f"Parameters that differ from the published row: {'; '.join(told)}."] if told else []


def _other(data: str, dataset: str) -> bool:
    """Whether a label is not that of a published data set: `Flickr30k, 1K test` is flickr30k, `COCO` mscoco."""
    label = re.sub(r"[^a-z0-9 ]", "", data.lower())
    return not label.startswith((dataset, dataset.removeprefix("ms")))


def _span(numbers: Sequence[int]) -> str:
    return str(numbers[0]) if len(numbers) == 1 else f"{numbers[0]} to {numbers[-1]}"
