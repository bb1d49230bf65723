"""Does a training stop at lost rows, a full disk, a second writer or a killed start, without changing a number?"""

from __future__ import annotations

import resource
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lossscope.errors import InputError, Interrupted, WriteError
from lossscope.io import folder_lock
from lossscope.io.run_folder import Run
from lossscope.training.loop import resume, train
from lossscope.training.monitor import ProbeSchedule
from lossscope.training.observers import Observers
from lossscope.training.recipe import Recipe

RECIPE = Recipe(
    data="scenes:train=16,val=8,test=8,size=16", encoder="vsepp:dim=8,words=8,width=4", objective="ntxent", epochs=2,
    batch_size=16, lr=0.002,
)  # fmt: skip
PROBES = ProbeSchedule(("similarity",), 2)


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return train(RECIPE, tmp_path_factory.mktemp("unbroken") / "run", probe_schedule=PROBES)


def stopped(folder: Path, after: int = 3) -> Run:
    """Return a run that was stopped in its first epoch."""

    def progress(label: str, step: int, _total: int) -> None:
        if label.startswith("epoch") and step == after:
            import signal

            signal.raise_signal(signal.SIGINT)

    with pytest.raises(Interrupted):
        train(RECIPE, folder, observers=Observers(progress=progress), probe_schedule=PROBES)
    return Run(folder)


def contents(run: Run) -> dict[str, bytes]:
    """Return all files of a run, without the times of its events."""
    files = (path for path in run.path.rglob("*") if path.is_file() and path.name != "events.jsonl")
    return {path.relative_to(run.path).as_posix(): path.read_bytes() for path in files}


def drop_line(path: Path, line: int) -> None:
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[:line] + lines[line + 1 :]))


def test_identical_runs_have_identical_bytes(unbroken: Run, tmp_path: Path) -> None:
    """Checkpoints stored the name of the temporary file."""
    assert contents(train(RECIPE, tmp_path / "again", probe_schedule=PROBES)) == contents(unbroken)


@pytest.mark.parametrize("after", [1, 3])
def test_a_resumed_run_has_the_bytes_of_an_unbroken_one(unbroken: Run, tmp_path: Path, after: int) -> None:
    assert contents(resume(stopped(tmp_path / "run", after).path)) == contents(unbroken)


@pytest.mark.parametrize(
    ("table", "line", "says"),
    [
        ("trajectory.csv", 3, "got none in place of epoch 1 step 3"),
        ("trajectory.csv", 1, "got epoch 1 step 2 in place of epoch 1 step 1"),
        ("probes.csv", 2, "got none in place of epoch 1 step 3"),
        ("metrics.csv", 1, "got none in place of epoch 0"),
    ],
)
def test_a_row_that_the_checkpoint_counts_on_and_is_lost_is_an_error(
    tmp_path: Path, table: str, line: int, says: str
) -> None:
    """The loss of the epoch was the mean of the remaining rows."""
    run = stopped(tmp_path / "run")
    drop_line(run.path / table, line)
    with pytest.raises(InputError, match=rf"{table} must have the rows that .*last\.pt counts on; {says}"):
        resume(run.path)


def test_rows_and_their_folder_are_synced_before_the_checkpoint_that_counts_on_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    order: list[str] = []
    sync, save = Run.sync, folder_names_of_saves(order, monkeypatch)
    monkeypatch.setattr(Run, "sync", lambda run: (order.append("sync"), sync(run))[1])
    stopped(tmp_path / "run")
    assert save == order and [order[k - 1] for k, name in enumerate(order) if name == "last.pt"] == ["sync", "sync"]


def folder_names_of_saves(order: list[str], monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Make each save of a checkpoint append its name."""
    from lossscope.sources.checkpoints.checkpoint import Checkpoint

    save = Checkpoint.save

    def named(checkpoint: Checkpoint, path: Any) -> None:
        order.append(Path(path).name)
        save(checkpoint, path)

    monkeypatch.setattr(Checkpoint, "save", named)
    return order


def test_a_run_has_one_writer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, held: Callable[..., Any]) -> None:
    """Two processes that resumed a run mixed their rows, and both exited with 0."""
    monkeypatch.setattr(folder_lock, "_PATIENCE", 0.05)
    run = stopped(tmp_path / "run")
    before = contents(run)
    with held(run.path), pytest.raises(InputError, match="run must have one writer at a time"):
        resume(run.path)
    with held(tmp_path / "new"), pytest.raises(InputError, match="new must have one writer at a time"):
        train(RECIPE, tmp_path / "new")
    assert contents(run) == before and not (tmp_path / "new").exists()


def test_a_choice_that_cannot_be_trained_leaves_no_folder(tmp_path: Path) -> None:
    with pytest.raises(InputError):
        train(Recipe(**{**vars(RECIPE), "objective": "aoq"}), tmp_path / "deep" / "run")
    assert not (tmp_path / "deep").exists()


@pytest.mark.parametrize("left", [[], ["checkpoints"], ["probes.toml"], ["checkpoints", "probes.toml"]])
def test_a_start_that_was_killed_before_there_was_anything_to_resume_is_made_again(
    tmp_path: Path, left: list[str]
) -> None:
    """The folder was not new, and could not be resumed."""
    run = Run(tmp_path / "run")
    run.path.mkdir()
    for name in (".lock", ".lock.json", ".config.toml.abcdefgh.part"):
        (run.path / name).touch()
    if "checkpoints" in left:
        run.last.parent.mkdir()
    if "probes.toml" in left:
        PROBES.write(run.probe_schedule)
    train(Recipe(**{**vars(RECIPE), "epochs": 1}), run.path)
    assert sorted(path.name for path in run.path.iterdir()) == [
        "best.pt", "checkpoints", "config.toml", "events.jsonl", "metrics.csv", "trajectory.csv",
    ]  # fmt: skip


@pytest.mark.parametrize("share", [0.0, 0.3, 0.7])
def test_a_full_disk_is_one_message_and_the_run_resumes_to_the_same_bytes(
    tmp_path: Path, unbroken: Run, share: float
) -> None:
    """The training ended in a traceback of torch.save."""
    run, before = Run(tmp_path / "run"), resource.getrlimit(resource.RLIMIT_FSIZE)
    largest = max(path.stat().st_size for path in unbroken.path.rglob("*.pt"))
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(share * largest) + 2000, before[1]))
    try:
        with pytest.raises(WriteError, match=r"\.pt must be written whole; got 'file too large'"):
            train(RECIPE, run.path, save_every=2, probe_schedule=PROBES)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    resume(run.path, save_every=2)
    assert contents(run) == contents(unbroken)
