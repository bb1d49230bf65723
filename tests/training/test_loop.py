"""Does a seed give the same bits, interrupted or not, and is a training that cannot work refused before its start?"""

from __future__ import annotations

import csv
import dataclasses
import itertools
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from lossscope.errors import InputError, Interrupted
from lossscope.io.run_folder import Run
from lossscope.sources.checkpoints.checkpoint import Checkpoint
from lossscope.training.components import resolve
from lossscope.training.loop import resume, train
from lossscope.training.observers import Observers
from lossscope.training.recipe import Recipe
from lossscope.training.recipe_files import read_recipe
from tests import farm

DATA = "scenes:train=30,val=10,test=10,size=16"
ENCODER = "vsepp:dim=16,words=8,width=4"
STEPS = 5  # of an epoch: 150 pairs, 32 at a time


def recipe(**changes: Any) -> Recipe:
    plain = Recipe(data=DATA, encoder=ENCODER, objective="ntxent", epochs=2, batch_size=32, lr=0.002)
    return dataclasses.replace(plain, **changes)


def table(path: Path) -> list[dict[str, str]]:
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def tensors(run: Run) -> dict[str, torch.Tensor]:
    """Return all tensors of the kept checkpoints."""
    files = [run.best, *sorted((run.path / "checkpoints").glob("epoch-*.pt"))]
    return {f"{file.name}:{name}": t for file in files for name, t in Checkpoint.load(file).weights.items()}


def assert_same(run: Run, wanted: Run) -> None:
    ours, expected = tensors(run), tensors(wanted)
    assert ours.keys() == expected.keys()
    assert [name for name, tensor in ours.items() if not torch.equal(tensor, expected[name])] == []
    for name in ("metrics.csv", "trajectory.csv", "config.toml"):
        assert (run.path / name).read_bytes() == (wanted.path / name).read_bytes()
    adam, other = (Checkpoint.load(r.last).optimiser["adam"]["state"] for r in (run, wanted))  # type: ignore[index]
    assert all(torch.equal(value, other[i][key]) for i, state in adam.items() for key, value in state.items())


def stop_after(n: int) -> Callable[[str, int, int], None]:
    """Return a progress function that sends SIGINT, as Ctrl-C does, after n steps."""
    done: list[str] = []

    def progress(label: str, _step: int, _total: int) -> None:
        if label.startswith("epoch"):
            done.append(label)
            if len(done) == n:
                signal.raise_signal(signal.SIGINT)

    return progress


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return train(recipe(), tmp_path_factory.mktemp("unbroken") / "run")


def test_a_run_folder_holds_what_it_should(unbroken: Run) -> None:
    names = sorted(path.relative_to(unbroken.path).as_posix() for path in unbroken.path.rglob("*") if path.is_file())
    assert names == [
        "best.pt",
        "checkpoints/epoch-01.pt",
        "checkpoints/epoch-02.pt",
        "checkpoints/last.pt",
        "config.toml",
        "events.jsonl",
        "metrics.csv",
        "trajectory.csv",
    ]
    assert read_recipe(unbroken.config) == resolve(recipe()).recipe
    assert [row["epoch"] for row in table(unbroken.metrics)] == ["0", "1", "2"]
    steps = [(row["epoch"], row["step"]) for row in table(unbroken.trajectory)]
    assert steps == [(str(e), str(s)) for e in (1, 2) for s in range(1, STEPS + 1)]
    best = max(table(unbroken.metrics)[1:], key=lambda row: float(row["rsum"]))
    assert Checkpoint.load(unbroken.best).epoch == int(best["epoch"])
    events = [json.loads(line)["event"] for line in (unbroken.path / "events.jsonl").read_text().splitlines()]
    assert events == ["started", "epoch", "epoch", "finished"]


def test_the_same_seed_gives_the_same_bits(tmp_path: Path, unbroken: Run) -> None:
    torch.manual_seed(99)
    assert_same(train(recipe(), tmp_path / "again"), unbroken)


def test_another_seed_gives_other_bits(tmp_path: Path, unbroken: Run) -> None:
    other = train(recipe(seed=1), tmp_path / "other")
    assert not torch.equal(
        tensors(other)["epoch-01.pt:image.fc.weight"], tensors(unbroken)["epoch-01.pt:image.fc.weight"]
    )


def test_more_epochs_after_the_end_are_the_bits_of_a_longer_run(tmp_path: Path, unbroken: Run) -> None:
    first = train(recipe(epochs=1), tmp_path / "run")
    assert_same(resume(first.path, epochs=2), unbroken)
    assert read_recipe(first.config).epochs == 2


@pytest.mark.parametrize("steps", [1, 3, STEPS, STEPS + 1, 2 * STEPS - 1])
def test_ctrl_c_keeps_the_step_under_way_and_resumes_to_the_same_bits(
    steps: int, tmp_path: Path, unbroken: Run
) -> None:
    with pytest.raises(Interrupted, match=r"stopped (in|after) epoch"):
        train(recipe(), tmp_path / "run", observers=Observers(progress=stop_after(steps)))
    run = Run(tmp_path / "run")
    assert len(table(run.trajectory)) == steps
    assert_same(resume(run.path), unbroken)


def test_several_stops_in_one_run_change_nothing(tmp_path: Path, unbroken: Run) -> None:
    with pytest.raises(Interrupted):
        train(recipe(), tmp_path / "run", observers=Observers(progress=stop_after(2)))
    for _ in range(3):
        with pytest.raises(Interrupted):
            resume(tmp_path / "run", observers=Observers(progress=stop_after(2)))
    assert_same(resume(tmp_path / "run", save_every=1), unbroken)


def test_ctrl_c_stops_a_run_whose_epochs_are_one_step(tmp_path: Path) -> None:
    with pytest.raises(Interrupted, match="stopped after epoch 1 of 9"):
        train(recipe(batch_size=1000, epochs=9), tmp_path / "run", observers=Observers(progress=stop_after(1)))
    assert len(table(tmp_path / "run" / "metrics.csv")) == 2


def test_signal_handlers_and_determinism_are_put_back(tmp_path: Path) -> None:
    """A shell starts a background job with Ctrl-C ignored, which must stay so."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        train(recipe(epochs=1), tmp_path / "run")
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)
    assert not torch.are_deterministic_algorithms_enabled()


def test_a_finished_run_resumes_to_itself(tmp_path: Path, unbroken: Run) -> None:
    run = train(recipe(), tmp_path / "run")
    assert_same(resume(run.path), unbroken)
    with pytest.raises(InputError, match="--epochs must be at least the 2"):
        resume(run.path, epochs=1)
    assert read_recipe(run.config).epochs == 2


def train_until_killed(folder: Path, at: int, half: bool) -> None:
    """Train, and die of SIGKILL at a write: after it, or in the middle of a file."""
    writes = itertools.count(1)
    rename, append = Path.replace, Run.append

    def renaming(self: Path, target: Path) -> Path:
        if next(writes) == at:
            if not half:
                rename(self, target)
            os.kill(os.getpid(), signal.SIGKILL)
        return rename(self, target)

    def appending(self: Run, path: Path, rows: Any) -> None:
        rows, before = list(rows), path.stat().st_size if path.exists() else 0
        append(self, path, rows)
        if rows and next(writes) == at:
            if half:
                os.truncate(path, (before + path.stat().st_size) // 2)
            os.kill(os.getpid(), signal.SIGKILL)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Path, "replace", renaming)
        patch.setattr(Run, "append", appending)
        train(recipe(), folder / "run", save_every=2)


@pytest.mark.parametrize("how", ["whole", "half"])
@pytest.mark.parametrize("write", [1, 2, 3, 4, 5, 8, 10, 11, 13])
def test_a_kill_at_any_write_resumes_to_the_same_bits(write: int, how: str, tmp_path: Path, unbroken: Run) -> None:
    killed = farm.process(train_until_killed, (tmp_path, write, how == "half"))
    killed.start()
    killed.join(120)
    assert killed.exitcode == -signal.SIGKILL
    run = Run(tmp_path / "run")
    if not run.config.is_file():
        with pytest.raises(InputError, match=r"must be a run folder; it has no config\.toml"):
            resume(run.path)
        return
    assert_same(resume(run.path), unbroken)


@pytest.mark.thorough  # tests/crash kills one in `make test`
@pytest.mark.parametrize("seconds", [0.0, 0.02, 0.05, 0.09, 0.15])
def test_kill_9_of_the_command_resumes_to_the_same_bits(seconds: float, tmp_path: Path, unbroken: Run) -> None:
    run = Run(tmp_path / "run")
    options = {
        "--data": DATA, "--encoder": ENCODER, "--objective": "ntxent", "--epochs": "2", "--batch-size": "32",
        "--lr": "0.002", "--save-every": "1", "--out": str(run.path), "--device": "cpu",
    }  # fmt: skip
    words = [word for pair in options.items() for word in pair]
    process = subprocess.Popen([sys.executable, "-m", "lossscope_cli", "train", *words, "--quiet"])
    while not run.metrics.is_file() and process.poll() is None:
        time.sleep(0.001)
    time.sleep(seconds)
    process.kill()
    process.wait()
    assert_same(resume(run.path), unbroken)


def test_sigterm_to_the_command_ends_with_130_and_resumes(tmp_path: Path, unbroken: Run) -> None:
    with pytest.raises(Interrupted):
        train(recipe(), tmp_path / "run", observers=Observers(progress=lambda *_: os.kill(os.getpid(), signal.SIGTERM)))
    assert_same(resume(tmp_path / "run"), unbroken)


def test_changed_data_are_refused(tmp_path: Path) -> None:
    run = train(recipe(epochs=1), tmp_path / "run")
    text = run.config.read_text()
    run.config.write_text(text.replace("train=30", "train=31"))
    with pytest.raises(InputError, match="must state what the run began with; got data = "):
        resume(run.path, epochs=2)


def test_changed_features_are_refused(tmp_path: Path) -> None:
    data = features(tmp_path / "data", (6,))
    run = train(recipe(data=data, encoder="vsepp:image=linear,dim=8,words=4", epochs=1), tmp_path / "run")
    features(tmp_path / "data", (6,), seed=1)
    with pytest.raises(InputError, match=r"data of .* must be what the run began with; precomp.* has changed since"):
        resume(run.path, epochs=2)


@pytest.mark.parametrize("change", [("lr = 0.002", "lr = 0.003"), ("batch_size = 32", "batch_size = 16")])
def test_changed_choices_are_refused(change: tuple[str, str], tmp_path: Path) -> None:
    run = train(recipe(epochs=1), tmp_path / "run")
    run.config.write_text(run.config.read_text().replace(*change))
    with pytest.raises(InputError, match="must state what the run began with"):
        resume(run.path, epochs=2)


def test_a_last_checkpoint_that_is_damaged_or_foreign_is_named(tmp_path: Path) -> None:
    run = train(recipe(epochs=1), tmp_path / "run")
    whole = {**torch.load(run.last, weights_only=True), "version": 2, "digests": {}}
    torch.save({**whole, "optimiser": None}, run.last)
    with pytest.raises(InputError, match="it is for probing only"):
        resume(run.path, epochs=2)
    torch.save({**whole, "optimiser": {"adam": {}}}, run.last)
    with pytest.raises(InputError, match="must hold the state of Adam"):
        resume(run.path, epochs=2)
    torch.save({**whole, "encoder": "./gone.py:Evil"}, run.last)
    with pytest.raises(InputError, match="lossscope imports it only with --trust-code"):
        resume(run.path, epochs=2)
    run.last.write_text("text")
    with pytest.raises(InputError, match="must be a torch file"):
        resume(run.path, epochs=2)


def test_divergence_says_what_to_do_and_never_looks_like_success(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="training diverged") as problem:
        train(recipe(lr=1e30, clip=0.0, epochs=3), tmp_path / "run")
    assert "--lr" in str(problem.value)
    assert all(float(row["rsum"]) < 600 for row in table(tmp_path / "run" / "metrics.csv"))
    assert Checkpoint.load(tmp_path / "run" / "checkpoints" / "last.pt").epoch == 0


def test_divergence_in_the_last_step_of_an_epoch_is_seen(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="training diverged in epoch 1"):
        train(recipe(lr=1e30, clip=0.0, batch_size=1000), tmp_path / "run")
    assert not (tmp_path / "run" / "best.pt").exists()


def test_the_warm_up_objective_trains_first_and_is_named(tmp_path: Path) -> None:
    run = train(recipe(objective="triplet_sh", epochs=2, warmup=1), tmp_path / "run")
    named = [(row["epoch"], row["objective"]) for row in table(run.trajectory)]
    assert named == [("1", "triplet")] * STEPS + [("2", "triplet_sh")] * STEPS
    assert Checkpoint.load(run.best).objective == "triplet_sh:margin=0.2"
    warm = train(recipe(objective="triplet", epochs=1), tmp_path / "warm")
    assert Path(warm.trajectory).read_text().splitlines() == run.trajectory.read_text().splitlines()[: STEPS + 1]


def test_the_learning_rate_decays(tmp_path: Path) -> None:
    run = train(recipe(epochs=3, lr_step=2, lr_gamma=0.1), tmp_path / "run")
    rates = {row["epoch"]: float(row["lr"]) for row in table(run.trajectory)}
    assert rates == pytest.approx({"1": 0.002, "2": 0.002, "3": 0.0002})


def test_clipping_bounds_the_step_and_reports_the_norm_before_it(tmp_path: Path, unbroken: Run) -> None:
    free = train(recipe(clip=0.0, epochs=1), tmp_path / "free")
    norms = [float(row["gradient_norm"]) for row in table(free.trajectory)]
    assert norms[0] > 2.0
    assert float(table(unbroken.trajectory)[0]["gradient_norm"]) == norms[0]
    assert not torch.equal(
        tensors(free)["epoch-01.pt:image.fc.weight"], tensors(unbroken)["epoch-01.pt:image.fc.weight"]
    )


@pytest.mark.parametrize("spec", ["goal:triplet=cir", "goal:triplet=nca,pair=sig-ms"])
def test_an_objective_without_a_value_trains(spec: str, tmp_path: Path) -> None:
    run = train(recipe(objective=spec, warmup=0), tmp_path / "run")
    assert {row["loss"] for row in table(run.trajectory)} == {"nan"}
    assert all(float(row["gradient_norm"]) > 0 for row in table(run.trajectory))
    first, second = (Checkpoint.load(run.epoch(number)).weights["image.fc.weight"] for number in (1, 2))
    assert not torch.equal(first, second)
    assert Run(run.path).curves()["loss"].isna().all()


def test_an_objective_with_many_positives_trains_on_images(tmp_path: Path) -> None:
    run = train(recipe(objective="smoothap", batch_size=10), tmp_path / "run")
    assert len(table(run.trajectory)) == 2 * 3
    assert all(0 < float(row["loss"]) < 1 for row in table(run.trajectory))


@pytest.mark.parametrize("precision", ["bf16", "fp16"])
def test_half_precision_runs_on_a_cpu_and_stores_float32(precision: str, tmp_path: Path, unbroken: Run) -> None:
    run = train(recipe(precision=precision, epochs=1), tmp_path / "run")
    losses = [float(row["loss"]) for row in table(run.trajectory)]
    exact = [float(row["loss"]) for row in table(unbroken.trajectory)][:STEPS]
    assert losses[0] == pytest.approx(exact[0], rel=0.01)
    assert all(map(np.isfinite, losses))  # fp16 skips steps while its scale settles
    assert losses != exact
    assert Checkpoint.load(run.best).weights["image.fc.weight"].dtype == torch.float32


def features(root: Path, shape: tuple[int, ...], seed: int = 0) -> str:
    """Write a precomp folder of 12 images in each of two splits."""
    root.mkdir(exist_ok=True)
    random = np.random.default_rng(seed)
    for split in ("train", "dev"):
        np.save(root / f"{split}_ims.npy", random.normal(size=(12, *shape)).astype(np.float32))
        lines = [f"a {word} thing {row % 7}" for row in range(12) for word in ("red", "big", "old", "new", "odd")]
        (root / f"{split}_caps.txt").write_text("\n".join(lines) + "\n")
    return f'precomp:root="{root}"'


@pytest.mark.parametrize("shape", [(6,), (4, 6)])
def test_precomputed_features_train_a_linear_tower(shape: tuple[int, ...], tmp_path: Path) -> None:
    data = features(tmp_path / "data", shape)
    run = train(recipe(data=data, encoder="vsepp:image=linear,dim=8,words=4"), tmp_path / "run")
    assert Checkpoint.load(run.best).item_shape == list(shape)
    assert all(np.isfinite(float(row["loss"])) for row in table(run.trajectory))


def test_one_pair_left_over_is_no_step(tmp_path: Path) -> None:
    run = train(recipe(data="scenes:train=13,val=5,test=5,size=16", batch_size=64), tmp_path / "run")
    assert [row["step"] for row in table(run.trajectory)] == ["1", "1"]


@pytest.mark.parametrize(
    ("changes", "fragment"),
    [
        ({"objective": "ntxnt"}, "did you mean 'ntxent'"),
        ({"objective": "triplet", "sampling": "images"}, "sampling must be pairs"),
        ({"encoder": "vsepp:image=linear"}, "must be given features"),
        ({"data": "precomp:root=nowhere"}, "split of nowhere must be one of"),
        ({"data": "scenes:train=1,val=5,test=5,size=16"}, "must hold at least 2 images"),
    ],
)
def test_what_cannot_work_leaves_no_folder_behind(changes: dict[str, Any], fragment: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=fragment):
        train(recipe(**changes), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_used_folder_is_refused_before_any_work(tmp_path: Path, unbroken: Run) -> None:
    with pytest.raises(InputError, match="must be new or empty"):
        train(recipe(), unbroken.path)


def test_on_epoch_is_called_with_every_row_of_the_metrics(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = []
    run = train(recipe(epochs=1), tmp_path / "run", observers=Observers(on_epoch=rows.append))
    assert [row["epoch"] for row in rows] == [0, 1]
    assert [str(row["rsum"]) for row in rows] == [row["rsum"] for row in table(run.metrics)]


def test_the_loss_falls_and_retrieval_improves(tmp_path: Path) -> None:
    plan = recipe(data="scenes:train=300,val=50,test=10,size=32", encoder="vsepp:dim=32,words=16,width=8", epochs=6)
    rows = table(train(dataclasses.replace(plan, batch_size=64), tmp_path / "run").metrics)
    losses, rsums = ([float(row[name]) for row in rows] for name in ("loss", "rsum"))
    assert losses[-1] < 0.9 * losses[1]
    assert max(rsums[-2:]) > rsums[0] + 40


@pytest.mark.usefixtures("typed")
def test_a_changed_file_of_the_objective_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "own.py"
    text = "import torch\n\ndef loss(S):\n    return torch.nn.functional.cross_entropy(S / 0.1, torch.arange(len(S)))\n"
    file.write_text(text)
    run = train(recipe(objective=f"{file}:loss", epochs=1), tmp_path / "run")
    file.write_text(text.replace("0.1", "0.5"))
    with pytest.raises(
        InputError, match=r"objective of .* must be what the run began with; .*own.py:loss changed since"
    ):
        resume(run.path, epochs=2, trust_code=True)
    file.write_text(text)
    assert resume(run.path, epochs=2, trust_code=True).last.is_file()
