"""Build a split of picture files and their captions, shared by the data sets of pictures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from lossscope.errors import InputError
from lossscope.io.files import fingerprint_of
from lossscope.io.json_files import shorten
from lossscope.io.reading import show_path

from ..base import Split
from .decoding import Fit, Resample, Rgb
from .pictures import PictureFiles
from .tar_index import TarMember

OnError = Literal["raise", "skip"]
_MAX_SIZE = 8192  # pixels of a side of a picture
__all__ = [
    "CaptionedPicture", "Fit", "OnError", "PictureSplit", "Resample", "Rgb", "build_picture_split", "check_options",
    "choose_fit", "split_by_hash",
]  # fmt: skip


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


def build_picture_split(
    name: str,
    items: Sequence[CaptionedPicture],
    size: int,
    captions: int,
    fit: Fit,
    on_error: OnError,
    resample: Resample = "bilinear",
    rgb: Rgb = "first",
) -> PictureSplit:
    """Build the split of `items`.

    The fingerprint covers names, ids, captions, options and the files' sizes in bytes, not their content.

    Args:
        name: of the split.
        items: the pictures, in the order of the split.
        size: pixels of a side.
        captions: number of captions of each picture, the first ones; 0: all.
        fit: how a picture becomes a square.
        on_error: `raise` raises for a missing file now, and for a file that cannot be decoded when it is used; `skip`
            decodes all files now and leaves out those that fail.
        resample: bilinear or bicubic.
        rgb: whether pictures of other modes become RGB first or last.

    Raises:
        InputError: a picture has no caption, an id repeats, or no picture is left.
    """
    for item in items:
        if not item.captions:
            raise InputError(f"{item.path} must have at least one caption; got none: remove it from the list")
    kept, images = _open_pictures(items, size, fit, on_error, resample, rgb)
    if not kept:
        raise InputError(f"split {name!r} must hold at least one image; got none of {len(items)} that can be read")
    pairs_of = [item.captions[: captions or None] for item in kept]
    ids = [caption for pairs in pairs_of for caption, _ in pairs]
    texts = [text for pairs in pairs_of for _, text in pairs]
    _require_unique("image ids", name, [item.id for item in kept])
    _require_unique("caption ids", name, ids)
    options = f"{size} {_FIT_TEXTS.get(fit, fit)}{_resample_text(resample)}{_rgb_text(rgb)}"
    return PictureSplit(
        name=name,
        images=images,
        captions=texts,
        caption_image=np.repeat(np.arange(len(kept), dtype=np.int64), [len(pairs) for pairs in pairs_of]),
        image_ids=[item.id for item in kept],
        caption_ids=ids,
        fingerprint=fingerprint_of(name, options, *_describe_files(kept), *ids, *texts),
        skipped=tuple(sorted({str(item.path) for item in items} - {str(item.path) for item in kept})),
    )


_FIT_TEXTS: Mapping[Fit, str] = {"square": "True", "squeeze": "False"}
"""Fit -> its text in fingerprints, so that those from before there were others stay valid."""


def choose_fit(fit: Fit | None, crop: bool, usual: bool) -> Fit:
    """Return how pictures become squares: as `fit` says, else their middle squares or the whole of them.

    Raises InputError where both are said, and differently.

    Args:
        fit: as said; None where it is not.
        crop: whether middle squares are cut out.
        usual: the default of `crop`.
    """
    by_flag: Fit = "square" if crop else "squeeze"
    if fit is not None and crop != usual and fit != by_flag:
        raise InputError(f"fit must be {by_flag}, as crop or squeeze says; got {fit}. Leave one of the two out")
    return fit or by_flag


def _resample_text(resample: Resample) -> str:
    """Return nothing for bilinear, so that fingerprints from before there was a choice stay valid."""
    return "" if resample == "bilinear" else f" {resample}"


def _rgb_text(rgb: Rgb) -> str:
    """Return nothing for RGB first, so that fingerprints from before there was a choice stay valid."""
    return "" if rgb == "first" else f" rgb={rgb}"


def check_options(dataset: str, size: int, captions: int) -> None:
    """Raise InputError, naming the data set, when size < 1 or > 8192, or captions < 0."""
    if size < 1:
        raise InputError(f"{dataset}:size must be at least 1 pixel; got {size}")
    if size > _MAX_SIZE:
        raise InputError(f"{dataset}:size must be at most {_MAX_SIZE} pixels; got {size}")
    if captions < 0:
        raise InputError(f"{dataset}:captions must be at least 1, or 0 for all; got {captions}")


def _open_pictures(
    items: Sequence[CaptionedPicture], size: int, fit: Fit, on_error: OnError, resample: Resample, rgb: Rgb
) -> tuple[Sequence[CaptionedPicture], PictureFiles]:
    """Return the pictures that are kept, and their files."""
    images = PictureFiles([item.path for item in items], size, fit, resample=resample, rgb=rgb)
    if on_error == "raise":
        return items, images
    rows = images.readable_rows()
    if len(rows) == len(items):
        return items, images
    return [items[row] for row in rows], images.select(rows)


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
