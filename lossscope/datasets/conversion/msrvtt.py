"""Convert pickles of CE and MMT for MSR-VTT to the arrays and lists that the data set msrvtt reads."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from lossscope.core.types import OnStep
from lossscope.errors import InputError
from lossscope.io.files import write_text
from lossscope.io.json_files import expect, shorten
from lossscope.io.pickles.unpickler import read_pickle

from ..formats.ragged import RowsByName, write_ragged

Kind = Literal["expert", "words", "captions", "chosen"]
_Array = npt.NDArray[Any]
_MOST_CAPTIONS = 1 << 31
_GREATEST = float(np.finfo(np.float32).max)  # the arrays are written as float32


def convert(kind: Kind, source: Path, out: Path, progress: OnStep | None = None) -> int:
    """Convert one pickle and return the number of entries written.

    Kinds: `expert`, the features of one expert; `words`, the vectors of the words of captions; `captions`,
    raw-captions.pkl; `chosen`, jsfusion_val_caption_idx.pkl.

    Args:
        kind: of the pickle.
        source: the pickle.
        out: the file to write, or the stem of ragged arrays.
        progress: called after each array of `expert` and `words`.

    Raises:
        InputError: the pickle is damaged, has other objects, or its content is malformed.
    """
    content = expect(read_pickle(source), dict, str(source))
    if not content:
        raise InputError(f"{source} must hold an entry for each video; got an empty dict")
    if kind == "expert":
        return _convert_expert(content, source, out, progress)
    if kind == "words":
        return _convert_words(content, source, out, progress)
    if kind == "captions":
        return _convert_captions(content, source, out)
    return _convert_chosen(content, source, out)


def _convert_expert(content: Mapping[Any, Any], source: Path, out: Path, progress: OnStep | None) -> int:
    """Convert video -> (T, d) or (d,) features, or NaN where missing, to ragged arrays with the stem `out`."""
    arrays = {_video(key, source): _frames(value, f"{key!r} of {source}") for key, value in content.items()}
    return _write_arrays(arrays, source, out, progress)


def _convert_words(content: Mapping[Any, Any], source: Path, out: Path, progress: OnStep | None) -> int:
    """Convert video -> list of (W, d) word vectors, one a caption, to ragged arrays with the names `VIDEO#K`."""
    arrays = {}
    for key, rows in content.items():
        where = f"{key!r} of {source}"
        for k, row in enumerate(rows if isinstance(rows, list | tuple) else expect(rows, list, where)):
            arrays[f"{_video(key, source)}#{k}"] = _frames(row, f"caption {k} of {where}")
    return _write_arrays(arrays, source, out, progress)


def _convert_captions(content: Mapping[Any, Any], source: Path, out: Path) -> int:
    """Convert video -> captions, texts or lists of words, to a JSON file in the form of videodatainfo."""
    sentences: list[dict[str, Any]] = []
    for key, rows in content.items():
        for k, row in enumerate(expect(rows, list, f"{key!r} of {source}")):
            text = _join_words(row, f"caption {k} of {key!r} in {source}")
            sentences.append({"video_id": _video(key, source), "sen_id": len(sentences), "caption": text})
    write_text(out, json.dumps({"sentences": sentences}) + "\n")
    return len(sentences)


def _convert_chosen(content: Mapping[Any, Any], source: Path, out: Path) -> int:
    """Convert video -> number of the one caption that it is tested with to a JSON file of the same form."""
    numbers = {}
    for key, value in content.items():
        number = value[0] if isinstance(value, list | tuple) and len(value) == 1 else value
        if isinstance(number, bool) or not isinstance(number, int | np.integer) or not 0 <= number < _MOST_CAPTIONS:
            raise InputError(f"{key!r} of {source} must be the number of a caption; got {shorten(value)}")
        numbers[_video(key, source)] = int(number)
    write_text(out, json.dumps(numbers, indent=0) + "\n")
    return len(numbers)


def _write_arrays(arrays: Mapping[str, _Array], source: Path, out: Path, progress: OnStep | None) -> int:
    widths = {value.shape[1]: name for name, value in arrays.items() if len(value)}
    if len(widths) != 1:
        got = " and ".join(f"{width} ({name})" for width, name in list(widths.items())[:2]) or "nothing but NaN"
        raise InputError(f"features of {source} must be of one width; got {got}")
    width = next(iter(widths))
    lengths = {name: len(value) for name, value in arrays.items()}
    write_ragged(out, RowsByName(lengths, width, lambda name: arrays[name].reshape(-1, width)), progress)
    return len(arrays)


def _frames(value: object, where: str) -> _Array:
    """Return (T, d); T = 0 for None, NaN, empty arrays, and arrays that begin with NaN."""
    if value is None or (isinstance(value, float | np.floating) and math.isnan(value)):
        return np.zeros((0, 0), np.float32)
    if not isinstance(value, np.ndarray) or value.dtype.kind not in "fiu" or value.ndim not in (1, 2):
        got = f"{value.dtype} {value.shape}" if isinstance(value, np.ndarray) else type(value).__name__
        raise InputError(f"{where} must be an array (T, d) or (d,), or NaN; got {got}")
    if not value.size or np.isnan(value.flat[0]):
        return np.zeros((0, 0), np.float32)
    rows = value.reshape(-1, value.shape[-1])
    if not np.isfinite(rows).all() or np.abs(rows).max() > _GREATEST:
        form = "finite and of 32 bits, or begin with NaN where missing"
        raise InputError(f"{where} must be {form}; got NaN, infinity or a greater number")
    return rows


def _video(key: object, source: Path) -> str:
    if not isinstance(key, str) or not key:
        raise InputError(f"videos of {source} must have texts as names; got {shorten(key)}")
    return key


def _join_words(row: object, where: str) -> str:
    pieces = row if isinstance(row, list | tuple) else [row]
    words = [piece.decode("utf-8", "replace") if isinstance(piece, bytes) else piece for piece in pieces]
    return " ".join(expect(word, str, where) for word in words)
