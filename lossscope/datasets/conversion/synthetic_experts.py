"""GENERATED features of videos: made from the captions themselves, so that video models run where no features are.

They are no measurement of any video. What an expert "sees" is a projection of words of the video's own captions, so
that retrieval above chance is possible by construction; numbers reached on them say nothing about real data.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal

import numpy as np
import numpy.typing as npt

from lossscope.errors import InputError
from lossscope.io.files import fingerprint_of
from lossscope.text.vocabulary import tokenise

from ..formats.ragged import Floats, Writing, write_ragged

Models = Literal["mmt", "ce"]
Progress = Callable[[str, int, int], None]
_Matrix = npt.NDArray[np.float32]
_COMMON = 0.1  # words in the captions of more than this share of videos say nothing
_RARE = 3  # and those of fewer videos than this are dropped too


@dataclass(frozen=True)
class Kind:
    """An expert. timed: its frames have times. single: one frame, its features being averaged over time."""

    width: int
    timed: bool = True
    single: bool = False


EXPERTS: Mapping[Models, Mapping[str, Kind]] = {
    "mmt": {
        "face": Kind(512, timed=False), "ocr": Kind(300, timed=False), "rgb": Kind(2048), "s3d": Kind(1024),
        "scene": Kind(2208), "speech": Kind(300, timed=False), "vggish": Kind(128),
    },
    "ce": {
        "audio": Kind(128, timed=False), "face": Kind(512, timed=False, single=True),
        "i3d.i3d.0": Kind(1024, timed=False, single=True),
        "imagenet.resnext101_32x48d.0": Kind(2048, timed=False, single=True),
        "imagenet.senet154.0": Kind(2048, timed=False, single=True), "ocr": Kind(300, timed=False),
        "r2p1d.r2p1d-ig65m.0": Kind(512, timed=False, single=True),
        "scene.densenet161.0": Kind(2208, timed=False, single=True), "speech": Kind(300, timed=False),
    },
}  # fmt: skip


@dataclass(frozen=True)
class Generated:
    """x[t] = z / |z| + noise n / sqrt(d), z = sum over words w seen at t of log(1 + count) idf(w) r(w).

    models: whose experts, names and widths. width: of all experts instead, 0: theirs. frames: at most so many.
    missing: probability that an expert has nothing of a video (every video keeps one). share: of the words that an
    expert can see at all; a frame shows each of those with probability 1/2. r(w) is a random direction for each word
    and expert, n standard normal. Everything follows from the seed, the captions and numpy's generator.
    Raises InputError for values outside.
    """

    models: Models = "mmt"
    width: int = 0
    frames: int = 30
    missing: float = 0.2
    noise: float = 1.0
    share: float = 0.5
    seed: int = 0

    def __post_init__(self) -> None:
        if self.width < 0 or self.frames < 1 or self.noise < 0 or self.seed < 0:
            got = f"{self.width}, {self.frames}, {self.noise}, {self.seed}"
            raise InputError(f"width, noise and seed must be at least 0, frames at least 1; got {got}")
        if not (0 <= self.missing < 1 and 0 < self.share <= 1):
            raise InputError(f"missing must be in 0..1 and below 1, share above 0; got {self.missing}, {self.share}")

    @property
    def kinds(self) -> Mapping[str, Kind]:
        """Experts by name, with the widths they get."""
        known = EXPERTS[self.models]
        return {name: Kind(self.width or kind.width, kind.timed, kind.single) for name, kind in known.items()}

    def write(self, told: Mapping[str, Sequence[str]], out: Path, progress: Progress | None = None) -> None:
        """Video -> captions, to the folder `out`, a set of arrays for each expert."""
        if not told:
            raise InputError("captions to generate features from must be of at least one video; got none")
        words = _Words.of(told)
        for name, kind in self.kinds.items():
            made = _Expert(self, name, kind, words)
            lengths = {video: made.length(video) for video in told}
            report = None if progress is None else _named(progress, f"expert {name}")
            times = made.times if kind.timed else None
            write_ragged(out / name, Writing(lengths, kind.width, made.features, times), report)

    def present(self, video: str) -> frozenset[str]:
        """Experts that have something of a video."""
        names = sorted(self.kinds)
        drawn = _random(self.seed, "missing", video).random(len(names))
        return frozenset(name for name, x in zip(names, drawn, strict=True) if x >= self.missing or x == drawn.max())


@dataclass(frozen=True)
class _Words:
    """What the captions say. rows: video -> (word numbers, their weights)."""

    names: tuple[str, ...]
    rows: Mapping[str, tuple[npt.NDArray[np.int64], _Matrix]]

    @classmethod
    def of(cls, told: Mapping[str, Sequence[str]]) -> _Words:
        counts = {video: Counter(_words(texts)) for video, texts in told.items()}
        seen = Counter(word for count in counts.values() for word in count)
        most = max(_COMMON * len(told), _RARE)
        kept = sorted(word for word, videos in seen.items() if _RARE <= videos <= most) or sorted(seen)
        place = {word: row for row, word in enumerate(kept)}
        idf = {word: math.log(1 + len(told) / seen[word]) for word in kept}
        rows = {}
        for video, count in counts.items():
            own = sorted(word for word in count if word in place)
            weights = [math.log1p(count[word]) * idf[word] for word in own]
            rows[video] = (np.array([place[word] for word in own], np.int64), np.array(weights, np.float32))
        return cls(tuple(kept), rows)


@dataclass(frozen=True)
class _Expert:
    """One expert's view of the videos."""

    made: Generated
    name: str
    kind: Kind
    words: _Words

    def length(self, video: str) -> int:
        """Frames it has of a video: a third of the most, to the most."""
        if self.name not in self.made.present(video):
            return 0
        if self.kind.single:
            return 1
        return int(
            _random(self.made.seed, f"length {self.name}", video).integers(
                -(-self.made.frames // 3), self.made.frames + 1
            )
        )

    def times(self, video: str) -> Floats:
        """Seconds at the middle of its frames, a second each."""
        return (np.arange(self.length(video)) + 0.5).astype(np.float32)

    def features(self, video: str) -> Floats:
        """(T, d) features of a video."""
        count, width = self.length(video), self.kind.width
        dice = _random(self.made.seed, f"frames {self.name}", video)
        numbers, weights = self.words.rows[video]
        shown = dice.random((count, len(numbers)), dtype=np.float32) < 0.5
        if self.kind.single:
            shown[:] = True
        z = (shown * weights) @ self._directions[numbers]
        lengths = np.linalg.norm(z, axis=1, keepdims=True)
        noise = dice.standard_normal((count, width), dtype=np.float32) * self.made.noise / math.sqrt(width)
        return np.asarray(z / np.where(lengths > 0, lengths, 1) + noise, dtype=np.float32)

    @cached_property
    def _directions(self) -> _Matrix:
        """(V, d): a direction of each word, zero for the words that this expert can not see."""
        dice = _random(self.made.seed, "directions", self.name)
        rows = dice.standard_normal((len(self.words.names), self.kind.width), dtype=np.float32)
        seen = dice.random(len(self.words.names)) < self.made.share
        return np.asarray(rows * seen[:, None] / math.sqrt(self.kind.width), dtype=np.float32)


def _words(texts: Iterable[str]) -> Iterable[str]:
    """Words of captions, each once a caption, those of two letters and less left out."""
    for text in texts:
        yield from sorted({word for word in tokenise(text) if len(word) > 2})


def _random(seed: int, *what: str) -> np.random.Generator:
    """A generator of its own for each purpose, so that no order of use matters."""
    return np.random.Generator(np.random.Philox(int(fingerprint_of(str(seed), *what)[:32], 16)))


def _named(progress: Progress, label: str) -> Callable[[int, int], None]:
    return lambda done, total: progress(label, done, total)
