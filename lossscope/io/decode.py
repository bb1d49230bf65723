"""Plain values of TOML and JSON files -> typed dataclasses; what does not fit is named in words."""

from __future__ import annotations

import dataclasses
import difflib
import json
import typing
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from lossscope.errors import InputError

from .limits import require_shallow
from .reading import naming, show_path
from .text_files import read_utf8

T = TypeVar("T")
_LONGEST = 200  # letters of a value in a message
_UNKNOWN = ("extra_forbidden", "unexpected_keyword_argument")  # pydantic's names of an unknown key
_WORDS = {
    "bool": "true or false",
    "dataclass": "a table",
    "dict": "a table",
    "float": "a number",
    "int": "a whole number",
    "list": "a list",
    "string": "text in quotes",
    "tuple": "a list",
}


def read_toml(path: Path | str, what: str = "a readable TOML file") -> dict[str, Any]:
    """Return the content of a TOML file.

    Raises InputError when it is missing, no ordinary file, not UTF-8, not TOML, or nested more than 100 levels deep;
    `what` says what it must be.
    """
    import tomllib

    name = show_path(path)
    with naming(path, what):
        text = read_utf8(path)
    try:
        values = tomllib.loads(text)
    except RecursionError:
        raise InputError(f"{name} must be {what}; it has too many nested levels") from None
    except ValueError as error:  # a TOMLDecodeError is one, and so is a number of thousands of digits
        raise InputError(f"{name} must be {what}; {error}") from error
    require_shallow(values, name)
    return values


def decode(kind: type[T], value: object, where: str) -> T:
    """Return `value` as an object of the dataclass `kind`, nested ones included.

    Nothing is converted but whole numbers to floats and lists to tuples.

    Args:
        kind: a dataclass.
        value: dicts, lists, texts, numbers, as TOML and JSON give them.
        where: what messages call the value: the path of a file.

    Raises:
        InputError: an unknown or missing key, a value of another type, or what the dataclass itself refuses.
    """
    return typing.cast("T", _validate(kind, value, where))


def decode_some(kind: Any, value: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Return those fields of a dataclass that `value` has, each of the type that the dataclass gives it.

    Raises InputError for an unknown key and a value of another type; what the fields mean together is not checked.
    """
    return typing.cast("dict[str, Any]", _validate(_partial(kind), value, where))


def _validate(kind: Any, value: object, where: str) -> Any:
    from pydantic import ValidationError

    require_shallow(value, where)
    try:
        plain = json.dumps(value, default=lambda odd: {type(odd).__name__: str(odd)}, ensure_ascii=False)
        text = plain.encode("utf-8")
    except (ValueError, RecursionError) as error:  # halves of surrogate pairs, numbers of thousands of digits
        raise InputError(f"{where} must hold ordinary texts and numbers; {error}") from None
    try:
        return _adapter(kind).validate_json(text, strict=True)
    except ValidationError as errors:
        found = errors.errors()
        first = next(
            (problem for problem in found if problem["type"] in _UNKNOWN), found[0]
        )  # it explains what is missing
        cause = first.get("ctx", {}).get("error")
        if isinstance(cause, InputError):
            reason = str(cause)
            raise type(cause)(reason if where in reason else f"{where} must be of values that fit; {reason}") from None
        raise InputError(_message(kind, first, where)) from None


@cache
def _adapter(kind: Any) -> Any:
    from pydantic import TypeAdapter

    for part in _dataclasses(kind):
        part.__pydantic_config__ = {"extra": "forbid"}
    return TypeAdapter(kind)


@cache
def _partial(kind: Any) -> Any:
    """A TypedDict with the fields of a dataclass, none of them required."""
    from typing_extensions import TypedDict

    hints = typing.get_type_hints(kind)
    fields = {item.name: hints[item.name] for item in dataclasses.fields(kind)}
    make: Any = TypedDict
    partial = make(kind.__name__, fields, total=False)
    partial.__pydantic_config__ = {"extra": "forbid"}
    return partial


def _dataclasses(kind: Any) -> Iterable[Any]:
    """A dataclass and those that its fields hold."""
    if dataclasses.is_dataclass(kind):
        yield kind
        for hint in typing.get_type_hints(kind).values():
            yield from _dataclasses(hint)
    for part in typing.get_args(kind):
        yield from _dataclasses(part)


def _message(kind: Any, error: Mapping[str, Any], where: str) -> str:
    """What was wrong, what was expected, what came."""
    path = [part for part in error["loc"] if not (isinstance(part, str) and part.startswith(("function-", "nullable")))]
    what, got = _place(path, where), error["input"]
    if error["type"] in _UNKNOWN:
        return _unknown_key(kind, path, where)
    if error["type"] in ("missing", "missing_argument"):
        return f"{what} must be given; it is missing"
    if error["type"] == "literal_error":
        expected = error["ctx"]["expected"].replace("'", "").replace(" or ", ", ")
        return f"{what} must be one of {expected}; got {_brief(got)}"
    expected = _WORDS.get(error["type"].removesuffix("_type").removesuffix("_parsing"), error["msg"])
    return f"{what} must be {expected}; got {_brief(got)}"


def _brief(value: object) -> str:
    """Return a value as it is written in Python, at most 200 letters of it."""
    try:
        text = repr(value)
    except ValueError:  # a number of more digits than Python writes
        return type(value).__name__
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."


def _place(path: list[Any], where: str) -> str:
    """`epochs of FILE`, `spec of encoders 2 of FILE`: the last key first."""
    words: list[str] = []
    for part in path:
        if isinstance(part, int) and words:
            words[-1] += f" {part + 1}"
        else:
            words.append(str(part))
    return " of ".join([*reversed(words), where])


def _unknown_key(kind: Any, path: list[Any], where: str) -> str:
    names = _fields_at(kind, path[:-1])
    near = difflib.get_close_matches(str(path[-1]), names, n=1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    return f"keys of {_place(path[:-1], where)} must be of {', '.join(names)}; got {str(path[-1])!r}{hint}"


def _fields_at(kind: Any, path: list[Any]) -> list[str]:
    """The names that the value at a path may have."""
    for part in path:
        kinds = [kind, *typing.get_args(kind)]
        for option in kinds:
            if dataclasses.is_dataclass(option) and isinstance(part, str):
                kind = typing.get_type_hints(option).get(part, Any)
    for option in (kind, *typing.get_args(kind)):
        if dataclasses.is_dataclass(option):
            return [item.name for item in dataclasses.fields(option)]
    return list(getattr(kind, "__annotations__", {}))
