"""Karpathy's splits: `dataset_{name}.json` beside a folder of pictures (Flickr8k, Flickr30k, COCO)."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lossscope.errors import InputError
from lossscope.io.json_files import identifier, member, read_json

from .base import USUAL_SPLITS, order_splits, require_split
from .formats.decoding import Fit, Resample, Rgb
from .formats.picture_dataset import CaptionedPicture, OnError, PictureDataset

_LAYOUTS = ("images/{file}", "{folder}/{file}", "images/{folder}/{file}", "{name}-images/{file}")


@dataclass(frozen=True)
class Karpathy(PictureDataset):
    """The images and captions of `{root}/dataset_{name}.json`.

    Pictures are searched for in images/, {filepath}/, images/{filepath}/ and {name}-images/ of root, and the first of
    these folders that has one of them is used. Image ids are file names, caption ids are sentids.
    Raises InputError for anything missing or malformed.
    """

    root: Path  # folder of the data set
    name: str  # name in the file name dataset_NAME.json, e.g. flickr30k
    size: int = 224  # pixels of a side
    restval: bool = True  # whether COCO's restval images are part of train
    captions: int = 5  # number of captions of each image, the first in the file; 0: all
    crop: bool = True  # cut out the middle square, instead of squeezing the picture
    on_error: OnError = "raise"  # raise, or skip pictures that cannot be read (decodes all pictures first)
    resample: Resample = "bilinear"  # bilinear, or bicubic as CLIP
    fit: Fit | None = None  # square, short-side, short-side-floor or squeeze; none: as crop says
    rgb: Rgb = "first"  # first, or last, after resizing, as OpenAI's CLIP; on-white as transformers

    def splits(self) -> tuple[str, ...]:
        """Return the names of the splits in the file, train first; restval only when it is not part of train."""
        return order_splits(self._entries.keys(), (*USUAL_SPLITS, "restval"))

    def pictures(self, name: str) -> list[CaptionedPicture]:
        """Return the pictures of a split."""
        require_split(name, self.splits(), str(self._file))
        entries = self._entries[name]
        layout = self._find_layout([(folder, item.id) for folder, item in entries])
        return [CaptionedPicture(item.id, self._path(layout, f, item.id), item.captions) for f, item in entries]

    @property
    def _file(self) -> Path:
        return Path(self.root) / f"dataset_{self.name}.json"

    @functools.cached_property
    def _entries(self) -> Mapping[str, list[tuple[str, CaptionedPicture]]]:
        """Split -> (folder, picture whose path is not known yet)."""
        entries: dict[str, list[tuple[str, CaptionedPicture]]] = {}
        for row, record in enumerate(member(read_json(self._file), "images", list, str(self._file))):
            where = f"image {row} of {self._file}"
            split = member(record, "split", str, where)
            split = "train" if split == "restval" and self.restval else split
            entries.setdefault(split, []).append(_read_entry(record, where))
        return entries

    def _find_layout(self, pictures: list[tuple[str, str]]) -> str:
        for layout in _LAYOUTS:
            if any(self._path(layout, folder, file).is_file() for folder, file in pictures):
                return layout
        tried = ", ".join(str(self._path(layout, *pictures[0])) for layout in _LAYOUTS)
        raise InputError(f"pictures of {self._file} must be in a known folder; got none of {tried}: move them there")

    def _path(self, layout: str, folder: str, file: str) -> Path:
        return Path(self.root) / layout.format(name=self.name, folder=folder, file=file)


def _read_entry(record: Any, where: str) -> tuple[str, CaptionedPicture]:
    file = member(record, "filename", str, where)
    folder = member(record, "filepath", str, where) if "filepath" in record else "."
    sentences = member(record, "sentences", list, where)
    texts = [member(item, "raw", str, f"sentence {k} of {where}").strip() for k, item in enumerate(sentences)]
    ids = [identifier(item, "sentid", where) if "sentid" in item else f"{file}#{k}" for k, item in enumerate(sentences)]
    return folder, CaptionedPicture(file, Path(file), tuple(zip(ids, texts, strict=True)))
