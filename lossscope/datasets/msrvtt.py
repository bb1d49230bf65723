"""MSR-VTT: videos as features of several experts, twenty captions each, split by the official lists."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from lossscope.errors import InputError
from lossscope.io.files import fingerprint_of

from .base import USUAL_SPLITS, Split, group_captions, require_split
from .formats.msrvtt_lists import Annotations, Lists, OfficialLists
from .formats.mult_h5 import MultH5
from .formats.ragged import RaggedArrays
from .formats.videos import CaptionWordVectors, ExpertFolder, FramePick, VideoFeatures, Videos

_MULT_H5 = "mult-h5"


@dataclass(frozen=True)
class MSRVTT:
    """The captions of `{root}/{annotations}` with the features of `{root}/{features}`.

    Lists: `1k-a` (jsfusion: 9,000 and 1,000 videos, the latter with one caption each), `1k-b` (miech) or `full` (6,513,
    497 and 2,990). Layouts: `folder`, ragged arrays for each expert as `lossscope data` writes them, or `mult-h5`, the
    files of MMT. Picks: `random` takes always the same frames, as MMT's evaluation does; in training MMT draws others
    each time it reads a video, which a data set cannot do, as it does not know the epoch.
    An item is a mapping: see formats/videos.py. Raises InputError for anything missing or malformed.
    Source: Xu et al. 2016; Gabeur et al. 2020; Liu et al. 2019.
    """

    root: Path  # folder of the data set
    lists: Lists = "1k-a"  # 1k-a, 1k-b or full: which videos belong to which split
    layout: Literal["folder", "mult-h5"] = "folder"  # folder: as lossscope data writes; mult-h5: the files of MMT
    features: str = "features"  # folder of the features, below root
    experts: str = ""  # names with + between, e.g. face+rgb; empty: all there are
    frames: int = 30  # most frames of a video and expert
    pick: FramePick = "even"  # which frames of a longer video: even, first, or random (always the same)
    captions: int = 0  # number of captions of each video, the first ones; 0: all; tests of 1k-a and 1k-b have one
    held: int = 500  # training videos taken as val of the 1k lists; 0: val is the test list, as in the originals
    annotations: str = "*videodatainfo.json"  # pattern of the caption files, below root; mult-h5: those in MMT's files
    words: Path | None = None  # stem of the vectors of the captions' words, for CE

    def __post_init__(self) -> None:
        if self.frames < 1 or self.captions < 0 or self.held < 0:
            got = f"{self.frames}, {self.captions} and {self.held}"
            raise InputError(f"msrvtt:frames must be at least 1, captions and held at least 0; got {got}")

    def splits(self) -> tuple[str, ...]:
        """Return train, val and test."""
        return USUAL_SPLITS

    def split(self, name: str) -> Split:
        """Return the split of a name, its features left on disk."""
        require_split(name, USUAL_SPLITS)
        members = OfficialLists(Path(self.root), self.lists, self.held, self._captions).members(name)
        missing = [video for video in members if not self._features.has(video)]
        if missing or not members:
            got = f"none of {missing[0]!r} ({len(missing)} of {len(members)})" if missing else "no videos"
            what = "features of at least one expert"
            raise InputError(f"videos of {name!r} must have {what}; got {got}: extract them, or shorten the list")
        ids, texts, owners = group_captions([pairs[: self.captions or None] for pairs in members.values()])
        content = f"{self.frames} {self.pick} {self._features.fingerprint}"
        return Split(
            name=name,
            images=Videos(self._features, list(members), self.frames, self.pick),
            captions=texts,
            caption_image=owners,
            image_ids=list(members),
            caption_ids=ids,
            fingerprint=fingerprint_of(name, content, *members, *ids, *texts),
            words=None if self.words is None else CaptionWordVectors(RaggedArrays.open(self.words), ids),
        )

    @functools.cached_property
    def _features(self) -> VideoFeatures:
        names = [name.strip() for name in self.experts.split("+") if name.strip()]
        folder = Path(self.root) / self.features
        return MultH5(folder, tuple(names)) if self.layout == "mult-h5" else ExpertFolder.open(folder, names)

    @functools.cached_property
    def _captions(self) -> Annotations:
        if self.annotations == _MULT_H5:
            return Annotations.from_h5(MultH5(Path(self.root) / self.features))
        return Annotations.read(Path(self.root), self.annotations)
