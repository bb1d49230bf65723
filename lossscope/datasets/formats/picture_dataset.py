"""What data sets of picture files share: options, captions of each picture, and how a split is built of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from lossscope.errors import InputError
from lossscope.io.files import fingerprint_of
from lossscope.io.json_files import shorten
from lossscope.io.reading import show_path

from ..base import Split, group_captions
from .decoding import Filter, Fit, Preprocessing, Rgb
from .pictures import PictureFiles
from .tar_index import TarMember

OnError = Literal["raise", "skip"]
_MAX_SIZE = 8192  # pixels of a side of a picture


@dataclass(frozen=True)
class CaptionedPicture:
    """One picture and its captions, as the files of a data set list them."""

    id: str
    path: Path | TarMember  # a file, or one in a tar
    captions: tuple[tuple[str, str], ...]  # (id, text) pairs, in the order of the list


@dataclass(frozen=True)
class PictureSplit(Split):
    """A split of picture files."""

    skipped: tuple[str, ...] = ()  # paths of pictures that could not be read and were left out with their captions


class PictureDataset(ABC):
    """Base class of the data sets of picture files, frozen dataclasses whose fields are their options.

    Of the options here a data set declares those that it has, in its own order, with their defaults; what it does not
    declare is as it stands here. Raises InputError for a size or a number of captions out of range.
    """

    size: int = 224  # pixels of a side
    captions: int = 0  # number of captions of each picture, the first ones; 0: all
    crop: bool = True  # cut out the middle square, instead of squeezing the picture
    on_error: OnError = "raise"  # raise, or skip pictures that cannot be read
    resample: Filter = "bilinear"
    fit: Fit | None = None  # how a picture becomes a square; None: as crop says
    rgb: Rgb = "first"  # when pictures become RGB: first, or last, after they are resized; on-white: first, on white

    def __post_init__(self) -> None:
        dataset = type(self).__name__.lower()
        if self.size < 1:
            raise InputError(f"{dataset}:size must be at least 1 pixel; got {self.size}")
        if self.size > _MAX_SIZE:
            raise InputError(f"{dataset}:size must be at most {_MAX_SIZE} pixels; got {self.size}")
        if self.captions < 0:
            raise InputError(f"{dataset}:captions must be at least 1, or 0 for all; got {self.captions}")

    @abstractmethod
    def pictures(self, name: str) -> Sequence[CaptionedPicture]:
        """Return the pictures of a split. Raises InputError, listing the splits, for another name."""

    def split(self, name: str) -> PictureSplit:
        """Return the split of a name; its `skipped` lists what on_error=skip left out."""
        preprocessing = Preprocessing(self.size, self.chosen_fit, self.resample, self.rgb)
        return build_picture_split(name, self.pictures(name), preprocessing, self.captions, self.on_error)

    @property
    def chosen_fit(self) -> Fit:
        """How pictures become squares."""
        return choose_fit(self.fit, self.crop, usual=True)


def build_picture_split(
    name: str, items: Sequence[CaptionedPicture], preprocessing: Preprocessing, captions: int, on_error: OnError
) -> PictureSplit:
    """Build the split of `items`.

    The fingerprint covers names, ids, captions, options and the files' sizes in bytes, not their content.

    Args:
        name: of the split.
        items: the pictures, in the order of the split.
        preprocessing: how a picture becomes a square.
        captions: number of captions of each picture, the first ones; 0: all.
        on_error: `raise` raises for a missing file now, and for a file that cannot be decoded when it is used; `skip`
            decodes all files now and leaves out those that fail.

    Raises:
        InputError: a picture has no caption, an id repeats, or no picture is left.
    """
    for item in items:
        if not item.captions:
            raise InputError(f"{item.path} must have at least one caption; got none: remove it from the list")
    images = PictureFiles([item.path for item in items], preprocessing)
    rows = images.readable_rows() if on_error == "skip" else range(len(items))
    kept = [items[row] for row in rows]
    if not kept:
        raise InputError(f"split {name!r} must hold at least one image; got none that is readable among {len(items)}")
    ids, texts, owners = group_captions([item.captions[: captions or None] for item in kept])
    _require_unique("image ids", name, [item.id for item in kept])
    _require_unique("caption ids", name, ids)
    return PictureSplit(
        name=name,
        images=images if len(kept) == len(items) else images.select(rows),
        captions=texts,
        caption_image=owners,
        image_ids=[item.id for item in kept],
        caption_ids=ids,
        fingerprint=fingerprint_of(name, _describe(preprocessing), *_describe_files(kept), *ids, *texts),
        skipped=tuple(sorted({str(item.path) for item in items} - {str(item.path) for item in kept})),
    )


_FIT_TEXTS: Mapping[Fit, str] = {"square": "True", "squeeze": "False"}
"""Fit -> its text in fingerprints, so that those from before there were others stay valid."""


def choose_fit(fit: Fit | None, crop: bool, usual: bool) -> Fit:
    """Return how pictures become squares: as `fit` says, else their middle squares or the whole of them.

    Raises InputError where `fit` and `crop` contradict each other.

    Args:
        fit: as said; None where it is not.
        crop: whether middle squares are cut out.
        usual: the default of `crop`.
    """
    by_flag: Fit = "square" if crop else "squeeze"
    if fit is not None and crop != usual and fit != by_flag:
        raise InputError(f"fit must be {by_flag}, as crop or squeeze says; got {fit}. Leave one of the two out")
    return fit or by_flag


def _describe(preprocessing: Preprocessing) -> str:
    """Return the options for the fingerprint: nothing of what is as it was before there was a choice."""
    resample, rgb = preprocessing.resample, preprocessing.rgb
    filter_text = f" {resample}" if resample == "bicubic" else ""
    fit = _FIT_TEXTS.get(preprocessing.fit, preprocessing.fit)
    return f"{preprocessing.size} {fit}{filter_text}{'' if rgb == 'first' else f' rgb={rgb}'}"


def _describe_files(items: Iterable[CaptionedPicture]) -> list[str]:
    """Return ids, file names, sizes in bytes and numbers of captions, for the fingerprint."""
    try:
        return [f"{item.id} {item.path.name} {item.path.stat().st_size} {len(item.captions)}" for item in items]
    except OSError as problem:
        advice = "fetch it, or leave such files out with on_error=skip"
        name = show_path(problem.filename)
        raise InputError(f"{name} must be a picture file; got {problem.strerror}: {advice}") from None
    except ValueError:  # a NUL byte in a name
        raise InputError("names of picture files must be without NUL bytes; one holds them") from None


def _require_unique(what: str, split: str, ids: Sequence[str]) -> None:
    for value, count in Counter(ids).most_common(1):
        if count > 1:
            raise InputError(f"{what} of {split!r} must be unique; got {shorten(value)} {count} times")


def split_by_hash(id: str) -> str:
    """Return the split of a picture by the hash of its id: 80 % train, 10 % val, 10 % test."""
    tenth = int(fingerprint_of(id)[:15], 16) % 10
    return "train" if tenth < 8 else ("val", "test")[tenth - 8]
