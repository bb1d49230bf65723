"""The text of a spec, `name:key=value,...`: reading, quoting, writing, and turning values into typed ones."""

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


@dataclass(frozen=True)
class Spec:
    """A parsed spec: a name and raw values in the order given.

    >>> str(Spec.parse('unified:gamma=60,margin=0.2'))
    'unified:gamma=60,margin=0.2'
    >>> Spec.parse('karpathy:root="a,b",name=flickr8k').values['root']
    'a,b'
    """

    name: str
    values: dict[str, str] = field(default_factory=dict)

    @classmethod
    def parse(cls, text: str) -> Spec:
        """Read `name[:key=value,...]`. Raises SpecError saying which piece can not be read."""
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

    def changed(self, changes: Iterable[str]) -> Spec:
        """The same with some values replaced, each `key=value`. Raises SpecError for a change of another form.

        >>> str(Spec.parse("xvlm:score=itc,dim=64").changed(["score=itm"]))
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


def written(value: Any) -> str:
    """A field's value as the text of a spec; reading it back gives the same value."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return f"{value:g}" if float(f"{value:g}") == value else repr(value)
    return str(value)


def converted(text: str, wanted: Any, where: str) -> Any:
    """The text as a value of the type hint `wanted`. Raises SpecError that names `where` and what would do."""
    options = alternatives(wanted)
    if type(None) in options and text.lower() == "none":
        return None
    for option in options:
        if typing.get_origin(option) is typing.Literal:
            choices = typing.get_args(option)
            same = [c for c in choices if str(c).replace("_", "-") == text.replace("_", "-")]
            if same:
                return same[0]
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


def finite(text: str) -> float:
    """A number. Raises ValueError for infinity and NaN too."""
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(text)
    return value


_READERS: dict[Any, typing.Callable[[str], Any]] = {
    bool: _boolean,
    int: int,
    float: finite,
    Path: Path,
    str: str,
}


def alternatives(wanted: Any) -> tuple[Any, ...]:
    """The types of a union, or the one type there is."""
    if typing.get_origin(wanted) in (typing.Union, types.UnionType):
        return typing.get_args(wanted)
    return (wanted,)


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
