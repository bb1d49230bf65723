"""docs/audit-elsewhere.md: its examples run as they stand, after its audits and the labels between them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from lossscope_cli import app
from typer.testing import CliRunner

from lossscope.io.csv_tables import format_csv, read_csv
from lossscope.registry import build
from tests.live.tiny_sentences import sentence_model

PAGE = (Path(__file__).parents[2] / "docs" / "audit-elsewhere.md").read_text(encoding="utf-8")
SMALLER = ("passages", "passages:train=200,val=30,test=30")
BLOCK = re.compile(r"^```python\n(.*?)^```", re.M | re.S)


def run(line: str) -> None:
    result = CliRunner().invoke(app, line.replace(*SMALLER).split())
    assert result.exit_code == 0, result.output


def answer_sheet(sheet: Path, labels: Path) -> None:
    """Answer each pair by whether the passage has the answer, as a person does on the page."""
    split = build("datasets", SMALLER[1]).split("train")
    rows, columns = ({name: row for row, name in enumerate(names)} for names in (split.image_ids, split.caption_ids))
    table, truth = read_csv(sheet).astype({"answer": object}), split.truth()
    pairs = zip(table["query"], table["document"], strict=True)
    table["answer"] = ["yes" if truth[rows[query], columns[document]] else "no" for query, document in pairs]
    labels.write_text(format_csv(table), encoding="utf-8")


@pytest.mark.filterwarnings("ignore")
def test_the_examples_run_one_after_the_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for package in ("sentence_transformers", "datasets", "accelerate"):
        pytest.importorskip(package)
    monkeypatch.chdir(tmp_path)
    sentence_model(tmp_path / "first").save(str(tmp_path / "my-model"))
    unlabelled, labelled = re.findall(r"^lossscope (audit .*)$", PAGE, re.M)
    run(unlabelled)
    assert not Path("audit/mask.npz").exists()
    answer_sheet(Path("audit/sheet.csv"), Path("labels.csv"))
    run(labelled)
    names: dict[str, object] = {}
    blocks = BLOCK.findall(PAGE)
    assert len(blocks) == 3
    for block in blocks:
        exec(compile(block.replace(*SMALLER), "audit-elsewhere", "exec"), names)


def test_every_row_of_the_table_links_to_a_section() -> None:
    anchors = re.findall(r"^\| \[.*?\]\(#(.*?)\)", PAGE, re.M)
    assert anchors == [title.lower().replace(" ", "-") for title in re.findall(r"^## (.*)$", PAGE, re.M)]
