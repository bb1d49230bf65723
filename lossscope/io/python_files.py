"""Import the Python files that a user names."""

from __future__ import annotations

import contextlib
import importlib.machinery
import importlib.util
import sys
import types
from collections.abc import Iterator
from pathlib import Path

from lossscope.errors import SpecError


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
