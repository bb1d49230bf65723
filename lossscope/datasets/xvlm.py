"""Lists of pictures and captions: `{name}_{train,val,test}.json`, as ALBEF and X-VLM keep them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lossscope.errors import InputError
from lossscope.io.json_files import expect, identifier, member, read_value
from lossscope.text.clean_captions import cleaned

from .formats.captioned import Captioned, OnError, PictureSplit, check_options, picture_split

_SPLITS = ("train", "val", "test")


@dataclass(frozen=True)
class XVLM:
    """The pictures and captions of `{root}/{name}_{split}.json`.

    A list of records: `image`, a path below the folder of pictures, and `caption`, one text (train, a record for
    each caption, told together by `image_id`) or several (val, test).
    name: `coco` or `flickr30k` in the originals. folder: of the pictures, below root. size: pixels of a side.
    squeeze: the whole picture, its aspect ratio lost, as the original does; otherwise the middle square (bicubic).
    captions: the first so many of each picture (0: all). words: clean captions as the original does (lower case,
    punctuation left out, the first so many words); 0 keeps them as they are, the original's is 30.
    on_error: `raise`, or `skip` pictures that can not be read. Raises InputError for anything missing or malformed.
    Source: Zeng et al. 2022 (X-VLM).
    """

    root: Path
    name: str
    folder: str = "."
    size: int = 384
    squeeze: bool = True
    captions: int = 0
    words: int = 0
    on_error: OnError = "raise"

    def __post_init__(self) -> None:
        check_options("xvlm", self.size, self.captions)
        if self.words < 0:
            raise InputError(f"xvlm:words must be at least 1, or 0 for captions as they are; got {self.words}")

    def splits(self) -> tuple[str, ...]:
        """Names of the splits there are, train first."""
        return tuple(name for name in _SPLITS if self._file(name).is_file())

    def split(self, name: str) -> PictureSplit:
        """The split of that name; its `skipped` says what on_error=skip left out."""
        if name not in self.splits():
            known = ", ".join(self.splits()) or f"files like {self._file('train')}, of which there is none"
            raise InputError(f"split of xvlm must be one of {known}; got {name!r}")
        items = _read(self._file(name), Path(self.root) / self.folder, self.words)
        return picture_split(name, items, self.size, self.captions, not self.squeeze, self.on_error, "bicubic")

    def _file(self, name: str) -> Path:
        return Path(self.root) / f"{self.name}_{name}.json"


def _read(file: Path, folder: Path, words: int) -> list[Captioned]:
    paths: dict[str, Path] = {}
    told: dict[str, list[tuple[str, str]]] = {}
    for row, record in enumerate(expect(read_value(file), list, str(file))):
        where = f"record {row} of {file}"
        image = member(record, "image", str, where)
        key = identifier(record, "image_id", where) if "image_id" in record else image
        if paths.setdefault(key, folder / image) != folder / image:
            raise InputError(f"'image' of {where} must be that of image_id {key}; got {image!r} beside {paths[key]}")
        said = told.setdefault(key, [])
        said += [(f"{key}#{len(said) + k}", text) for k, text in enumerate(_captions(record, where))]
    return [Captioned(key, path, _clean(told[key], words)) for key, path in paths.items()]


def _captions(record: Any, where: str) -> list[str]:
    found = member(record, "caption", object, where)
    if isinstance(found, list):
        return [expect(text, str, f"caption {k} of {where}") for k, text in enumerate(found)]
    return [expect(found, str, f"'caption' of {where}")]


def _clean(pairs: list[tuple[str, str]], words: int) -> tuple[tuple[str, str], ...]:
    return tuple((id, cleaned(text, words) if words else text.strip()) for id, text in pairs)
