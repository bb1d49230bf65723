"""Files of features: one row an image in a .npy, one line a caption beside it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from lossscope.errors import InputError
from lossscope.io.files import fingerprint_of

from ..base import Split

PER_IMAGE = 5
SPLITS = ("train", "dev", "val", "test", "testall")
TWINS = {"val": "dev", "dev": "val"}
_SAMPLES = 16
_Rows = npt.NDArray[np.int64]


class FeatureRows:
    """Rows (N, d) or (N, R, d) of a .npy file, left on disk; float32 and finite when taken."""

    def __init__(self, features: npt.NDArray[Any], file: Path) -> None:
        self._features, self._file = features, file

    @property
    def shape(self) -> tuple[int, ...]:
        return self._features.shape[1:]

    def __len__(self) -> int:
        return len(self._features)

    def take(self, rows: _Rows) -> npt.NDArray[np.float32]:
        """Features of `rows`. Raises InputError naming file and row when one is NaN or infinite."""
        with np.errstate(over="ignore"):  # what float32 can not hold becomes infinite, and is reported
            taken = np.asarray(self._features[rows], dtype=np.float32)
        finite = np.isfinite(taken).reshape(len(taken), -1).all(axis=1)
        if not finite.all():
            row = int(np.asarray(rows)[~finite][0])
            raise InputError(f"features of {self._file} must be finite; got NaN or infinity in row {row}: extract anew")
        return taken


def read_features(file: Path) -> npt.NDArray[Any]:
    """The memory-mapped floats of a file. Raises InputError when it is damaged or of another shape or type."""
    features = mapped(file)
    if features.dtype.kind != "f":
        raise InputError(f"{file} must hold floats; got {features.dtype}: save the features as float32")
    if features.ndim not in (2, 3) or 0 in features.shape:
        raise InputError(f"{file} must have the shape (N, d) or (N, R, d), N at least 1; got {features.shape}")
    return features


def mapped(file: Path) -> npt.NDArray[Any]:
    """The memory-mapped array of a .npy file. Raises InputError when it is missing, cut off or no such file."""
    try:
        return np.lib.format.open_memmap(file, mode="r")
    except (OSError, ValueError, EOFError) as problem:
        raise InputError(f"{file} must be a whole .npy file; got {problem}: fetch the file again") from None


def read_lines(file: Path) -> list[str]:
    """Lines of a text file, stripped. Raises InputError when it is missing or not UTF-8."""
    try:
        text = file.read_bytes().decode("utf-8")
    except OSError as problem:
        raise InputError(f"{file} must be a readable file; got {problem.strerror}: check the path") from None
    except UnicodeDecodeError as problem:
        raise InputError(f"{file} must be UTF-8 text; got a foreign byte at {problem.start}") from None
    return [line.strip() for line in text.removesuffix("\n").split("\n")] if text else []


def present(root: Path, suffix: str) -> tuple[str, ...]:
    """Names of the splits with features and captions (`{split}_{suffix}`), train first."""
    files = ("ims.npy", suffix)
    return tuple(name for name in SPLITS if all((root / f"{name}_{file}").is_file() for file in files))


def stem_of(name: str, root: Path, suffix: str) -> str:
    """The split's name in file names: `val` may be called `dev`. Raises InputError when there is neither."""
    known = present(root, suffix)
    for stem in (name, TWINS.get(name, name)):
        if stem in known:
            return stem
    have = ", ".join(known) or f"those with {{split}}_ims.npy and {{split}}_{suffix}, of which there is none"
    raise InputError(f"split of {root} must be one of {have}; got {name!r}")


def feature_split(
    name: str,
    stem: Path,
    texts: Path,
    captions: list[str],
    first: int = 0,
    tokens: Sequence[Sequence[int]] | None = None,
) -> Split:
    """The split of `{stem}_ims.npy` with one or five of the captions of `texts` for each row, cut to the `first`."""
    file = stem.with_name(f"{stem.name}_ims.npy")
    features = read_features(file)
    per_image = _per_image(len(features), len(captions), file, texts)
    ids = _ids(stem.with_name(f"{stem.name}_ids.txt"), name, len(features), per_image)
    kept = captions[: first or None]
    rows = -(-len(kept) // per_image)
    owners = np.arange(len(kept), dtype=np.int64) // per_image
    told = [] if tokens is None else [" ".join(map(str, row)) for row in tokens[: len(kept)]]
    return Split(
        name=name,
        images=FeatureRows(features[:rows], file),
        captions=kept,
        caption_image=owners,
        image_ids=ids[:rows],
        caption_ids=[f"{ids[owner]}-{line % per_image}" for line, owner in enumerate(owners.tolist())],
        fingerprint=_fingerprint(features, name, [*ids[:rows], *kept, *told]),
        tokens=None if tokens is None else tokens[: len(kept)],
    )


def _per_image(images: int, captions: int, file: Path, texts: Path) -> int:
    """1 or 5. Raises InputError for numbers that do not fit."""
    if captions == images:
        return 1
    if captions != PER_IMAGE * images:
        wanted = f"{images} or {PER_IMAGE * images} lines, for {images} rows in {file.name}"
        raise InputError(f"{texts} must have {wanted}; got {captions}: one of the two files is cut off or foreign")
    return PER_IMAGE


def _ids(file: Path, name: str, images: int, per_image: int) -> list[str]:
    """One id per image from a file that has one line per image or per caption; counted rows where there is none."""
    if not file.is_file():
        return [f"{name}-{row:05d}" for row in range(images)]
    ids = read_lines(file)
    if len(ids) not in (images, images * per_image):
        raise InputError(f"{file} must have {images} or {images * per_image} lines; got {len(ids)}")
    ids = ids if len(ids) == images else ids[::per_image]
    return ids if len(set(ids)) == images else [f"{id}@{row}" for row, id in enumerate(ids)]


def _fingerprint(features: npt.NDArray[Any], name: str, texts: Sequence[str]) -> str:
    """Covers shape, type, sixteen rows spread over the array, ids and captions: not 33 GB of features."""
    rows = np.linspace(0, len(features) - 1, _SAMPLES).astype(np.int64)
    sample = np.ascontiguousarray(features[rows]).tobytes()
    return fingerprint_of(name, f"{features.shape} {features.dtype.str}", sample, *texts)
