"""Does the tutorial run from start to end, and are its stored outputs those of today's code?"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import make_tutorial
import pytest

HOME = Path(__file__).parents[2]


def _outputs(notebook: Any) -> list[Any]:
    return [output for cell in notebook.cells for output in cell.get("outputs", [])]


def _kinds(notebook: Any) -> list[str]:
    return [kind for output in _outputs(notebook) for kind in output.get("data", {}) if kind != "text/plain"]


def test_the_tutorial_is_short_and_stored_with_its_outputs() -> None:
    notebook = make_tutorial.read()
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert 10 <= len(notebook.cells) <= 14 and len(code) == 7
    assert all(cell.outputs and cell.execution_count for cell in code) and not any(cell.metadata for cell in code)
    assert set(notebook.metadata) == {"kernelspec", "language_info"}
    assert _kinds(notebook).count("image/png") == 4 and _kinds(notebook).count("text/html") == 2
    assert make_tutorial.TUTORIAL.stat().st_size < 2_000_000


def test_the_stored_outputs_name_no_folder_of_a_machine() -> None:
    assert not re.findall(r"/(?:home|root|Users|work|tmp)/\S*", make_tutorial.printed(make_tutorial.read()))


def test_pages_that_the_tutorial_points_to_are_there() -> None:
    text = "\n".join(cell.source for cell in make_tutorial.read().cells if cell.cell_type == "markdown")
    pages = set(re.findall(r"\]\(([^)]+)\)", text))
    assert pages and {page for page in pages if not (HOME / "docs" / page).is_file()} == set()


@pytest.mark.thorough
@pytest.mark.parametrize("started_in", [HOME / "docs", HOME], ids=["docs", "root"])
def test_the_tutorial_prints_what_is_stored(started_in: Path) -> None:
    notebook, stored = make_tutorial.execute(started_in), make_tutorial.read()
    assert not [
        output for output in _outputs(notebook) if output.output_type == "error" or output.get("name") == "stderr"
    ]
    assert _kinds(notebook) == _kinds(stored)
    assert make_tutorial.printed(notebook) == make_tutorial.printed(stored), "run `make docs`"
    assert "600 images, 3000 captions, vectors of 64" in make_tutorial.printed(notebook)
    assert "C_neg" in make_tutorial.printed(notebook) and "s_pos" in make_tutorial.printed(notebook)
