"""Torch files of any content, read and written in the format they are in."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import torch

from .families import Inapplicable


def read_torch(path: Path) -> Any:
    """Return the content of a torch file. Raises Inapplicable where it cannot be read."""
    try:
        return torch.load(path, map_location="cpu", weights_only=False)
    except Exception as error:
        raise Inapplicable("no torch file") from error


def write_torch(path: Path, content: Any) -> None:
    """Write other content into a torch file: as an archive if it was an archive, else as pickles."""
    torch.save(content, path, _use_new_zipfile_serialization=zipfile.is_zipfile(path))
