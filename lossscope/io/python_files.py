"""Import the Python files that a user names, and fingerprint them with the modules beside them that they import."""

from __future__ import annotations

import ast
import contextlib
import importlib.machinery
import importlib.util
import sys
import types
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from lossscope.errors import SpecError

from .files import fingerprint, fingerprint_of


class _FileAsItIs(importlib.machinery.SourceFileLoader):
    """Compile the file itself.

    Python's own cache takes a file that was saved again within a second, with as many letters, for the former one.
    """

    def get_code(self, fullname: str) -> types.CodeType:
        return self.source_to_code(self.get_data(self.path), self.path)


def import_file(path: Path) -> types.ModuleType:
    """Import a file, once for each modification time, so that equal specs give equal objects.

    While it is imported, modules in its folder can be imported too; installed ones of the same name come first.
    Raises SpecError where it cannot be imported.
    """
    name = f"_lossscope_plugin_{abs(hash((path.resolve(), path.stat().st_mtime_ns)))}"
    if name in sys.modules:
        return sys.modules[name]
    loader = _FileAsItIs(name, str(path))
    spec = importlib.machinery.ModuleSpec(name, loader, origin=str(path))
    spec.has_location = True
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    try:
        with _folder_on_path(path.resolve().parent):
            loader.exec_module(module)
    except (Exception, SystemExit) as error:
        del sys.modules[name]
        raise SpecError(f"plug-in {path} must import without an error; got {type(error).__name__}: {error}") from error
    return module


def plugin_fingerprints(specs: Iterable[object]) -> dict[str, str]:
    """Return file -> fingerprint of the Python files that specs name: numbers are of their content, not their names.

    Files that are no longer there are left out; importing one reports that.
    """
    files = {str(spec).partition(".py:")[0] + ".py" for spec in specs if ".py:" in str(spec)}
    paths = {file: Path(file).expanduser() for file in sorted(files)}
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
        one = left.pop()
        if one in found:
            continue
        found.add(one)
        with contextlib.suppress(SyntaxError, ValueError):  # importing it reports that
            left += [
                path
                for name in _imported_names(ast.parse(one.read_bytes()))
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


@contextlib.contextmanager
def _folder_on_path(folder: Path) -> Iterator[None]:
    """Search a folder after everything else, and import anew what another such folder has under the same name."""
    for name in {path.stem for path in folder.iterdir() if path.suffix == ".py" or path.is_dir()} & sys.modules.keys():
        if _is_of_another_folder(name, folder):
            del sys.modules[name]
    sys.path.append(str(folder))
    try:
        yield
    finally:
        with contextlib.suppress(ValueError):
            sys.path.remove(str(folder))


def _is_of_another_folder(name: str, folder: Path) -> bool:
    """Whether an imported module is neither of the folder nor installed, so that a plug-in brought it."""
    file = getattr(sys.modules[name], "__file__", None)
    if file is None or Path(file).resolve().is_relative_to(folder):
        return False
    return all(finder.find_spec(name, None) is None for finder in sys.meta_path)
