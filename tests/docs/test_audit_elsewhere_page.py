"""docs/audit-elsewhere.md: its examples run as they stand, after the audit that it shows."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from lossscope_cli import app
from typer.testing import CliRunner

from tests.live.tiny_sentences import sentence_model

PAGE = (Path(__file__).parents[2] / "docs" / "audit-elsewhere.md").read_text(encoding="utf-8")
SMALLER = ("passages", "passages:train=200,val=30,test=30")
BLOCK = re.compile(r"^```python\n(.*?)^```", re.M | re.S)


@pytest.mark.filterwarnings("ignore")
def test_the_examples_run_one_after_the_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for package in ("sentence_transformers", "datasets", "accelerate"):
        pytest.importorskip(package)
    monkeypatch.chdir(tmp_path)
    sentence_model(tmp_path / "first").save(str(tmp_path / "my-model"))
    line = re.findall(r"^lossscope (audit .*)$", PAGE, re.M)
    assert len(line) == 1
    result = CliRunner().invoke(app, line[0].replace(*SMALLER).split())
    assert result.exit_code == 0, result.output
    names: dict[str, object] = {}
    blocks = BLOCK.findall(PAGE)
    assert len(blocks) == 3
    for block in blocks:
        exec(compile(block.replace(*SMALLER), "audit-elsewhere", "exec"), names)


def test_every_row_of_the_table_links_to_a_section() -> None:
    anchors = re.findall(r"^\| \[.*?\]\(#(.*?)\)", PAGE, re.M)
    assert anchors == [title.lower().replace(" ", "-") for title in re.findall(r"^## (.*)$", PAGE, re.M)]
