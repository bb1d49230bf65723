"""Extract features of a picture data set by a backbone, to a folder that precomp reads; resumable."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from lossscope.core.types import Progress
from lossscope.errors import InputError
from lossscope.io.arrays import open_npy
from lossscope.io.files import write_atomically, write_text
from lossscope.io.folder_lock import has_content, lock_folder
from lossscope.io.json_files import expect, read_json
from lossscope.io.temporary_files import reserve

from ..base import Dataset, Split
from ..features.base import Backbone, Extract
from ..formats.feature_rows import SPLITS
from ..formats.redundant_rows import PER_IMAGE

SCHEMA = "lossscope.features/1"
PART = 256  # pictures of a part, the most that are done again after an interruption
_BATCH = 32  # pictures through the backbone at a time


@dataclass(frozen=True)
class Extraction:
    """Features of a data set, and the folder to write them to."""

    data: str  # spec of the data set
    dataset: Dataset
    backbone: Backbone
    out: Path  # the folder
    names: tuple[str, ...] = ()  # of splits; empty: all that precomp can have
    device: str = "cpu"

    def run(self, progress: Progress | None = None) -> list[str]:
        """Write `{split}_ims.npy`, `_ids.txt` and, last, `_caps.txt`, and return the splits; resume what is unfinished.

        Raises InputError when the folder has other files, items are no pictures, or a split has neither one nor five
        captions for every image.
        """
        names = self._split_names()
        splits = [self.dataset.split(name) for name in names]
        for split in splits:
            _require_pictures(split)
            _captions_in_order(split)
        with lock_folder(self.out):
            self._write(splits, progress)
        return names

    def _write(self, splits: Sequence[Split], progress: Progress | None) -> None:
        self._write_manifest(splits)
        todo = [split for split in splits if not (self.out / f"{split.name}_caps.txt").is_file()]
        extract = self.backbone.open(self.device) if todo else None
        for split in todo:
            assert extract is not None
            self._write_split(split, extract, progress)

    def _split_names(self) -> list[str]:
        available = [name for name in self.dataset.splits() if name in SPLITS]
        unknown = [name for name in self.names if name not in available]
        if unknown or not available:
            raise InputError(f"splits must be of {', '.join(available) or 'none'}; got {', '.join(unknown) or 'none'}")
        return [name for name in available if not self.names or name in self.names]

    def _write_manifest(self, splits: Sequence[Split]) -> None:
        """Write the manifest, or add splits to the one there. Raises InputError when it is of another extraction."""
        file = self.out / "manifest.json"
        manifest = {"schema": SCHEMA, "data": self.data, "with": self.backbone.identity}
        fingerprints = {split.name: split.fingerprint for split in splits}
        if not file.is_file():
            if has_content(self.out):
                raise InputError(f"{self.out} must be new or empty; it is not. Choose another --out")
            write_text(file, json.dumps({**manifest, "splits": fingerprints}, indent=1) + "\n")
            return
        existing = read_json(file)
        before = expect(existing.pop("splits", {}), dict, f"'splits' of {file}")
        changed = [name for name, value in fingerprints.items() if before.get(name, value) != value]
        if existing != manifest or changed:
            raise InputError(f"{self.out} must be new or of the same extraction; it is another. Choose another --out")
        write_text(file, json.dumps({**manifest, "splits": {**before, **fingerprints}}, indent=1) + "\n")

    def _write_split(self, split: Split, extract: Extract, progress: Progress | None) -> None:
        parts = []
        for start in range(0, len(split.images), PART):
            rows = np.arange(start, min(start + PART, len(split.images)), dtype=np.int64)
            parts.append(self._write_part(split, rows, extract))
            if progress is not None:
                progress(f"features of {split.name}", int(rows[-1]) + 1, len(split.images))
        _concatenate(parts, self.out / f"{split.name}_ims.npy", len(split.images))
        write_text(self.out / f"{split.name}_ids.txt", _lines(split.image_ids))
        write_text(self.out / f"{split.name}_caps.txt", _lines(_captions_in_order(split)))
        for part in parts:
            part.unlink()

    def _write_part(self, split: Split, rows: npt.NDArray[np.int64], extract: Extract) -> Path:
        """Write the features of some rows unless their file is there, and return the file."""
        part = self.out / f"{split.name}_ims.part-{rows[0]:07d}.npy"
        if not part.is_file():
            features = [_extract(split, rows[k : k + _BATCH], extract) for k in range(0, len(rows), _BATCH)]
            with write_atomically(part) as file, open(file, "wb") as stream:
                np.save(stream, np.concatenate(features))
        return part


def _extract(split: Split, rows: npt.NDArray[np.int64], extract: Extract) -> npt.NDArray[np.float32]:
    pixels = split.images.take(rows)
    assert isinstance(pixels, np.ndarray)
    features = extract(pixels)
    bad = ~np.isfinite(features).reshape(len(features), -1).all(axis=1)
    if bad.any():
        raise InputError(f"features must be finite; got NaN or infinity for {split.image_ids[int(rows[bad][0])]!r}")
    return features


def _concatenate(parts: Sequence[Path], file: Path, images: int) -> None:
    first = open_npy(parts[0])
    with write_atomically(file) as part:
        whole = np.lib.format.open_memmap(part, mode="w+", dtype=np.float32, shape=(images, *first.shape[1:]))
        reserve(part)
        for number, path in enumerate(parts):
            rows = open_npy(path)
            whole[number * PART : number * PART + len(rows)] = rows
        whole.flush()


def _captions_in_order(split: Split) -> list[str]:
    """Return the captions in the order of their images, white space as single spaces."""
    counts = np.bincount(split.caption_image, minlength=len(split.images))
    if len(np.unique(counts)) != 1 or counts[0] not in (1, PER_IMAGE):
        row = int(np.flatnonzero(counts != PER_IMAGE)[0])
        got = f"{counts[row]} of {split.image_ids[row]!r} in {split.name!r}"
        form = f"{PER_IMAGE} captions each, or all of them 1, as the format allows"
        advice = "choose the data's captions=, or leave such images out of its list"
        raise InputError(f"images of a precomp folder must have {form}; got {got}: {advice}")
    order = np.argsort(split.caption_image, kind="stable")
    return [" ".join(split.captions[row].split()) for row in order.tolist()]


def _lines(texts: Sequence[str]) -> str:
    return "".join(f"{text}\n" for text in texts)


def _require_pictures(split: Split) -> None:
    shape = split.images.shape
    if not isinstance(shape, tuple) or len(shape) != 3 or shape[0] != 3:
        raise InputError(f"items of {split.name!r} must be pictures, (3, H, W); got {shape}: they are features already")
