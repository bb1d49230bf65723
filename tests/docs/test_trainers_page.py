"""docs/trainers.md: a section for each trainer, whose example has at most 15 lines and runs."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from lossscope.core.distributed import use_loopback
from tests.live.tiny_sentences import sentence_model

PAGE = (Path(__file__).parents[2] / "docs" / "trainers.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"^```python\n(.*?)^```", re.M | re.S)
SECTIONS = dict(part.split("\n", 1) for part in PAGE.split("\n## ")[1:])
NEEDS = {
    "sentence-transformers": ("sentence_transformers", "datasets", "accelerate"),
    "pytorch-metric-learning": ("pytorch_metric_learning",),
    "open_clip": (),
    "Hugging Face Trainer": ("transformers", "accelerate"),
    "Lightning": ("lightning",),
    "Plain loop": (),
    "Many processes": (),
}
COLUMNS = {  # some of what the example watches
    "sentence-transformers": {"q2d/C_neg", "loss_gap"},
    "pytorch-metric-learning": {"all/C_neg", "all/mined_neg"},
    "open_clip": {"i2t/C_neg", "t2i/C_neg"},
    "Hugging Face Trainer": {"q2d/C_neg", "d2q/C_neg"},
    "Lightning": {"i2t/C_neg"},
    "Plain loop": {"q2d/C_neg", "d2q/s_neg"},
    "Many processes": {"i2t/C_neg", "t2i/s_pos_q10"},
}


def test_every_trainer_has_a_section_that_begins_with_its_name() -> None:
    assert list(SECTIONS) == list(NEEDS)
    links = re.findall(r"^\| \[(.*?)\]\(#(.*?)\)", PAGE, re.M)
    assert [anchor for _, anchor in links] == [name.lower().replace(" ", "-") for name in SECTIONS]


@pytest.mark.parametrize("name", SECTIONS)
def test_an_example_has_at_most_15_lines(name: str) -> None:
    (block,) = BLOCK.findall(SECTIONS[name])
    assert len([line for line in block.splitlines() if line.strip()]) <= 15


@pytest.mark.filterwarnings("ignore")
@pytest.mark.usefixtures("stand_ins")
@pytest.mark.parametrize("name", SECTIONS)
def test_an_example_runs_as_it_stands(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for package in NEEDS[name]:
        pytest.importorskip(package)
    monkeypatch.chdir(tmp_path)
    if name == "sentence-transformers":
        sentence_model(tmp_path / "first").save(str(tmp_path / "my-model"))
    if name == "Many processes":
        use_loopback()
        for variable, value in ("RANK", "0"), ("WORLD_SIZE", "1"), ("MASTER_ADDR", "127.0.0.1"), ("MASTER_PORT", "0"):
            monkeypatch.setenv(variable, value)
    names: dict[str, Any] = {}
    (block,) = BLOCK.findall(SECTIONS[name])
    exec(compile(block, name, "exec"), names)
    frame = names["scope"].frame()
    assert len(frame) >= 2 and set(frame) >= COLUMNS[name]
    assert (frame["finite"] == 1).all()
