"""Does a failed write give one message that names the file, and leave only the old file?"""

from __future__ import annotations

import errno
import os
import resource
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import safetensors.numpy
import safetensors.torch
import torch

from lossscope.errors import InputError, WriteError
from lossscope.io.files import write_atomically, write_text
from lossscope.io.run_tables import RunTable
from lossscope.io.write_errors import explain_write_errors
from tests.each import each

MANY = 100_000


def save_stream(path: Path) -> None:
    with open(path, "wb") as stream:
        torch.save({"a": torch.ones(MANY)}, stream)


def save_memory_map(path: Path) -> None:
    np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=(MANY,))


def save_numpy(path: Path) -> None:
    with open(path, "wb") as stream:
        np.save(stream, np.ones(MANY))


WRITERS: dict[str, Callable[[Path], object]] = {
    "torch": lambda path: torch.save({"a": torch.ones(MANY)}, path),
    "torch stream": save_stream,
    "safetensors": lambda path: safetensors.torch.save_file({"a": torch.ones(MANY)}, path),
    "safetensors of numpy": lambda path: safetensors.numpy.save_file({"a": np.ones(MANY)}, path),
    "numpy": save_numpy,
    "memory map": save_memory_map,
    "parquet": lambda path: pd.DataFrame({"a": np.random.default_rng(0).random(MANY)}).to_parquet(path),
    "text": lambda path: path.write_text("x" * MANY),
}


@pytest.fixture
def _small_files() -> Iterator[None]:
    """Limit every file to 10,000 bytes."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.usefixtures("_small_files")
@each("writer", WRITERS)
def test_whatever_writes_a_file_that_does_not_fit_raises_one_error(tmp_path: Path, writer: str) -> None:
    """torch raised RuntimeError and safetensors SafetensorError, which were tracebacks."""
    path = tmp_path / "a"
    path.write_text("old")
    with pytest.raises(WriteError) as problem, write_atomically(path) as part:
        WRITERS[writer](part)
    assert str(problem.value).startswith(f"{path} must be written whole; got '") and "run the command again" in str(
        problem.value
    )
    assert [file.name for file in tmp_path.iterdir()] == ["a"] and path.read_text() == "old"


@pytest.mark.usefixtures("_small_files")
def test_rows_that_do_not_fit_are_named_by_their_table(tmp_path: Path) -> None:
    table = RunTable(tmp_path / "t.csv")
    with pytest.raises(WriteError, match=r"t\.csv must be written whole; got 'file too large'.*ulimit -f"):
        table.append([{"epoch": 1, "step": step, "text": "x" * 900} for step in range(20)])


@each("number, advice", [
    (errno.ENOSPC, r"Make room there \(\d+ MB are free\)"),
    (errno.EIO, "The disk failed"),
    (errno.EROFS, "Choose another folder"),
])  # fmt: skip
def test_the_advice_is_for_the_error(tmp_path: Path, number: int, advice: str) -> None:
    with pytest.raises(WriteError, match=advice), explain_write_errors(tmp_path / "a"):
        raise OSError(number, os.strerror(number))


def write_and_remove(path: Path) -> None:
    with write_atomically(path) as part:
        part.write_text("x")
        shutil.rmtree(path.parent)


def test_a_folder_that_is_removed_while_it_is_written_is_named(tmp_path: Path) -> None:
    with pytest.raises(WriteError, match="Its folder was removed"):
        write_and_remove(tmp_path / "run" / "a")


def test_errors_of_other_files_and_of_ours_pass(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError), write_atomically(tmp_path / "a"):
        (tmp_path / "input").read_text()
    with pytest.raises(InputError, match="mine"), write_atomically(tmp_path / "a"):
        raise InputError("mine")
    with pytest.raises(RuntimeError, match="shape"), write_atomically(tmp_path / "a"):
        raise RuntimeError("shape")
    assert not list(tmp_path.iterdir())


def test_a_path_below_a_file_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "a").touch()
    with pytest.raises(WriteError, match="Choose another folder"):
        write_text(tmp_path / "a" / "b", "x")


def test_a_write_error_is_an_error_of_the_system_too(tmp_path: Path) -> None:
    """A cache that cannot be written costs time, not results: code that suppresses OSError continues."""
    assert issubclass(WriteError, OSError) and issubclass(WriteError, InputError)
