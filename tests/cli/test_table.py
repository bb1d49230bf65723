"""`lossscope render`: does it make any table from a file of rows, and say what a file lacks?"""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from lossscope.declarations import declarations
from tests.command_line import lossscope, plain

TABLES = [declared.name for declared in declarations("tables")]


def test_rows_of_a_command_become_the_table_that_it_prints(tiny_checkpoint: Path) -> None:
    rows = lossscope("cocos", tiny_checkpoint, "--split", "val", "--batch-size", "16", "--quiet", "--format", "csv")
    assert rows.exit_code == 0, rows.stderr
    Path("rows.csv").write_text(rows.stdout, encoding="utf-8")
    made = lossscope("table", "cocos_softmax", "rows.csv", "--format", "latex")
    assert made.exit_code == 0, made.stderr
    (means,) = pd.read_csv("rows.csv").query("statistic == 'C_neg' and direction == 'i2t'")["mean"]
    assert r"\begin{table}" in made.stdout and f"{means:.2f}" in made.stdout
    assert lossscope("table", "cocos_softmax", "rows.csv", "--out", "table.tex", "--format", "latex").exit_code == 0
    assert Path("table.tex").read_text(encoding="utf-8").strip() == made.stdout.strip()


def test_rows_of_another_loss_say_what_to_run(tiny_checkpoint: Path) -> None:
    rows = lossscope("cocos", tiny_checkpoint, "--split", "val", "--batch-size", "16", "--quiet", "--format", "csv")
    Path("rows.csv").write_text(rows.stdout, encoding="utf-8")
    result = lossscope("table", "cocos_triplet", "rows.csv")
    assert result.exit_code == 1 and "must have rows of triplet or triplet_sh; got ntxent" in result.stderr


@pytest.mark.parametrize("table", TABLES)
def test_a_file_without_the_columns_of_a_table_says_which(table: str) -> None:
    Path("other.csv").write_text("colour,number\nred,1\n", encoding="utf-8")
    result = lossscope("table", table, "other.csv")
    assert result.exit_code == 1
    assert "must have the columns" in result.stderr and "colour, number" in result.stderr


def test_an_unknown_table_is_named_and_all_are_listed() -> None:
    Path("rows.csv").write_text("a\n1\n", encoding="utf-8")
    result = lossscope("table", "cocos_triple", "rows.csv")
    said = plain(result.stderr)
    assert result.exit_code == 2 and "did you mean 'cocos_triplet'" in said
    listed = lossscope("list", "tables")
    assert listed.exit_code == 0 and all(name in listed.stdout for name in TABLES)


def test_a_table_of_no_model_needs_no_file_and_the_others_do() -> None:
    made = lossscope("render", "xuan2023_1", "--format", "csv")
    assert made.exit_code == 0 and "Binomial deviance" in made.stdout and "equal" in made.stdout
    missing = lossscope("render", "xuan2023_2")
    assert missing.exit_code == 2 and "ROWS must be a file with the numbers of xuan2023_2" in plain(missing.stderr)


def test_an_evaluation_file_stands_in_a_papers_table(tiny_checkpoint: Path) -> None:
    rows = lossscope("eval", tiny_checkpoint, tiny_checkpoint, "--ensemble", "--quiet", "--format", "csv")
    assert rows.exit_code == 0, rows.stderr
    Path("eval.csv").write_text(rows.stdout, encoding="utf-8")
    made = lossscope(
        "render", "bleeker2022_1", "eval.csv", "--dataset", "flickr30k", "--model", "VSRN", "--format", "markdown"
    )
    assert made.exit_code == 0, made.stderr
    said = " ".join(made.stdout.split())
    assert "Not beside ours: VSRN, flickr30k (1K test): the paper ranks by a single model, ours by the mean of" in said
    more = lossscope("render", "li2022_1", "eval.csv", "--literature", "--format", "csv")
    assert more.exit_code == 1 and "must have runs of triplet_sh or unified" in more.stderr
    literature = lossscope("render", "bleeker2022_1", "eval.csv", "--literature", "--format", "csv")
    assert literature.exit_code == 0 and "382.0" in literature.stdout and "VSRN" in literature.stdout


@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        (["--model", "VSRM"], 1, "Error: model of bleeker2022_1 must be one of"),
        (["--model", "a=VSRN", "--model", "VSRN"], 2, "Invalid value: --model must be one NAME, or SOURCE=NAME of"),
        (["--model", "other.pt=VSRN"], 2, "Invalid value: --model must be one NAME, or SOURCE=NAME of"),
    ],
)
def test_names_beside_a_papers_table_must_fit(options: list[str], code: int, said: str, tiny_checkpoint: Path) -> None:
    Path("eval.csv").write_text(lossscope("eval", tiny_checkpoint, "-q", "--format", "csv").stdout, encoding="utf-8")
    result = lossscope("render", "bleeker2022_1", "eval.csv", *options)
    assert result.exit_code == code and said in plain(result.stderr)


def test_an_evaluation_without_its_columns_says_which() -> None:
    Path("other.csv").write_text("colour,number\nred,1\n", encoding="utf-8")
    result = lossscope("render", "bleeker2022_1", "other.csv", "--dataset", "flickr30k")
    assert result.exit_code == 1 and "rows of other.csv must have the columns source, objective" in result.stderr


def test_options_of_a_papers_table_are_for_no_other(tiny_checkpoint: Path) -> None:
    Path("eval.csv").write_text(lossscope("eval", tiny_checkpoint, "-q", "--format", "csv").stdout, encoding="utf-8")
    refused = lossscope("render", "retrieval", "eval.csv", "--literature")
    assert refused.exit_code == 2 and "--literature must be for a paper's table" in plain(refused.stderr)
