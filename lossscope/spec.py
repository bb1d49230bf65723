"""Specs, `name:key=value,...`: read and write their text, and convert their values to the types of fields."""

from __future__ import annotations

import math
import re
import types
import typing
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .errors import SpecError

MAX_LETTERS = 10_000  # of a spec
_MAX_WHOLE = 1 << 63  # of a whole number, either sign


@dataclass(frozen=True)
class Spec:
    """A parsed spec: a name and the text of each value, in the order given.

    >>> str(Spec.parse('unified:gamma=60,margin=0.2'))
    'unified:gamma=60,margin=0.2'
    >>> Spec.parse('karpathy:root="a,b",name=flickr8k').values['root']
    'a,b'
    """

    name: str
    values: dict[str, str] = field(default_factory=dict)

    @classmethod
    def parse(cls, text: str) -> Spec:
        """Read `name[:key=value,...]`, of at most 10,000 letters. Raises SpecError naming what cannot be read."""
        require_short(text)
        name, rest = _split_name(text.strip())
        values: dict[str, str] = {}
        for piece in _split_quoted(rest, text):
            key, equals, value = piece.partition("=")
            key = key.strip().replace("-", "_")
            if not equals or not key.isidentifier():
                raise SpecError(f"spec must be name:key=value,...; got {piece!r} in {text!r}")
            if key in values:
                raise SpecError(f"every key of a spec must be given once; got {key!r} twice in {text!r}")
            values[key] = _unquote(value.strip())
        return cls(name, values)

    def with_values(self, changes: Iterable[str]) -> Spec:
        """Return a copy with some values replaced, each given as `key=value`. Raises SpecError for any other form.

        >>> str(Spec.parse("xvlm:score=itc,dim=64").with_values(["score=itm"]))
        'xvlm:score=itm,dim=64'
        """
        values = dict(self.values)
        for change in changes:
            key, equals, value = change.partition("=")
            if not equals or not key.strip():
                raise SpecError(f"a change of {self.name} must be KEY=VALUE; got {change!r}")
            values[key.strip().replace("-", "_")] = value
        return Spec(self.name, values)

    def __str__(self) -> str:
        pairs = ",".join(f"{key}={_quote(value)}" for key, value in self.values.items())
        return f"{self.name}:{pairs}" if pairs else self.name


def require_short(text: str) -> None:
    """Raise SpecError for a spec of more than 10,000 letters, which no file and nobody writes."""
    if len(text) > MAX_LETTERS:
        raise SpecError(f"spec must be of at most {MAX_LETTERS} letters; got {len(text)}, which begin {text[:60]!r}")


def format_value(value: Any) -> str:
    """Return the text of a field's value in a spec; `parse_value` gives back the same value."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return f"{value:g}" if float(f"{value:g}") == value else repr(value)
    return str(value)


def parse_value(text: str, type_hint: Any, where: str) -> Any:
    """Convert text to a value of a type.

    Args:
        text: `none` is None where the type allows it.
        type_hint: a bool, int, float, str, Path or Literal, or a union of these.
        where: name of the value in messages, such as `ntxent:tau`.

    Raises:
        SpecError: when the text is no such value; the message lists what is allowed.
    """
    options = union_members(type_hint)
    if type(None) in options and text.lower() == "none":
        return None
    for option in options:
        if typing.get_origin(option) is typing.Literal:
            choices = typing.get_args(option)
            matching = [c for c in choices if str(c).replace("_", "-") == text.replace("_", "-")]
            if matching:
                return matching[0]
            raise SpecError(f"{where} must be one of {', '.join(map(str, choices))}; got {text!r}")
    for option in options:
        if option in _READERS:
            try:
                return _READERS[option](text)
            except ValueError:
                continue
    expected = " or ".join("none" if o is type(None) else getattr(o, "__name__", str(o)) for o in options)
    raise SpecError(f"{where} must be {expected}; got {text!r}")


def _boolean(text: str) -> bool:
    try:
        return {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}[text.lower()]
    except KeyError:
        raise ValueError(text) from None


def parse_finite(text: str) -> float:
    """Convert text to a float. Raises ValueError for infinity and NaN too."""
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(text)
    return value


def _whole_number(text: str) -> int:
    """Convert text to a whole number. Raises ValueError for one of more than 64 bits too."""
    value = int(text)
    if not -_MAX_WHOLE <= value < _MAX_WHOLE:
        raise ValueError(text)
    return value


_READERS: dict[Any, typing.Callable[[str], Any]] = {
    bool: _boolean,
    int: _whole_number,
    float: parse_finite,
    Path: Path,
    str: str,
}


def union_members(type_hint: Any) -> tuple[Any, ...]:
    """Return the types of a union, or the type itself."""
    if typing.get_origin(type_hint) in (typing.Union, types.UnionType):
        return typing.get_args(type_hint)
    return (type_hint,)


def _split_name(text: str) -> tuple[str, str]:
    if not text:
        raise SpecError("spec must be name:key=value,...; got an empty text")
    file = re.match(r"(?P<name>[^,=]*\.py:[A-Za-z_]\w*)(?::(?P<rest>.*))?$", text, re.S)
    if file:
        return file["name"], file["rest"] or ""
    name, _, rest = text.partition(":")
    return name.strip(), rest


def _split_quoted(rest: str, text: str) -> list[str]:
    pieces, current, quoted, escaped = [], "", False, False
    for char in rest:
        if char == "," and not quoted:
            pieces.append(current)
            current = ""
            continue
        current += char
        if char == '"' and not escaped:
            quoted = not quoted
        escaped = char == "\\" and quoted and not escaped
    if quoted:
        raise SpecError(f"quotes of a spec must be closed; got {text!r}")
    return [piece for piece in (*pieces, current) if piece.strip()]


def _quote(text: str) -> str:
    if text and not re.search(r'[,:="\\\s]', text):
        return text
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _unquote(text: str) -> str:
    if len(text) >= 2 and text[0] == text[-1] == '"':
        return re.sub(r"\\(.)", r"\1", text[1:-1])
    return text
