"""MSR-VTT: videos as features of several experts, twenty captions each, cut by the official lists."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from lossscope.errors import InputError
from lossscope.io.files import fingerprint_of

from .base import Split
from .formats.msrvtt_lists import Annotations, Lists, Official
from .formats.mult_h5 import MultH5
from .formats.ragged import Ragged
from .formats.videos import CaptionWords, ExpertFolder, Frames, Pick, Videos

_SPLITS = ("train", "val", "test")
_INSIDE = "mult-h5"


@dataclass(frozen=True)
class MSRVTT:
    """The captions of `{root}/{annotations}` with the features of `{root}/{features}`.

    lists: `1k-a` (jsfusion: 9,000 and 1,000 with one caption each), `1k-b` (miech) or `full` (6,513, 497, 2,990).
    layout: `folder`, a set of ragged arrays for each expert as `lossscope data` writes; `mult-h5`, MMT's own files.
    experts: names with + between, e.g. face+rgb; empty: all there are. frames: the most of a video and expert.
    pick: which, when there are more, `even`, `first` or `random` (always the same ones, as MMT evaluates; in training
    MMT draws others at each visit of a video, which a data set can not, as it does not know the epoch).
    captions: the first so many of each video (0: all); the tests of 1k-a and 1k-b have one.
    held: training videos put aside as val of the 1k lists; 0: val is the test list, as the originals do.
    annotations: a pattern below root; `mult-h5` reads the captions inside those files.
    words: stem of the vectors of the captions' words, for CE. An item is a mapping: see formats/videos.py.
    Raises InputError for anything missing or malformed. Source: Xu et al. 2016; Gabeur et al. 2020; Liu et al. 2019.
    """

    root: Path
    lists: Lists = "1k-a"
    layout: Literal["folder", "mult-h5"] = "folder"
    features: str = "features"
    experts: str = ""
    frames: int = 30
    pick: Pick = "even"
    captions: int = 0
    held: int = 500
    annotations: str = "*videodatainfo.json"
    words: Path | None = None

    def __post_init__(self) -> None:
        if self.frames < 1 or self.captions < 0 or self.held < 0:
            got = f"{self.frames}, {self.captions} and {self.held}"
            raise InputError(f"msrvtt:frames must be at least 1, captions and held at least 0; got {got}")

    def splits(self) -> tuple[str, ...]:
        """train, val, test."""
        return _SPLITS

    def split(self, name: str) -> Split:
        """The split of that name, its features left on disk."""
        if name not in _SPLITS:
            raise InputError(f"split must be one of {', '.join(_SPLITS)}; got {name!r}")
        members = Official(Path(self.root), self.lists, self.held, self._told).members(name)
        bare = [video for video in members if not self._frames.has(video)]
        if bare or not members:
            got = f"none of {bare[0]!r} ({len(bare)} of {len(members)})" if bare else "no videos"
            wanted = "features of at least one expert"
            raise InputError(f"videos of {name!r} must have {wanted}; got {got}: extract them, or shorten the list")
        told = [pairs[: self.captions or None] for pairs in members.values()]
        ids = [id for pairs in told for id, _ in pairs]
        texts = [text for pairs in told for _, text in pairs]
        made = f"{self.frames} {self.pick} {self._frames.fingerprint}"
        return Split(
            name=name,
            images=Videos(self._frames, list(members), self.frames, self.pick),
            captions=texts,
            caption_image=np.repeat(np.arange(len(members), dtype=np.int64), [len(pairs) for pairs in told]),
            image_ids=list(members),
            caption_ids=ids,
            fingerprint=fingerprint_of(name, made, *members, *ids, *texts),
            words=None if self.words is None else CaptionWords(Ragged.open(self.words), ids),
        )

    @functools.cached_property
    def _frames(self) -> Frames:
        names = [name.strip() for name in self.experts.split("+") if name.strip()]
        folder = Path(self.root) / self.features
        return MultH5(folder, tuple(names)) if self.layout == "mult-h5" else ExpertFolder.open(folder, names)

    @functools.cached_property
    def _told(self) -> Annotations:
        if self.annotations == _INSIDE:
            return Annotations.of_h5(MultH5(Path(self.root) / self.features))
        return Annotations.read(Path(self.root), self.annotations)
