"""Read JSON documents written by other programs; every deviation is an InputError that says where it is."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import chain
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
        line = f"line {problem.lineno}, " if "\n" in text else ""
        got = f"{problem.msg} at {line}column {problem.colno}"
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


def parse_json_lines(lines: Sequence[str], first: int, file: str) -> tuple[Sequence[int], list[dict[str, Any]]]:
    """Return the numbers of lines that hold an object each, and the objects; empty lines have none.

    Raises InputError, naming file and line, as read_json does of a file.

    Args:
        lines: without their ends.
        first: number of the first one.
        file: as messages name it.
    """
    if any(line.endswith("\r") for line in lines[:1]):
        lines = [line.removesuffix("\r") for line in lines]
    try:
        decoded = list(map(_DECODER.raw_decode, lines))
    except (ValueError, RecursionError):
        return _parse_one_by_one(lines, first, file)
    objects = [value for value, _ in decoded]
    is_whole = [end for _, end in decoded] == list(map(len, lines))
    if not is_whole or not {dict}.issuperset(map(type, objects)) or _has_half(lines, objects):
        return _parse_one_by_one(lines, first, file)
    return range(first, first + len(lines)), objects


def _has_half(lines: Sequence[str], objects: Sequence[dict[str, Any]]) -> bool:
    """Return whether half of a surrogate pair is in decoded lines; those where none is escaped are passed over."""
    suspects = [number for number, line in enumerate(lines) if "\\" in line and _HALF.search(line)]
    try:
        for part in chain.from_iterable(chain.from_iterable(objects[number].items()) for number in suspects):
            _ = (part if isinstance(part, str) else json.dumps(part, ensure_ascii=False)).encode()
    except UnicodeEncodeError:
        return True
    return False


def _parse_one_by_one(lines: Iterable[str], first: int, file: str) -> tuple[list[int], list[dict[str, Any]]]:
    numbers: list[int] = []
    objects: list[dict[str, Any]] = []
    for number, line in enumerate(map(str.strip, lines), first):
        if line:
            where = f"line {number} of {file}"
            numbers.append(number)
            objects.append(expect(parse_json(line, where), dict, where))
    return numbers, objects


class _DoubledKey(ValueError):
    """An object has a key twice."""

    def __init__(self, key: str) -> None:
        super().__init__(key)
        self.key = key


def _object_of(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object of JSON. Raises _DoubledKey for a key that is given twice; json would keep the last."""
    members = dict(pairs)
    if len(members) < len(pairs):
        counts = Counter(key for key, _ in pairs)
        raise _DoubledKey(counts.most_common(1)[0][0])
    return members


_DECODER = json.JSONDecoder(object_pairs_hook=_object_of)


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
