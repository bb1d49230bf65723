"""docs/diff.in.md -> docs/diff.md: the differences and the false alarms that scripts of studies/intervals measured.

The script runs no study. `--check` writes nothing and exits 1 with a diff if the page is out of date.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Hashable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd
from generated_page import markdown_table, write_or_compare

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "docs" / "diff.in.md"
PAGE = ROOT / "docs" / "diff.md"
RESULTS = ROOT / "studies" / "intervals" / "results"
NOTE = (
    "<!-- Made by docs/make_diff.py from docs/diff.in.md and the results of studies/intervals. Change those, then "
    "`make docs`. -->\n\n"
)
ALARMS = {
    "ntxent": ("C_neg", "W_neg", "W_low", "N_eff", "C_0"),
    "triplet": ("C_q", "C_0"),
    "": ("s_pos", "s_neg", "margin", "s_neg_q50", "s_neg_q90", "margin_q50"),
}
_COVERAGE = "diff_coverage.csv"
_MARK = re.compile(r"<!-- (?P<kind>differences|alarms)(?:: (?P<words>[^>]+))? -->")


def page(source: str) -> str:
    """Return the page."""
    demo, coverage = (pd.read_csv(RESULTS / name, keep_default_na=False) for name in ("diff_demo.csv", _COVERAGE))

    def table(found: re.Match[str]) -> str:
        if found["kind"] == "alarms":
            return alarms(coverage)
        comparisons, directions, statistics = (part.strip().split(", ") for part in found["words"].split(";"))
        return differences(demo, comparisons, directions, statistics)

    return NOTE + _MARK.sub(table, source)


def differences(rows: pd.DataFrame, comparisons: list[str], directions: list[str], statistics: list[str]) -> str:
    """Return a row for each direction and statistic: A, B and B − A with its interval, of each comparison."""
    header = ["", *(f"{name}: {side}" for name in comparisons for side in ("A", "B", "B − A"))]
    lines = []
    for direction in directions:
        for statistic in statistics:
            cells = [f"{direction} {statistic}"]
            for name in comparisons:
                (row,) = rows[
                    (rows["comparison"] == name) & (rows["direction"] == direction) & (rows["statistic"] == statistic)
                ].to_dict("records")
                cells += [number(row["mean"]), number(row["b_mean"]), _format_difference(row)]
            lines.append(cells)
    return markdown_table(header, lines)


def _format_difference(row: Mapping[Hashable, Any]) -> str:
    if row["low"] == "":
        return f"{number(row['difference'])} ({row['method'] or 'no interval'})"
    return f"{number(row['difference'])} [{number(row['low'])}, {number(row['high'])}]"


def number(x: object) -> str:
    """Return a number with two decimals, or with four if it is below 2."""
    value = float(str(x))
    text = f"{value:.2f}" if abs(value) >= 2 else f"{value:.4f}"
    return text.replace("-", "−")


def alarms(rows: pd.DataFrame) -> str:
    """Return how often an interval excludes 0, with a column for each setting and direction."""
    settings = list(rows[["hubs", "noise_of_b"]].drop_duplicates().itertuples(index=False, name=None))
    header = ["statistic"]
    for hubs, more in settings:
        label = ("no" if hubs == "none" else hubs) + " hubs"
        label += "" if float(more) == 1 else f", B has {float(more):g} × the noise"
        header += [f"{label}: i2t", "t2i"]
    lines = []
    for objective, statistics in ALARMS.items():
        for statistic in statistics:
            cells = [f"{objective} {statistic}".strip()]
            for hubs, more in settings:
                for direction in ("i2t", "t2i"):
                    chosen = rows[
                        (rows["hubs"] == hubs) & (rows["noise_of_b"] == more) & (rows["direction"] == direction)
                        & (rows["objective"] == objective) & (rows["statistic"] == statistic)
                    ]  # fmt: skip
                    cells.append(f"{chosen['excludes_0'].item():.1f}")
            lines.append(cells)
    return markdown_table(header, lines)


def main(arguments: list[str]) -> int:
    """Write the page, or with `--check` compare it; return the exit code."""
    return write_or_compare(PAGE, page(SOURCE.read_text(encoding="utf-8")), arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
