"""Do Python files that a user names find modules beside them, and are these in their fingerprint?"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from lossscope.errors import SpecError
from lossscope.io.files import fingerprint
from lossscope.io.plugin_fingerprints import plugin_fingerprints
from lossscope.io.python_files import import_file


def write(folder: Path, **files: str) -> Path:
    folder.mkdir(exist_ok=True)
    for name, text in files.items():
        (folder / f"{name}.py").write_text(text + "\n", encoding="utf-8")
    return folder / "own.py"


def test_a_module_beside_the_file_can_be_imported_and_the_path_stays_as_it_was(tmp_path: Path) -> None:
    file = write(tmp_path, own="from beside_own import TAU", beside_own="TAU = 0.1")
    before = list(sys.path)
    assert import_file(file).TAU == 0.1
    assert sys.path == before


def test_a_file_saved_twice_within_a_second_is_what_was_saved_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    for step, tau in enumerate(("0.1", "0.2", "0.3")):
        file = write(tmp_path, own=f"TAU = {tau}")
        os.utime(file, ns=(2 * 10**18, 2 * 10**18 + step))
        module = import_file(file)
        assert float(tau) == module.TAU and module.__file__ == str(file)
    assert {path.name for path in tmp_path.iterdir()} == {"own.py"}


def test_the_path_is_restored_where_the_file_cannot_be_imported(tmp_path: Path) -> None:
    before = list(sys.path)
    for text, got in (("import no_such_module", "ModuleNotFoundError"), ("raise SystemExit(2)", "SystemExit")):
        with pytest.raises(SpecError, match=f"must import without an error; got {got}"):
            import_file(write(tmp_path / got, own=text))
    assert sys.path == before


def test_an_installed_module_comes_before_one_beside_the_file(tmp_path: Path) -> None:
    module = import_file(write(tmp_path, own="import json, torch", json="dumps = None", torch="Tensor = None"))
    assert module.json.dumps([1]) == "[1]" and module.torch.Tensor is not None


def test_two_folders_have_each_its_own_module_of_one_name(tmp_path: Path) -> None:
    files = [write(tmp_path / name, own="from shared_name import TAU", shared_name=f"TAU = '{name}'") for name in "ab"]
    assert [import_file(file).TAU for file in files] == ["a", "b"]


def test_a_fingerprint_is_of_the_file_and_of_what_it_imports_from_beside(tmp_path: Path) -> None:
    file = write(tmp_path, own="import os", unused="x = 1")
    spec = f"{file}:loss:tau=0.1"
    assert plugin_fingerprints([spec, "ntxent:tau=0.1"]) == {str(file): fingerprint(file)}
    write(tmp_path, own="from first import x", first="import second as x", second="y = 1")
    before = plugin_fingerprints([spec])
    write(tmp_path, unused="x = 2")
    assert plugin_fingerprints([spec]) == before
    write(tmp_path, second="y = 2")
    assert plugin_fingerprints([spec]) != before


def test_a_file_that_is_gone_has_no_fingerprint(tmp_path: Path) -> None:
    assert plugin_fingerprints([f"{tmp_path}/own.py:loss"]) == {}
