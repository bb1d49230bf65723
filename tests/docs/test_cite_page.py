"""Does the Python of docs/cite.md run on a frame, and do its tables name what there is?"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from lossscope.engine.sweep import Sweep
from lossscope.io.frames import Frame
from lossscope.sources.base import from_arrays

PAGE = Path(__file__).parents[2] / "docs" / "cite.md"


def test_the_python_of_the_page_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    random = np.random.default_rng(0)
    arrays = {"queries": random.normal(size=(40, 4)), "documents": random.normal(size=(40, 4))}
    Sweep(("ntxent:tau=0.1",), batch_size=20).run(from_arrays(arrays), Frame.open("frame", {"probes": ["cocos"]}))
    (block,) = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.M | re.S)
    exec(compile(block, PAGE.name, "exec"), {})
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 3 and lines[0].startswith("C_neg (q2d) = ") and lines[0].endswith("['bleeker2022']")
