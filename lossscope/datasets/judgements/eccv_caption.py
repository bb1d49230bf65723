"""image_to_caption.json and caption_to_image.json of ECCV Caption: {query: [positives]}, numbers of COCO."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from lossscope.errors import InputError
from lossscope.io.json_files import expect, read_json, shorten
from lossscope.io.reading import show_path

from .base import Judgements

_QUERIES: dict[str, Literal["first", "second"]] = {"image_to_caption": "first", "caption_to_image": "second"}


def read_eccv_judgements(path: str) -> Judgements:
    """Return the pairs of images and captions of COCO that a file of ECCV Caption lists, all of them positives.

    Queries of its measures are the keys alone: images in eccv_image_to_caption.json, captions in
    eccv_caption_to_image.json. The same repository has CxC's positives in this form, in cxc_*.json.
    Raises InputError where the file's name does not tell which side the keys are, and for anything but whole numbers.

    Source: Chun, Kim, Park, Chang and Oh 2022 (ECCV Caption).
    """
    where = show_path(path)
    side = next((side for name, side in _QUERIES.items() if name in Path(path).name), None)
    if side is None:
        raise InputError(
            f"{where} must have {' or '.join(_QUERIES)} in its name, as ECCV Caption's files; the name says "
            "whether keys are images or captions. For other judgements write a CSV file with columns image "
            "and caption"
        )
    keys: list[str] = []
    values: list[str] = []
    for key, listed in read_json(Path(path)).items():
        query, entry = _number(key, f"keys of {where}"), f"{shorten(key)} of {where}"
        for value in expect(listed, list, entry):
            keys.append(query)
            values.append(_number(value, f"values at {entry}"))
    first, second = (keys, values) if side == "first" else (values, keys)
    rule = f"{Path(where).name} lists them"
    yes = [True] * len(first)
    return Judgements(where, first, second, yes, rule, None, ("id", "id"), side, is_coco=True)


def _number(value: object, what: str) -> str:
    """Return a whole number, or its text, as text. Raises InputError for anything else."""
    text = str(value) if isinstance(value, int | str) and not isinstance(value, bool) else ""
    if not (text.isascii() and text.isdecimal() and len(text) <= 12):
        raise InputError(f"{what} must be numbers of COCO's images and captions; got {shorten(value)}")
    return str(int(text))
