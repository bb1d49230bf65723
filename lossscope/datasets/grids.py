"""Pictures for grid features, in VSE-infinity's layout: `id_mapping.json` and `precomp/{split}_ids.txt`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from lossscope.errors import InputError
from lossscope.io.files import fingerprint_of
from lossscope.io.json_files import member, read_json, shorten

from .formats.decoding import Fit
from .formats.feature_rows import ALIASES, SPLITS, read_lines
from .formats.picture_dataset import CaptionedPicture, OnError, PictureDataset, PictureSplit
from .formats.redundant_rows import PER_IMAGE


@dataclass(frozen=True)
class Grids(PictureDataset):
    """The pictures that `{root}/id_mapping.json` lists for the ids of `{root}/precomp/{split}_ids.txt`.

    `precomp/{split}_caps.txt` has five captions for each picture; there is one id a picture or one a caption. `val`
    means `dev`, as in precomp. Raises InputError for anything missing or malformed.

    The original resizes by cv2, whose linear filter does not average over the pixels that it skips: resample=cv2 gives
    its pixels, as floats. Pillow's bilinear filter, the default, averages over them.
    Source: Chen et al. 2021 (VSE-infinity).
    """

    root: Path  # folder of the data set
    folder: str = "images"  # folder of the pictures, below root: images for COCO, flickr30k-images for Flickr30k
    size: int = 512  # pixels of a side
    squeeze: bool = True  # keep the whole picture, its aspect ratio lost, as the original; else cut out the middle
    resample: Literal["bilinear", "cv2"] = "bilinear"  # filter: Pillow's, or the original's
    dev_first: int = 0  # number of captions of dev to keep; 0: all; the original keeps 5000
    on_error: OnError = "raise"  # raise, or skip pictures that cannot be read

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.dev_first < 0:
            raise InputError(f"grids:dev_first must be at least 1, or 0 for all; got {self.dev_first}")
        if self.resample == "cv2" and not self.squeeze:
            raise InputError("grids:squeeze must be true for resample=cv2, which resizes the whole picture; got false")

    def splits(self) -> tuple[str, ...]:
        """Return the names of the splits that have ids and captions, train first."""
        return tuple(name for name in SPLITS if all(path.is_file() for path in self._files(name)))

    def pictures(self, name: str) -> list[CaptionedPicture]:
        """Return the pictures of a split."""
        stem = next((stem for stem in (name, ALIASES.get(name, name)) if stem in self.splits()), None)
        if stem is None:
            expected = f"{Path(self.root) / 'precomp'} with {{split}}_ids.txt and {{split}}_caps.txt"
            raise InputError(f"split of grids must be one of {expected}; got {name!r}, has {', '.join(self.splits())}")
        files = _read_mapping(Path(self.root) / "id_mapping.json")
        items = _read_items(*self._files(stem), files, Path(self.root) / self.folder)
        return items[: -(-self.dev_first // PER_IMAGE)] if self.dev_first and stem in ALIASES else items

    def split(self, name: str) -> PictureSplit:
        """Return the split of a name; its `skipped` lists what on_error=skip left out."""
        split = super().split(name)
        if self.resample == "cv2":
            return replace(split, fingerprint=fingerprint_of(split.fingerprint, "cv2"))
        return split

    @property
    def chosen_fit(self) -> Fit:
        """How pictures become squares."""
        return "squeeze" if self.squeeze else "square"

    def _files(self, name: str) -> tuple[Path, Path]:
        folder = Path(self.root) / "precomp"
        return folder / f"{name}_ids.txt", folder / f"{name}_caps.txt"


def _read_mapping(file: Path) -> Mapping[str, str]:
    document = read_json(file)
    return {key: member(document, key, str, str(file)) for key in document}


def _read_items(ids_file: Path, captions_file: Path, files: Mapping[str, str], folder: Path) -> list[CaptionedPicture]:
    ids, captions = read_lines(ids_file), read_lines(captions_file)
    images, left = divmod(len(captions), PER_IMAGE)
    if left or len(ids) not in (images, len(captions)):
        lines = f"one line for each or for each five of the captions of {captions_file}"
        raise InputError(f"{ids_file} must have {lines}; got {len(ids)} for {len(captions)}")
    ids = ids if len(ids) == images else ids[::PER_IMAGE]
    unknown = [id for id in ids if id not in files]
    if unknown:
        got = f"{shorten(unknown[0])}, {len(unknown)} not there"
        raise InputError(f"ids of {ids_file} must be in id_mapping.json; got {got}")
    pairs = [[(f"{id}-{k}", captions[PER_IMAGE * row + k]) for k in range(PER_IMAGE)] for row, id in enumerate(ids)]
    return [CaptionedPicture(id, folder / files[id], tuple(pair)) for id, pair in zip(ids, pairs, strict=True)]
