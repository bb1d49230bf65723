"""Specs as short as a table needs them: without defaults, and without what all of one name share."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from lossscope.declarations import declaration
from lossscope.errors import SpecError
from lossscope.spec import Spec, format_value

KINDS = {"objective": "objectives", "counted with": "objectives", "encoder": "encoders", "data": "datasets"}
"""Heading of a column -> the registry that its specs are of."""


def shorten(texts: Iterable[str], kind: str) -> dict[str, str]:
    """Return spec -> its shortest form that tells it from the others; what no registry or file declares is left out.

    A value that equals the default is left out, unless specs of the same name differ in it, or it is the one that an
    objective has: its temperature or margin. A loss in a file of the user is called by its name alone, where no other
    has it.

    Args:
        texts: specs of one column.
        kind: the registry they are of.

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
    """Leave out the file of `file.py:name`, where nothing else has this name."""
    members = {text: one.partition(".py:")[2] or one for text, one in short.items()}
    taken = Counter(members.values())
    return {text: members[text] if taken[members[text]] == 1 else one for text, one in short.items()}


def _short(spec: Spec, others: list[Spec], kind: str) -> str:
    defaults = _defaults_of(spec.name, kind) or {}
    full = [{**defaults, **other.values} for other in others]
    own = {**defaults, **spec.values}
    differs = {key for key in own if len({other.get(key) for other in full}) > 1}
    alone = kind == "objectives" and len(own) == 1 and ".py:" not in spec.name
    kept = {key: value for key, value in own.items() if alone or key in differs or value != defaults.get(key)}
    return str(Spec(spec.name, kept))


def _parse(text: str, kind: str) -> Spec | None:
    """Return the spec with plain values; None for a text that is none, or whose name nobody declares."""
    try:
        spec = Spec.parse(text)
    except SpecError:
        return None
    name = spec.name if ".py:" in spec.name else spec.name.replace("-", "_")
    known = _defaults_of(name, kind) is not None
    return Spec(name, {key: _plain(value) for key, value in spec.values.items()}) if known else None


def _defaults_of(name: str, kind: str) -> dict[str, str] | None:
    """Return field -> default as it stands in a spec, of a file of the registry or of the user's `file.py:name`."""
    path, is_file, member = name.rpartition(".py:")
    return _read_defaults(Path(f"{path}.py"), member) if is_file else _declared_defaults(kind, name)


def _declared_defaults(kind: str, name: str) -> dict[str, str] | None:
    """Return the defaults of one file of a registry, read as text; None where there is none of this name."""
    one = declaration(kind, name)
    if one is None:
        return None
    return {field.name: _value(field.default) for field in one.fields if field.default is not ...}


def _read_defaults(file: Path, member: str) -> dict[str, str] | None:
    """Return the defaults of a function, or of a class or its __init__, read as text; None where it cannot be read."""
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
    """Return `0.1` for `0.10`, and other texts as they are."""
    try:
        return format_value(float(text))
    except ValueError:
        return text


def _value(default: object) -> str:
    return "none" if default is None else _plain(format_value(default))
