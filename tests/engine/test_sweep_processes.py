"""Do many processes write the frame of one, end together when one is killed, and resume frames?"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from lossscope.core.distributed import process_group
from lossscope.engine import large_batches
from lossscope.engine.sweep import Sweep
from lossscope.io.frames import Frame
from lossscope.sources.base import load
from tests.farm import run_command, run_ranks
from tests.lengths import thorough

SIZES = [*thorough(2), 3]
SINGLE = ("ntxent:tau=0.05", "ntxent:tau=0.01", "unified", "triplet", "triplet-sh")
ALL: dict[str, Any] = {"batch_size": None, "engine": "tiled"}
SWEEPS = {
    "stacks": Sweep(("ntxent:tau=0.05", "triplet"), ("cocos", "contributors", "hubness", "tangent"), batch_size=66),
    "stacks of images": Sweep(("smoothap",), ("cocos", "similarity"), batch_size=40),
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
    """Write embeddings of `images` images with five captions each."""
    generator = np.random.default_rng(0)
    owner = np.repeat(np.arange(images), 5)
    V = generator.normal(size=(images, d)).astype(np.float32)
    T = V[owner] + generator.normal(size=(5 * images, d)).astype(np.float32)
    V, T = (x / np.linalg.norm(x, axis=1, keepdims=True) for x in (V, T))
    np.savez(path, images=V, captions=T, caption_image=owner)
    return path


def torchrun(size: int, *arguments: str) -> list[str]:
    return [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={size}", *arguments]


def environment() -> dict[str, str]:
    return {**os.environ, "OMP_NUM_THREADS": "1"}  # products of one shape then have the same bits in any process


def output_of(*words: str, ranks: int = 1) -> str:
    """Return the output of a command; it must succeed."""
    done = run_command(*words, ranks=ranks)
    assert done.returncode == 0, done.stderr[-4000:]
    return done.stdout


def run_sweeps(folder: Path) -> None:
    """Run each sweep into a frame of its own, in this process and those beside it."""
    here, embedded = process_group(), load(folder / "dump.npz", cache=False)
    for name, sweep in SWEEPS.items():
        large_batches.PANEL = 1 << 16 if name == "panels" else 1 << 21  # several panels for each process
        sweep.run(embedded, Frame.open(folder / f"{name} {here.size}", {}) if here.main else None, processes=here)


@pytest.fixture(scope="module")
def frames(tmp_path_factory: pytest.TempPathFactory) -> Callable[[int], Path]:
    """Return the folder of all frames, named by sweep and number of processes, with those of a number."""
    folder = tmp_path_factory.mktemp("frames")
    dump(folder / "dump.npz", 100)

    @cache
    def run(size: int) -> Path:
        run_ranks(run_sweeps, size, folder)
        return folder

    return run


def assert_same(actual: pd.DataFrame, expected: pd.DataFrame) -> None:
    """Assert equal counts, and other numbers to 1e-6."""
    assert list(actual) == list(expected) and len(actual) == len(expected) > 0
    for column in actual:
        if column in COUNTS or not pd.api.types.is_float_dtype(expected[column]):
            pd.testing.assert_series_equal(actual[column], expected[column])
        else:
            np.testing.assert_allclose(actual[column], expected[column], rtol=1e-6, atol=1e-8, err_msg=str(column))


def without_numbers(frame: Frame) -> dict[str, Any]:
    """Return a manifest without entries that depend on last bits: SHA-256 of the parts, and the summary."""
    manifest = frame.manifest()
    parts = [{"key": part["key"], "rows": part["rows"]} for part in manifest["parts"]]
    return {**manifest, "parts": parts, "summary": len(manifest["summary"])}


def summary_of(frame: Frame) -> pd.DataFrame:
    return pd.DataFrame(frame.manifest()["summary"]).astype({"low": float, "high": float, "std": float})


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", SWEEPS)
def test_many_processes_give_the_numbers_of_one(name: str, size: int, frames: Callable[[int], Path]) -> None:
    single, many = (Frame(frames(n) / f"{name} {n}") for n in (1, size))
    assert without_numbers(many) == without_numbers(single) and single.manifest()["done"]
    assert_same(many.read(), single.read())
    assert_same(summary_of(many), summary_of(single))
    assert summary_of(single)["low"].notna().mean() > 0.25 or "panels" in name  # panels: not of queries


def test_the_last_stack_is_of_a_shorter_batch(frames: Callable[[int], Path]) -> None:
    """No stack has all batches, so that processes have different amounts of work."""
    rows = Frame(frames(3) / "stacks 3").read()
    chosen = rows[
        (rows["direction"] == "i2t") & (rows["probe"] == "cocos") & (rows["objective"] == "triplet:margin=0.2")
    ]
    assert chosen["queries"].tolist() == [66] * 7 + [38]


@pytest.mark.parametrize("size", SIZES)
def test_the_command_prints_and_writes_the_same_as_in_one_process(size: int, tmp_path: Path) -> None:
    source = dump(tmp_path / "dump.npz", 250)
    words = ["cocos", str(source), "--batch-size", "300", "--format", "json", "--device", "cpu"]
    words += ["--objective", "ntxent:tau=0.05", "--objective", "triplet", "--objective", "smoothap", "--per-query"]
    words += ["--unit", "paper"]
    alone = output_of(*words, "--out", str(tmp_path / "alone"))
    assert output_of(*words, "--out", str(tmp_path / "shared"), ranks=size) == alone
    assert_same_frame(tmp_path / "shared", tmp_path / "alone")


def assert_same_frame(actual: Path, expected: Path) -> None:
    """Compare the parts bit by bit."""
    assert Frame(actual).manifest() == Frame(expected).manifest()
    for kind in ("part", "query"):
        pd.testing.assert_frame_equal(Frame(actual).read(kind), Frame(expected).read(kind))
    assert {path.name for path in actual.glob("*.parquet")} == {path.name for path in expected.glob("*.parquet")}


def test_a_finished_frame_is_read_again_by_several_processes(tmp_path: Path) -> None:
    """Processes without rows of their own failed, or waited for a jackknife that only the first process ran."""
    words = ["cocos", str(dump(tmp_path / "dump.npz", 60)), "--batch-size", "50", "--device", "cpu"]
    words += ["--format", "json", "--objective", "goal:triplet=cir,pair=sig-ms", "--objective", "triplet"]
    words += ["--interval-groups", "10", "--out", str(tmp_path / "frame")]
    once = output_of(*words, ranks=2)
    assert output_of(*words, ranks=2) == once
    assert "jackknife of 10 groups" in once


@contextmanager
def start(*command: str) -> Iterator[subprocess.Popen[str]]:
    """Start a job that ends with the test, as its children do."""
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


def wait_for_parts(frame: Path, parts: int, process: subprocess.Popen[str]) -> None:
    """Wait until a frame has `parts` parts."""
    end = time.monotonic() + 100
    while not (frame / "manifest.json").is_file() or len(Frame(frame).keys()) < parts:
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < end
        time.sleep(0.002)


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="finds the processes in /proc")
@pytest.mark.thorough
@pytest.mark.parametrize("size", ["8", "5000"], ids=["stacks", "tiles"])
def test_a_killed_process_ends_the_job_with_a_message(size: str, tmp_path: Path) -> None:
    many = dump(tmp_path / "dump.npz", 4000)  # takes a while
    words = ["-m", "lossscope_cli", "cocos", str(many), "--batch-size", size, "--out", str(tmp_path / "frame")]
    words += [word for spec in SINGLE for word in ("--objective", spec)]
    with start(*torchrun(2, *words)) as process:
        wait_for_parts(tmp_path / "frame", 1, process)
        begun = time.monotonic()
        os.kill(children(process)[1], signal.SIGKILL)
        output, errors = process.communicate(timeout=60)
        assert time.monotonic() - begun < 20
    assert process.returncode != 0 and output == ""
    assert "Signal 9 (SIGKILL)" in errors
    assert "Traceback" not in errors.partition("torch/distributed/elastic")[0], errors
    assert not Frame(tmp_path / "frame").manifest()["done"]


@pytest.mark.thorough  # tests/crash kills one in `make test`
@pytest.mark.parametrize(
    ("size", "images"),
    [("8", 4000), ("5000", 4000), ("2000", 2000)],
    ids=["many small", "several in tiles", "several large"],
)
def test_a_killed_sweep_is_resumed_to_the_same_frame(size: str, images: int, tmp_path: Path) -> None:
    many = dump(tmp_path / "dump.npz", images)
    words = ["cocos", str(many), "--batch-size", size, "--format", "json"]
    words += ["--objective", "ntxent:tau=0.05", "--objective", "triplet", "--device", "cpu", "--per-query", "--out"]
    expected = output_of(*words, str(tmp_path / "whole"))
    broken = tmp_path / "broken"
    for parts in (1, 2):
        with start(sys.executable, "-m", "lossscope_cli", *words, str(broken)) as process:
            wait_for_parts(broken, parts, process)
            process.kill()
            process.communicate()
        assert process.returncode == -signal.SIGKILL
        assert not Frame(broken).manifest()["done"]
    assert output_of(*words, str(broken)) == expected
    assert_same_frame(broken, tmp_path / "whole")
