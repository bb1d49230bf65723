"""Fingerprints of the Python files that a user names, with the modules beside them that they import."""

from __future__ import annotations

import ast
import contextlib
from collections.abc import Iterable, Mapping
from pathlib import Path

from .files import fingerprint, fingerprint_of
from .trusted_code import plugin_file_names


def plugin_fingerprints(specs: Iterable[object]) -> dict[str, str]:
    """Return file -> fingerprint of the Python files that specs name: numbers are of their content, not their names.

    Files that are no longer there are left out; importing one reports that.
    """
    paths = {file: Path(file).expanduser() for file in sorted(set(plugin_file_names(specs)))}
    return {file: plugin_fingerprint(path) for file, path in paths.items() if path.is_file()}


def plugins_entry(plugins: Mapping[str, str]) -> dict[str, Mapping[str, str]]:
    """Return the entry `plugins` of a manifest; none where no Python file is named."""
    return {"plugins": plugins} if plugins else {}


def plugin_fingerprint(file: Path) -> str:
    """Return the fingerprint of a Python file; of it and of the modules beside it, if it imports some."""
    beside = sorted(_modules_beside(file) - {file})
    return fingerprint_of(fingerprint(file), *map(fingerprint, beside)) if beside else fingerprint(file)


def _modules_beside(file: Path) -> set[Path]:
    """Return the file and the files of its folder that it imports, or that these import; nothing is run."""
    found: set[Path] = set()
    left = [file]
    while left:
        module = left.pop()
        if module in found:
            continue
        found.add(module)
        with contextlib.suppress(SyntaxError, ValueError):  # importing it reports that
            left += [
                path
                for name in _imported_names(ast.parse(module.read_bytes()))
                for path in (file.parent / f"{name}.py", file.parent / name / "__init__.py")
                if path.is_file()
            ]
    return found


def _imported_names(tree: ast.Module) -> set[str]:
    """Return the first parts of the modules that a file imports."""
    nodes = list(ast.walk(tree))
    plain = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    of_names = {node.module or "" for node in nodes if isinstance(node, ast.ImportFrom) and not node.level}
    return {name.partition(".")[0] for name in plain | of_names} - {""}
