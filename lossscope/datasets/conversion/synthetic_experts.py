"""Generate expert features of videos from their captions, to run video models where no real features are at hand.

They are no measurement of any video. What an expert "sees" is a random projection of words of the video's captions, so
that retrieval above chance is possible by construction; results on them say nothing about real data.
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

from lossscope.core.types import Progress
from lossscope.errors import InputError
from lossscope.io.files import fingerprint_of
from lossscope.io.folder_lock import lock_folder
from lossscope.text.word_tokenisers import tokenise

from ..formats.ragged import Floats, RowsByName, write_ragged

Models = Literal["mmt", "ce"]
_Matrix = npt.NDArray[np.float32]
_COMMON = 0.1  # words in the captions of more than this share of videos are dropped
_RARE = 3  # words in the captions of fewer videos than this are dropped


@dataclass(frozen=True)
class ExpertKind:
    """The form of the features of an expert."""

    width: int  # d
    timed: bool = True  # whether frames have times
    single: bool = False  # whether there is one frame, an average over time


EXPERTS: Mapping[Models, Mapping[str, ExpertKind]] = {
    "mmt": {
        "face": ExpertKind(512, timed=False), "ocr": ExpertKind(300, timed=False), "rgb": ExpertKind(2048),
        "s3d": ExpertKind(1024), "scene": ExpertKind(2208), "speech": ExpertKind(300, timed=False),
        "vggish": ExpertKind(128),
    },
    "ce": {
        "audio": ExpertKind(128, timed=False), "face": ExpertKind(512, timed=False, single=True),
        "i3d.i3d.0": ExpertKind(1024, timed=False, single=True),
        "imagenet.resnext101_32x48d.0": ExpertKind(2048, timed=False, single=True),
        "imagenet.senet154.0": ExpertKind(2048, timed=False, single=True), "ocr": ExpertKind(300, timed=False),
        "r2p1d.r2p1d-ig65m.0": ExpertKind(512, timed=False, single=True),
        "scene.densenet161.0": ExpertKind(2208, timed=False, single=True), "speech": ExpertKind(300, timed=False),
    },
}  # fmt: skip


@dataclass(frozen=True)
class SyntheticExperts:
    """x[t] = z / |z| + noise n / sqrt(d), z = sum over words w seen at t of log(1 + count) idf(w) r(w).

    r(w) is a random direction for each word and expert, n is standard normal. A frame shows each word that its expert
    can see with probability 1/2. All numbers are determined by the seed, the captions and numpy's generator.
    Raises InputError for values out of range.
    """

    models: Models = "mmt"  # whose experts: their names and widths
    width: int = 0  # of all experts; 0: the widths of the models
    frames: int = 30  # most frames of a video
    missing: float = 0.2  # probability that an expert has no features of a video; each video keeps one expert
    noise: float = 1.0  # length of the noise, against a signal of length 1
    share: float = 0.5  # of the words that an expert can see
    seed: int = 0

    def __post_init__(self) -> None:
        if self.width < 0 or self.frames < 1 or self.noise < 0 or self.seed < 0:
            got = f"{self.width}, {self.frames}, {self.noise}, {self.seed}"
            raise InputError(f"width, noise and seed must be at least 0, frames at least 1; got {got}")
        if not (0 <= self.missing < 1 and 0 < self.share <= 1):
            raise InputError(f"missing must be in 0..1 and below 1, share above 0; got {self.missing}, {self.share}")

    @property
    def kinds(self) -> Mapping[str, ExpertKind]:
        """Experts by name, with the widths of their features."""
        kinds = EXPERTS[self.models]
        return {name: ExpertKind(self.width or kind.width, kind.timed, kind.single) for name, kind in kinds.items()}

    def write(self, captions: Mapping[str, Sequence[str]], out: Path, progress: Progress | None = None) -> None:
        """Write ragged arrays of each expert to a folder.

        Args:
            captions: video -> captions.
            out: the folder.
            progress: called after each video of an expert.

        Raises:
            InputError: there is no video.
        """
        if not captions:
            raise InputError("captions to generate features from must be of at least one video; got none")
        with lock_folder(out):
            self._write(captions, out, progress)

    def _write(self, captions: Mapping[str, Sequence[str]], out: Path, progress: Progress | None) -> None:
        words = _VideoWords.from_captions(captions)
        for name, kind in self.kinds.items():
            expert = _Expert(self, name, kind, words)
            lengths = {video: expert.length(video) for video in captions}
            report = None if progress is None else _with_label(progress, f"expert {name}")
            times = expert.times if kind.timed else None
            write_ragged(out / name, RowsByName(lengths, kind.width, expert.features, times), report)

    def present(self, video: str) -> frozenset[str]:
        """Return the experts that have features of a video."""
        names = sorted(self.kinds)
        uniform = random_generator(self.seed, "missing", video).random(len(names))
        kept = zip(names, uniform, strict=True)
        return frozenset(name for name, x in kept if x >= self.missing or x == uniform.max())


@dataclass(frozen=True)
class _VideoWords:
    """The words of the captions of each video, and their weights."""

    names: tuple[str, ...]  # all words
    rows: Mapping[str, tuple[npt.NDArray[np.int64], _Matrix]]  # video -> (word numbers, their weights)

    @classmethod
    def from_captions(cls, captions: Mapping[str, Sequence[str]]) -> _VideoWords:
        counts = {video: Counter(_iter_words(texts)) for video, texts in captions.items()}
        n_videos = Counter(word for count in counts.values() for word in count)
        most = max(_COMMON * len(captions), _RARE)
        kept = sorted(word for word, videos in n_videos.items() if _RARE <= videos <= most) or sorted(n_videos)
        row_of = {word: row for row, word in enumerate(kept)}
        idf = {word: math.log(1 + len(captions) / n_videos[word]) for word in kept}
        rows = {}
        for video, count in counts.items():
            words = sorted(word for word in count if word in row_of)
            weights = [math.log1p(count[word]) * idf[word] for word in words]
            rows[video] = (np.array([row_of[word] for word in words], np.int64), np.array(weights, np.float32))
        return cls(tuple(kept), rows)


@dataclass(frozen=True)
class _Expert:
    """The features of one expert."""

    options: SyntheticExperts
    name: str
    kind: ExpertKind
    words: _VideoWords

    def length(self, video: str) -> int:
        """Return the number of frames of a video: 0 where missing, else between a third of `frames` and `frames`."""
        if self.name not in self.options.present(video):
            return 0
        if self.kind.single:
            return 1
        most = self.options.frames
        return int(random_generator(self.options.seed, f"length {self.name}", video).integers(-(-most // 3), most + 1))

    def times(self, video: str) -> Floats:
        """Return the seconds (T,) at the middle of the frames, a second each."""
        return (np.arange(self.length(video)) + 0.5).astype(np.float32)

    def features(self, video: str) -> Floats:
        """Return the features (T, d) of a video."""
        count, width = self.length(video), self.kind.width
        rng = random_generator(self.options.seed, f"frames {self.name}", video)
        numbers, weights = self.words.rows[video]
        shown = rng.random((count, len(numbers)), dtype=np.float32) < 0.5
        if self.kind.single:
            shown[:] = True
        z = (shown * weights) @ self._directions[numbers]
        lengths = np.linalg.norm(z, axis=1, keepdims=True)
        noise = rng.standard_normal((count, width), dtype=np.float32) * self.options.noise / math.sqrt(width)
        return np.asarray(z / np.where(lengths > 0, lengths, 1) + noise, dtype=np.float32)

    @cached_property
    def _directions(self) -> _Matrix:
        """A direction of each word (V, d), zero for the words that this expert cannot see."""
        rng = random_generator(self.options.seed, "directions", self.name)
        rows = rng.standard_normal((len(self.words.names), self.kind.width), dtype=np.float32)
        seen = rng.random(len(self.words.names)) < self.options.share
        return np.asarray(rows * seen[:, None] / math.sqrt(self.kind.width), dtype=np.float32)


def _iter_words(texts: Iterable[str]) -> Iterable[str]:
    """Yield the words of captions of at least three letters, each once a caption."""
    for text in texts:
        yield from sorted({word for word in tokenise(text) if len(word) > 2})


def random_generator(seed: int, *purpose: str) -> np.random.Generator:
    """Return a random generator for one purpose, so that numbers do not depend on the order of use."""
    return np.random.Generator(np.random.Philox(int(fingerprint_of(str(seed), *purpose)[:32], 16)))


def _with_label(progress: Progress, label: str) -> Callable[[int, int], None]:
    return lambda done, total: progress(label, done, total)
