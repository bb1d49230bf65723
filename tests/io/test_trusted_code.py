"""Are Python files imported where the user named them, and nowhere else?"""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

import lossscope
from lossscope.errors import InputError
from lossscope.io.remembered_trust import remember_trust, remembered_trust, state_folder
from lossscope.io.trusted_code import TrustedCode, is_trusted, plugin_files, require_trusted, trust, trusted_code
from lossscope.registry import build
from tests.each import each

OWN = "open({trace!r}, 'w').close()\n\n\ndef loss(S):\n    return (1 - S.diagonal()).exp().mean()\n"


@pytest.fixture
def trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the file that ./theirs.py writes when it is imported."""
    monkeypatch.chdir(tmp_path)
    Path("theirs.py").write_text(OWN.format(trace=str(tmp_path / "imported")), encoding="utf-8")
    return tmp_path / "imported"


def test_a_spec_that_nobody_typed_is_not_imported(trace: Path) -> None:
    with pytest.raises(InputError, match=r"theirs\.py:loss.*--trust-code"):
        build("objectives", "./theirs.py:loss")
    assert not trace.exists()


def test_a_typed_file_is_imported_and_no_other(trace: Path, tmp_path: Path) -> None:
    Path("other.py").write_text("raise SystemExit", encoding="utf-8")
    with trust(["Pictures=./theirs.py:loss"]):
        build("objectives", f"{tmp_path / 'theirs.py'}:loss")  # the same file under another name
        with pytest.raises(InputError, match="--trust-code"):
            build("objectives", "./other.py:loss")
    assert trace.exists()
    assert not is_trusted("./theirs.py:loss")


@pytest.mark.parametrize("name", ["objective", "weight_field", "LossScope"])
def test_what_is_passed_to_the_package_counts_as_typed(trace: Path, name: str) -> None:
    options = {"probes": ("similarity",)} if name == "LossScope" else {}
    getattr(lossscope, name)("./theirs.py:loss", **options)
    assert trace.exists()


def test_the_message_names_the_file_that_names_the_code() -> None:
    with pytest.raises(InputError, match=r"^runs/a/config\.toml names the Python file of './x\.py:F:a=1'"):
        require_trusted(["ntxent", "./x.py:F:a=1"], "runs/a/config.toml")


def test_trust_does_not_reach_a_thread_that_began_elsewhere() -> None:
    seen: list[TrustedCode] = []
    with trust(any_file=True):
        thread = threading.Thread(target=lambda: seen.append(trusted_code()))
        thread.start()
        thread.join()
    assert seen == [TrustedCode()]


@each("spec, files", [
    ("./a b.py:F:x=1", ["a b.py"]), ("NAME=/x/y.py:F", ["/x/y.py"]), ("ntxent:tau=0.1", []), ("a.py", []),
    ("./a.py:é", ["a.py"]), ("./a.py:_f", ["a.py"]), (None, []),
    ("only_top:of=./a.py:F,k=2", ["a.py"]), ('only_top:of="./a b.py:F:x=1",k=2', ["a b.py"]),
    ('only_top:of="only_tail:of=\\"a.py:F:x=1\\""', ["a.py"]),
])  # fmt: skip
def test_the_file_of_a_spec(spec: object, files: list[str]) -> None:
    assert plugin_files([spec]) == [Path(file) for file in files]


def test_trust_is_remembered_outside_the_folder_until_the_file_changes(trace: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.mkdir()
    assert remember_trust(run, ["./theirs.py:loss"]) is None
    assert not any(run.iterdir())
    assert remembered_trust(run).files == {tmp_path / "theirs.py"}
    assert not remembered_trust(tmp_path / "copy").files
    Path("theirs.py").write_text("import os", encoding="utf-8")
    assert not remembered_trust(run).files


def test_a_damaged_memory_trusts_nothing(trace: Path, tmp_path: Path) -> None:
    remember_trust(tmp_path, ["./theirs.py:loss"])
    (file,) = (state_folder() / "trust").iterdir()
    file.write_text('{"folder": 3}', encoding="utf-8")
    assert not remembered_trust(tmp_path).files


def test_what_cannot_be_remembered_is_said(trace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "taken").write_text("", encoding="utf-8")
    monkeypatch.setenv("LOSSSCOPE_STATE", str(tmp_path / "taken"))
    assert "resuming will need --trust-code" in str(remember_trust(tmp_path, ["./theirs.py:loss"]))
