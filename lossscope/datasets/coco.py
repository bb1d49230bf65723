"""COCO's caption files: `images` (id, file_name) and `annotations` (id, image_id, caption)."""

from __future__ import annotations

import functools
import glob
from dataclasses import dataclass, replace
from pathlib import Path

from lossscope.core.choices import WHOLE
from lossscope.errors import InputError
from lossscope.io.json_files import identifier, member, read_json
from lossscope.io.reading import show_path

from .base import USUAL_SPLITS, order_splits, require_split
from .formats.decoding import Fit, Resample, Rgb
from .formats.picture_dataset import CaptionedPicture, OnError, PictureDataset, PictureSplit, split_by_hash

_SLOT = "{split}"


@dataclass(frozen=True)
class Coco(PictureDataset):
    """The pictures of `{root}/{folder}` with the captions of `{root}/{file}`.

    With `{split}` in file (and folder), each file that matches is a split: the defaults are the layout of 2014; for
    2017 write file=annotations/captions_{split}2017.json,folder={split}2017.
    Without it the one file is cut 80/10/10 into train, val and test by a hash of the image's id alone, so that an image
    stays in its split whatever else the file contains. Commands that do not train read the split `all`, the whole file.
    Raises InputError for anything missing or malformed.
    """

    root: Path  # folder of the data set
    file: str = "annotations/captions_{split}2014.json"  # caption file below root
    folder: str = "images/{split}2014"  # folder of the pictures, below root
    size: int = 224  # pixels of a side
    captions: int = 5  # number of captions of each image, the first in the file; 0: all
    crop: bool = True  # cut out the middle square, instead of squeezing the picture
    on_error: OnError = "raise"  # raise, or skip pictures that cannot be read
    resample: Resample = "bilinear"  # bilinear, or bicubic as CLIP
    fit: Fit | None = None  # square, short-side, short-side-floor or squeeze; none: as crop says
    rgb: Rgb = "first"  # first, or last, after resizing, as OpenAI's CLIP; on-white as transformers

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.file.count(_SLOT) > 1 or Path(self.file).is_absolute():
            raise InputError(f"coco:file must be relative to root, with {_SLOT} at most once; got {self.file!r}")
        if _SLOT in self.folder and _SLOT not in self.file:
            raise InputError(f"coco:file must hold {_SLOT} where coco:folder does; got {self.file!r}")

    def splits(self) -> tuple[str, ...]:
        """Return the names of the splits, train first."""
        if self.is_one_file:
            return (*USUAL_SPLITS, WHOLE)
        before, after = self.file.split(_SLOT)
        paths = Path(self.root).glob(f"{glob.escape(before)}*{glob.escape(after)}")
        files = [path.relative_to(self.root).as_posix() for path in paths]
        return order_splits({file[len(before) : len(file) - len(after)] for file in files})

    @property
    def is_one_file(self) -> bool:
        """Whether it is a single file: all but a training read all of its images."""
        return _SLOT not in self.file

    def split(self, name: str) -> PictureSplit:
        """Return the split of a name, and of a single file how many of its images are used."""
        split = super().split(name)
        if not self.is_one_file:
            return split
        images, where = len(self._whole_file), show_path(Path(self.root) / self.file)
        read = "all" if len(split.images) == images else f"{len(split.images)} of"
        return replace(split, used=f"{read} {images} images of {where}" + f", its split {name}" * (name != WHOLE))

    def pictures(self, name: str) -> list[CaptionedPicture]:
        """Return the pictures of a split."""
        file = Path(self.root) / self.file
        require_split(name, self.splits(), "coco", f"a file like {file} (none found)")
        items = self._items(name)
        if not items:
            got = f"none in {name!r} of {file}"
            raise InputError(f"split must hold at least one image; got {got}: use the split 'all'")
        return items

    def _items(self, name: str) -> list[CaptionedPicture]:
        if _SLOT not in self.file:
            return [item for item in self._whole_file if name in (WHOLE, split_by_hash(item.id))]
        folder = Path(self.root) / self.folder.replace(_SLOT, name)
        return _read(Path(self.root) / self.file.replace(_SLOT, name), folder)

    @functools.cached_property
    def _whole_file(self) -> list[CaptionedPicture]:
        return _read(Path(self.root) / self.file, Path(self.root) / self.folder)


def _read(file: Path, folder: Path) -> list[CaptionedPicture]:
    document = read_json(file)
    captions: dict[str, list[tuple[str, str]]] = {}
    paths: dict[str, Path] = {}
    for row, record in enumerate(member(document, "images", list, str(file))):
        where = f"image {row} of {file}"
        key = identifier(record, "id", where)
        if key in paths:
            raise InputError(f"image ids of {file} must be unique; got {key} twice")
        paths[key], captions[key] = folder / member(record, "file_name", str, where), []
    for row, record in enumerate(member(document, "annotations", list, str(file))):
        where = f"annotation {row} of {file}"
        key = identifier(record, "image_id", where)
        if key not in captions:
            raise InputError(f"'image_id' of {where} must be the id of one of its images; got {key}")
        captions[key].append((identifier(record, "id", where), member(record, "caption", str, where).strip()))
    return [CaptionedPicture(key, path, tuple(captions[key])) for key, path in paths.items()]
