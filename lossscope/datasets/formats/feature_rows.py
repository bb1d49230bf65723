"""Files of precomputed features: a .npy with a row per image, and a text file with a line per caption."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from lossscope.errors import InputError
from lossscope.io.files import fingerprint_of
from lossscope.io.rows_on_disk import RowsOnDisk
from lossscope.io.text_files import read_utf8

from ..base import Split
from .redundant_rows import PER_IMAGE, Redundant, merge_rows

SPLITS = ("train", "dev", "val", "test", "testall")
ALIASES = {"val": "dev", "dev": "val"}  # two names of one split
_FINGERPRINT_ROWS = 16
_DEV_CAPTIONS = 5000
_MAX_LINES = 1 << 24
_Rows = npt.NDArray[np.int64]


class FeatureRows:
    """Rows (N, d) or (N, R, d) of a .npy file, left on disk; read as float32 and checked to be finite."""

    def __init__(self, features: RowsOnDisk) -> None:
        self._features = features

    @property
    def shape(self) -> tuple[int, ...]:
        return self._features.shape[1:]

    def __len__(self) -> int:
        return len(self._features)

    def take(self, rows: _Rows) -> npt.NDArray[np.float32]:
        """Return the features of `rows`.

        Raises InputError naming file and row when one is NaN or infinite, or differs from its checksum.
        """
        with np.errstate(over="ignore"):  # numbers too great for float32 become infinite and raise below
            features = np.asarray(self._features.take(rows), dtype=np.float32)
        finite = np.isfinite(features).reshape(len(features), -1).all(axis=1)
        if not finite.all():
            row = int(np.asarray(rows)[~finite][0])
            raise InputError(
                f"features of {self._features.file} must be finite; got NaN or infinity in row {row}: extract again"
            )
        return features


def read_features(file: Path) -> RowsOnDisk:
    """Open the floats of a .npy file.

    Raises InputError when it is missing, damaged, or of another shape or type.
    """
    features = RowsOnDisk.open(file)
    if features.dtype.kind != "f":
        raise InputError(f"{file} must hold floats; got {features.dtype}: save the features as float32")
    if len(features.shape) not in (2, 3) or 0 in features.shape:
        raise InputError(f"{file} must have the shape (N, d) or (N, R, d), N at least 1; got {features.shape}")
    return features


def read_lines(file: Path) -> list[str]:
    """Read the lines of a text file, stripped.

    Raises InputError when it is missing, not UTF-8, or has more lines than captions of any data set fit into memory.
    """
    text = read_utf8(file)
    lines = text.count("\n")
    if lines > _MAX_LINES:
        raise InputError(f"{file} must have at most {_MAX_LINES} lines; got {lines}")
    return [line.strip() for line in text.removesuffix("\n").split("\n")] if text else []


def available_splits(root: Path, suffix: str) -> tuple[str, ...]:
    """Return the names of the splits with features and captions (`{split}_{suffix}`), train first."""
    files = ("ims.npy", suffix)
    return tuple(name for name in SPLITS if all((root / f"{name}_{file}").is_file() for file in files))


def find_stem(name: str, root: Path, suffix: str) -> str:
    """Return the name of the split in file names: `val` may be `dev` there. Raises InputError when there is neither."""
    available = available_splits(root, suffix)
    for stem in (name, ALIASES.get(name, name)):
        if stem in available:
            return stem
    splits = ", ".join(available) or f"those with {{split}}_ims.npy and {{split}}_{suffix}, of which there is none"
    raise InputError(f"split of {root} must be one of {splits}; got {name!r}")


def read_feature_split(
    name: str,
    stem: Path,
    captions_file: Path,
    captions: list[str],
    first: int = 0,
    tokens: Sequence[Sequence[int]] | None = None,
    redundant: Redundant = "false",
) -> Split:
    """Read the split of `{stem}_ims.npy` and captions, one or five for each row of features.

    Args:
        name: of the split.
        stem: beginning of the paths of its files.
        captions_file: file of the captions, for messages.
        captions: texts, in the order of the rows.
        first: number of captions to keep; 0: all.
        tokens: captions as ids, where the data set has them.
        redundant: whether the file holds each image once per caption (merge_rows).

    Raises:
        InputError: a file is missing or damaged, or the numbers of rows, captions and ids do not fit.
    """
    file = stem.with_name(f"{stem.name}_ims.npy")
    features, notice = merge_rows(read_features(file), len(captions), redundant)
    per_image = _captions_per_image(len(features), len(captions), file, captions_file)
    ids = _read_ids(stem.with_name(f"{stem.name}_ids.txt"), name, len(features), per_image)
    kept = captions[: first or None]
    rows = -(-len(kept) // per_image)
    owners = np.arange(len(kept), dtype=np.int64) // per_image
    token_texts = [] if tokens is None else [" ".join(map(str, row)) for row in tokens[: len(kept)]]
    return Split(
        name=name,
        images=FeatureRows(features.select(slice(rows))),
        captions=kept,
        caption_image=owners,
        image_ids=ids[:rows],
        caption_ids=[f"{ids[owner]}-{line % per_image}" for line, owner in enumerate(owners.tolist())],
        fingerprint=_fingerprint(features, name, [*ids[:rows], *kept, *token_texts]),
        tokens=None if tokens is None else tokens[: len(kept)],
        notices=tuple(filter(None, (notice, _dev_notice(stem.name, captions, first)))),
    )


def _dev_notice(stem: str, captions: Sequence[str], first: int) -> str:
    """Return a notice on the captions that the authors' loaders leave out of dev."""
    if stem != "dev" or first or len(captions) <= _DEV_CAPTIONS:
        return ""
    return (
        f"dev has {len(captions)} captions; the authors of VSE++ and its descendants evaluate the first "
        f"{_DEV_CAPTIONS}: dev_first={_DEV_CAPTIONS}"
    )


def _captions_per_image(images: int, captions: int, file: Path, captions_file: Path) -> int:
    """Return 1 or 5. Raises InputError for other numbers of captions."""
    if captions == images:
        return 1
    if captions != PER_IMAGE * images:
        lines = f"{images} or {PER_IMAGE * images} lines, for {images} rows in {file.name}"
        got = f"{captions}: one of the two files is cut off or of other data"
        raise InputError(f"{captions_file} must have {lines}; got {got}")
    return PER_IMAGE


def _read_ids(file: Path, name: str, images: int, per_image: int) -> list[str]:
    """Read one id per image from a file with a line per image or per caption; row numbers where there is no file."""
    if not file.exists():
        return [f"{name}-{row:05d}" for row in range(images)]
    ids = read_lines(file)
    if len(ids) not in (images, images * per_image):
        raise InputError(f"{file} must have {images} or {images * per_image} lines; got {len(ids)}")
    ids = ids if len(ids) == images else ids[::per_image]
    return ids if len(set(ids)) == images else [f"{id}@{row}" for row, id in enumerate(ids)]


def _fingerprint(features: RowsOnDisk, name: str, texts: Sequence[str]) -> str:
    """Return a fingerprint of shape, type, sixteen rows spread over the array, ids and captions: not of 33 GB."""
    rows = np.linspace(0, len(features) - 1, _FINGERPRINT_ROWS).astype(np.int64)
    sample = np.ascontiguousarray(features.take(rows)).tobytes()
    return fingerprint_of(name, f"{features.shape} {features.dtype.str}", sample, *texts)
