"""What the files of a registry declare, read from their text: nothing of them is imported."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Field:
    """One option of a registry's class. default: its value, `...` where there is none. told: what the class says of it.

    choices: the words that may be given, where only some may.
    """

    name: str
    default: Any
    told: str
    choices: tuple[str, ...]


@dataclass(frozen=True)
class Declared:
    """One file. what: its first line. told: the docstring of its class, or its own. constants: its class variables."""

    name: str
    what: str
    told: str
    fields: tuple[Field, ...]
    constants: dict[str, Any]

    @property
    def source(self) -> str:
        """Where it comes from, on one line; empty where it does not say."""
        return " ".join(self.told.partition("Source: ")[2].split("\n\n")[0].split())

    @property
    def options(self) -> str:
        """`key=default,...`"""
        return ",".join(f"{field.name}={field.default}" for field in self.fields)


@cache
def declared(kind: str) -> tuple[Declared, ...]:
    """Every file of a registry, by name."""
    from lossscope.registry import NOT_ENTRIES, folder

    entries = (path for path in folder(kind).glob("*.py") if path.stem not in NOT_ENTRIES)
    return tuple(_read(path) for path in sorted(entries) if not path.stem.startswith("_"))


@cache
def declared_tables() -> tuple[Declared, ...]:
    """Every table, by name: the files of lossscope/tables that have a function `build`."""
    import lossscope

    folder = Path(lossscope.__file__).parent / "tables"
    files = (path for path in sorted(folder.glob("*.py")) if not path.stem.startswith("_"))
    return tuple(
        _read(path) for path in files if re.search(r"^(def build\b|build\b.*=)", path.read_text("utf-8"), re.M)
    )


def _read(path: Path) -> Declared:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    own = ast.get_docstring(tree) or ""
    classes = [node for node in tree.body if isinstance(node, ast.ClassDef) and not node.name.startswith("_")]
    told = (ast.get_docstring(classes[0]) if classes else None) or own
    members = list(_members(classes[0])) if classes else []
    lines = path.read_text(encoding="utf-8").splitlines()
    fields = tuple(_field(item, told, lines) for item in members if "ClassVar" not in ast.unparse(item.annotation))
    constants = {_name(item): _value(item) for item in members if "ClassVar" in ast.unparse(item.annotation)}
    return Declared(path.stem, own.splitlines()[0] if own else "", told, fields, constants)


def _members(node: ast.ClassDef) -> Iterator[ast.AnnAssign]:
    return (item for item in node.body if isinstance(item, ast.AnnAssign))


def _field(item: ast.AnnAssign, told: str, lines: list[str]) -> Field:
    """One field: what the comment beside it says, or the docstring where there is none."""
    name = _name(item)
    _, hash, comment = lines[(item.end_lineno or item.lineno) - 1][item.end_col_offset or 0 :].partition("#")
    if hash:
        return Field(name, _value(item), comment.strip(), _choices(item.annotation))
    found = re.search(rf"(?:^|\s)`?{name}(?:`?:|`,) (.+?)(?:\.(?=\s|$)|;|\n\n|\Z)", told, re.S)
    return Field(name, _value(item), " ".join(found[1].split()) if found else "", _choices(item.annotation))


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
