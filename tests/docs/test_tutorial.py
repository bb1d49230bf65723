"""Does the tutorial run from start to end, and is it stored clean?"""

from __future__ import annotations

import os
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import pytest

HOME = Path(__file__).parents[2]
TUTORIAL = HOME / "docs" / "tutorial.ipynb"


def _read() -> Any:
    import nbformat

    return nbformat.reads(TUTORIAL.read_text(encoding="utf-8"), as_version=4)  # type: ignore[no-untyped-call]


def _install_kernel(folder: Path) -> None:
    """Install a kernel of this Python in the folder, whatever is registered on the machine."""
    from ipykernel.kernelspec import write_kernel_spec

    write_kernel_spec(str(folder / "kernels" / "python3"))
    spec = (folder / "kernels" / "python3" / "kernel.json").read_text(encoding="utf-8")
    assert sys.executable in spec


def _execute(started_in: Path) -> Any:
    """Return the notebook with its outputs; deprecation warnings of Jupyter itself are ignored."""
    with warnings.catch_warnings():
        for module in ("jupyter_client", "jupyter_core", "nbclient", "nbformat", "zmq", "ipykernel"):
            warnings.filterwarnings("ignore", category=DeprecationWarning, module=rf"{module}(\..*)?")
        warnings.filterwarnings("ignore", message="Jupyter is migrating its paths", category=DeprecationWarning)
        from nbclient import NotebookClient

        notebook = _read()
        options = {"metadata": {"path": str(started_in)}}
        return NotebookClient(notebook, timeout=120, kernel_name="python3", resources=options).execute()


def test_the_tutorial_is_short_and_stored_without_outputs() -> None:
    notebook = _read()
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert 10 <= len(notebook.cells) <= 14 and len(code) == 7
    assert not any(cell.outputs or cell.execution_count or cell.metadata for cell in code)
    assert set(notebook.metadata) == {"kernelspec", "language_info"}


def test_pages_that_the_tutorial_points_to_are_there() -> None:
    import re

    text = "\n".join(cell.source for cell in _read().cells if cell.cell_type == "markdown")
    pages = set(re.findall(r"\]\(([^)]+)\)", text))
    assert pages and {page for page in pages if not (TUTORIAL.parent / page).is_file()} == set()


@pytest.mark.slow
@pytest.mark.parametrize("started_in", [HOME / "docs", HOME], ids=["docs", "root"])
def test_the_tutorial_runs(started_in: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _install_kernel(tmp_path / "jupyter")
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path / "jupyter"))
    monkeypatch.setenv("JUPYTER_PLATFORM_DIRS", "1")
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(HOME), os.environ.get("PYTHONPATH", "")]))
    start = time.monotonic()
    notebook = _execute(started_in)
    assert time.monotonic() - start < 60
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    kinds = [kind for output in outputs for kind in output.get("data", {})]
    assert not [output for output in outputs if output.output_type == "error" or output.get("name") == "stderr"]
    assert kinds.count("image/png") == 4 and kinds.count("text/html") == 2
    tables = next(output.data["text/html"] for output in outputs if "text/html" in output.get("data", {}))
    assert "<table" in tables and "C_neg" in tables and "s_pos" in tables
    stdout = "".join(output.text for output in outputs if output.output_type == "stream")
    assert "600 images, 3000 captions, vectors of 64" in stdout
