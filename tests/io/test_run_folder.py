"""Are run folders never overwritten, cut back to a checkpoint, and read as curves?"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lossscope.errors import InputError
from lossscope.io.run_folder import Run
from tests.each import each


def write_run(tmp_path: Path) -> Run:
    run = Run(tmp_path / "run")
    run.start()
    run.append(run.metrics, [{"epoch": epoch, "loss": 0.5, "rsum": 10.0 * epoch} for epoch in range(4)])
    run.append(run.trajectory, [{"epoch": e, "step": s, "loss": e + s / 4} for e in (1, 2, 3) for s in (1, 2)])
    return run


def test_a_used_folder_is_refused(tmp_path: Path) -> None:
    run = write_run(tmp_path)
    with pytest.raises(InputError, match=r"must be new or empty; it is not. Resume it with --resume"):
        run.start()
    (tmp_path / "file").write_text("x")
    with pytest.raises(InputError, match="must be new or empty"):
        Run(tmp_path / "file").require_new()


def test_an_empty_folder_is_accepted(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    Run(tmp_path / "empty").start()
    assert (tmp_path / "empty" / "checkpoints").is_dir()


def test_tables_grow_under_one_header(tmp_path: Path) -> None:
    run = write_run(tmp_path)
    run.append(run.metrics, [])
    run.append(run.metrics, [{"epoch": 4, "loss": 0.1, "rsum": 1.0}])
    lines = run.metrics.read_text().splitlines()
    assert (lines[0], len(lines), lines[-1]) == ("epoch,loss,rsum", 6, "4,0.1,1.0")


def test_truncating_drops_what_is_later_than_the_checkpoint(tmp_path: Path) -> None:
    run = write_run(tmp_path)
    run.truncate(2, 1)
    assert run.trajectory.read_text() == "epoch,step,loss\n1,1,1.25\n1,2,1.5\n2,1,2.25\n"
    assert run.metrics.read_text() == "epoch,loss,rsum\n0,0.5,0.0\n1,0.5,10.0\n"


def test_truncating_drops_an_incomplete_last_line(tmp_path: Path) -> None:
    run = write_run(tmp_path)
    complete = run.trajectory.read_text()
    run.trajectory.write_text(complete + "4,1")
    run.truncate(9, 9)
    assert run.trajectory.read_text() == complete


def test_truncating_drops_an_incomplete_header_so_that_it_is_written_again(tmp_path: Path) -> None:
    run = write_run(tmp_path)
    run.metrics.write_text("epoch,lo")
    run.trajectory.write_text("")
    run.truncate(1, 0)
    run.append(run.metrics, [{"epoch": 0, "loss": 1.0}])
    assert run.metrics.read_text() == "epoch,loss\n0,1.0\n"


def test_truncating_to_nothing_keeps_the_header(tmp_path: Path) -> None:
    run = write_run(tmp_path)
    run.truncate(0, 0)
    assert run.metrics.read_text() == "epoch,loss,rsum\n"
    Run(tmp_path / "new").truncate(0, 0)
    assert not (tmp_path / "new").exists()


def test_events_are_lines_of_json(tmp_path: Path) -> None:
    run = write_run(tmp_path)
    run.event("started", seed=1)
    run.event("finished")
    events = [json.loads(line) for line in (run.path / "events.jsonl").read_text().splitlines()]
    assert [event["event"] for event in events] == ["started", "finished"]
    assert events[0]["seed"] == 1
    assert events[0]["time"].endswith("+00:00")


def test_curves_have_steps_and_epochs_on_one_axis(tmp_path: Path) -> None:
    curves = write_run(tmp_path).curves("mine")
    val, train = (curves[curves["split"] == name] for name in ("val", "train"))
    assert set(curves["run"]) == {"mine"}
    assert val["epoch"].tolist() == [0, 1, 2, 3]
    assert train["epoch"].tolist() == [0.5, 1, 1.5, 2, 2.5, 3]
    assert val["rsum"].tolist() == [0, 10, 20, 30]
    assert curves["pos_mean"].isna().all()


def _warmed_up(path: Path, objectives: list[str]) -> Run:
    """Write a run of triplet_sh whose configuration has a warm-up of two epochs, with two steps of each objective."""
    run = Run(path / "run")
    run.start()
    run.config.write_text('objective = "triplet_sh:margin=0.2"\nwarmup = 2\n')
    run.append(run.metrics, [{"epoch": k, "loss": 1.0, "rsum": 1.0} for k in range(len(objectives) + 1)])
    steps = [(k + 1, step, name) for k, name in enumerate(objectives) for step in (1, 2)]
    run.append(run.trajectory, [{"epoch": k, "step": s, "objective": name, "loss": 1.0} for k, s, name in steps])
    return run


@each(
    "objectives, warmup",
    [
        (["triplet", "triplet", "triplet_sh"], [None, "triplet", "triplet", None]),
        (["triplet", "triplet"], [None, "triplet", "triplet"]),  # stopped before its loss began
        (["triplet_sh", "triplet_sh", "triplet_sh"], [None] * 4),  # a loss that needs none
    ],
)
def test_curves_state_the_objective_of_the_warmup(
    tmp_path: Path, objectives: list[str], warmup: list[str | None]
) -> None:
    curves = _warmed_up(tmp_path, objectives).curves()
    val, train = (curves[curves["split"] == name] for name in ("val", "train"))
    assert val["warmup"].tolist() == warmup
    assert train["warmup"].tolist() == [name for name in warmup[1:] for _ in (1, 2)]


def test_the_training_loss_is_not_shown_as_that_of_the_validation_split(tmp_path: Path) -> None:
    """metrics.csv has the mean loss of an epoch's steps; curves once called it the validation loss."""
    run = write_run(tmp_path)
    curves = run.curves()
    assert curves.loc[curves["split"] == "val", "loss"].isna().all()
    assert curves.loc[curves["split"] == "train", "loss"].notna().all()
    assert run.epochs()["loss"].notna().any()


def test_one_short_batch_is_no_spike_in_the_curves(tmp_path: Path) -> None:
    run = Run(tmp_path / "run")
    run.start()
    run.append(run.metrics, [{"epoch": epoch, "loss": 50.0, "rsum": 1.0} for epoch in (0, 1)])
    losses = [50.0] * 20 + [5.0]
    run.append(run.trajectory, [{"epoch": 1, "step": i + 1, "loss": loss} for i, loss in enumerate(losses)])
    curves = run.curves()
    assert curves.loc[curves["split"] == "train", "loss"].tolist() == [50.0] * 21


def test_curves_without_steps_are_the_epochs(tmp_path: Path) -> None:
    run = write_run(tmp_path)
    run.trajectory.unlink()
    assert write_run(tmp_path / "other").path.name == run.curves()["run"].unique().item()


def test_an_epoch_that_stands_twice_is_refused(tmp_path: Path) -> None:
    """Joining the epochs with the steps raised a MergeError of pandas."""
    run = write_run(tmp_path)
    text = run.metrics.read_text(encoding="utf-8")
    run.metrics.write_text(text + text.splitlines()[-1] + "\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"metrics\.csv must have one row for each epoch; it has two for"):
        run.epochs()


def test_a_folder_that_is_no_run_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"must be a run folder with metrics\.csv; it has none"):
        Run(tmp_path).curves()


@each("text", ["", "a,b\n1,2\n", 'epoch,"x\n1,2,3\n'])
def test_a_damaged_table_is_named(tmp_path: Path, text: str) -> None:
    run = write_run(tmp_path)
    run.metrics.write_text(text)
    with pytest.raises(InputError, match=r"metrics\.csv must"):
        run.curves()
