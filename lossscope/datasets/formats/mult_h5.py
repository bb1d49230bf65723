"""Features of videos in MMT's own files: one HDF5 for each video, read directly."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from lossscope.errors import InputError
from lossscope.io.files import fingerprint_of

from .ragged import Floats

T = TypeVar("T")
_STEPS = {"rgb": 0.2, "scene": 1.0}  # seconds of one feature, of experts whose times are never stored
_FEATURES, _TIMES, _CAPTION = "features.", "features_t.", "raw_captions."


@dataclass(frozen=True)
class MultH5:
    """The tree `{root}/{v[0]}/{v[1]}/{v[2]}/{v}.h5`; v is the video's id.

    Each file may hold `features.{expert}` (T, d), `features_t.{expert}` (T, 2) from and to in seconds, and
    `raw_captions.{i}`, words as bytes. An expert is missing when it is absent, empty, or its first number is NaN.
    names: the experts wanted, all of the first files when empty. Raises InputError without h5py.
    Source: Gabeur et al. 2020 (MMT).
    """

    root: Path
    names: tuple[str, ...] = ()

    @functools.cached_property
    def widths(self) -> Mapping[str, int]:
        """Expert -> d, sorted by name, read from as many files as it takes to see each."""
        found: dict[str, int] = {}
        for path in sorted(self.root.glob("?/?/?/*.h5")):
            found |= _reading(path, _widths)
            if self.names and all(name in found for name in self.names):
                break
        missing = [name for name in self.names if name not in found]
        if missing or not found:
            what = f"no {', '.join(missing)}" if missing else "none"
            raise InputError(f"experts must be in files like {self.root}/v/i/d/video0.h5; got {what}")
        return {name: found[name] for name in sorted(self.names or found)}

    @property
    def fingerprint(self) -> str:
        return fingerprint_of(*(f"{name} {width}" for name, width in self.widths.items()))

    def file(self, video: str) -> Path:
        """Where the features of a video are."""
        return self.root / "/".join(video[:3]) / f"{video}.h5"

    def has(self, video: str) -> bool:
        """Whether the video has a file."""
        return self.file(video).is_file()

    def take_all(self, video: str) -> Mapping[str, tuple[Floats, Floats]]:
        """Expert -> (T, d) features and (T,) seconds at their middles, the file opened once.

        Raises InputError for what does not fit.
        """
        path, widths = self.file(video), self.widths
        found = _reading(
            path, lambda file: {e: (_array(file, _FEATURES + e), _array(file, _TIMES + e)) for e in widths}
        )
        return {e: self._checked(path, e, values, spans) for e, (values, spans) in found.items()}

    def _checked(self, path: Path, expert: str, values: Floats | None, spans: Floats | None) -> tuple[Floats, Floats]:
        width = self.widths[expert]
        if values is None or not values.size or np.isnan(values.flat[0]):
            return np.zeros((0, width), np.float32), np.zeros(0, np.float32)
        if values.ndim != 2 or values.shape[1] != width or not np.isfinite(values).all():
            raise InputError(f"{_FEATURES}{expert} of {path} must be (T, {width}) finite numbers; got {values.shape}")
        if spans is not None and spans.shape != (len(values), 2):
            raise InputError(f"{_TIMES}{expert} of {path} must be ({len(values)}, 2); got {spans.shape}")
        return values, _middles(len(values), spans, _STEPS.get(expert))

    def captions(self) -> Mapping[str, list[str]]:
        """Video -> its captions, for every file of the tree."""
        paths = sorted(self.root.glob("?/?/?/*.h5"))
        if not paths:
            raise InputError(f"captions must be in files like {self.root}/v/i/d/video0.h5; got none")
        return {path.stem: _reading(path, _captions) for path in paths}


def _middles(count: int, spans: Floats | None, step: float | None) -> Floats:
    if spans is not None:
        return np.asarray(spans.mean(1), dtype=np.float32)
    if step is not None:
        return ((np.arange(count) + 0.5) * step).astype(np.float32)
    return np.full(count, np.nan, dtype=np.float32)


def _reading(path: Path, read: Callable[[Any], T]) -> T:
    try:
        import h5py
    except ImportError as error:
        raise InputError("files of MMT need h5py; install lossscope[video]") from error
    try:
        with h5py.File(path, "r") as file:
            return read(file)
    except InputError as problem:
        raise InputError(f"{path}: {problem}") from None
    except (OSError, RuntimeError, TypeError, ValueError, KeyError) as problem:
        raise InputError(f"{path} must be a whole HDF5 file; got {problem}: fetch the file again") from None


def _array(file: Any, key: str) -> Floats | None:
    return np.asarray(file[key][()], dtype=np.float32) if key in file else None


def _widths(file: Any) -> dict[str, int]:
    sets = {key.removeprefix(_FEATURES): file[key] for key in file if key.startswith(_FEATURES)}
    return {name: int(found.shape[1]) for name, found in sets.items() if found.ndim == 2 and found.size}


def _captions(file: Any) -> list[str]:
    numbers = sorted(int(key.removeprefix(_CAPTION)) for key in file if key.startswith(_CAPTION))
    return [_sentence(np.asarray(file[f"{_CAPTION}{i}"][()]), i) for i in numbers]


def _sentence(words: npt.NDArray[Any], number: int) -> str:
    found: Sequence[Any] = words.reshape(-1).tolist()
    if not all(isinstance(word, bytes | str) for word in found):
        raise InputError(f"{_CAPTION}{number} must hold words; got {words.dtype}")
    return " ".join(word.decode("utf-8", "replace") if isinstance(word, bytes) else word for word in found)
