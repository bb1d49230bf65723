"""Run docs/tutorial.ipynb from start to end and store the outputs in the notebook.

`--check` writes nothing and exits 1 with a diff if the printed text differs. It does not compare pictures.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import nbformat
from generated_page import write_or_compare
from ipykernel.kernelspec import write_kernel_spec
from nbclient import NotebookClient

ROOT = Path(__file__).parents[1]
TUTORIAL = ROOT / "docs" / "tutorial.ipynb"
QUIET = ("jupyter_client", "jupyter_core", "nbclient", "nbformat", "zmq", "ipykernel")
"""Packages of Jupyter; their deprecation warnings do not concern the tutorial."""
_UNROUNDED = re.compile(r"\d+\.\d{9,}")


def read() -> Any:
    """Return the stored notebook."""
    return nbformat.reads(TUTORIAL.read_text(encoding="utf-8"), as_version=4)  # type: ignore[no-untyped-call]


def execute(started_in: Path) -> Any:
    """Return the notebook with new outputs from this Python, whatever kernels the machine has."""
    with warnings.catch_warnings(), tempfile.TemporaryDirectory() as home, _own_kernel(Path(home)):
        for module in QUIET:
            warnings.filterwarnings("ignore", category=DeprecationWarning, module=rf"{module}(\..*)?")
        warnings.filterwarnings("ignore", message="Jupyter is migrating its paths", category=DeprecationWarning)
        options = {"metadata": {"path": str(started_in)}}
        done = NotebookClient(read(), timeout=120, kernel_name="python3", resources=options).execute()
    for cell in done.cells:
        cell.metadata.clear()  # times
    return done


@contextmanager
def _own_kernel(home: Path) -> Iterator[None]:
    """Register this Python as the only kernel, in a folder."""
    write_kernel_spec(str(home / "kernels" / "python3"))
    paths = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    variables = {"JUPYTER_PATH": str(home), "JUPYTER_PLATFORM_DIRS": "1", "IPYTHONDIR": str(home), "PYTHONPATH": paths}
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})


def printed(notebook: Any) -> str:
    """Return the text of the outputs: printed lines, and tables with unrounded numbers cut to six digits.

    Processors add in different orders, so the ninth digit of a mean depends on the processor.
    """
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    texts = (output.get("text") or output.get("data", {}).get("text/html", "") for output in outputs)
    return _UNROUNDED.sub(lambda number: f"{float(number[0]):.6g}", "\n".join(text for text in texts if text))


def main(arguments: list[str]) -> int:
    """Store the outputs, or compare the printed text with the stored text."""
    new, old = execute(ROOT), read()
    if "--check" in arguments:
        sys.stdout.write("" if printed(new) == printed(old) else f"{printed(old)}\nis now\n{printed(new)}\n")
        return int(printed(new) != printed(old))
    new.metadata = old.metadata
    text: str = nbformat.writes(new)  # type: ignore[no-untyped-call]
    return write_or_compare(TUTORIAL, f"{text}\n", arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
