"""Videos as features of several experts: frames selected, padded and stacked by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

import numpy as np
import numpy.typing as npt

from lossscope.errors import InputError
from lossscope.io.files import fingerprint_of

from .ragged import Floats, RaggedArrays

FramePick = Literal["even", "random", "first"]
_Rows = npt.NDArray[np.int64]


class VideoFeatures(Protocol):
    """Features of videos by expert and video."""

    @property
    def widths(self) -> Mapping[str, int]:
        """Expert -> d, sorted by name."""

    @property
    def fingerprint(self) -> str: ...

    def has(self, video: str) -> bool:
        """Whether any expert has features of the video."""

    def take_all(self, video: str) -> Mapping[str, tuple[Floats, Floats]]:
        """Return expert -> (T, d) features and (T,) seconds, NaN where not known; T = 0 where it has none."""


@dataclass(frozen=True)
class ExpertFolder:
    """Features as `lossscope data` writes them: ragged arrays `{folder}/{expert}.npy` and `.json` of each expert."""

    experts: Mapping[str, RaggedArrays]  # by name

    @classmethod
    def open(cls, folder: Path, names: Sequence[str] = ()) -> ExpertFolder:
        """Open the experts of a folder, all of them without `names`. Raises InputError when one is missing."""
        available = sorted(path.stem for path in folder.glob("*.json"))
        missing = [name for name in names if name not in available]
        if missing or not available:
            what = f"no {', '.join(missing)}" if missing else "none"
            experts = ", ".join(available) or "no EXPERT.json at all"
            raise InputError(f"experts must be among those of {folder} ({experts}); got {what}")
        return cls({name: RaggedArrays.open(folder / name) for name in sorted(names or available)})

    @property
    def widths(self) -> Mapping[str, int]:
        return {name: arrays.width for name, arrays in self.experts.items()}

    @property
    def fingerprint(self) -> str:
        return fingerprint_of(*(f"{name} {arrays.fingerprint}" for name, arrays in self.experts.items()))

    def has(self, video: str) -> bool:
        return any(arrays.items.get(video, (0, 0))[1] for arrays in self.experts.values())

    def take_all(self, video: str) -> Mapping[str, tuple[Floats, Floats]]:
        return {name: self.take(video, name) for name in self.experts}

    def take(self, video: str, expert: str) -> tuple[Floats, Floats]:
        """Return features (T, d) and times (T,) of one expert."""
        return self.experts[expert].take(video), self.experts[expert].times(video)


class Videos:
    """The videos of a split; `take` returns these arrays for each expert e, by name.

    - `e`: (n, T, d) float32, the frames, zero after the last one.
    - `e.length`: (n,) int64, number of frames, 0 where e has none.
    - `e.time`: (n, T) float32, seconds at the middle of each frame, NaN where not known and after the last one.
    - `e.max`: (n, d), maximum over all frames of the video, also those left out; 0 where e has none.

    Of more than T frames T are kept, in order: `even` takes evenly spaced ones; `random` draws them without
    replacement, always the same ones for a length (as numpy's RandomState(0) does in evaluations of MMT, which draws
    others each time in training); `first` takes the first ones (as CE).

    Args:
        features: of the videos.
        videos: ids, in the order of the split.
        most_frames: T.
        pick: which frames of a longer video.
    """

    def __init__(self, features: VideoFeatures, videos: Sequence[str], most_frames: int, pick: FramePick) -> None:
        self._features, self._videos, self._most_frames, self._pick = features, tuple(videos), most_frames, pick

    @property
    def shape(self) -> Mapping[str, tuple[int, ...]]:
        shapes: dict[str, tuple[int, ...]] = {}
        most = self._most_frames
        for name, width in self._features.widths.items():
            shapes |= {name: (most, width), f"{name}.length": (), f"{name}.time": (most,), f"{name}.max": (width,)}
        return shapes

    def __len__(self) -> int:
        return len(self._videos)

    def take(self, rows: _Rows) -> Mapping[str, npt.NDArray[np.float32] | npt.NDArray[np.int64]]:
        """Return the arrays of the videos of `rows`, by name. Raises InputError when a feature is not finite."""
        arrays = self._empty_arrays(len(rows))
        for index, row in enumerate(rows.tolist()):
            for name, (values, seconds) in self._features.take_all(self._videos[row]).items():
                frames = select_frames(len(values), self._most_frames, self._pick)
                arrays[f"{name}.length"][index] = len(frames)
                if len(values):
                    arrays[f"{name}.max"][index] = values.max(axis=0)
                arrays[name][index, : len(frames)] = values[frames]
                arrays[f"{name}.time"][index, : len(frames)] = seconds[frames]
        return arrays

    def _empty_arrays(self, count: int) -> dict[str, npt.NDArray[np.float32] | npt.NDArray[np.int64]]:
        """Return the arrays of `count` videos without frames, by name."""
        arrays: dict[str, npt.NDArray[np.float32] | npt.NDArray[np.int64]] = {}
        for name, width in self._features.widths.items():
            arrays |= {
                name: np.zeros((count, self._most_frames, width), dtype=np.float32),
                f"{name}.length": np.zeros(count, dtype=np.int64),
                f"{name}.time": np.full((count, self._most_frames), np.nan, dtype=np.float32),
                f"{name}.max": np.zeros((count, width), dtype=np.float32),
            }
        return arrays


class CaptionWordVectors:
    """Vectors of the words of captions, by caption id in ragged arrays.

    Raises InputError when a caption has no words there.
    """

    def __init__(self, vectors: RaggedArrays, ids: Sequence[str]) -> None:
        missing = [id for id in ids if not vectors.items.get(id, (0, 0))[1]]
        if missing:
            got = f"none for {missing[0]!r} ({len(missing)} of {len(ids)})"
            raise InputError(f"{vectors.stem} must hold the words of every caption; got {got}: convert them again")
        self._vectors, self._ids = vectors, tuple(ids)

    @property
    def width(self) -> int:
        return self._vectors.width

    def __len__(self) -> int:
        return len(self._ids)

    def take(self, rows: _Rows) -> list[Floats]:
        return [self._vectors.take(self._ids[row]) for row in rows.tolist()]


def select_frames(count: int, most: int, pick: FramePick) -> _Rows:
    """Return the numbers of the frames to keep of `count`, in order: all, or `most` of them.

    >>> select_frames(10, 4, "even").tolist()
    [1, 3, 6, 8]
    """
    if count <= most:
        return np.arange(count, dtype=np.int64)
    if pick == "first":
        return np.arange(most, dtype=np.int64)
    if pick == "even":
        return (np.arange(most, dtype=np.int64) * 2 + 1) * count // (2 * most)
    frames = np.random.RandomState(0).permutation(count)[:most]  # the stream of RandomState never changes
    return np.sort(frames).astype(np.int64)
