"""Shorten specs for a table: leave out defaults, and values that all specs of the same name share."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from lossscope.declarations import declaration
from lossscope.errors import SpecError
from lossscope.spec import Spec, format_value

_NONE = "none"
KINDS = {"objective": "objectives", "counted with": "objectives", "encoder": "encoders", "data": "datasets"}
"""Heading of a column -> registry of its specs."""


def shorten(texts: Iterable[str], kind: str) -> dict[str, str]:
    """Return spec -> its shortest form that tells it from the others; texts that are not declared specs are left out.

    The short form leaves out a value that equals the default, unless specs of the same name differ in it, or it is the
    only value of an objective: its temperature or margin. A loss in a user's file goes by its name alone, unless
    another loss has the same name.

    Args:
        texts: specs of one column.
        kind: their registry.

    >>> shorten(["ntxent:tau=0.1", "unified:gamma=5,margin=0.2"], "objectives")
    {'ntxent:tau=0.1': 'ntxent:tau=0.1', 'unified:gamma=5,margin=0.2': 'unified:gamma=5'}
    """
    parsed = {text: spec for text in dict.fromkeys(texts) if (spec := _parse(text, kind)) is not None}
    by_name: dict[str, list[Spec]] = {}
    for spec in parsed.values():
        by_name.setdefault(spec.name, []).append(spec)
    short = {text: _short(spec, by_name[spec.name], kind) for text, spec in parsed.items()}
    return _without_files(short)


def _without_files(short: dict[str, str]) -> dict[str, str]:
    """Leave out the file of `file.py:name` unless something else has this name."""
    members = {text: spec.partition(".py:")[2] or spec for text, spec in short.items()}
    taken = Counter(members.values())
    return {text: members[text] if taken[members[text]] == 1 else spec for text, spec in short.items()}


def _short(spec: Spec, others: list[Spec], kind: str) -> str:
    defaults = _defaults_of(spec.name, kind) or {}
    full = [{**defaults, **other.values} for other in others]
    values = {**defaults, **spec.values}
    differs = {key for key in values if len({other.get(key) for other in full}) > 1}
    stated = {key for key, value in values.items() if value != _NONE or defaults.get(key) != _NONE}
    alone = kind == "objectives" and len(stated) == 1 and ".py:" not in spec.name
    kept = {
        key: value
        for key, value in values.items()
        if (alone and key in stated) or key in differs or value != defaults.get(key)
    }
    return str(Spec(spec.name, kept))


def _parse(text: str, kind: str) -> Spec | None:
    """Return the spec with plain values; None for a text that is not a spec, or whose name is not declared."""
    try:
        spec = Spec.parse(text)
    except SpecError:
        return None
    name = spec.name if ".py:" in spec.name else spec.name.replace("-", "_")
    known = _defaults_of(name, kind) is not None
    return Spec(name, {key: _plain(value) for key, value in spec.values.items()}) if known else None


def _defaults_of(name: str, kind: str) -> dict[str, str] | None:
    """Return field -> default as written in a spec, from the registry or from the user's `file.py:name`."""
    path, is_file, member = name.rpartition(".py:")
    return _read_defaults(Path(f"{path}.py"), member) if is_file else _declared_defaults(kind, name)


def _declared_defaults(kind: str, name: str) -> dict[str, str] | None:
    """Return the defaults of a file of a registry, read as text; None if there is no such file."""
    declared = declaration(kind, name)
    if declared is None:
        return None
    return {field.name: _value(field.default) for field in declared.fields if field.default is not ...}


def _read_defaults(file: Path, member: str) -> dict[str, str] | None:
    """Return the defaults of a function, or of a class or its __init__, read as text; None if reading fails."""
    try:
        body = ast.parse(file.read_text(encoding="utf-8")).body
    except (OSError, SyntaxError, UnicodeDecodeError):
        return None
    nodes = [node for node in body if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name == member]
    return dict(pair for node in nodes for pair in _literals(node))


def _literals(node: ast.FunctionDef | ast.ClassDef) -> Iterator[tuple[str, str]]:
    if isinstance(node, ast.ClassDef):
        for item in node.body:
            if isinstance(item, ast.AnnAssign) and isinstance(item.value, ast.Constant):
                yield ast.unparse(item.target), _value(item.value.value)
            elif isinstance(item, ast.FunctionDef) and item.name == "__init__":
                yield from _literals(item)
        return
    named = [*node.args.posonlyargs, *node.args.args]
    pairs = [*zip(named[len(named) - len(node.args.defaults) :], node.args.defaults, strict=True)]
    for argument, default in [*pairs, *zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True)]:
        if isinstance(default, ast.Constant):
            yield argument.arg, _value(default.value)


def _plain(text: str) -> str:
    """Return `0.1` for `0.10`, and other texts unchanged."""
    try:
        return format_value(float(text))
    except ValueError:
        return text


def _value(default: object) -> str:
    return "none" if default is None else _plain(format_value(default))
