"""Is an output that nobody may write refused in one message, by every command, before the command does its work?"""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import pytest
import typer
from lossscope_cli import _app, _form, _output, app

from tests.crash.striking import drop_override
from tests.each import each

READ = (
    "audit", "caption_image", "captions", "checkpoints", "config", "file", "folder", "foreign", "frames", "judgements",
    "labels", "log", "overlay", "pairs", "paths", "resume", "rows", "runs", "source", "sources", "trusted_file",
    "vocabulary",
)  # fmt: skip
"""Names of the options whose values are files or folders that commands read, or lock when they begin."""


def commands(group: Any = None, above: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the words and the callback of every command."""
    group = typer.main.get_command(app) if group is None else group
    for name in group.list_commands(None):
        found = group.get_command(None, name)
        if hasattr(found, "list_commands"):
            yield from commands(found, f"{above}{name} ")
        else:
            callback = found.callback
            while hasattr(callback, "__wrapped__"):
                callback = callback.__wrapped__
            yield f"{above}{name}", callback


OUTPUTS = [
    (name, parameter.name)
    for name, callback in commands()
    for parameter in callback._form.parameters
    if parameter.name in _output.WRITTEN
]
CALLBACKS = dict(commands())


def test_every_path_is_one_that_commands_read_or_write() -> None:
    """A new option states which, in `_output.WRITTEN` or above: only what is written is looked at before the work."""
    paths = {
        (name, parameter.name)
        for name, callback in commands()
        for parameter in callback._form.parameters
        if "Path" in str(get_args(parameter.annotation)[0])
    }
    assert {word for _, word in paths} - {*READ, *_output.WRITTEN} == set()
    assert {word for _, word in paths} >= {*READ, *_output.WRITTEN}


@each("name, option", OUTPUTS, "below", ["", "new/deep/"])
def test_an_output_that_nobody_may_write_is_refused_before_the_work(
    name: str,
    option: str,
    below: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Commands did all their work first."""

    def refuse(**_options: Any) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    def work(_module: str | None) -> None:
        raise AssertionError("the command began its work")

    monkeypatch.setattr(os, "access", lambda *_: False)
    monkeypatch.setattr(tempfile, "TemporaryFile", refuse)
    monkeypatch.setattr(_app, "_import", work)
    monkeypatch.setattr(_form.Form, "arguments", lambda *_: {})
    with pytest.raises(typer.Exit) as ended:
        CALLBACKS[name]._run(**{option: tmp_path / below / "out"})
    assert ended.value.exit_code == 1
    said = capsys.readouterr().err
    assert said == (
        f"Error: {tmp_path / below / 'out'} must be written whole; got 'read-only file system'. Choose another folder, "
        "or change its rights\n"
    )
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("path", ["new", "new/deep", ".", "file"])
def test_an_output_that_can_be_written_is_left_alone(path: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine", encoding="utf-8")
    _output.require_outputs({"out": tmp_path / path, "picture": None})
    assert [file.name for file in tmp_path.iterdir()] == ["file"]


@pytest.mark.skipif(sys.platform != "linux", reason="root may write everywhere, unless Linux takes that right")
def test_a_folder_of_somebody_else_is_refused_in_one_message(tmp_path: Path, dump: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir(mode=0o555)
    done = subprocess.run(
        [sys.executable, "-m", "lossscope_cli", "eval", str(dump), "--format", "json", "--out", str(folder / "x.json")],
        preexec_fn=drop_override,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith(f"Error: {folder / 'x.json'} must be written whole; got 'permission denied'")
    assert done.stderr.count("\n") == 1
