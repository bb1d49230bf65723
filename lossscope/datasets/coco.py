"""COCO's own caption files: `images` (id, file_name) and `annotations` (id, image_id, caption)."""

from __future__ import annotations

import functools
import glob
from dataclasses import dataclass
from pathlib import Path

from lossscope.errors import InputError
from lossscope.io.files import fingerprint_of
from lossscope.io.json_files import identifier, member, read_json

from .formats.captioned import Captioned, OnError, PictureSplit, Resample, check_options, picture_split

_SLOT = "{split}"
_ORDER = ("train", "val", "test")


@dataclass(frozen=True)
class Coco:
    """The pictures of `{root}/{folder}` with the captions of `{root}/{file}`.

    With `{split}` in file (and folder), each file that fits is a split: the defaults are the layout of 2014;
    for 2017 write file=annotations/captions_{split}2017.json,folder={split}2017.
    Without it the one file is cut 80/10/10 into train, val and test by a hash of the image's id alone, so
    that an image stays where it is whatever else the file holds; `all` is the file as a whole.
    size: pixels of a side. captions: the first so many of each image, in the file's order (0: all).
    crop: cut the middle square out, else squeeze. resample: bilinear, or bicubic as CLIP.
    on_error: `raise`, or `skip` pictures that can not be read.
    Raises InputError for anything missing or malformed.
    """

    root: Path
    file: str = "annotations/captions_{split}2014.json"
    folder: str = "images/{split}2014"
    size: int = 224
    captions: int = 5
    crop: bool = True
    on_error: OnError = "raise"
    resample: Resample = "bilinear"

    def __post_init__(self) -> None:
        check_options("coco", self.size, self.captions)
        if self.file.count(_SLOT) > 1 or Path(self.file).is_absolute():
            raise InputError(f"coco:file must be relative to root, with {_SLOT} at most once; got {self.file!r}")
        if _SLOT in self.folder and _SLOT not in self.file:
            raise InputError(f"coco:file must hold {_SLOT} where coco:folder does; got {self.file!r}")

    def splits(self) -> tuple[str, ...]:
        """Names of the splits there are, train first."""
        if _SLOT not in self.file:
            return (*_ORDER, "all")
        before, after = self.file.split(_SLOT)
        paths = Path(self.root).glob(f"{glob.escape(before)}*{glob.escape(after)}")
        names = [path.relative_to(self.root).as_posix() for path in paths]
        found = {name[len(before) : len(name) - len(after)] for name in names}
        return (*filter(found.__contains__, _ORDER), *sorted(found - set(_ORDER)))

    def split(self, name: str) -> PictureSplit:
        """The split of that name; its `skipped` says what on_error=skip left out."""
        if name not in self.splits():
            known = ", ".join(self.splits()) or f"a file like {Path(self.root) / self.file}, of which there is none"
            raise InputError(f"split of coco must be one of {known}; got {name!r}")
        items = self._items(name)
        if not items:
            got = f"none in {name!r} of {Path(self.root) / self.file}"
            raise InputError(f"split must hold at least one image; got {got}: use the split 'all'")
        return picture_split(name, items, self.size, self.captions, self.crop, self.on_error, self.resample)

    def _items(self, name: str) -> list[Captioned]:
        if _SLOT not in self.file:
            return [item for item in self._whole if name in ("all", _part(item.id))]
        folder = Path(self.root) / self.folder.replace(_SLOT, name)
        return _read(Path(self.root) / self.file.replace(_SLOT, name), folder)

    @functools.cached_property
    def _whole(self) -> list[Captioned]:
        return _read(Path(self.root) / self.file, Path(self.root) / self.folder)


def _read(file: Path, folder: Path) -> list[Captioned]:
    document = read_json(file)
    told: dict[str, list[tuple[str, str]]] = {}
    paths: dict[str, Path] = {}
    for row, record in enumerate(member(document, "images", list, str(file))):
        where = f"image {row} of {file}"
        key = identifier(record, "id", where)
        if key in paths:
            raise InputError(f"image ids of {file} must be unique; got {key} twice")
        paths[key], told[key] = folder / member(record, "file_name", str, where), []
    for row, record in enumerate(member(document, "annotations", list, str(file))):
        where = f"annotation {row} of {file}"
        key = identifier(record, "image_id", where)
        if key not in told:
            raise InputError(f"'image_id' of {where} must be the id of one of its images; got {key}")
        told[key].append((identifier(record, "id", where), member(record, "caption", str, where).strip()))
    return [Captioned(key, path, tuple(told[key])) for key, path in paths.items()]


def _part(image_id: str) -> str:
    """The split of an image: ten equal parts of its id's hash, eight of them train."""
    tenth = int(fingerprint_of(image_id)[:15], 16) % 10
    return "train" if tenth < 8 else ("val", "test")[tenth - 8]
