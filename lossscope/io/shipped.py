"""Files that come with the package: `tiny` is checkpoints/tiny.pt, `bleeker2022-small` is a file of studies/."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from lossscope.errors import InputError

from .locations import local_path, url_of
from .reading import show_path

Kind = Literal["checkpoints", "studies"]
_PACKAGE = Path(__file__).parent.parent
_SUFFIXES = {"checkpoints": ".pt", "studies": ".toml"}


def shipped_files(kind: Kind) -> dict[str, Path]:
    """Return name -> file of a kind: those of the installed package, else those of the checkout around it."""
    folders = (_PACKAGE / "shipped" / kind, _PACKAGE.parent / kind)
    folder = next((candidate for candidate in folders if candidate.is_dir()), folders[0])
    return {file.stem: file for file in sorted(folder.glob(f"*{_SUFFIXES[kind]}"))}


def require_source(path: Path | str) -> Path:
    """Return the path of a source; `tiny` is the checkpoint that comes with the package.

    Raises InputError where there is nothing.
    """
    if url_of(path) is not None:
        return Path(path)  # what is there is seen when it is read
    found = find_shipped("checkpoints", local_path(path).expanduser())
    if not found.exists():
        names = ", ".join(shipped_files("checkpoints"))
        raise InputError(
            f"source must exist; there is nothing at {path} (looked in {Path.cwd()}). Comes with lossscope: {names}"
        )
    return found


def find_shipped(kind: Kind, path: Path) -> Path:
    """Return the path if there is something, else the file that comes with the package under this name, or the path.

    `checkpoints/tiny.pt`, as examples write it, and `tiny` both name the file, in whatever folder one is.
    """
    named = path.parent == Path() or path.parent == Path(kind)
    if path.exists() or not named or path.suffix not in ("", _SUFFIXES[kind]):
        return path
    return shipped_files(kind).get(path.stem, path)


def name_of_source(path: Path) -> str:
    """Return what a source is called in tables: its path as it was given, `tiny` for a file of the package."""
    return next((name for name, file in shipped_files("checkpoints").items() if file == path), show_path(path))
