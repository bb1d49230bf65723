"""Lists of pictures and captions in the layout of ALBEF and X-VLM: `{name}_{train,val,test}.json`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lossscope.errors import InputError
from lossscope.io.json_files import expect, identifier, member, read_json_value
from lossscope.text.xvlm_captions import clean_caption

from .base import USUAL_SPLITS, require_split
from .formats.decoding import Fit, Resample, Rgb
from .formats.picture_dataset import CaptionedPicture, OnError, PictureDataset, choose_fit


@dataclass(frozen=True)
class XVLM(PictureDataset):
    """The pictures and captions of `{root}/{name}_{split}.json`.

    A file is a list of records: `image`, a path below the folder of pictures, and `caption`, one text (train, a record
    per caption, records of one picture having the same `image_id`) or several (val, test).
    Raises InputError for anything missing or malformed.
    Source: Zeng et al. 2022 (X-VLM).
    """

    root: Path  # folder of the data set
    name: str  # name in the file names NAME_train.json, coco or flickr30k in the originals
    folder: str = "."  # folder of the pictures, below root
    size: int = 384  # pixels of a side
    squeeze: bool = True  # keep the whole picture, its aspect ratio lost, as the original; else cut out the middle
    captions: int = 0  # number of captions of each picture, the first ones; 0: all
    words: int = 0  # clean captions (lower case, no punctuation) and keep this many words, 30 in the original; 0: as is
    on_error: OnError = "raise"  # raise, or skip pictures that cannot be read
    resample: Resample = "bicubic"  # bicubic as the original, or bilinear
    fit: Fit | None = None  # square, short-side, short-side-floor or squeeze; none: as squeeze says
    rgb: Rgb = "first"  # first, or last, after resizing, as OpenAI's CLIP; on-white as transformers

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.words < 0:
            raise InputError(f"xvlm:words must be at least 1, or 0 for captions as they are; got {self.words}")

    def splits(self) -> tuple[str, ...]:
        """Return the names of the splits, train first."""
        return tuple(name for name in USUAL_SPLITS if self._file(name).is_file())

    def pictures(self, name: str) -> list[CaptionedPicture]:
        """Return the pictures of a split."""
        require_split(name, self.splits(), "xvlm", f"files like {self._file('train')} (none found)")
        return _read(self._file(name), Path(self.root) / self.folder, self.words)

    @property
    def chosen_fit(self) -> Fit:
        """How pictures become squares."""
        return choose_fit(self.fit, not self.squeeze, usual=False)

    def _file(self, name: str) -> Path:
        return Path(self.root) / f"{self.name}_{name}.json"


def _read(file: Path, folder: Path, words: int) -> list[CaptionedPicture]:
    paths: dict[str, Path] = {}
    captions: dict[str, list[tuple[str, str]]] = {}
    for row, record in enumerate(expect(read_json_value(file), list, str(file))):
        where = f"record {row} of {file}"
        image = member(record, "image", str, where)
        key = identifier(record, "image_id", where) if "image_id" in record else image
        if paths.setdefault(key, folder / image) != folder / image:
            raise InputError(f"'image' of {where} must be that of image_id {key}; got {image!r} beside {paths[key]}")
        pairs = captions.setdefault(key, [])
        pairs += [(f"{key}#{len(pairs) + k}", text) for k, text in enumerate(_read_captions(record, where))]
    return [CaptionedPicture(key, path, _clean(captions[key], words)) for key, path in paths.items()]


def _read_captions(record: Any, where: str) -> list[str]:
    value = member(record, "caption", object, where)
    if isinstance(value, list):
        return [expect(text, str, f"caption {k} of {where}") for k, text in enumerate(value)]
    return [expect(value, str, f"'caption' of {where}")]


def _clean(pairs: list[tuple[str, str]], words: int) -> tuple[tuple[str, str], ...]:
    return tuple((id, clean_caption(text, words) if words else text.strip()) for id, text in pairs)
