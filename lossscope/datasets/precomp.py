"""Precomputed features: `{split}_ims.npy` and `{split}_caps.txt`, as VSE++ and SCAN keep them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import InputError
from ..files import fingerprint_of
from .base import Rows, Split

_SPLITS = ("train", "dev", "val", "test", "testall")
_TWINS = {"val": "dev", "dev": "val"}
_PER_IMAGE = 5
_SAMPLES = 16


@dataclass(frozen=True)
class Precomp:
    """Features (N, d) or (N, R, d) of a folder, read from disk as they are taken, with one caption a line.

    As many lines as rows: one image per caption, kept as it is. Otherwise there must be five lines per row.
    `val` means `dev` where only that exists, and the other way round. `{split}_ids.txt`, if present, names
    the images, one line per image or per caption; otherwise rows are counted.
    dev_first: keep only the first so many captions of dev (0: all); the original code used 5000.
    Raises InputError for what is missing or does not fit, and naming file and row for features not finite.
    """

    root: Path
    dev_first: int = 0

    def __post_init__(self) -> None:
        if self.dev_first < 0:
            raise InputError(f"precomp:dev_first must be at least 1, or 0 for all; got {self.dev_first}")

    def splits(self) -> tuple[str, ...]:
        """Names of the splits that have both files, train first."""
        return tuple(name for name in _SPLITS if all(path.is_file() for path in self._files(name)))

    def split(self, name: str) -> Split:
        """The split of that name, its features left on disk."""
        stem = self._stem(name)
        file, texts = self._files(stem)
        features, captions = _features(file), _lines(texts)
        per_image = _per_image(len(features), len(captions), file, texts)
        ids = _ids(Path(self.root) / f"{stem}_ids.txt", name, len(features), per_image)
        if self.dev_first and stem in _TWINS:
            captions = captions[: self.dev_first]
        rows = -(-len(captions) // per_image)
        owners = np.arange(len(captions), dtype=np.int64) // per_image
        return Split(
            name=name,
            images=_Features(features[:rows], file),
            captions=captions,
            caption_image=owners,
            image_ids=ids[:rows],
            caption_ids=[f"{ids[owner]}-{line % per_image}" for line, owner in enumerate(owners.tolist())],
            fingerprint=_fingerprint(features, name, [*ids[:rows], *captions]),
        )

    def _stem(self, name: str) -> str:
        known = self.splits()
        for stem in (name, _TWINS.get(name, name)):
            if stem in known:
                return stem
        have = ", ".join(known) or "those with {split}_ims.npy and {split}_caps.txt, of which there is none"
        raise InputError(f"split of {self.root} must be one of {have}; got {name!r}")

    def _files(self, name: str) -> tuple[Path, Path]:
        return Path(self.root) / f"{name}_ims.npy", Path(self.root) / f"{name}_caps.txt"


class _Features:
    """Rows of a memory-mapped array, float32 and finite when taken."""

    def __init__(self, features: npt.NDArray[Any], file: Path) -> None:
        self._features, self._file = features, file

    @property
    def shape(self) -> tuple[int, ...]:
        return self._features.shape[1:]

    def __len__(self) -> int:
        return len(self._features)

    def take(self, rows: Rows) -> npt.NDArray[np.float32]:
        """Features of `rows`. Raises InputError naming file and row when one is NaN or infinite."""
        with np.errstate(over="ignore"):  # what float32 can not hold becomes infinite, and is reported
            taken = np.asarray(self._features[rows], dtype=np.float32)
        finite = np.isfinite(taken).reshape(len(taken), -1).all(axis=1)
        if not finite.all():
            row = int(np.asarray(rows)[~finite][0])
            raise InputError(f"features of {self._file} must be finite; got NaN or infinity in row {row}: extract anew")
        return taken


def _features(file: Path) -> npt.NDArray[Any]:
    try:
        features = np.lib.format.open_memmap(file, mode="r")
    except (OSError, ValueError, EOFError) as problem:
        raise InputError(f"{file} must be a whole .npy file; got {problem}: fetch the file again") from None
    if features.dtype.kind != "f":
        raise InputError(f"{file} must hold floats; got {features.dtype}: save the features as float32")
    if features.ndim not in (2, 3) or 0 in features.shape:
        raise InputError(f"{file} must have the shape (N, d) or (N, R, d), N at least 1; got {features.shape}")
    return features


def _lines(file: Path) -> list[str]:
    try:
        text = file.read_bytes().decode("utf-8")
    except UnicodeDecodeError as problem:
        raise InputError(f"{file} must be UTF-8 text; got a foreign byte at {problem.start}") from None
    return [line.strip() for line in text.removesuffix("\n").split("\n")] if text else []


def _per_image(images: int, captions: int, file: Path, texts: Path) -> int:
    if captions == images:
        return 1
    if captions != _PER_IMAGE * images:
        wanted = f"{images} or {_PER_IMAGE * images} lines, for {images} rows in {file.name}"
        raise InputError(f"{texts} must have {wanted}; got {captions}: one of the two files is cut off or foreign")
    return _PER_IMAGE


def _ids(file: Path, name: str, images: int, per_image: int) -> list[str]:
    if not file.is_file():
        return [f"{name}-{row:05d}" for row in range(images)]
    ids = _lines(file)
    if len(ids) not in (images, images * per_image):
        raise InputError(f"{file} must have {images} or {images * per_image} lines; got {len(ids)}")
    ids = ids if len(ids) == images else ids[::per_image]
    return ids if len(set(ids)) == images else _numbered(ids)


def _numbered(ids: Sequence[str]) -> list[str]:
    """Ids of images stored once per caption, told apart by the row."""
    return [f"{name}@{row}" for row, name in enumerate(ids)]


def _fingerprint(features: npt.NDArray[Any], name: str, texts: Sequence[str]) -> str:
    """Covers shape, type, sixteen rows spread over the array, ids and captions: not 33 GB of features."""
    rows = np.linspace(0, len(features) - 1, _SAMPLES).astype(np.int64)
    sample = np.ascontiguousarray(features[rows]).tobytes()
    return fingerprint_of(name, f"{features.shape} {features.dtype.str}", sample, *texts)
