"""Write the end of a caption, with shared settings and the meaning of the deviation, and notes on undefined values."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from ._summary import SETTING_NAMES, SETTINGS, format_value, group_rows, span, varying_settings


def settings(rows: pd.DataFrame, per: str, by: Sequence[str] = ("source", "objective")) -> str:
    """Return the end of a caption: settings that all rows share, seeds, and the meaning of the deviation.

    Args:
        rows: summary rows.
        per: unit of the deviation of one measurement: "batches".
        by: columns that make a row of the table.
    """
    sources = rows["source"].map(format_value).unique()
    parts = [f"source {sources[0]}"] if len(sources) == 1 else []
    parts += used_rows(rows)
    for column in SETTINGS:
        values = rows[column].dropna().unique()
        if len(values) == 1 and column not in varying_settings(rows):
            parts.append(f"{SETTING_NAMES.get(column, column)} {format_value(values[0])}")
    seeds = [format_value(seed) for seed in sorted(rows["seed"].dropna().unique())]
    parts += [f"seed{'s' if len(seeds) > 1 else ''} {', '.join(seeds)}"] if seeds else []
    return "; ".join([*parts, _deviation(rows, per, by)]) + "."


def used_rows(rows: pd.DataFrame) -> list[str]:
    """Return which rows of which file were used, `all 350 rows of rows.jsonl`; nothing for data of no file of rows."""
    return list(rows["used"].dropna().unique()) if "used" in rows else []


def undefined_note(rows: pd.DataFrame, statistic: str = "C_q") -> list[str]:
    """Return a footnote on batches where a statistic is undefined (`n_defined` below `n`); its mean leaves them out."""
    if "n_defined" not in rows.columns:
        return []
    undefined = rows[(rows["statistic"] == statistic) & (rows["n_defined"] < rows["n"])]
    each = [
        f"{format_value(row['objective'])} {format_value(row['direction'])} {row['n_defined']:g} of {row['n']:g}"
        for _, row in undefined.iterrows()
    ]
    listed = "; ".join(dict.fromkeys(each))
    return [f"Batches with a defined {statistic}: {listed}. Its mean leaves out the others."] if each else []


def _deviation(rows: pd.DataFrame, per: str, by: Sequence[str]) -> str:
    sizes = sorted({row.seeds for row in group_rows(rows, by)})
    with_std = rows[(_spread_over(rows) > 1) & rows["std"].notna()]
    counts = sorted({int(n) for n in with_std["n"]})
    short = "short_batch" in with_std and bool(with_std["short_batch"].notna().any())
    without = " (the last, short one is left out of the sd)" if short else ""
    if sizes[-1] > 1:
        each = f", {span(counts)} {per} each" if counts else ""
        alone = f" (of one run: population, over its {per})" if sizes[0] == 1 and counts else ""
        return f"mean ± sample standard deviation over n = {span(sizes)} runs (seeds){alone}{each}"
    several = sorted({int(n) for n in rows["n"].dropna() if n > 1})
    if not counts and several and not rows.get("short_batch", pd.Series(dtype=float)).notna().any():
        return f"over n = {span(several)} {per}"
    if not counts and several:
        return f"mean over {span(several)} {per} (no sd: only one has full size)"
    if not counts:
        return "one measurement"
    return f"mean ± sd over {span(counts)} {per}{without}"


def _spread_over(rows: pd.DataFrame) -> pd.Series[float]:
    """Return the number of batches behind each deviation; `n` if rows do not say it."""
    return rows["n_spread"].fillna(rows["n"]) if "n_spread" in rows else rows["n"]
