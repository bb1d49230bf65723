"""Videos as the features of several experts: frames picked, padded and stacked by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

import numpy as np
import numpy.typing as npt

from lossscope.errors import InputError
from lossscope.io.files import fingerprint_of

from .ragged import Floats, Ragged

Pick = Literal["even", "random", "first"]
_Rows = npt.NDArray[np.int64]


class Frames(Protocol):
    """Features of videos by expert and video."""

    @property
    def widths(self) -> Mapping[str, int]:
        """Expert -> d, sorted by name."""

    @property
    def fingerprint(self) -> str: ...

    def has(self, video: str) -> bool:
        """Whether any expert has something of the video."""

    def take_all(self, video: str) -> Mapping[str, tuple[Floats, Floats]]:
        """Expert -> (T, d) features and (T,) times in seconds, NaN where not known; T = 0 where it has nothing."""


@dataclass(frozen=True)
class ExpertFolder:
    """Our own layout: one set of ragged.py for each expert, `{folder}/{expert}.npy` and `.json`, read from disk."""

    experts: Mapping[str, Ragged]

    @classmethod
    def open(cls, folder: Path, names: Sequence[str] = ()) -> ExpertFolder:
        """Experts of a folder, all when no names are given. Raises InputError when there are none of them."""
        known = sorted(path.stem for path in folder.glob("*.json"))
        missing = [name for name in names if name not in known]
        if missing or not known:
            what = f"no {', '.join(missing)}" if missing else "none"
            have = ", ".join(known) or "no EXPERT.json at all"
            raise InputError(f"experts must be among those of {folder} ({have}); got {what}")
        return cls({name: Ragged.open(folder / name) for name in sorted(names or known)})

    @property
    def widths(self) -> Mapping[str, int]:
        return {name: found.width for name, found in self.experts.items()}

    @property
    def fingerprint(self) -> str:
        return fingerprint_of(*(f"{name} {found.fingerprint}" for name, found in self.experts.items()))

    def has(self, video: str) -> bool:
        return any(found.items.get(video, (0, 0))[1] for found in self.experts.values())

    def take_all(self, video: str) -> Mapping[str, tuple[Floats, Floats]]:
        return {name: self.take(video, name) for name in self.experts}

    def take(self, video: str, expert: str) -> tuple[Floats, Floats]:
        """(T, d) features and (T,) times of one expert."""
        return self.experts[expert].take(video), self.experts[expert].times(video)


class Videos:
    """The videos of a split: for each expert e arrays by name.

    `e`: (n, T, d) float32, zero behind the frames there are; `e.length`: (n,) int64, 0 where e is missing;
    `e.time`: (n, T) float32, seconds at the middle of each frame, NaN where not known and behind; `e.max`: (n, d), the
    maximum over all frames of the video, those not kept too, 0 where e is missing.
    Of more than T frames, T are kept in order: `even` takes them evenly spread, `random` draws them without
    replacement, always the same ones for a length (as numpy's RandomState(0) does in evaluations of MMT, which draws
    anew at each visit in training), `first` takes the first (as CE).
    """

    def __init__(self, frames: Frames, videos: Sequence[str], most: int, pick: Pick) -> None:
        self._frames, self._videos, self._most, self._pick = frames, tuple(videos), most, pick

    @property
    def shape(self) -> Mapping[str, tuple[int, ...]]:
        shapes: dict[str, tuple[int, ...]] = {}
        for name, width in self._frames.widths.items():
            shapes |= {
                name: (self._most, width), f"{name}.length": (), f"{name}.time": (self._most,), f"{name}.max": (width,)
            }  # fmt: skip
        return shapes

    def __len__(self) -> int:
        return len(self._videos)

    def take(self, rows: _Rows) -> Mapping[str, npt.NDArray[np.float32] | npt.NDArray[np.int64]]:
        """Arrays of the videos of `rows`, by name. Raises InputError when a feature is not finite."""
        found = self._empty(len(rows))
        for place, row in enumerate(rows.tolist()):
            for name, (values, seconds) in self._frames.take_all(self._videos[row]).items():
                kept = picked(len(values), self._most, self._pick)
                found[f"{name}.length"][place] = len(kept)
                if len(values):
                    found[f"{name}.max"][place] = values.max(axis=0)
                found[name][place, : len(kept)] = values[kept]
                found[f"{name}.time"][place, : len(kept)] = seconds[kept]
        return found

    def _empty(self, count: int) -> dict[str, npt.NDArray[np.float32] | npt.NDArray[np.int64]]:
        """The arrays of `count` videos without a frame, by name."""
        found: dict[str, npt.NDArray[np.float32] | npt.NDArray[np.int64]] = {}
        for name, width in self._frames.widths.items():
            found |= {
                name: np.zeros((count, self._most, width), dtype=np.float32),
                f"{name}.length": np.zeros(count, dtype=np.int64),
                f"{name}.time": np.full((count, self._most), np.nan, dtype=np.float32),
                f"{name}.max": np.zeros((count, width), dtype=np.float32),
            }
        return found


class CaptionWords:
    """Vectors of the words of captions, by caption id in a set of ragged.py."""

    def __init__(self, stored: Ragged, ids: Sequence[str]) -> None:
        missing = [id for id in ids if not stored.items.get(id, (0, 0))[1]]
        if missing:
            got = f"none for {missing[0]!r} ({len(missing)} of {len(ids)})"
            raise InputError(f"{stored.stem} must hold the words of every caption; got {got}: convert them again")
        self._stored, self._ids = stored, tuple(ids)

    @property
    def width(self) -> int:
        return self._stored.width

    def __len__(self) -> int:
        return len(self._ids)

    def take(self, rows: _Rows) -> list[Floats]:
        return [self._stored.take(self._ids[row]) for row in rows.tolist()]


def picked(count: int, most: int, how: Pick) -> _Rows:
    """Which of `count` frames are kept, in order: all, or `most` of them.

    >>> picked(10, 4, "even").tolist()
    [1, 3, 6, 8]
    """
    if count <= most:
        return np.arange(count, dtype=np.int64)
    if how == "first":
        return np.arange(most, dtype=np.int64)
    if how == "even":
        return (np.arange(most, dtype=np.int64) * 2 + 1) * count // (2 * most)
    drawn = np.random.RandomState(0).permutation(count)[:most]  # its draws never change
    return np.sort(drawn).astype(np.int64)
