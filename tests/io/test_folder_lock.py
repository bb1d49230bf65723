"""Has a folder one writer at a time, does a refusal name it, and does a killed writer leave no lock?"""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import filelock
import numpy as np
import pytest

from lossscope.datasets.formats.ragged import RowsByName, write_ragged
from lossscope.errors import InputError, WriteError
from lossscope.io import folder_lock
from lossscope.io.folder_lock import (
    HOLDER,
    LOCK,
    NO_LOCKS,
    has_content,
    is_locked,
    lock_files,
    lock_folder,
    remove_stale_lock,
)
from lossscope.sources.checkpoints.checkpoint import Checkpoint
from tests.each import each
from tests.waiting import wait_until

HOLD = """
import sys, time
from pathlib import Path
from lossscope.io.folder_lock import lock_folder
with lock_folder(sys.argv[1]):
    Path(sys.argv[1], "work").touch()
    time.sleep(60)
"""


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folder_lock, "_PATIENCE", 0.05)


def test_nothing_is_left_at_the_end(tmp_path: Path) -> None:
    with lock_folder(tmp_path / "run"):
        assert {path.name for path in (tmp_path / "run").iterdir()} == {LOCK, HOLDER}
        (tmp_path / "run" / "a").touch()
    assert [path.name for path in (tmp_path / "run").iterdir()] == ["a"]


def test_a_folder_that_stays_empty_is_removed_if_it_was_made(tmp_path: Path) -> None:
    (tmp_path / "old").mkdir()
    for folder in ("old", "new/deep"):
        with pytest.raises(ZeroDivisionError), lock_folder(tmp_path / folder):
            raise ZeroDivisionError
    assert [path.name for path in tmp_path.iterdir()] == ["old"]


@each("left", [(), (LOCK, HOLDER)])
def test_the_lock_of_files_leaves_nothing_and_takes_over_that_of_a_killed_writer(
    left: tuple[str, ...], tmp_path: Path
) -> None:
    for name in left:
        (tmp_path / ".a.npy.lock").mkdir(exist_ok=True)
        (tmp_path / ".a.npy.lock" / name).touch()
    with lock_files(tmp_path / "a.npy"):
        (tmp_path / "a.npy").touch()
    assert [path.name for path in tmp_path.iterdir()] == ["a.npy"]


def save_checkpoint(folder: Path, tiny_checkpoint: Path) -> None:
    Checkpoint.load(tiny_checkpoint).save(folder / "a.safetensors")


def save_rows(folder: Path, _tiny_checkpoint: Path) -> None:
    write_ragged(folder / "a", RowsByName({"video": 1}, 2, lambda _: np.zeros((1, 2), np.float32)))


@each("write, first", [(save_checkpoint, "a.safetensors"), (save_rows, "a.npy")])
def test_files_that_belong_together_have_one_writer_at_a_time(
    write: Callable[[Path, Path], None], first: str, tmp_path: Path, tiny_checkpoint: Path, held: Callable[..., Any]
) -> None:
    """Two commands left the weights of one with the .json of the other, rows with another index."""
    with held(tmp_path / f".{first}.lock"):
        with pytest.raises(InputError, match="must have one writer at a time"):
            write(tmp_path, tiny_checkpoint)
        assert [path.name for path in tmp_path.iterdir()] == [f".{first}.lock"]
    write(tmp_path, tiny_checkpoint)
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


def test_the_second_writer_is_told_who_the_first_one_is(tmp_path: Path, held: Callable[..., Any]) -> None:
    with held(tmp_path), pytest.raises(InputError) as problem, lock_folder(tmp_path):
        pass
    text = str(problem.value)
    assert text.startswith(f"{tmp_path} must have one writer at a time; `")
    assert f"process {os.getpid()} on " in text and ", since 20" in text and text.endswith("choose another folder")
    with lock_folder(tmp_path):
        pass


@each("content", ["", "{", "[]", '{"pid": 1}', "\0"])
def test_a_holder_that_cannot_be_read_is_another_one(tmp_path: Path, content: str, held: Callable[..., Any]) -> None:
    with held(tmp_path):
        (tmp_path / HOLDER).write_text(content)
        with pytest.raises(InputError, match="one writer at a time; another one is writing it"), lock_folder(tmp_path):
            pass


def test_control_characters_of_a_holder_do_not_reach_the_terminal(tmp_path: Path, held: Callable[..., Any]) -> None:
    with held(tmp_path):
        holder = json.loads((tmp_path / HOLDER).read_text())
        (tmp_path / HOLDER).write_text(json.dumps({**holder, "command": "train \x1b[31m", "host": "\x1b]0;x"}))
        with pytest.raises(InputError) as problem, lock_folder(tmp_path):
            pass
    assert str(problem.value).isprintable()


def test_the_holder_may_lock_its_folder_again(tmp_path: Path) -> None:
    with lock_folder(tmp_path), lock_folder(tmp_path / "."):
        assert is_locked(tmp_path)
    assert not is_locked(tmp_path) and not has_content(tmp_path)


def test_waiting_ends_with_the_other_writer(tmp_path: Path, held: Callable[..., Any]) -> None:
    order: list[str] = []
    with held(tmp_path):
        waiting = threading.Thread(target=lambda: _enter(tmp_path, order))
        waiting.start()
        waiting.join(0.1)
        order.append("first ends")
    waiting.join(10)
    assert order == ["first ends", "second"]


def _enter(folder: Path, order: list[str]) -> None:
    with lock_folder(folder, wait=True):
        order.append("second")


def test_the_lock_of_a_killed_process_is_taken_over(tmp_path: Path) -> None:
    process = subprocess.Popen([sys.executable, "-c", HOLD, str(tmp_path)])
    while not (tmp_path / "work").exists():
        assert process.poll() is None
    assert is_locked(tmp_path)
    with pytest.raises(InputError, match=rf"process {process.pid} on"), lock_folder(tmp_path):
        pass
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert not is_locked(tmp_path) and (tmp_path / HOLDER).is_file()
    with lock_folder(tmp_path):
        assert json.loads((tmp_path / HOLDER).read_text())["pid"] == os.getpid()
    assert [path.name for path in tmp_path.iterdir()] == ["work"]


@each("work, left", [("work", ["work"]), ("../elsewhere", None)])
def test_sigterm_releases_the_lock_and_removes_a_folder_that_stayed_empty(
    tmp_path: Path, work: str, left: list[str] | None
) -> None:
    run = tmp_path / "run"
    process = subprocess.Popen([sys.executable, "-c", HOLD.replace('"work"', repr(work)), str(run)])
    assert wait_until((run / work).exists, 60)
    process.send_signal(signal.SIGTERM)
    assert process.wait(20) == -signal.SIGTERM  # as without a lock
    assert left == ([path.name for path in run.iterdir()] if run.exists() else None)


def test_a_stale_lock_is_removed_and_one_that_is_held_stays(tmp_path: Path, held: Callable[..., Any]) -> None:
    remove_stale_lock(tmp_path / "none")
    assert not (tmp_path / "none").exists()
    for names in ((LOCK, HOLDER), (LOCK,), (HOLDER,)):
        for name in names:
            (tmp_path / name).touch()
        remove_stale_lock(tmp_path)
        assert not list(tmp_path.iterdir())
    with held(tmp_path):
        remove_stale_lock(tmp_path)
        assert (tmp_path / LOCK).is_file() and (tmp_path / HOLDER).is_file()


def test_leftovers_of_killed_writers_are_removed_and_other_files_kept(tmp_path: Path) -> None:
    kept = [
        "a.part",
        ".a.part",
        ".best.pt.x.part",
        "checkpoints/a",
        ".best.pt.abcdefg1.party",
        "other/.b.abcdefgh.part",
    ]
    for name in (*kept, ".best.pt.abcdefg1.part", "checkpoints/.last.pt.a_cdefg1.part"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    with lock_folder(tmp_path, "checkpoints", "missing"):
        pass
    left = {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*") if path.is_file()}
    assert left == set(kept)


@each("number", [errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP])
def test_a_file_system_without_locks_is_an_error_with_a_way_out(
    tmp_path: Path, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(filelock.FileLock, "acquire", fail)
    with pytest.raises(InputError, match=f"must be on a file system that has locks.*set {NO_LOCKS}=1"):
        lock_folder(tmp_path).__enter__()
    monkeypatch.setenv(NO_LOCKS, "1")
    with lock_folder(tmp_path):
        pass


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied", str(tmp_path / LOCK))

    monkeypatch.setattr(filelock.FileLock, "acquire", fail)
    with pytest.raises(WriteError, match=r"must be written whole; got 'permission denied'. Choose another folder"):
        lock_folder(tmp_path).__enter__()


def test_a_file_is_no_folder_to_lock(tmp_path: Path) -> None:
    (tmp_path / "a").touch()
    with pytest.raises(InputError, match="must be a folder to write; it is a file"), lock_folder(tmp_path / "a"):
        pass
    with pytest.raises(WriteError, match="Choose another folder"), lock_folder(tmp_path / "a" / "b"):
        pass


def test_a_lock_is_no_content(tmp_path: Path) -> None:
    assert not has_content(tmp_path / "none")
    (tmp_path / LOCK).touch()
    (tmp_path / "probes.toml").touch()
    assert has_content(tmp_path) and not has_content(tmp_path, "probes.toml") and has_content(tmp_path / LOCK)
    assert not is_locked(tmp_path)  # of a killed process
