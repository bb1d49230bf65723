"""Read JSON documents written by other programs; every deviation is an InputError that says where it is."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any, TypeVar

from lossscope.errors import InputError

from .limits import require_letters, require_shallow
from .reading import show_path
from .text_files import read_utf8

T = TypeVar("T")
_HALF = re.compile(r"\\u[dD][89a-fA-F]")  # of a surrogate pair, as JSON writes it


def read_json(path: Path) -> dict[str, Any]:
    """Read a JSON file that holds an object.

    Raises InputError when the file is missing, not UTF-8 text, not JSON, cut off, or holds no object.
    """
    return expect(read_json_value(path), dict, str(path))


def read_json_value(path: Path) -> object:
    """Read any JSON file.

    Raises InputError when it is missing, no ordinary file, not UTF-8 text, not JSON, cut off, nested more than 100
    levels deep, or gives one key of an object twice.
    """
    return parse_json(read_utf8(path), show_path(path))


def parse_json(text: str, where: str) -> object:
    """Return the value of a JSON text. Raises InputError, naming `where`, as read_json_value does."""
    try:
        value = json.loads(text, object_pairs_hook=_object_of)
    except json.JSONDecodeError as problem:
        got = f"{problem.msg} at line {problem.lineno}, column {problem.colno}"
        raise InputError(f"{where} must be whole JSON; got {got}: fetch the file again if it is cut off") from None
    except _DoubledKey as problem:
        raise InputError(f"{where} must give each key of an object once; got {shorten(problem.key)} twice") from None
    except ValueError as problem:
        raise InputError(f"{where} must be JSON of ordinary numbers; got {problem}") from None
    except RecursionError:
        raise InputError(f"{where} must be JSON of ordinary depth; got thousands of nested levels") from None
    require_shallow(value, where)
    if _HALF.search(text):
        require_letters(json.dumps(value, ensure_ascii=False), f"texts of {where}")
    return value


class _DoubledKey(ValueError):
    """An object has a key twice."""

    def __init__(self, key: str) -> None:
        super().__init__(key)
        self.key = key


def _object_of(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object of JSON. Raises _DoubledKey for a key that is given twice, of which json keeps the last."""
    members = dict(pairs)
    if len(members) < len(pairs):
        counts = Counter(key for key, _ in pairs)
        raise _DoubledKey(counts.most_common(1)[0][0])
    return members


def expect(value: object, kind: type[T], where: str) -> T:
    """Return `value`. Raises InputError naming `where` unless it is a `kind` (a bool is no int)."""
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise InputError(f"{where} must be {_NAMES.get(kind, kind.__name__)}; got {shorten(value)}")
    return value


def member(record: object, key: str, kind: type[T], where: str) -> T:
    """Return `record[key]`. Raises InputError naming `where` and the key when it is missing or not a `kind`."""
    return expect(_value_at(record, key, where), kind, f"{key!r} of {where}")


def identifier(record: object, key: str, where: str) -> str:
    """Return `record[key]`, a whole number or a text, as text. Raises InputError naming `where` and the key."""
    value = _value_at(record, key, where)
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise InputError(f"{key!r} of {where} must be a whole number or text; got {shorten(value)}")
    return str(value)


def _value_at(record: object, key: str, where: str) -> object:
    members = expect(record, dict, where)
    if key not in members:
        raise InputError(f"{where} must have the key {key!r}; got {', '.join(map(repr, list(members)[:8])) or 'none'}")
    return members[key]


def shorten(value: object) -> str:
    """Return a value as text for a message: at most 60 characters, or its type where it cannot be printed."""
    try:
        text = ascii(value)
    except (ValueError, RecursionError):  # a number of more digits than Python writes, or endless nesting
        return type(value).__name__
    return text if len(text) <= 60 else f"{text[:57]}..."


_NAMES: dict[type, str] = {dict: "an object", list: "a list", str: "text", int: "a whole number"}
