"""`lossscope check --trainer`: lines, one JSON document, exit codes, and errors before any process is started."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from typer.testing import Result

from lossscope.objectives.checks.verdict import Verdict
from tests.command_line import lossscope

STEPS = """
import torch
from torch import nn
from torch.nn.functional import cross_entropy, normalize


def step(queries, candidates):
    print("a step that talks")
    return cross_entropy(normalize(queries) @ normalize(candidates).T / 0.1, torch.arange(len(queries)))


def shifted(queries, candidates):
    S = normalize(queries) @ normalize(candidates).T / 0.1
    return cross_entropy(S, torch.arange(len(queries)).roll(1))


def broken(queries, candidates):
    raise KeyError("no such thing")


def hangs(queries, candidates):
    import torch.distributed as dist
    if dist.get_world_size() > 1 and dist.get_rank() == 0:
        raise ValueError("rank 0 has gone")
    return step(queries, candidates)


def one(queries):
    return queries.sum()


number = 3
"""


@pytest.fixture(autouse=True)
def _files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "train.py").write_text(STEPS)
    monkeypatch.setenv("COLUMNS", "1000")


def check(*words: str) -> Result:
    return lossscope("check", *words)


def test_a_sound_step_of_one_process_passes() -> None:
    result = check("--trainer", "./train.py:step", "--processes", "1")
    assert result.exit_code == 0, result.output
    first, *lines, last = result.stdout.splitlines()
    assert first == "./train.py:step on 1 process"
    assert re.match(r"1 trainer: \d+ passed, \d+ noted, \d+ skipped$", last)
    assert all(re.match(r"  (pass|note|skipped) +[a-z-]+ ", line) for line in lines)
    assert "a softmax of queries at temperature 0.1, their mean" in result.stdout
    assert "a step that talks" not in result.stdout


def test_json_has_the_numbers_of_the_sentences() -> None:
    result = check("--trainer", "./train.py:shifted", "--processes", "1", "--format", "json")
    assert result.exit_code == 1
    document: dict[str, Any] = json.loads(result.stdout, parse_constant=pytest.fail)
    assert document["schema"] == "lossscope.check/1"
    (trainer,) = document["trainers"]
    assert (trainer["trainer"], trainer["processes"], trainer["gradients"]) == ("./train.py:shifted", 1, "mean")
    assert trainer["objective"] is None and trainer["plain"] is None and trainer["failed"] == 1
    (wrong,) = (verdict for verdict in trainer["verdicts"] if verdict["outcome"] == "fail")
    assert wrong["name"] == "positives" and wrong["numbers"] == {"wrong": 8.0}
    assert wrong["evidence"] == "query 0 pulls candidate 7; it must pull candidate 0 (8 of 8 queries are wrong)"


def test_a_step_is_compared_with_the_objective_that_it_should_be() -> None:
    right = check("ntxent:tau=0.1", "--trainer", "./train.py:step", "--processes", "1")
    assert right.exit_code == 0
    assert re.search(r"pass +objective +the gradient is that of ntxent:tau=0.1, queries alone", right.stdout)
    wrong = check("ntxent:tau=0.05", "--trainer", "./train.py:step", "--processes", "1")
    assert wrong.exit_code == 1
    assert wrong.stdout.splitlines()[-1].endswith("Failed: ./train.py:step (objective)")


def test_options_arrive(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[tuple[Any, ...]] = []

    def run_checks(*arguments: Any) -> list[Verdict]:
        calls.append(arguments)
        return [Verdict("step", "pass", "good")]

    monkeypatch.setattr("lossscope.conformance.suite.check_trainer", run_checks)
    words = "--trainer ./train.py:step --processes 3 --seed 7 --gradients sum --plain ./train.py:shifted --device cpu"
    assert check(*words.split()).exit_code == 0
    assert calls == [("./train.py:step", 3, 7, False, None, "./train.py:shifted", "cpu")]


@pytest.mark.parametrize(("name", "message"), [
    ("broken", r"fail +step +it must run on 8 pairs; raised KeyError: 'no such thing' \(train\.py, line \d+\)"),
])  # fmt: skip
def test_a_step_that_does_not_run_is_the_only_line(name: str, message: str) -> None:
    result = check("--trainer", f"./train.py:{name}", "--processes", "2")
    assert result.exit_code == 1
    assert len(result.stdout.splitlines()) == 3 and re.search(message, result.stdout), result.stdout


def test_a_process_that_dies_fails_the_check_of_processes() -> None:
    result = check("--trainer", "./train.py:hangs", "--processes", "2")
    assert result.exit_code == 1
    said = r"fail +processes +it must run on 2 processes; rank 0 raised ValueError: rank 0 has gone"
    assert re.search(said, result.stdout), result.stdout


def test_trainers_are_listed_with_their_options() -> None:
    listed = json.loads(lossscope("list trainers --format json").stdout)
    assert {trainer["name"] for trainer in listed} >= {
        "grad_cache",
        "open_clip",
        "pytorch_metric_learning",
        "sentence_transformers",
    }
    assert all(trainer["what"] and trainer["source"] for trainer in listed)
