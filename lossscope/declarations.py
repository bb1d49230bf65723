"""What files declare, read from their text: entries of a registry, tables, pictures, chapters. None is imported."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from .registry import NOT_ENTRIES, folder
from .spec import Spec, parse_finite

_HOME = Path(__file__).parent
DRAWN = {"tables": ("tables", "build"), "pictures": ("plots", "draw"), "chapters": ("report/chapters", "build")}
"""Kind that is no registry -> its folder, and the function that makes a file of it one of them."""


@dataclass(frozen=True)
class OptionField:
    """One option of an entry: a field of its class."""

    name: str
    default: Any  # `...` where there is none
    help: str  # the comment beside the field
    choices: tuple[str, ...]  # the words it may be, where only some may


@dataclass(frozen=True)
class Declaration:
    """One file."""

    name: str
    question: str  # first line of the file
    text: str  # docstring of its class, or of the file
    fields: tuple[OptionField, ...]
    constants: dict[str, Any]  # class variables

    @property
    def source(self) -> str:
        """Where it comes from, on one line; empty where the docstring names no source."""
        return " ".join(self.text.partition("Source: ")[2].split("\n\n")[0].split())

    @property
    def options(self) -> str:
        """`key=default,...`"""
        return ",".join(f"{field.name}={field.default}" for field in self.fields)


@cache
def declarations(kind: str) -> tuple[Declaration, ...]:
    """Return every file of a registry, or of DRAWN, by name."""
    return tuple(map(_read, _files(kind)))


def published_caveat(spec: str) -> str | None:
    """Return what to say where the objective stands beside numbers of its paper; None where nothing needs to be said.

    >>> published_caveat("rsp:a2=0.5"), published_caveat("triplet-sh")
    (None, None)
    """
    parsed = Spec.parse(spec)
    found = declaration("objectives", parsed.name.replace("-", "_").lower())
    if found is None or not found.constants.get("caveat"):
        return None
    holds_for = found.constants.get("caveat_of", ())
    defaults = {field.name: field.default for field in found.fields if field.name in holds_for}
    if any(parse_finite(parsed.values.get(name, str(default))) != default for name, default in defaults.items()):
        return None
    return str(found.constants["caveat"])


def declaration(kind: str, name: str) -> Declaration | None:
    """Return the file of a name, None where there is none; no other file is parsed."""
    return next((_read(path) for path in _files(kind) if path.stem == name), None)


@cache
def _files(kind: str) -> tuple[Path, ...]:
    if kind in DRAWN:
        home, function = DRAWN[kind]
        files = [path for path in (_HOME / home).glob("*.py") if _defines(path, function)]
    else:
        files = [path for path in folder(kind).glob("*.py") if path.stem not in NOT_ENTRIES]
    return tuple(path for path in sorted(files) if not path.stem.startswith("_"))


def _defines(path: Path, function: str) -> bool:
    return re.search(rf"^(def )?{function}\b", path.read_text(encoding="utf-8"), re.MULTILINE) is not None


@cache
def _read(path: Path) -> Declaration:
    text = path.read_text(encoding="utf-8")
    tree = ast.parse(text)
    module_text = ast.get_docstring(tree) or ""
    classes = [node for node in tree.body if isinstance(node, ast.ClassDef) and not node.name.startswith("_")]
    docstring = (ast.get_docstring(classes[0]) if classes else None) or module_text
    members = list(_members(classes[0])) if classes else []
    lines = text.splitlines()
    fields = tuple(_field(item, lines) for item in members if not _is_constant(item))
    constants = {_name(item): _value(item) for item in members if _is_constant(item)}
    return Declaration(path.stem, module_text.splitlines()[0] if module_text else "", docstring, fields, constants)


def _members(node: ast.ClassDef) -> Iterator[ast.AnnAssign]:
    return (item for item in node.body if isinstance(item, ast.AnnAssign))


def _is_constant(item: ast.AnnAssign) -> bool:
    return "ClassVar" in ast.unparse(item.annotation)


def _field(item: ast.AnnAssign, lines: list[str]) -> OptionField:
    line = lines[(item.end_lineno or item.lineno) - 1].encode()[item.end_col_offset or 0 :].decode()
    return OptionField(_name(item), _value(item), line.partition("#")[2].strip(), _choices(item.annotation))


def _name(item: ast.AnnAssign) -> str:
    return ast.unparse(item.target)


def _value(item: ast.AnnAssign) -> Any:
    """The value, `...` where there is none, the text of what is no literal."""
    if item.value is None:
        return ...
    try:
        return ast.literal_eval(item.value)
    except ValueError:
        return ast.unparse(item.value)


def _choices(annotation: ast.expr) -> tuple[str, ...]:
    """The words of a Literal."""
    if not (isinstance(annotation, ast.Subscript) and ast.unparse(annotation.value) == "Literal"):
        return ()
    inner = annotation.slice
    return tuple(str(ast.literal_eval(item)) for item in (inner.elts if isinstance(inner, ast.Tuple) else [inner]))
