"""A small valid file of every family, for the tests of the mutators."""

from __future__ import annotations

import io
import json
import pickle
import shutil
import tarfile
from collections.abc import Callable
from pathlib import Path

import h5py
import numpy as np
import pandas as pd
import safetensors.numpy
import torch

from .families import FAMILIES

_ROWS = np.arange(12, dtype="f4").reshape(3, 4)
_TREE = {"name": "a", "sizes": [1, 2, 3], "inner": {"x": 1.5, "rows": [{"y": 1}, {"y": 2}]}}
_TEXT = "".join(f"line {n} of some\n" for n in range(20))


def write_sample(mutator: str, folder: Path) -> Path:
    """Empty the folder and write the file, or folder, that a mutator damages; return its path."""
    families = [name for name, mutators in FAMILIES.items() if mutator in mutators]
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    family = families[0] if families else "text"
    path = folder / f"sample.{family}"
    _WRITERS[family](path)
    return folder if family == "folder" else path


def _write_tar(path: Path) -> None:
    with tarfile.open(path, "w") as archive:
        for name in ("a.txt", "b.txt", "c.txt"):
            info = tarfile.TarInfo(name)
            info.size = 4
            archive.addfile(info, io.BytesIO(name[:4].encode()))


def _write_hdf5(path: Path) -> None:
    with h5py.File(path, "w", libver="latest") as file:
        file.create_dataset("rows", data=_ROWS, track_times=False)
        file.create_dataset("more", data=_ROWS, track_times=False)


def _write_npz(path: Path) -> None:
    with open(path, "wb") as file:
        np.savez(file, rows=_ROWS, more=_ROWS)


def _write_npy(path: Path) -> None:
    with open(path, "wb") as file:
        np.save(file, _ROWS)


_WRITERS: dict[str, Callable[[Path], object]] = {
    "csv": lambda path: path.write_text("a,b,c\n1,2,3\n4,5,6\n7,8,9\n"),
    "folder": lambda path: [(path.parent / f"{name}.txt").write_text(name) for name in "abc"],
    "hdf5": _write_hdf5,
    "json": lambda path: path.write_text(json.dumps(_TREE)),
    "jsonl": lambda path: path.write_text((json.dumps(_TREE) + "\n") * 3),
    "npy": _write_npy,
    "npz": _write_npz,
    "parquet": lambda path: pd.DataFrame(_ROWS, columns=list("abcd")).to_parquet(path),
    "pickle": lambda path: path.write_bytes(pickle.dumps(_TREE)),
    "safetensors": lambda path: safetensors.numpy.save_file({"rows": _ROWS, "more": _ROWS}, path),
    "tar": _write_tar,
    "text": lambda path: path.write_text(_TEXT),
    "toml": lambda path: path.write_text('a = 1\nb = "x"\n[c]\nd = [1, 2]\n'),
    "torch_zip": lambda path: torch.save({"rows": torch.from_numpy(_ROWS), **_TREE}, path),
    "torch_legacy": lambda path: torch.save(_TREE, path, _use_new_zipfile_serialization=False),
    "torchscript": lambda path: torch.save(_TREE, path),
}
