"""Is the second command that writes a folder refused, by every command that writes one?"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from lossscope_cli import app
from typer.testing import CliRunner

from lossscope.io import folder_lock
from tests.tiny import ENCODER, SCENES, STUDY_OF_ONE_RUN

TRAIN = ["--data", SCENES, "--encoder", ENCODER, "--objective", "ntxent", "--epochs", "1"]
COMMANDS = {
    "train": ["train", *TRAIN, "--out", "OUT"],
    "cocos": ["cocos", "CHECKPOINT", "--out", "OUT"],
    "sampled queries": ["cocos", "CHECKPOINT", "--queries", "20", "--out", "OUT"],
    "probe": ["probe", "CHECKPOINT", "--probes", "similarity", "--per-query", "--out", "OUT"],
    "mine": ["mine", "CHECKPOINT", "--top", "3", "--out", "OUT"],
    "eval": ["eval", "CHECKPOINT", "--run-files", "OUT"],
    "study": ["study", "run", "STUDY", "--out", "OUT"],
    "features": ["data", "features", "--data", SCENES, "--out", "OUT"],
    "doctor": ["doctor", "CHECKPOINT", "--out", "OUT"],
    "audit": ["audit", "CHECKPOINT", "--out", "OUT"],
    "report of sources": ["report", "CHECKPOINT", "--out", "OUT"],
    "report": ["report", "RUNS", "--no-published", "--resamples", "99", "--out", "OUT"],
}


@pytest.mark.parametrize("name", COMMANDS)
def test_the_second_command_is_refused_and_writes_nothing(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest, held: Callable[..., Any]
) -> None:
    monkeypatch.setattr(folder_lock, "_PATIENCE", 0.05)
    (tmp_path / "tiny.toml").write_text(STUDY_OF_ONE_RUN, encoding="utf-8")
    out, words = tmp_path / "out", {"OUT": str(tmp_path / "out"), "STUDY": str(tmp_path / "tiny.toml")}
    if "CHECKPOINT" in COMMANDS[name]:
        words["CHECKPOINT"] = str(request.getfixturevalue("tiny_checkpoint"))
    if "RUNS" in COMMANDS[name]:
        words["RUNS"] = str(request.getfixturevalue("tiny_study"))
    with held(out):
        result = CliRunner().invoke(app, [words.get(word, word) for word in COMMANDS[name]])
        assert {path.name for path in out.iterdir()} == {".lock", ".lock.json"}
    assert result.exit_code == 1
    assert f"Error: {out} must have one writer at a time; `" in result.stderr
    assert not out.exists()
