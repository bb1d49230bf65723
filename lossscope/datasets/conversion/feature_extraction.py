"""A picture data set through a backbone -> a folder of features as precomp reads it, part by part."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from lossscope.errors import InputError
from lossscope.io.files import write_atomically, write_text
from lossscope.io.json_files import read_json

from ..base import Dataset, Split
from ..features.base import Backbone, Extract
from ..formats.feature_rows import PER_IMAGE, SPLITS, mapped

SCHEMA = "lossscope.features/1"
PART = 256  # pictures: what a stop loses at most
_AT_ONCE = 32
Progress = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Extraction:
    """What to write where. names: splits, all that precomp can hold when empty. data: the data set's spec."""

    data: str
    dataset: Dataset
    backbone: Backbone
    out: Path
    names: tuple[str, ...] = ()
    device: str = "cpu"

    def run(self, progress: Progress | None = None) -> list[str]:
        """Write `{split}_ims.npy`, `_ids.txt` and, last, `_caps.txt`; what is there already is kept.

        Returns the splits. Raises InputError when the folder holds other things, items are no pictures, or a split
        has neither one nor five captions for every image.
        """
        names = self._chosen()
        splits = [self.dataset.split(name) for name in names]
        for split in splits:
            _require_pictures(split)
            _captions(split)
        self._begin(splits)
        todo = [split for split in splits if not (self.out / f"{split.name}_caps.txt").is_file()]
        extract = self.backbone.open(self.device) if todo else None
        for split in todo:
            assert extract is not None
            self._write(split, extract, progress)
        return names

    def _chosen(self) -> list[str]:
        there = [name for name in self.dataset.splits() if name in SPLITS]
        wrong = [name for name in self.names if name not in there]
        if wrong or not there:
            raise InputError(f"splits must be of {', '.join(there) or 'none'}; got {', '.join(wrong) or 'none'}")
        return [name for name in there if not self.names or name in self.names]

    def _begin(self, splits: Sequence[Split]) -> None:
        """Write the manifest, or hold the one that is there against what is to be done."""
        file = self.out / "manifest.json"
        told = {"schema": SCHEMA, "data": self.data, "with": self.backbone.identity}
        content = {split.name: split.fingerprint for split in splits}
        if not file.is_file():
            if self.out.exists() and (not self.out.is_dir() or any(self.out.iterdir())):
                raise InputError(f"{self.out} must be new or empty; it is not. Choose another --out")
            write_text(file, json.dumps({**told, "splits": content}, indent=1) + "\n")
            return
        found = read_json(file)
        before = found.pop("splits", {})
        changed = [name for name, value in content.items() if before.get(name, value) != value]
        if found != told or changed:
            raise InputError(f"{self.out} must be new or of this very extraction; it is another. Choose another --out")
        write_text(file, json.dumps({**told, "splits": {**before, **content}}, indent=1) + "\n")

    def _write(self, split: Split, extract: Extract, progress: Progress | None) -> None:
        parts = []
        for start in range(0, len(split.images), PART):
            rows = np.arange(start, min(start + PART, len(split.images)), dtype=np.int64)
            parts.append(self._part(split, rows, extract))
            if progress is not None:
                progress(f"features of {split.name}", int(rows[-1]) + 1, len(split.images))
        _joined(parts, self.out / f"{split.name}_ims.npy", len(split.images))
        write_text(self.out / f"{split.name}_ids.txt", _lines(split.image_ids))
        write_text(self.out / f"{split.name}_caps.txt", _lines(_captions(split)))
        for part in parts:
            part.unlink()

    def _part(self, split: Split, rows: npt.NDArray[np.int64], extract: Extract) -> Path:
        part = self.out / f"{split.name}_ims.part-{rows[0]:07d}.npy"
        if not part.is_file():
            made = [_made(split, rows[k : k + _AT_ONCE], extract) for k in range(0, len(rows), _AT_ONCE)]
            with write_atomically(part) as file, open(file, "wb") as stream:
                np.save(stream, np.concatenate(made))
        return part


def _made(split: Split, rows: npt.NDArray[np.int64], extract: Extract) -> npt.NDArray[np.float32]:
    pixels = split.images.take(rows)
    assert isinstance(pixels, np.ndarray)
    found = extract(pixels)
    bad = ~np.isfinite(found).reshape(len(found), -1).all(axis=1)
    if bad.any():
        raise InputError(f"features must be finite; got NaN or infinity for {split.image_ids[int(rows[bad][0])]!r}")
    return found


def _joined(parts: Sequence[Path], file: Path, images: int) -> None:
    first = mapped(parts[0])
    with write_atomically(file) as part:
        whole = np.lib.format.open_memmap(part, mode="w+", dtype=np.float32, shape=(images, *first.shape[1:]))
        for number, path in enumerate(parts):
            rows = mapped(path)
            whole[number * PART : number * PART + len(rows)] = rows
        whole.flush()


def _captions(split: Split) -> list[str]:
    """Captions image after image, one line each."""
    counts = np.bincount(split.caption_image, minlength=len(split.images))
    if len(np.unique(counts)) != 1 or counts[0] not in (1, PER_IMAGE):
        row = int(np.flatnonzero(counts != PER_IMAGE)[0])
        got = f"{counts[row]} of {split.image_ids[row]!r} in {split.name!r}"
        wanted = f"{PER_IMAGE} captions each, or all of them 1, which is all that the format can say"
        advice = "choose the data's captions=, or leave such images out of its list"
        raise InputError(f"images of a precomp folder must have {wanted}; got {got}: {advice}")
    order = np.argsort(split.caption_image, kind="stable")
    return [" ".join(split.captions[row].split()) for row in order.tolist()]


def _lines(texts: Sequence[str]) -> str:
    return "".join(f"{text}\n" for text in texts)


def _require_pictures(split: Split) -> None:
    shape = split.images.shape
    if not isinstance(shape, tuple) or len(shape) != 3 or shape[0] != 3:
        raise InputError(f"items of {split.name!r} must be pictures, (3, H, W); got {shape}: they are features already")
