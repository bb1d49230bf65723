"""Karpathy's splits: `dataset_{name}.json` beside a folder of pictures (Flickr8k, Flickr30k, COCO)."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lossscope.errors import InputError
from lossscope.io.json_files import identifier, member, read_json

from .formats.captioned import Captioned, OnError, PictureSplit, Resample, check_options, picture_split

_ORDER = ("train", "val", "test", "restval")
_LAYOUTS = ("images/{file}", "{folder}/{file}", "images/{folder}/{file}", "{name}-images/{file}")


@dataclass(frozen=True)
class Karpathy:
    """The images and captions of `{root}/dataset_{name}.json`.

    Pictures are looked for in images/, {filepath}/, images/{filepath}/ and {name}-images/ of root, and the
    first of these that holds one of them is used. size: pixels of a side. restval: COCO's `restval` images
    join train. captions: the first so many of each image (0: all). crop: cut the middle square out, else
    squeeze. resample: bilinear, or bicubic as CLIP. on_error: `raise`, or `skip` pictures that can not be read
    (decodes all of them first).
    Image ids are file names, caption ids are sentids. Raises InputError for anything missing or malformed.
    """

    root: Path
    name: str
    size: int = 224
    restval: bool = True
    captions: int = 5
    crop: bool = True
    on_error: OnError = "raise"
    resample: Resample = "bilinear"

    def __post_init__(self) -> None:
        check_options("karpathy", self.size, self.captions)

    def splits(self) -> tuple[str, ...]:
        """Names of the splits in the file, train first; restval only when it does not join train."""
        found = self._listed
        return (*filter(found.__contains__, _ORDER), *sorted(set(found) - set(_ORDER)))

    def split(self, name: str) -> PictureSplit:
        """The split of that name; its `skipped` says what on_error=skip left out."""
        if name not in self._listed:
            known = ", ".join(self.splits()) or "none"
            raise InputError(f"split of {self._file} must be one of {known}; got {name!r}")
        entries = self._listed[name]
        layout = self._layout([(folder, item.id) for folder, item in entries])
        items = [Captioned(item.id, self._path(layout, f, item.id), item.captions) for f, item in entries]
        return picture_split(name, items, self.size, self.captions, self.crop, self.on_error, self.resample)

    @property
    def _file(self) -> Path:
        return Path(self.root) / f"dataset_{self.name}.json"

    @functools.cached_property
    def _listed(self) -> Mapping[str, list[tuple[str, Captioned]]]:
        """Split -> (folder, picture whose path is not known yet)."""
        found: dict[str, list[tuple[str, Captioned]]] = {}
        for row, record in enumerate(member(read_json(self._file), "images", list, str(self._file))):
            where = f"image {row} of {self._file}"
            split = member(record, "split", str, where)
            split = "train" if split == "restval" and self.restval else split
            found.setdefault(split, []).append(_entry(record, where))
        return found

    def _layout(self, pictures: list[tuple[str, str]]) -> str:
        for layout in _LAYOUTS:
            if any(self._path(layout, folder, file).is_file() for folder, file in pictures):
                return layout
        tried = ", ".join(str(self._path(layout, *pictures[0])) for layout in _LAYOUTS)
        raise InputError(f"pictures of {self._file} must be in a known folder; got none of {tried}: move them there")

    def _path(self, layout: str, folder: str, file: str) -> Path:
        return Path(self.root) / layout.format(name=self.name, folder=folder, file=file)


def _entry(record: Any, where: str) -> tuple[str, Captioned]:
    file = member(record, "filename", str, where)
    folder = member(record, "filepath", str, where) if "filepath" in record else "."
    sentences = member(record, "sentences", list, where)
    texts = [member(item, "raw", str, f"sentence {k} of {where}").strip() for k, item in enumerate(sentences)]
    ids = [identifier(item, "sentid", where) if "sentid" in item else f"{file}#{k}" for k, item in enumerate(sentences)]
    return folder, Captioned(file, Path(file), tuple(zip(ids, texts, strict=True)))
