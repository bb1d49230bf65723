"""Whole pictures for grid features: `id_mapping.json` and `precomp/{split}_ids.txt`, as VSE-infinity keeps them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from lossscope.errors import InputError
from lossscope.io.json_files import member, read_json

from .formats.captioned import Captioned, OnError, PictureSplit, check_options, picture_split
from .formats.feature_rows import PER_IMAGE, SPLITS, TWINS, read_lines


@dataclass(frozen=True)
class Grids:
    """The pictures that `{root}/id_mapping.json` gives the ids of `{root}/precomp/{split}_ids.txt`.

    `precomp/{split}_caps.txt` has five captions for each picture; the ids are one a picture or one a caption.
    folder: where the pictures are, below root; `images` for COCO, `flickr30k-images` for Flickr30k.
    size: pixels of a side. squeeze: the whole picture, its aspect ratio lost, as the original does; otherwise the
    middle square is cut out. dev_first: keep the first so many captions of dev (0: all); the original 5000.
    on_error: `raise`, or `skip` pictures that can not be read. `val` means `dev`, as in precomp.
    Raises InputError for anything missing or malformed. Source: Chen et al. 2021 (VSE-infinity).
    """

    root: Path
    folder: str = "images"
    size: int = 512
    squeeze: bool = True
    dev_first: int = 0
    on_error: OnError = "raise"

    def __post_init__(self) -> None:
        check_options("grids", self.size, self.dev_first)

    def splits(self) -> tuple[str, ...]:
        """Names of the splits that have ids and captions, train first."""
        return tuple(name for name in SPLITS if all(path.is_file() for path in self._files(name)))

    def split(self, name: str) -> PictureSplit:
        """The split of that name; its `skipped` says what on_error=skip left out."""
        stem = next((stem for stem in (name, TWINS.get(name, name)) if stem in self.splits()), None)
        if stem is None:
            wanted = f"{Path(self.root) / 'precomp'} with {{split}}_ids.txt and {{split}}_caps.txt"
            raise InputError(f"split of grids must be one of {wanted}; got {name!r}, has {', '.join(self.splits())}")
        items = _items(*self._files(stem), _mapping(Path(self.root) / "id_mapping.json"), self._pictures)
        if self.dev_first and stem in TWINS:
            items = items[: -(-self.dev_first // PER_IMAGE)]
        return picture_split(name, items, self.size, 0, not self.squeeze, self.on_error)

    @property
    def _pictures(self) -> Path:
        return Path(self.root) / self.folder

    def _files(self, name: str) -> tuple[Path, Path]:
        folder = Path(self.root) / "precomp"
        return folder / f"{name}_ids.txt", folder / f"{name}_caps.txt"


def _mapping(file: Path) -> Mapping[str, str]:
    document = read_json(file)
    return {key: member(document, key, str, str(file)) for key in document}


def _items(ids_file: Path, texts: Path, files: Mapping[str, str], folder: Path) -> list[Captioned]:
    ids, captions = read_lines(ids_file), read_lines(texts)
    images, left = divmod(len(captions), PER_IMAGE)
    if left or len(ids) not in (images, len(captions)):
        wanted = f"one line for each or for each five of the captions of {texts}"
        raise InputError(f"{ids_file} must have {wanted}; got {len(ids)} for {len(captions)}")
    ids = ids if len(ids) == images else ids[::PER_IMAGE]
    unknown = [id for id in ids if id not in files]
    if unknown:
        raise InputError(f"ids of {ids_file} must be in id_mapping.json; got {unknown[0]!r}, {len(unknown)} not there")
    told = [[(f"{id}-{k}", captions[PER_IMAGE * row + k]) for k in range(PER_IMAGE)] for row, id in enumerate(ids)]
    return [Captioned(id, folder / files[id], tuple(pairs)) for id, pairs in zip(ids, told, strict=True)]
