"""The nested configurations in files of MMT and CE, read with care."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lossscope.errors import InputError


def inside(options: Mapping[str, Any], *names: str) -> Mapping[str, Any]:
    """The part of a configuration below these names, {} where there is none. Raises InputError when it is no part."""
    for name in names:
        found = options.get(name, {})
        if not isinstance(found, Mapping):
            raise InputError(f"option {name} of the file must hold further options; got {found!r}")
        options = found
    return options


def whole(options: Mapping[str, Any], name: str, absent: int) -> int:
    """A whole number of at least 1; `absent` where the file has none. Raises InputError when it is none."""
    value = options.get(name, absent)
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise InputError(f"option {name} of the file must be a whole number of at least 1; got {value!r}")
    return value


def require_settings(options: Mapping[str, Any], settings: Mapping[str, Any]) -> None:
    """Raise InputError when an option that leaves no trace in the weights says that the file is of another model."""
    for name, wanted in settings.items():
        if name in options and options[name] != wanted:
            raise InputError(f"option {name} of the file must be {wanted!r} to be opened; got {options[name]!r}")


def counts(what: str, text: str) -> dict[str, int]:
    """`audio=8+ocr=43` as a dict, {} for nothing. Raises InputError, telling `what`, for anything else.

    >>> counts("clusters", "audio=8+ocr=43")
    {'audio': 8, 'ocr': 43}
    """
    found: dict[str, int] = {}
    for part in filter(None, text.split("+")):
        name, _, number = part.partition("=")
        if not name or name in found or not (number.isascii() and number.isdigit()) or int(number) < 1:
            raise InputError(f"{what} must be EXPERT=NUMBER+..., each expert once and from 1 on; got {text!r}")
        found[name] = int(number)
    return found


def margin_of(options: Mapping[str, Any], absent: float) -> float:
    """The margin of the loss. Raises InputError when it is no finite number >= 0."""
    value = inside(options, "loss", "args").get("margin", absent)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < float("inf"):
        raise InputError(f"option margin of the file must be a finite number >= 0; got {value!r}")
    return float(value)
