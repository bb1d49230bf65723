"""docs/huge-sets.in.md -> docs/huge-sets.md: the coverage that studies/intervals/sampled_queries.py measured.

The script runs no study. `--check` writes nothing and exits 1 with a diff if the page is out of date.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pandas as pd
from generated_page import markdown_table, write_or_compare

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "docs" / "huge-sets.in.md"
PAGE = ROOT / "docs" / "huge-sets.md"
RESULTS = ROOT / "studies" / "intervals" / "results" / "sampled_queries.csv"
NOTE = (
    "<!-- Made by docs/make_huge_sets.py from docs/huge-sets.in.md and the results of studies/intervals. Change those, "
    "then `make docs`. -->\n\n"
)
SHOWN = {
    ("ntxent:tau=0.05", "C_neg"): "C_neg, ntxent",
    ("ntxent:tau=0.05", "W_neg"): "W_neg, ntxent",
    ("ntxent:tau=0.05", "N_eff"): "N_eff, ntxent",
    ("triplet:margin=0.2", "C_q"): "C_q, triplet",
    ("triplet:margin=0.2", "C_0"): "C_0, triplet",
    ("any", "margin_q50"): "margin_q50",
    ("any", "inverted"): "inverted",
}


def page(source: str) -> str:
    """Return the page."""
    return NOTE + source.replace("<!-- coverage -->", coverage(pd.read_csv(RESULTS)))


def coverage(rows: pd.DataFrame) -> str:
    """Return how often the interval held for each statistic and size, and how errors fall."""
    rows = rows[rows["direction"] == "i2t"]
    sizes = sorted(rows["n"].unique())
    header = ("i2t", "all queries", *(f"n = {n}" for n in sizes), "error · √n/√(1 − n/N)")
    lines = []
    for (objective, statistic), label in SHOWN.items():
        chosen = rows[(rows["objective"] == objective) & (rows["statistic"] == statistic)].set_index("n")
        held = [f"{100 * chosen.loc[n, 'held'] / chosen.loc[n, 'repetitions']:.1f}" for n in sizes]
        errors = chosen["error_per_query"]
        lines.append((label, f"{chosen['full'].iloc[0]:.4g}", *held, f"{errors.min():.3g} to {errors.max():.3g}"))
    (population,), (repetitions,) = rows["N"].unique(), rows["repetitions"].unique()
    text = (
        f"The table says how many per cent of {repetitions:,} intervals of each size held the number of all "
        f"{population:,} queries. The set has hubs, and we know its full sweep. Both directions are in "
        "[the results](../studies/intervals/results/sampled_queries.csv), made by "
        "[sampled_queries.py](../studies/intervals/sampled_queries.py). The last column would be constant if errors "
        "fell exactly with √(1/n − 1/N):"
    )
    return f"{text}\n\n{markdown_table(header, lines)}"


def main(arguments: list[str]) -> int:
    """Write the page, or with `--check` compare it; return the exit code."""
    return write_or_compare(PAGE, page(SOURCE.read_text(encoding="utf-8")), arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
