"""The four pickles of CE and MMT for MSR-VTT, as `lossscope data msrvtt` converts them."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import get_args

import numpy as np

from lossscope.datasets.conversion.msrvtt import Kind, convert

FILES = {f"{name}.pickle": "pickle" for name in get_args(Kind)}
CHECKSUMMED = ()


def make(folder: Path) -> None:
    """Write three videos."""
    videos = [f"video{k}" for k in range(3)]
    contents = {
        "expert": {video: np.ones((k + 1, 4), "f4") for k, video in enumerate(videos)},
        "words": {video: [np.ones((3, 2), "f4"), np.zeros((2, 2), "f4")] for video in videos},
        "captions": {video: [["a", "first", str(k)], "a second"] for k, video in enumerate(videos)},
        "chosen": {"video1": np.int64(1), "video2": [0]},
    }
    for name, content in contents.items():
        (folder / f"{name}.pickle").write_bytes(pickle.dumps(content))


def read(folder: Path) -> object:
    """Convert all of them and return what was written."""
    (folder / "out").mkdir()
    counts = [convert(name, folder / f"{name}.pickle", folder / "out" / f"{name}.json") for name in get_args(Kind)]
    return counts, {file.name: file.read_bytes() for file in sorted((folder / "out").iterdir()) if file.is_file()}
