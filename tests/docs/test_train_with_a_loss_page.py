"""docs/train-with-a-loss.md: its examples run."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.live.tiny_sentences import sentence_model

PAGE = (Path(__file__).parents[2] / "docs" / "train-with-a-loss.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```python\n(.*?)^```", PAGE, re.M | re.S)


@pytest.mark.filterwarnings("ignore")
def test_the_examples_run_as_they_stand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for package in ("sentence_transformers", "datasets", "accelerate"):
        pytest.importorskip(package)
    monkeypatch.chdir(tmp_path)
    sentence_model(tmp_path / "first").save(str(tmp_path / "my-model"))
    module, trainer, data = BLOCKS
    names: dict[str, Any] = {}
    exec(compile(module, "module", "exec"), names)
    assert len([line for line in trainer.splitlines() if line.strip()]) <= 15
    exec(compile(trainer.replace("max_steps=40", "max_steps=3"), "trainer", "exec"), names)
    assert names["trainer"].state.global_step == 3
    exec(compile(data, "data", "exec"), names)
    assert names["data"].num_rows == 2000 and names["data"].column_names == ["question", "passage", "negative"]
