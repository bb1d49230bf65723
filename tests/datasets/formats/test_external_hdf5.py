"""Are numbers of an HDF5 file those in the file, never those of another one?"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import pytest

from lossscope.datasets.formats.mult_h5 import _read_dataset
from lossscope.errors import InputError
from tests.each import each


def _link(file: Any, other: Path) -> None:
    file["a"] = h5py.ExternalLink(str(other), "a")


def _external(file: Any, other: Path) -> None:
    file.create_dataset("a", (4,), "u1", external=[(str(other), 0, 4)])


def _virtual(file: Any, other: Path) -> None:
    layout = h5py.VirtualLayout((4,), "u1")
    layout[:] = h5py.VirtualSource(str(other), "a", (4,))
    file.create_virtual_dataset("a", layout)


@each("plant, says", [
    (_link, "must be a data set of this file"),
    (_external, "must have its numbers in this file"),
    (_virtual, "must have its numbers in this file"),
])  # fmt: skip
def test_numbers_of_another_file_are_refused(plant: Any, says: str, tmp_path: Path) -> None:
    with h5py.File(tmp_path / "other.h5", "w") as other:
        other["a"] = [1, 2, 3, 4]
    with h5py.File(tmp_path / "a.h5", "w") as file:
        plant(file, tmp_path / "other.h5")
    with h5py.File(tmp_path / "a.h5") as file, pytest.raises(InputError, match=says):
        _read_dataset(file, "a")
