"""docs/while-it-trains.md: its example runs and prints what stands below it, and its table has every id."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch

from lossscope.live.doctor_options import LOOKED_FOR

PAGE = (Path(__file__).parents[2] / "docs" / "while-it-trains.md").read_text(encoding="utf-8")


def test_the_example_prints_what_the_page_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    code, shown = (re.search(rf"^```{kind}\n(.*?)^```", PAGE, re.M | re.S) for kind in ("python", "text"))
    assert code is not None and shown is not None
    torch.manual_seed(0)
    exec(compile(code[1], "page", "exec"), {})
    printed = capsys.readouterr().out.splitlines()
    events = [re.sub(r"reach [\d.]+", "reach", line) for line in printed[:-1]]
    assert events == [re.sub(r"reach [\d.]+", "reach", line) for line in shown[1].splitlines()]
    assert len(list((tmp_path / "recorder").iterdir())) == 1


def test_the_example_of_a_short_training_runs(capsys: pytest.CaptureFixture[str]) -> None:
    torch.manual_seed(0)
    exec(compile(re.findall(r"^```python\n(.*?)^```", PAGE, re.M | re.S)[1], "page", "exec"), {})
    assert capsys.readouterr().out.startswith("() examined at steps 0 to 39")


def test_the_table_has_every_finding_that_is_looked_for() -> None:
    table = PAGE.split("| when | ids |")[1].split("\n\n")[0]
    assert set(re.findall(r"`([a-z-]+)`", table)) == LOOKED_FOR
