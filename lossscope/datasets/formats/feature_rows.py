"""Data sets of precomputed features: a .npy with a row per image, and a text file with a line per caption."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from lossscope.errors import InputError
from lossscope.io.exact_texts import IN_LINES
from lossscope.io.files import fingerprint_of
from lossscope.io.rows_on_disk import RowsOnDisk
from lossscope.io.text_files import read_utf8

from ..base import Split, require_split
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
        features, finite = self._features.take_floats(rows)
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


class FeatureDataset(ABC):
    """Base class of the data sets of `{split}_ims.npy` with a file of captions, one or five for each row of features.

    They are frozen dataclasses whose fields are their options, these among them. `{split}_ids.txt` has the ids of the
    images. Raises InputError for files that are missing or damaged, and for numbers of rows, captions and ids that do
    not fit.
    """

    root: Path  # folder of the features
    dev_first: int = 0  # number of captions of dev to keep; 0: all
    redundant: Redundant = "auto"  # whether the file holds each image once per caption (merge_rows)
    captions_name: ClassVar[str]  # of the file of captions, behind `{split}_`

    def __post_init__(self) -> None:
        if self.dev_first < 0:
            dataset = type(self).__name__.lower()
            raise InputError(f"{dataset}:dev_first must be at least 1, or 0 for all; got {self.dev_first}")

    @abstractmethod
    def read_captions(self, file: Path) -> tuple[list[str], Sequence[Sequence[int]] | None]:
        """Return the captions of a file in the order of the rows, and their ids where the data set has them."""

    def splits(self) -> tuple[str, ...]:
        """Return the names of the splits that have both files, train first."""
        files = ("ims.npy", self.captions_name)
        return tuple(name for name in SPLITS if all((Path(self.root) / f"{name}_{file}").is_file() for file in files))

    def split(self, name: str) -> Split:
        """Return the split of a name, its features left on disk; `val` may be `dev` in names of files."""
        root, available = Path(self.root), self.splits()
        stem = next((stem for stem in (name, ALIASES.get(name, name)) if stem in available), name)
        none = f"those with {{split}}_ims.npy and {{split}}_{self.captions_name} (none found)"
        require_split(stem, available, str(root), none)
        captions_file, file = root / f"{stem}_{self.captions_name}", root / f"{stem}_ims.npy"
        captions, tokens = self.read_captions(captions_file)
        features, notice = merge_rows(read_features(file), len(captions), self.redundant)
        per_image = _captions_per_image(len(features), len(captions), file, captions_file)
        ids = read_ids(root / f"{stem}_ids.txt", name, len(features), per_image)
        first = self.dev_first if stem in ALIASES else 0
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
            notices=tuple(filter(None, (notice, _dev_notice(stem, captions, first)))),
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


def read_ids(file: Path, name: str, images: int, per_image: int) -> list[str]:
    """Read one id per image from a file with a line per image or per caption; row numbers where there is no file."""
    if not file.exists():
        return [f"{name}-{row:05d}" for row in range(images)]
    ids = list(map(IN_LINES.read, read_lines(file)))
    if len(ids) not in (images, images * per_image):
        raise InputError(f"{file} must have {images} or {images * per_image} lines; got {len(ids)}")
    ids = ids if len(ids) == images else ids[::per_image]
    return ids if len(set(ids)) == images else [f"{id}@{row}" for row, id in enumerate(ids)]


def _fingerprint(features: RowsOnDisk, name: str, texts: Sequence[str]) -> str:
    """Return a fingerprint of shape, type, sixteen rows spread over the array, ids and captions: not of 33 GB."""
    rows = np.linspace(0, len(features) - 1, _FINGERPRINT_ROWS).astype(np.int64)
    sample = np.ascontiguousarray(features.take(rows)).tobytes()
    return fingerprint_of(name, f"{features.shape} {features.dtype.str}", sample, *texts)
