"""docs/intervals.in.md -> docs/intervals.md: the coverage that studies/intervals/coverage.py measured.

The script runs no study. `--check` writes nothing and exits 1 with a diff if the page is out of date.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pandas as pd
from generated_page import markdown_table, write_or_compare

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "docs" / "intervals.in.md"
PAGE = ROOT / "docs" / "intervals.md"
RESULTS = ROOT / "studies" / "intervals" / "results" / "coverage.csv"
NOTE = (
    "<!-- Made by docs/make_intervals.py from docs/intervals.in.md and the results of studies/intervals. Change those, "
    "then `make docs`. -->\n\n"
)
SHOWN = {"C_neg": "ntxent", "W_neg": "ntxent", "N_eff": "ntxent", "C_q": "triplet", "s_neg_q90": ""}


def page(source: str) -> str:
    """Return the page."""
    return NOTE + source.replace("<!-- coverage -->", coverage(pd.read_csv(RESULTS, keep_default_na=False)))


def coverage(rows: pd.DataFrame) -> str:
    """Return how often intervals held the truth, and in brackets how often intervals from batches alone did."""
    header = ("data", "batch size", "hubs", *(f"{name}, {loss}" if loss else name for name, loss in SHOWN.items()))
    lines = []
    for keys, group in rows.groupby(["data", "batch_size", "hubs"], sort=False):
        cells = []
        for statistic, objective in SHOWN.items():
            chosen = group[(group["statistic"] == statistic) & (group["objective"] == objective)]
            both = [f"{pair['coverage']:.1f} ({pair['coverage_batches']:.0f})" for _, pair in chosen.iterrows()]
            cells.append("; ".join(both))
        lines.append((*map(str, keys), *cells))
    replicates = rows["replicates"].max()
    covered = rows.loc[rows["replicates"] == replicates, "coverage"]
    text = (
        f"The table says how many per cent of {replicates:,} nominal 95 % intervals held the truth: for the first "
        "direction; for the second. The brackets have the intervals from the deviation over batches / √n "
        "([the results](../studies/intervals/results/coverage.csv), made by "
        "[coverage.py](../studies/intervals/coverage.py), which draws split after split):"
    )
    below = (
        f"{len(covered)} numbers of the results (statistics, losses, directions, settings) have an interval in every "
        f"replicate. Their coverage is {covered.min():.2f} to {covered.max():.2f} %; half of them lie between "
        f"{covered.quantile(0.25):.1f} and {covered.quantile(0.75):.1f} %."
    )
    return f"{text}\n\n{markdown_table(header, lines)}\n\n{below}"


def main(arguments: list[str]) -> int:
    """Write the page, or with `--check` compare it; return the exit code."""
    return write_or_compare(PAGE, page(SOURCE.read_text(encoding="utf-8")), arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
