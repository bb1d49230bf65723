"""Valid files that many kinds share, made once for every version of the code: a run, a study, an evaluation."""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

from .kind import load_kind

ROOT = Path(__file__).parents[2]
HOME = "LOSSSCOPE_FUZZ_HOME"  # environment variable: folder of originals and findings


def original_of(kind: str, home: Path) -> Path:
    """Return the folder of valid files of a kind, made at first use."""
    return made_once(home, f"kinds/{kind}", load_kind(kind).make)


def shared(name: str, make: Callable[[Path], object]) -> Path:
    """Return a folder that several kinds copy from, made at first use."""
    return made_once(Path(os.environ.get(HOME, tempfile.gettempdir())), f"shared/{name}", make)


def made_once(home: Path, name: str, make: Callable[[Path], object]) -> Path:
    """Return HOME/VERSION/NAME, filled by `make` where it is missing; a half-filled folder is never kept."""
    folder = home / version_of_code() / name
    if not folder.is_dir():
        folder.parent.mkdir(parents=True, exist_ok=True)
        part = Path(tempfile.mkdtemp(dir=folder.parent, prefix="."))
        make(part)
        try:
            part.rename(folder)
        except OSError:  # another process made it meanwhile
            shutil.rmtree(part)
    return folder


def version_of_code() -> str:
    """Return a hash of the files that write the originals."""
    whole = hashlib.sha256()
    for pattern in ("lossscope/**/*.py", "tests/fuzz/**/*.py", "tests/tiny.py"):
        for file in sorted(ROOT.glob(pattern)):
            whole.update(file.read_bytes())
    return whole.hexdigest()[:12]
