"""Extract features of a picture data set by a backbone, to a folder that precomp reads; resumable."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch

from lossscope.core.types import Progress
from lossscope.errors import InputError
from lossscope.io.exact_texts import IN_LINES
from lossscope.io.files import read_safetensors, write_safetensors, write_text
from lossscope.io.folder_lock import has_content, lock_folder
from lossscope.io.json_files import expect
from lossscope.io.manifests import read_manifest, write_manifest
from lossscope.io.rows_on_disk import write_rows

from ..base import Dataset, Split
from ..features.base import Backbone, Extract
from ..formats.feature_rows import SPLITS
from ..formats.redundant_rows import PER_IMAGE

SCHEMA = "lossscope.features/1"
PART = 256  # pictures of a part, the most that are done again after an interruption
_BATCH = 32  # pictures through the backbone at a time
_ROWS = "features"  # name of the tensor of a part


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
            write_manifest(file, {**manifest, "splits": fingerprints})
            return
        existing = read_manifest(file)
        before = expect(existing.pop("splits", {}), dict, f"'splits' of {file}")
        changed = [name for name, value in fingerprints.items() if before.get(name, value) != value]
        if existing != manifest or changed:
            raise InputError(f"{self.out} must be new or of the same extraction; it is another. Choose another --out")
        write_manifest(file, {**manifest, "splits": {**before, **fingerprints}})

    def _write_split(self, split: Split, extract: Extract, progress: Progress | None) -> None:
        parts = []
        for start in range(0, len(split.images), PART):
            rows = np.arange(start, min(start + PART, len(split.images)), dtype=np.int64)
            parts.append(self._write_part(split, rows, extract))
            if progress is not None:
                progress(f"features of {split.name}", int(rows[-1]) + 1, len(split.images))
        shape = (len(split.images), *_read_part(parts[0]).shape[1:])
        write_rows(self.out / f"{split.name}_ims.npy", shape, map(_read_part, parts))
        write_text(self.out / f"{split.name}_ids.txt", lines_of_ids(split.image_ids))
        write_text(self.out / f"{split.name}_caps.txt", _lines(_captions_in_order(split)))
        for part in self.out.glob(f"{split.name}_ims.part-*"):
            part.unlink()

    def _write_part(self, split: Split, rows: npt.NDArray[np.int64], extract: Extract) -> Path:
        """Write the features of some rows unless their file is there, and return the file."""
        part = self.out / f"{split.name}_ims.part-{rows[0]:07d}.safetensors"
        if not part.is_file():
            features = [_extract(split, rows[k : k + _BATCH], extract) for k in range(0, len(rows), _BATCH)]
            write_safetensors(part, {_ROWS: torch.from_numpy(np.concatenate(features))})
        return part


def _extract(split: Split, rows: npt.NDArray[np.int64], extract: Extract) -> npt.NDArray[np.float32]:
    pixels = split.images.take(rows)
    assert isinstance(pixels, np.ndarray)
    features = extract(pixels)
    bad = ~np.isfinite(features).reshape(len(features), -1).all(axis=1)
    if bad.any():
        raise InputError(f"features must be finite; got NaN or infinity for {split.image_ids[int(rows[bad][0])]!r}")
    return features


def _read_part(file: Path) -> npt.NDArray[np.float32]:
    """Return the features of a part. Raises InputError when they are not those that were written."""
    rows = read_safetensors(file, needs_digest=True).get(_ROWS)
    if rows is None:
        raise InputError(f"{file} must hold {_ROWS}; it does not. Remove it and run the command again")
    return np.asarray(rows.numpy(), dtype=np.float32)


def _captions_in_order(split: Split) -> list[str]:
    """Return the captions in the order of their images, white space as single spaces."""
    counts = np.bincount(split.relations.caption_image, minlength=len(split.images))
    if len(np.unique(counts)) != 1 or counts[0] not in (1, PER_IMAGE):
        row = int(np.flatnonzero(counts != PER_IMAGE)[0])
        got = f"{counts[row]} of {split.image_ids[row]!r} in {split.name!r}"
        form = f"{PER_IMAGE} captions each, or all of them 1, as the format allows"
        advice = "choose the data's captions=, or leave such images out of its list"
        raise InputError(f"images of a precomp folder must have {form}; got {got}: {advice}")
    order = np.argsort(split.relations.caption_image, kind="stable")
    return [" ".join(split.captions[row].split()) for row in order.tolist()]


def lines_of_ids(ids: Iterable[str]) -> str:
    """Return the text of a file with an id on each line; `feature_rows.read_ids` gives the same ids back."""
    return _lines(map(IN_LINES.write, ids))


def _lines(texts: Iterable[str]) -> str:
    return "".join(f"{text}\n" for text in texts)


def _require_pictures(split: Split) -> None:
    shape = split.images.shape
    if not isinstance(shape, tuple) or len(shape) != 3 or shape[0] != 3:
        raise InputError(f"items of {split.name!r} must be pictures, (3, H, W); got {shape}: they are features already")
