"""docs/upstream: does each reproduction print what its report shows?"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "docs" / "upstream"
MODULES = {"open_clip": "open_clip", "pytorch-metric-learning": "pytorch_metric_learning"}


def blocks(library: str) -> tuple[str, str]:
    """Return the reproduction of a report, and the output that the report shows."""
    text = (FOLDER / f"{library}.md").read_text(encoding="utf-8")
    (code,), (output,) = (re.findall(rf"^```{kind}\n(.*?)^```", text, re.M | re.S) for kind in ("python", "text"))
    return code, output


def test_every_report_is_run() -> None:
    assert {path.stem for path in FOLDER.glob("*.md")} == set(MODULES)


@pytest.mark.parametrize("library", MODULES)
def test_a_reproduction_needs_no_lossscope_and_thirty_lines(library: str) -> None:
    code, _ = blocks(library)
    assert "lossscope" not in code
    assert 15 <= len([line for line in code.splitlines() if line.strip()]) <= 30


@pytest.mark.parametrize("library", MODULES)
def test_a_reproduction_prints_what_the_report_shows(library: str, tmp_path: Path) -> None:
    pytest.importorskip(MODULES[library], reason=f"{library} is not installed")
    code, output = blocks(library)
    (tmp_path / "reproduction.py").write_text(code, encoding="utf-8")
    words = [sys.executable, "-W", "ignore", "reproduction.py"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        words, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False, timeout=180
    )
    assert (done.returncode, done.stdout) == (0, output), done.stderr
