"""A folder of .npy shards with metadata.parquet."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from tests.fuzz.results import numbers_of
from tests.fuzz.vectors import dump_arrays

FILES = {"dump/*.npy": "npy", "dump/metadata.parquet": "parquet", "dump": "folder"}
CHECKSUMMED = ()


def make(folder: Path) -> None:
    """Write two shards of images, two of captions, and the rows."""
    (folder / "dump").mkdir()
    arrays = dump_arrays()
    for name in ("images", "captions"):
        for number, part in enumerate(np.array_split(arrays[name], 2)):
            np.save(folder / "dump" / f"{name}-{number}.npy", part)
    table = {"caption_image": arrays["caption_image"], "caption": [f"text {n}" for n in range(24)]}
    pd.DataFrame(table).to_parquet(folder / "dump" / "metadata.parquet")


def read(folder: Path) -> object:
    """Open the folder."""
    return numbers_of(folder / "dump")
