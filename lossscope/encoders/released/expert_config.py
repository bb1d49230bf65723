"""The nested configurations in files of MMT and CE, with checks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lossscope.errors import InputError
from lossscope.io.json_files import shorten

from .options import read_number


def nested_options(options: Mapping[str, Any], *names: str) -> Mapping[str, Any]:
    """Return the options below these names, {} where there are none. Raises InputError when they are no mapping."""
    for name in names:
        value = options.get(name, {})
        if not isinstance(value, Mapping):
            raise InputError(f"option {name} of the file must hold further options; got {shorten(value)}")
        options = value
    return options


def parse_counts(option: str, text: str) -> dict[str, int]:
    """Return `audio=8+ocr=43` as a dict, {} for an empty text. Raises InputError for any other text.

    >>> parse_counts("clusters", "audio=8+ocr=43")
    {'audio': 8, 'ocr': 43}
    """
    counts: dict[str, int] = {}
    for part in filter(None, text.split("+")):
        name, _, number = part.partition("=")
        if not name or name in counts or not (number.isascii() and number.isdigit()) or int(number) < 1:
            raise InputError(f"{option} must be EXPERT=NUMBER+..., each expert once and from 1 on; got {text!r}")
        counts[name] = int(number)
    return counts


def read_margin(options: Mapping[str, Any], default: float) -> float:
    """Return the margin of the loss. Raises InputError when it is no finite number >= 0."""
    margin = read_number(nested_options(options, "loss", "args"), "margin", default)
    if margin < 0:
        raise InputError(f"option margin of the file must be a finite number >= 0; got {margin}")
    return margin
