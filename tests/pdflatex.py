"""Compile a main.tex with pdflatex, with the installed packages or with basic packages alone."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

PDFLATEX = shutil.which("pdflatex")
FURTHER = ("lmodern.sty", "booktabs.sty")  # packages that a basic installation does not have


def compile_latex(folder: Path, *options: str, runs: int = 1) -> str:
    """Compile main.tex of a folder and return the log; skip the rest of the test without pdflatex."""
    if PDFLATEX is None:
        pytest.skip("needs pdflatex (Debian package texlive-latex-recommended)")
    command = [PDFLATEX, *options, "-interaction=nonstopmode", "-halt-on-error", "main.tex"]
    for _ in range(runs):
        done = subprocess.run(command, cwd=folder, capture_output=True, timeout=120, check=False)
        assert done.returncode == 0, done.stdout[-3000:].decode(errors="replace")
    return (folder / "main.log").read_text(encoding="utf-8", errors="replace")


def keep_basic_packages(folder: Path) -> None:
    """Hide the further packages from main.tex, also where they are installed."""
    main = folder / "main.tex"
    text = main.read_text(encoding="utf-8")
    for file in FURTHER:
        assert text.count(rf"\IfFileExists{{{file}}}") == 1
        text = text.replace(rf"\IfFileExists{{{file}}}", r"\IfFileExists{not-installed.sty}")
    main.write_text(text, encoding="utf-8")


def overfull(log: str) -> float:
    """Return by how many points the fullest box of a log is too wide or too high."""
    assert "Float too large" not in log
    return max(map(float, re.findall(r"Overfull \\[hv]box \((\d+\.?\d*)pt too", log)), default=0.0)
