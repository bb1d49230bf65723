"""Are the published numbers complete, and the wrong numbers marked?"""

from __future__ import annotations

import re

import pytest

from lossscope.errors import InputError
from lossscope.tables.published import base as published
from tests.each import each

# rows per table, as checked by eye
ROWS = {
    "bleeker2022": {1: 160, 2: 48, 3: 24, 4: 16},
    "xuan2023_goal": {1: 15, 2: 12, 3: 60, 4: 60, 5: 60, 6: 130},
    "li2022_unified": {1: 182, 2: 42, 3: 44, 4: 24, 5: 224, 6: 67, 7: 134},
}
TABLES = [(paper, table) for paper, tables in ROWS.items() for table in tables]


@each("paper, table", TABLES)
def test_every_table_is_complete(paper: str, table: int) -> None:
    assert len(published.load(paper, table)) == ROWS[paper][table]
    assert len(published.load(paper)) == sum(ROWS[paper].values())


@each("paper, table", TABLES)
def test_numbers_are_those_in_print(paper: str, table: int) -> None:
    rows = published.load(paper, table).dropna(subset=["mean"])
    for _, row in rows.iterrows():
        mean, *std = re.findall(r"\d*\.?\d+", row["printed"])
        assert float(mean) == row["mean"]
        assert len(mean.partition(".")[2]) == row["mean_digits"]
        assert [float(number) for number in std] == ([] if row["std"] != row["std"] else [row["std"]])


@each("paper", ["bleeker2022", "li2022_unified"])
def test_only_the_rsum_known_to_be_wrong_is_wrong(paper: str) -> None:
    wrong = []
    for key, part in published.load(paper).groupby(["table", "row_id", "dataset"]):
        values = part.set_index(["direction", "metric"])["mean"]
        recalls = [values.get((side, f"R@{k}")) for side in ("i2t", "t2i") for k in (1, 5, 10)]
        if ("both", "rsum") in values and None not in recalls and abs(sum(recalls) - values["both", "rsum"]) > 0.25:
            wrong.append(key)
    assert wrong == ([(6, "T6r10", "mscoco")] if paper == "li2022_unified" else [])


def test_the_average_known_to_be_wrong_is_wrong() -> None:
    wrong = []
    for key, part in published.load("bleeker2022", 1).groupby(["row_id", "direction"]):
        values = part.set_index("metric")["mean"]
        if "average_recall" in values and abs(values[["R@1", "R@5", "R@10"]].mean() - values["average_recall"]) > 0.15:
            wrong.append(key)
    assert wrong == [("2.7", "t2i")]


@each("paper", ROWS)
def test_every_doubt_is_of_cells_that_are_there(paper: str) -> None:
    doubts = published.doubts(paper)
    assert len(doubts)
    for _, doubt in doubts.iterrows():
        rows = published.load(paper, doubt["table"])
        for column in ("row_id", "dataset", "objective", "triplet_weight", "direction", "metric"):
            rows = rows if doubt[column] == "*" else rows[rows[column] == doubt[column]]
        assert len(rows), doubt["note"]
    assert set(doubts.loc[doubts["counter"], "table"]) == ({2, 4} if paper == "bleeker2022" else set())


def test_numbers_that_a_doubt_quotes_are_those_of_the_other_table() -> None:
    """`Table 3 prints 40.8 ± 0.3 for the same experiment`: it does."""
    doubts = published.doubts("xuan2023_goal")
    quoted = doubts["note"].str.extract(r"Table (\d) prints ([\d.]+)")
    assert quoted.notna().all().all() and len(quoted) == 14
    for (_, doubt), (_, (table, number)) in zip(doubts.iterrows(), quoted.iterrows(), strict=True):
        rows = published.load("xuan2023_goal", int(table))
        same = (rows["direction"] == doubt["direction"]) & (rows["metric"] == doubt["metric"])
        assert float(number) in set(rows.loc[same, "mean"]), doubt["note"]


@each("paper, table", [pair for pair in TABLES if pair != ("xuan2023_goal", 1)])
def test_every_table_says_what_its_deviations_are(paper: str, table: int) -> None:
    about = published.about(paper, table)
    assert about.cite == published.PAPERS[paper] and about.what and about.deviation
    has = published.load(paper, table)["std"].notna().any()
    assert has == ("deviation" in about.deviation)


def test_recipes_and_the_crosscheck_can_be_read() -> None:
    assert len(published.recipes("bleeker2022")) == 71
    assert (published.crosscheck()["verdict"] == "agree").sum() == 27


def test_unknown_papers_and_tables_are_refused() -> None:
    with pytest.raises(InputError, match=r"paper must be one of bleeker2022, .*; got 'smith'"):
        published.load("smith")
    with pytest.raises(InputError, match=r"table of bleeker2022 must be one of 1, 2, 3, 4; got 9"):
        published.load("bleeker2022", 9)


def test_changing_a_returned_frame_does_not_change_the_next() -> None:
    rows = published.load("bleeker2022", 1)
    rows.loc[0, "mean"] = 0.0
    assert published.load("bleeker2022", 1)["mean"].iloc[0] == 30.8
