"""Do many processes give the numbers of one, in one folder, and do all end when one of them fails?"""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from lossscope.core.distributed import process_group
from lossscope.core.embedded import SplitEmbeddings
from lossscope.core.similarity import normalise
from lossscope.errors import Interrupted
from lossscope.registry import build
from lossscope.sources.checkpoints.checkpoint import Checkpoint
from lossscope.training.loop import resume, train
from lossscope.training.observers import Observers
from lossscope.training.offline_candidates import mine_candidates
from lossscope.training.recipe import Recipe
from tests.farm import run_command, run_ranks
from tests.lengths import thorough

DATA = "scenes:train=30,val=10,test=10,size=16"  # 150 pairs: the last batch is of 22, and 22 is no multiple of 3
CNN = "vsepp:dim=16,words=8,width=4"  # with batch norm
CLIP = "clip:width=16,depth=1,heads=2,dim=8"  # without
SIZES = (2, 3)
PLAIN = Recipe(data=DATA, encoder=CNN, objective="ntxent", epochs=2, batch_size=32, lr=0.002)
RECIPES = {
    "batch norm": PLAIN,
    "no batch norm": replace(PLAIN, encoder=CLIP),
    "learnt scale": replace(PLAIN, encoder=CLIP, objective="infonce"),
    "learnt scale and bias": replace(PLAIN, objective="siglip"),
    "coupled": replace(PLAIN, objective="goal:triplet=con,pair=sig-ms"),
    "sum": replace(PLAIN, objective="triplet-sh", reduction="sum"),
    "mean": replace(PLAIN, objective="triplet-sh", reduction="mean", clip=0.0),
    "images": replace(PLAIN, objective="supcon", batch_size=7),
    "masked": replace(PLAIN, same_image="mask", weight_decay=0.01, optimiser="adamw"),
    "outer step": replace(PLAIN, objective="meta_spn:hidden=3", warmup=0),
    "scored pairs": replace(PLAIN, encoder=f"{CNN},measure=order"),
    "estimated labels": replace(PLAIN, objective="ncr"),
    "offline": replace(PLAIN, objective="aoq", batch_size=16, steps=4, epochs=1),
    "fewer than processes": replace(PLAIN, batch_size=37),  # the last batch is of 2
    "random crop": replace(PLAIN, data=DATA.replace("size=16", "size=20"), encoder=f"{CNN},crop=16", epochs=3),
}  # fmt: skip
BROKEN_OFF = ", broken off"  # end of the name of a run that was stopped twice
OF_THREE = ("batch norm", "images", "fewer than processes")  # trained by three processes in `make test`, too
SOME_SIZES = [
    pytest.param(name, size, marks=[pytest.mark.thorough] if size == 3 and name not in OF_THREE else [])
    for name in RECIPES
    for size in SIZES
    if name != "random crop"  # each process draws its pictures anew
]
# gradients that are 0 but for rounding, which Adam turns into steps: biases before a batch norm and of attention's keys
ROUNDED = ("image.fc.bias", "image.bn.running_mean", "k_proj.bias")


def table(path: Path) -> list[dict[str, str]]:
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def ranked(recipe: Recipe, folder: Path) -> Recipe:
    """Return the recipe with a ranking of its training split under random vectors."""
    split = build("datasets", recipe.data).split("train")
    generator = torch.Generator().manual_seed(0)
    vectors = [normalise(torch.randn(n, 6, generator=generator)) for n in (len(split.images), len(split.captions))]
    ids = (split.image_ids, split.caption_ids)
    mine_candidates(SplitEmbeddings("model", *vectors, None, split.caption_image, *ids, "abc"), folder, 5)
    return replace(recipe, offline=str(folder))


def stop_after(n: int) -> Callable[[str, int, int], None]:
    """Return a progress function that sends SIGTERM after n steps."""
    done: list[str] = []

    def progress(label: str, _step: int, _total: int) -> None:
        if label.startswith("epoch"):
            done.append(label)
            if len(done) == n:
                signal.raise_signal(signal.SIGTERM)

    return progress


def broken_off(recipe: Recipe, out: Path) -> None:
    """Train a run that the last process stops twice, and that resumes."""
    here = process_group()
    stops = here.rank == here.size - 1
    for steps, start in ((3, train), (6, resume)):
        try:
            start(*([recipe] if start is train else []), out, observers=Observers(stop_after(steps) if stops else None))  # type: ignore[operator]
        except Interrupted:
            continue
        raise AssertionError("it was not interrupted")
    resume(out)


def train_once(name: str, folder: Path) -> None:
    """Train a recipe in float64, so that differences are not rounding."""
    here = process_group()
    torch.set_default_dtype(torch.float64)
    torch.Tensor.float = torch.Tensor.double  # type: ignore[method-assign]
    recipe, out = RECIPES[name.removesuffix(BROKEN_OFF)], folder / f"{name} {here.size}"
    if "aoq" in recipe.objective:
        recipe = ranked(recipe, folder / f"ranked-{here.size}-{here.rank}")
    if name.endswith(BROKEN_OFF):
        broken_off(recipe, out)
    else:
        train(recipe, out)


def torchrun(size: int, *words: str) -> list[str]:
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(size)]
    return [*launcher, "-m", "lossscope_cli", *words]


def environment() -> dict[str, str]:
    return {**os.environ, "OMP_NUM_THREADS": "1"}


@pytest.fixture(scope="module")
def run_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, int], Path]:
    """Return `run_of(name, processes)`, the folder of a run, which trains at the first call."""
    folder = tmp_path_factory.mktemp("runs")

    def run(name: str, size: int) -> Path:
        path = folder / f"{name} {size}"
        if not path.is_dir():
            run_ranks(train_once, size, name, folder)
        return path

    return run


@pytest.mark.parametrize(("name", "size"), SOME_SIZES)
def test_many_processes_give_the_numbers_of_one(name: str, size: int, run_of: Callable[[str, int], Path]) -> None:
    alone, many = (run_of(name, n) for n in (1, size))
    for file, close in (("trajectory.csv", 1e-10), ("metrics.csv", 1e-6)):
        rows, expected = table(many / file), table(alone / file)
        assert [row.keys() for row in rows] == [row.keys() for row in expected]
        for row, other in zip(rows, expected, strict=True):
            for column in other.keys() - {"objective"}:
                want = pytest.approx(float(other[column]), rel=close, abs=close / 100, nan_ok=True)
                assert float(row[column]) == want, (file, column, other)
    for path in sorted((alone / "checkpoints").iterdir()):
        ours, checkpoint = Checkpoint.load(many / "checkpoints" / path.name), Checkpoint.load(path)
        for part in ("weights", "objective_state"):
            for key, tensor in (getattr(checkpoint, part) or {}).items():
                close = 1e-7 if key.endswith(ROUNDED) else 1e-11
                torch.testing.assert_close(getattr(ours, part)[key], tensor, rtol=close, atol=close, msg=key)


@pytest.mark.parametrize("size", SIZES)
def test_one_process_writes_the_folder_as_it_would_alone(size: int, run_of: Callable[[str, int], Path]) -> None:
    alone, many = (run_of("batch norm", n) for n in (1, size))
    assert [p.relative_to(many) for p in sorted(many.rglob("*"))] == [
        p.relative_to(alone) for p in sorted(alone.rglob("*"))
    ]
    assert (many / "config.toml").read_text() == (alone / "config.toml").read_text()
    events = [json.loads(line) for line in (many / "events.jsonl").read_text().splitlines()]
    assert [event["event"] for event in events] == ["started", "epoch", "epoch", "finished"]
    assert events[0]["processes"] == size


@pytest.mark.parametrize("size", [1, 2, *thorough(3)])
@pytest.mark.parametrize("name", ["random crop", "outer step"])
def test_a_run_that_one_process_stopped_resumes_to_the_same_bits(
    name: str, size: int, run_of: Callable[[str, int], Path]
) -> None:
    whole, broken = run_of(name, size), run_of(name + BROKEN_OFF, size)
    events = [json.loads(line)["event"] for line in (broken / "events.jsonl").read_text().splitlines()]
    assert events.count("interrupted") == 2 and events[-1] == "finished"
    for file in ("trajectory.csv", "metrics.csv", "config.toml"):
        assert (whole / file).read_bytes() == (broken / file).read_bytes()
    for path in (whole / "best.pt", *(whole / "checkpoints").iterdir()):
        expected = Checkpoint.load(path).weights
        ours = Checkpoint.load(broken / path.relative_to(whole)).weights
        assert [key for key, tensor in expected.items() if not torch.equal(tensor, ours[key])] == []


def test_random_pictures_are_drawn_anew_in_every_process(run_of: Callable[[str, int], Path]) -> None:
    losses = [[row["loss"] for row in table(run_of("random crop", n) / "trajectory.csv")] for n in (1, 2)]
    assert losses[0][0] != losses[1][0]
    first, last = (np.mean([float(loss) for loss in part]) for part in (losses[1][:5], losses[1][-5:]))
    assert last < first


ARGUMENTS = [
    "train", "--data", DATA, "--encoder", CNN, "--objective", "ntxent", "--lr", "0.002",
    "--batch-size", "32", "--device", "cpu",
]  # fmt: skip


def test_the_command_gives_the_numbers_of_one_process_in_float32(tmp_path: Path) -> None:
    """Measured in ten steps: losses agree to 5e-7, gradient norms to 5e-6."""
    out = {1: tmp_path / "one", 3: tmp_path / "three"}
    for size, path in out.items():
        done = run_command(*ARGUMENTS, "--epochs", "2", "--out", str(path), ranks=size)
        assert done.returncode == 0, done.stderr
        assert done.stdout == f"{path}\n"  # once, not three times
        assert done.stderr.count("epoch   1") == 1
    rows, expected = (table(path / "trajectory.csv") for path in (out[3], out[1]))
    for row, other in zip(rows, expected, strict=True):
        assert float(row["loss"]) == pytest.approx(float(other["loss"]), rel=2e-6)
        assert float(row["gradient_norm"]) == pytest.approx(float(other["gradient_norm"]), rel=2e-5)


@contextmanager
def started(*command: str) -> Iterator[subprocess.Popen[str]]:
    """Start a job that does not outlive the test."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment())
    ranks: list[int] = []
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
    path = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    return [int(pid) for pid in path.read_text().split()]


def wait_for_steps(process: subprocess.Popen[str], run: Path, n: int = 3) -> None:
    """Wait until more than n steps are in trajectory.csv."""
    end = time.monotonic() + 100
    while not (run / "trajectory.csv").is_file() or len((run / "trajectory.csv").read_text().splitlines()) <= n:
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < end
        time.sleep(0.05)


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="finds the processes in /proc")
def test_a_killed_process_ends_the_job_with_a_message(tmp_path: Path) -> None:
    run = tmp_path / "run"
    arguments = [*ARGUMENTS, "--epochs", "10000", "--save-every", "1", "--out", str(run)]
    with started(*torchrun(2, *arguments)) as process:
        wait_for_steps(process, run)
        begun = time.monotonic()
        os.kill(children(process)[1], signal.SIGKILL)
        _, errors = process.communicate(timeout=60)
        assert time.monotonic() - begun < 20
        assert process.returncode != 0
        assert "Signal 9 (SIGKILL)" in errors
        assert "Traceback" not in errors.partition("torch/distributed/elastic")[0], errors
    assert Checkpoint.load(run / "checkpoints" / "last.pt").optimiser is not None


def test_ctrl_c_stops_all_processes_at_one_step_and_resume_goes_on(tmp_path: Path) -> None:
    run = tmp_path / "run"
    arguments = [*ARGUMENTS, "--epochs", "10000", "--save-every", "1", "--out", str(run)]
    with started(*torchrun(2, *arguments)) as process:
        wait_for_steps(process, run)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
        assert process.returncode != 0
        assert errors.count("Interrupted: stopped") == 1, errors
    events = [json.loads(line)["event"] for line in (run / "events.jsonl").read_text().splitlines()]
    assert events[-1] == "interrupted"
    last = Checkpoint.load(run / "checkpoints" / "last.pt")
    steps = table(run / "trajectory.csv")
    assert len(steps) == 5 * last.epoch + last.step
    goal = str(int(steps[-1]["epoch"]) + 1)
    done = run_command("train", "--resume", str(run), "--epochs", goal, "--device", "cpu", ranks=2)
    assert done.returncode == 0 and done.stdout == f"{run}\n", done.stderr
    assert len(table(run / "trajectory.csv")) == 5 * int(goal)


LOSS = """
import torch.distributed as dist
from torch.nn.functional import cross_entropy
import torch

calls = []

def loss(S):
    calls.append(1)
    if dist.is_initialized() and dist.get_rank() == 1 and len(S) == 22:
        raise ValueError("no such similarity")
    target = torch.arange(len(S))
    return cross_entropy(S / 0.1, target) + cross_entropy(S.T / 0.1, target)
"""


@pytest.mark.thorough
def test_an_error_of_one_process_ends_the_job_with_its_own_message(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(LOSS)
    arguments = [
        *ARGUMENTS,
        "--objective",
        f"{tmp_path / 'own.py'}:loss",
        "--epochs",
        "5",
        "--out",
        str(tmp_path / "run"),
    ]
    begun = time.monotonic()
    done = subprocess.run(
        torchrun(2, *arguments), capture_output=True, text=True, timeout=200, check=False, env=environment()
    )
    assert done.returncode != 0 and time.monotonic() - begun < 60
    assert "rank 1: " in done.stderr and "no such similarity" in done.stderr
    assert "gloo" not in done.stderr.lower(), done.stderr


def test_what_cannot_be_trained_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    out = tmp_path / "run"
    arguments = [*ARGUMENTS, "--objective", "supcon", "--sampling", "single", "--epochs", "1", "--info", "none.npz"]
    done = run_command(*arguments, "--out", str(out), ranks=2)
    assert done.returncode != 0 and not out.exists()
    assert ": Error: --info is for pairs; got images sampling" in done.stderr  # by the first process
    assert "Traceback" not in done.stderr


def test_sources_are_read_and_kept_by_one_process_and_found_by_the_others(
    tiny_checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    outputs: list[str] = []
    for size in (1, 2):
        monkeypatch.setenv("LOSSSCOPE_CACHE", str(tmp_path / str(size)))
        done = run_command("cocos", str(tiny_checkpoint), "--format", "json", "--device", "cpu", ranks=size)
        assert done.returncode == 0, done.stderr
        outputs.append(done.stdout)
    assert outputs[0] == outputs[1]
    kept = [sorted((tmp_path / str(size)).rglob("*.safetensors")) for size in (1, 2)]
    files = [[path.name for path in paths] for paths in kept]
    assert files[0] == files[1] and len(files[0]) == 1


def test_other_commands_run_in_one_process(monkeypatch: pytest.MonkeyPatch) -> None:
    from lossscope_cli import app

    variables = {"RANK": "1", "WORLD_SIZE": "2", "MASTER_ADDR": "localhost", "MASTER_PORT": "1", "LOCAL_RANK": "1"}
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    done = CliRunner().invoke(app, ["list", "objectives"])
    assert done.exit_code == 2 and "leave torchrun out" in done.output
    monkeypatch.setenv("WORLD_SIZE", "1")
    monkeypatch.setenv("RANK", "0")
    assert CliRunner().invoke(app, ["list", "objectives"]).exit_code == 0
