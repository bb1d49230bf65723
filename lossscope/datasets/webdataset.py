"""Tar shards of pictures with captions in WebDataset's layout: `KEY.jpg` with `KEY.txt` or `KEY.json`."""

from __future__ import annotations

import functools
import glob
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from lossscope.errors import InputError
from lossscope.io.json_files import expect, parse_json
from lossscope.io.limits import MAX_TEXT_BYTES
from lossscope.io.text_files import decode_utf8

from .base import USUAL_SPLITS, require_split
from .formats.decoding import Fit, Resample, Rgb
from .formats.picture_dataset import CaptionedPicture, OnError, PictureDataset, split_by_hash
from .formats.tar_index import TarMember, list_members

_PICTURES = ("jpg", "jpeg", "png", "webp")


@dataclass(frozen=True)
class WebDataset(PictureDataset):
    """The samples of all tar shards that match a pattern, e.g. shards=data/flickr-*.tar, read in any order.

    A sample is the files that share a key, their name up to its first dot. In `txt` each line is a caption; in `json`
    (where there is no txt) `caption` is a text or a list, or `captions` a list.
    Shards are indexed when the first split is read; pictures are decoded when they are used. Compressed shards have no
    random access and are refused. Raises InputError for anything missing or malformed.
    """

    shards: str  # pattern of the files of the shards
    cut: Literal["name", "hash"] = "name"  # split by the file name (train, val, test), or 80/10/10 by the key's hash
    size: int = 224  # pixels of a side
    captions: int = 0  # number of captions of each picture, the first ones; 0: all
    crop: bool = True  # cut out the middle square, instead of squeezing the picture
    on_error: OnError = "raise"  # raise, or skip pictures that cannot be read
    resample: Resample = "bilinear"  # bilinear, or bicubic as CLIP
    fit: Fit | None = None  # square, short-side, short-side-floor or squeeze; none: as crop says
    rgb: Rgb = "first"  # first, or last, after resizing, as OpenAI's CLIP; on-white as transformers

    def splits(self) -> tuple[str, ...]:
        """Return train, val and test, as far as shards have these names."""
        if self.cut == "hash":
            return USUAL_SPLITS
        return tuple(name for name in USUAL_SPLITS if any(_split_in_name(path) == name for path in self._paths))

    def pictures(self, name: str) -> list[CaptionedPicture]:
        """Return the pictures of a split."""
        otherwise = f"one in the names of shards like {self.shards}"
        require_split(name, self.splits(), "webdataset", otherwise, ": cut=hash needs no names")
        if self.cut == "hash":
            items = [item for item in self._all_samples if split_by_hash(item.id) == name]
        else:
            items = [item for path in self._paths if _split_in_name(path) == name for item in _read_samples(path)]
        if not items:
            raise InputError(f"split must hold at least one image; got none in {name!r} of {self.shards}")
        return items

    @property
    def _paths(self) -> list[Path]:
        paths = [Path(path) for path in sorted(glob.glob(str(Path(self.shards).expanduser())))]
        if not paths:
            raise InputError(f"webdataset:shards must match files; got none like {self.shards}")
        return paths

    @functools.cached_property
    def _all_samples(self) -> list[CaptionedPicture]:
        return [item for path in self._paths for item in _read_samples(path)]


def _read_samples(shard: Path) -> list[CaptionedPicture]:
    samples: dict[str, dict[str, TarMember]] = {}
    for item in list_members(shard):
        folder, slash, file = item.name.rpartition("/")
        stem, _, suffix = file.partition(".")
        samples.setdefault(folder + slash + stem, {})[suffix.lower()] = item
    return [_read_sample(key, parts) for key, parts in samples.items() if any(kind in parts for kind in _PICTURES)]


def _read_sample(key: str, parts: Mapping[str, TarMember]) -> CaptionedPicture:
    picture = next(parts[kind] for kind in _PICTURES if kind in parts)
    captions = _read_captions(picture, parts)
    return CaptionedPicture(key, picture, tuple((f"{key}#{k}", text) for k, text in enumerate(captions)))


def _read_captions(picture: TarMember, parts: Mapping[str, TarMember]) -> list[str]:
    if "txt" in parts:
        lines = _read_text(parts["txt"]).splitlines()
        return [line.strip() for line in lines if line.strip()]
    if "json" not in parts:
        raise InputError(f"{picture} must have a caption beside it, .txt or .json; got {', '.join(parts)}")
    document = expect(parse_json(_read_text(parts["json"]), str(parts["json"])), dict, str(parts["json"]))
    value: Any = document.get("caption", document.get("captions"))
    texts = value if isinstance(value, list) else [value]
    return [expect(text, str, f"'caption' of {parts['json']}").strip() for text in texts]


def _read_text(item: TarMember) -> str:
    if item.size > MAX_TEXT_BYTES:
        raise InputError(f"{item} must be of at most {MAX_TEXT_BYTES} bytes; it is of {item.size}")
    try:
        content = item.read()
    except OSError as problem:
        raise InputError(f"{item} must be UTF-8 text; got {problem}") from None
    return decode_utf8(content, str(item))


def _split_in_name(shard: Path) -> str | None:
    """Return the split in the name of a shard, as a word of its own: `flickr-train-00012.tar`, `val_3.tar`."""
    words = re.split(r"[^a-z]+", shard.name.lower())
    return next((name for name in USUAL_SPLITS if name in words), None)
