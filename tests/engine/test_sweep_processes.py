"""Sweeps by torchrun: the numbers of one process; an end for all when one is killed; frames that are gone on with."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from lossscope.core.distributed import join_group, process_group
from lossscope.engine import large_batches
from lossscope.engine.plan import Sweep
from lossscope.io.frames import Frame
from lossscope.sources.base import load

pytestmark = pytest.mark.slow
SIZES = (1, 2, 3)
SINGLE = ("ntxent:tau=0.05", "ntxent:tau=0.01", "unified", "triplet", "triplet-sh")
ALL: dict[str, Any] = {"batch_size": None, "engine": "tiled"}
SWEEPS = {
    "stacks": Sweep(SINGLE, ("cocos", "contributors", "hubness", "tangent"), batch_size=300),
    "stacks of images": Sweep(("smoothap",), ("cocos", "similarity"), batch_size=120),
    "tiles": Sweep(SINGLE, ("cocos", "cocos:eps=0.0001", "similarity", "recall", "hubness"), **ALL),
    "tiles without siblings": Sweep(("ntxent", "triplet"), same_image="mask", **ALL),
    "tiles of images": Sweep(("smoothap",), ("cocos", "recall"), sampling="images", **ALL),
    "panels": Sweep(("ntxent:tau=0.05", "triplet"), ("tangent", "contributors"), **ALL),
    "tiles and panels": Sweep(("vlc", "dcl"), ("cocos", "contributors", "similarity"), **ALL),
    "panels of images": Sweep(("supcon",), ("cocos", "contributors"), sampling="images", **ALL),
    "fewer panels than processes": Sweep(("circle",), ("cocos", "tangent"), captions="first", **ALL),
}
COUNTS = ("C_q", "C_q_all", "C_B", "C_0", "C_neg", "skipped", "R@1", "medr", "ties", "hub_max_count", "never_hardest")


def dump(path: Path, images: int, d: int = 16) -> Path:
    """Embeddings of so many images with five captions each."""
    dice = np.random.default_rng(0)
    owner = np.repeat(np.arange(images), 5)
    V = dice.normal(size=(images, d)).astype(np.float32)
    T = V[owner] + dice.normal(size=(5 * images, d)).astype(np.float32)
    V, T = (x / np.linalg.norm(x, axis=1, keepdims=True) for x in (V, T))
    np.savez(path, images=V, captions=T, caption_image=owner)
    return path


def torchrun(size: int, *arguments: str) -> list[str]:
    return [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={size}", *arguments]


def environment() -> dict[str, str]:
    return {**os.environ, "OMP_NUM_THREADS": "1"}  # products of one shape then have the same bits in any process


def told(command: list[str]) -> str:
    """What a command prints, that must succeed."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False, env=environment())
    assert done.returncode == 0, done.stderr[-4000:]
    return done.stdout


def work(folder: Path) -> None:
    """Every sweep, into frames of its own."""
    here, embedded = process_group(), load(folder / "dump.npz", cache=False)
    for name, sweep in SWEEPS.items():
        large_batches.PANEL = 1 << 16 if name == "panels" else 1 << 21  # several for every process
        sweep.run(embedded, Frame.open(folder / f"{name} {here.size}", {}) if here.main else None, processes=here)


@pytest.fixture(scope="module")
def frames(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of all frames, named by sweep and number of processes."""
    folder = tmp_path_factory.mktemp("frames")
    dump(folder / "dump.npz", 250)
    for size in SIZES:
        told(torchrun(size, __file__, str(folder)))
    return folder


def assert_same(found: pd.DataFrame, expected: pd.DataFrame) -> None:
    """Counts equal, other numbers to 1e-6."""
    assert list(found) == list(expected) and len(found) == len(expected) > 0
    for column in found:
        if column in COUNTS or not pd.api.types.is_float_dtype(expected[column]):
            pd.testing.assert_series_equal(found[column], expected[column])
        else:
            np.testing.assert_allclose(found[column], expected[column], rtol=1e-6, atol=1e-9, err_msg=str(column))


@pytest.mark.parametrize("size", SIZES[1:])
@pytest.mark.parametrize("name", SWEEPS)
def test_many_processes_find_what_one_finds(name: str, size: int, frames: Path) -> None:
    one, many = (Frame(frames / f"{name} {n}") for n in (1, size))
    assert many.manifest() == one.manifest() and one.manifest()["done"]
    assert_same(many.read(), one.read())


def test_the_last_stack_is_of_a_shorter_batch(frames: Path) -> None:
    """So that no stack is of all batches, nor the work of all processes alike."""
    rows = Frame(frames / "stacks 3").read()
    some = rows[(rows["direction"] == "i2t") & (rows["probe"] == "cocos") & (rows["objective"] == "triplet:margin=0.2")]
    assert some["queries"].tolist() == [300] * 4 + [50]


def test_the_command_prints_and_writes_what_it_does_alone(tmp_path: Path) -> None:
    source = dump(tmp_path / "dump.npz", 250)
    words = ["-m", "lossscope_cli", "cocos", str(source), "--batch-size", "300", "--format", "json", "--device", "cpu"]
    words += ["--objective", "ntxent:tau=0.05", "--objective", "triplet", "--objective", "smoothap", "--per-query"]
    alone = told([sys.executable, *words, "--out", str(tmp_path / "alone")])
    for size in SIZES:
        out = tmp_path / f"frame {size}"
        assert told(torchrun(size, *words, "--out", str(out))) == alone
        assert_same_frame(out, tmp_path / "alone")


def assert_same_frame(found: Path, expected: Path) -> None:
    """The same parts, to the bit."""
    assert Frame(found).manifest() == Frame(expected).manifest()
    for kind in ("part", "query"):
        pd.testing.assert_frame_equal(Frame(found).read(kind), Frame(expected).read(kind))
    assert {path.name for path in found.glob("*.parquet")} == {path.name for path in expected.glob("*.parquet")}


@contextmanager
def started(*command: str) -> Iterator[subprocess.Popen[str]]:
    """A job that does not outlive the test, nor do its children."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment())
    try:
        yield process
    finally:
        if process.poll() is None:
            ranks = children(process)
            process.kill()
            process.communicate()
            for pid in ranks:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)


def children(process: subprocess.Popen[str]) -> list[int]:
    return [int(pid) for pid in Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()]


def finished(frame: Path, parts: int, process: subprocess.Popen[str]) -> None:
    """Wait until a frame has so many parts."""
    end = time.monotonic() + 100
    while not (frame / "manifest.json").is_file() or len(Frame(frame).keys()) < parts:
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < end
        time.sleep(0.002)


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="finds the processes in /proc")
@pytest.mark.parametrize("size", ["8", "5000"], ids=["stacks", "tiles"])
def test_a_killed_process_ends_the_job_with_a_message(size: str, tmp_path: Path) -> None:
    many = dump(tmp_path / "dump.npz", 4000)  # takes a while
    words = ["-m", "lossscope_cli", "cocos", str(many), "--batch-size", size, "--out", str(tmp_path / "frame")]
    words += [word for spec in SINGLE for word in ("--objective", spec)]
    with started(*torchrun(2, *words)) as process:
        finished(tmp_path / "frame", 1, process)
        begun = time.monotonic()
        os.kill(children(process)[1], signal.SIGKILL)
        output, errors = process.communicate(timeout=60)
        assert time.monotonic() - begun < 20
    assert process.returncode != 0 and output == ""
    assert "Signal 9 (SIGKILL)" in errors
    assert "Traceback" not in errors.partition("torch/distributed/elastic")[0], errors
    assert not Frame(tmp_path / "frame").manifest()["done"]


@pytest.mark.parametrize("size", ["8", "2000", "5000"], ids=["many small", "several large", "several in tiles"])
def test_a_killed_sweep_is_gone_on_with_to_the_same_frame(size: str, tmp_path: Path) -> None:
    many = dump(tmp_path / "dump.npz", 4000)
    words = [sys.executable, "-m", "lossscope_cli", "cocos", str(many), "--batch-size", size, "--format", "json"]
    words += ["--objective", "ntxent:tau=0.05", "--objective", "triplet", "--device", "cpu", "--per-query", "--out"]
    expected = told([*words, str(tmp_path / "whole")])
    broken = tmp_path / "broken"
    for parts in (1, 2):
        with started(*words, str(broken)) as process:
            finished(broken, parts, process)
            process.kill()
            process.communicate()
        assert process.returncode == -signal.SIGKILL
        assert not Frame(broken).manifest()["done"]
    assert told([*words, str(broken)]) == expected
    assert_same_frame(broken, tmp_path / "whole")


if __name__ == "__main__":
    torch.set_num_threads(1)
    with join_group("cpu"):
        work(Path(sys.argv[1]))
