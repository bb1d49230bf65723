"""A kind of file is a module of tests/fuzz/kinds that makes a valid file and reads it as commands do."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol, cast

KINDS = Path(__file__).parent / "kinds"


class Kind(Protocol):
    """A module of tests/fuzz/kinds.

    It may also have SHARE, its share of other kinds' cases where its cases take long, and NAMES_FILES = False where
    messages have no file to name.
    """

    FILES: Mapping[str, str]  # pattern of files that are damaged -> their family in tests/fuzz/families
    CHECKSUMMED: tuple[str, ...]  # patterns of files in which damaged bytes must never be read as other numbers

    def make(self, folder: Path) -> None:
        """Write valid files into an empty folder."""
        ...

    def read(self, folder: Path) -> object:
        """Read the folder, which is also the current folder, and return everything that the reader learnt."""
        ...


def kind_names() -> list[str]:
    """Return the names of all kinds."""
    return sorted(file.stem for file in KINDS.glob("*.py") if file.stem != "__init__")


def load_kind(name: str) -> Kind:
    """Return a kind by the name of its file."""
    return cast("Kind", importlib.import_module(f"tests.fuzz.kinds.{name}"))
