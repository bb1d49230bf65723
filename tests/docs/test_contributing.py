"""Is each example of CONTRIBUTING.md, saved as its one file, all that the commands below it need?"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import lossscope

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
EXAMPLE = re.compile(r"`(lossscope/[\w/]+\.py)`.*?```python\n(.*?)```\n\n```sh\n(.*?)```", re.DOTALL)
EXAMPLES = EXAMPLE.findall(TEXT)
KINDS = {"objectives", "probes", "encoders", "datasets", "doctor", "plots", "tables", "chapters"}


def test_there_is_an_example_of_every_kind() -> None:
    assert {Path(path).parent.name for path, _, _ in EXAMPLES} == KINDS


def test_no_example_is_part_of_the_library() -> None:
    assert not [path for path, _, _ in EXAMPLES if (ROOT / path).exists()]


RUN = """
import shlex, sys
from lossscope_cli import app
from tests.blank_pictures import blank_pictures
from typer.testing import CliRunner

for line in sys.stdin.read().splitlines():
    words, _, file = line.partition(" > ")
    with blank_pictures():
        result = CliRunner().invoke(app, shlex.split(words)[1:])
    assert result.exit_code == 0, f"{line}: {result.output}"
    if file:
        open(file, "w").write(result.stdout)
"""


@pytest.mark.thorough
def test_one_file_is_all_that_an_example_needs(tmp_path: Path) -> None:
    """Commands run in order in a copy of the library, since a command may read what an earlier one wrote."""
    shutil.copytree(
        Path(lossscope.__file__).parent, tmp_path / "lossscope", ignore=shutil.ignore_patterns("__pycache__")
    )
    shutil.copytree(ROOT / "cli", tmp_path / "lossscope_cli", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(ROOT / "checkpoints", tmp_path / "checkpoints")
    for path, code, _ in EXAMPLES:
        (tmp_path / path).write_text(code, encoding="utf-8")
    result = subprocess.run(
        [sys.executable, "-c", RUN],
        input="".join(commands for _, _, commands in EXAMPLES),
        cwd=tmp_path,
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join(map(str, (tmp_path, ROOT))),
            "LOSSSCOPE_CACHE": str(tmp_path / "cache"),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    assert (tmp_path / "bars.png").stat().st_size > 1000
    assert "This report is of 1 runs." in (tmp_path / "report" / "index.html").read_text(encoding="utf-8")
