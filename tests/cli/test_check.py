"""`lossscope check`: a line a verdict, one JSON document, exit codes."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import Result

from lossscope.objectives.checks.verdict import Verdict
from tests.command_line import lossscope

MINE = """
from dataclasses import dataclass
from lossscope.objectives.base import LossObjective, positive_of


@dataclass(frozen=True)
class Mine(LossObjective):
    keep: bool = True

    def values(self, S, mask):
        print("a loss that talks")
        hinge = (0.5 - positive_of(S, mask) + S).relu()
        return hinge.masked_fill(~mask.negatives, 0).sum(1) if self.keep else hinge.sum(1)


def talks(S):
    print("a loss that talks")
    return (0.5 - S.diagonal()[:, None] + S).relu().sum()
"""


@pytest.fixture(autouse=True)
def _files(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(MINE)


def check(*words: str) -> Result:
    return lossscope("check", *words)


def document(result: Result) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(result.stdout, parse_constant=pytest.fail)
    return loaded


def test_every_verdict_is_a_line_and_a_summary_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "1000")
    result = check("ntxent", "--processes", "1")
    assert result.exit_code == 0, result.stderr
    first, *lines, last = result.stdout.splitlines()
    assert first == "ntxent:tau=0.1"
    assert last == "1 objective: 15 passed, 2 skipped"
    assert len(lines) == 17
    assert all(re.match(r"  (pass|skipped) +\w", line) for line in lines)
    assert "\x1b" not in result.stdout


def test_a_failed_check_gives_exit_code_1_and_is_named_at_the_end() -> None:
    result = check("triplet", "./mine.py:Mine:keep=false", "--processes", "1")
    assert result.exit_code == 1
    summary = result.stdout.splitlines()[-1]
    assert re.match(
        r"2 objectives: \d+ passed, 1 failed, .*skipped\. Failed: \./mine\.py:Mine:keep=false \(padding\)$", summary
    )
    (line,) = (line for line in result.stdout.splitlines() if line.startswith("  fail"))
    assert "3 more candidates that are not valid change W and values by" in line


def test_json_is_one_document_whatever_a_loss_prints() -> None:
    result = check("ntxent", "./mine.py:Mine:keep=false", "--processes", "1", "--format", "json")
    assert result.exit_code == 1
    assert "a loss that talks" in result.stderr
    report = document(result)
    assert report["schema"] == "lossscope.check/1"
    assert [item["objective"] for item in report["objectives"]] == ["ntxent:tau=0.1", "./mine.py:Mine:keep=false"]
    assert [item["failed"] for item in report["objectives"]] == [0, 1]
    for item in report["objectives"]:
        assert all(set(verdict) == {"name", "outcome", "evidence"} for verdict in item["verdicts"])
        assert {verdict["outcome"] for verdict in item["verdicts"]} <= {"pass", "fail", "note", "skipped"}
    assert [v["name"] for v in report["objectives"][1]["verdicts"] if v["outcome"] == "fail"] == ["padding"]


def test_ranges_are_written_out_and_options_arrive(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[tuple[str, int, int]] = []

    def run_checks(spec: str, processes: int, seed: int) -> list[Verdict]:
        calls.append((spec, processes, seed))
        return [Verdict("shapes", "pass", "good")]

    monkeypatch.setattr("lossscope.objectives.checks.suite.check", run_checks)
    result = check("ntxent:tau=0.1..0.2/2", "triplet", "--processes", "3", "--seed", "7")
    assert result.exit_code == 0, result.stderr
    assert calls == [("ntxent:tau=0.1", 3, 7), ("ntxent:tau=0.2", 3, 7), ("triplet:margin=0.2", 3, 7)]
    assert result.stdout.splitlines()[-1] == "3 objectives: 3 passed"


def test_processes_leave_stdout_to_the_result() -> None:
    command = [sys.executable, "-m", "lossscope_cli", "check", "./mine.py:talks", "--format", "json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    (objective,) = json.loads(done.stdout)["objectives"]
    assert {"processes", "processes, gathered"} <= {verdict["name"] for verdict in objective["verdicts"]}
    assert "a loss that talks" in done.stderr


FEATURES = """
import torch
from torch.nn.functional import cross_entropy, normalize


class OfViews(torch.nn.Module):
    def forward(self, features, labels=None, mask=None):
        x = normalize(torch.cat(features.unbind(1)), dim=1)
        size = len(features)
        targets = (torch.arange(2 * size) + size) % (2 * size)
        return cross_entropy((x @ x.T / 0.1).fill_diagonal_(-torch.inf), targets)


def step(queries, candidates):
    return OfViews()(torch.stack([queries, candidates], 1))
"""


def test_a_loss_of_all_views_is_told_the_lines_that_check_it(tmp_path: Path) -> None:
    (tmp_path / "views.py").write_text(FEATURES)
    refused = check("./views.py:OfViews")
    assert refused.exit_code == 1
    said = " ".join(refused.stderr.split())
    assert "lossscope check --trainer ./FILE.py:step, of def step(queries, candidates)" in said
    result = check("--trainer", "./views.py:step", "--processes", "1")
    assert result.exit_code == 0, result.stdout
    assert "log 15 (two" in result.stdout
