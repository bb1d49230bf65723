"""Runs and judgements in JSON: query -> document -> score, as BEIR, pytrec_eval, ranx and MTEB write them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from lossscope.errors import InputError

from .json_files import expect, parse_json, shorten
from .limits import MAX_TEXT_BYTES
from .locations import open_location
from .reading import reading, show_path
from .text_files import decode_utf8

_MODEL = "mteb_model_meta"  # of predictions of MTEB, beside subset -> split -> query -> document -> score
_LARGEST = 1e300  # a score is below it; NaN is not
_MOST = 4096  # letters of a file that are looked at
_NESTED = re.compile(r'\s*\{\s*"[^"]*"\s*:\s*\{\s*"[^"]*"\s*:\s*-?\d')


def is_json_run(path: Path) -> bool:
    """Return whether a file begins as query -> document -> number does, or as predictions of MTEB do."""
    return bool((start := _start(path)) and (_NESTED.match(start) or start.lstrip().startswith(f'{{"{_MODEL}"')))


def is_mteb_result(path: Path) -> bool:
    """Return whether a file begins as the scores of a task that MTEB evaluated."""
    return '"task_name"' in (start := _start(path)) and '"mteb_version"' in start


def iter_json_run(location: str) -> Iterator[tuple[str, str, float]]:
    """Yield query, document and score.

    Raises InputError for other content, for several splits in one file, and for a score that is no number.
    """
    name = show_path(location)
    with open_location(location) as file, reading(location, "a readable file"):
        content = file.read(MAX_TEXT_BYTES + 1)
    if len(content) > MAX_TEXT_BYTES:
        raise InputError(
            f"{name} must be of at most {MAX_TEXT_BYTES} bytes; it is larger: write a TREC run, lines of query Q0 "
            "document rank score tag"
        )
    for query, documents in _choose(expect(parse_json(decode_utf8(content, name), name), dict, name), name).items():
        for document, score in expect(documents, dict, f"{query!r} of {name}").items():
            is_number = isinstance(score, int | float) and not isinstance(score, bool)
            if not is_number or not abs(score) < _LARGEST:
                raise InputError(
                    f"{document!r} of {query!r} in {name} must be query -> document -> number; got {shorten(score)}"
                )
            yield query, document, score


def _choose(content: dict[str, Any], name: str) -> dict[str, Any]:
    """Return query -> documents, of predictions of MTEB those of their only split."""
    if _MODEL not in content:
        return content
    subsets = {key: expect(value, dict, f"{key!r} of {name}") for key, value in content.items() if key != _MODEL}
    splits = [(subset, split) for subset, by_split in subsets.items() for split in by_split]
    if len(splits) != 1:
        found = ", ".join(f"{subset} {split}" for subset, split in splits) or "none"
        raise InputError(
            f"{name} must have predictions of one split; it has {found}. Keep one, in Python: import json; "
            f"x = json.load(open({name!r})); json.dump(x[SUBSET][SPLIT], open('run.json', 'w'))"
        )
    ((subset, split),) = splits
    return expect(subsets[subset][split], dict, f"{split!r} of {name}")


def _start(path: Path) -> str:
    if path.suffix != ".json":
        return ""
    try:
        with open(path, encoding="utf-8-sig") as file:
            return file.read(_MOST)
    except (OSError, ValueError):  # a folder, or bytes that are no text
        return ""
