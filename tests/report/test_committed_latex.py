"""Do the committed reports compile as they are, without their pictures, and without a box that is too full?"""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

REPORTS = sorted((Path(__file__).parents[2] / "reports").glob("*/latex/main.tex"))


def test_there_are_committed_reports() -> None:
    assert len(REPORTS) == 3


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="needs pdflatex")
@pytest.mark.parametrize("main", REPORTS, ids=lambda path: path.parents[1].name)
def test_a_committed_report_compiles(main: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(main.parent, tmp_path / "latex")
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "main.tex"]
    done = subprocess.run(command, cwd=folder, capture_output=True, timeout=120, check=False)
    log = (folder / "main.log").read_text(encoding="utf-8", errors="replace")
    assert done.returncode == 0, log[-3000:]
    too_wide = [float(width) for width in re.findall(r"Overfull \\hbox \((\d+\.?\d*)pt too wide", log)]
    assert max(too_wide, default=0.0) < 5 and "Float too large" not in log
    assert (folder / "main.pdf").stat().st_size > 10_000
