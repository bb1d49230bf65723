"""Do the committed reports compile as they are, and without their pictures, with no overfull box?"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from lossscope.report.latex import README, latex
from lossscope.report.sections import Answer
from tests.pdflatex import compile_latex, keep_basic_packages, overfull

REPORTS = sorted((Path(__file__).parents[2] / "reports").glob("*/latex/main.tex"))


def test_there_are_committed_reports() -> None:
    assert len(REPORTS) == 4


@pytest.mark.parametrize("main", REPORTS, ids=lambda path: path.parents[1].name)
def test_a_committed_report_needs_the_packages_that_a_new_one_needs(main: Path) -> None:
    packages = latex("", "", Answer(), (), {}).partition(r"\title")[0]
    assert main.read_text(encoding="utf-8").partition(r"\title")[0] == packages
    assert (main.parent / "README.md").read_text(encoding="utf-8") == README


@pytest.mark.thorough
@pytest.mark.parametrize("packages", ["all", "basic"])
@pytest.mark.parametrize("main", REPORTS, ids=lambda path: path.parents[1].name)
def test_a_committed_report_compiles(main: Path, packages: str, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(main.parent, tmp_path / "latex"))
    if packages == "basic":
        keep_basic_packages(folder)
    assert overfull(compile_latex(folder)) < 5
    assert (folder / "main.pdf").stat().st_size > 10_000
