"""Do probes describe the batch before the update, without any effect on the training?"""

from __future__ import annotations

import os
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import torch
from lossscope_cli import app
from typer.testing import CliRunner

import lossscope.training.step
from lossscope.core.pair import Pair
from lossscope.core.similarity import pair_mask
from lossscope.errors import InputError, Interrupted
from lossscope.io.run_folder import Run
from lossscope.live.monitor import LossScope
from lossscope.registry import build, names
from lossscope.sources.checkpoints.checkpoint import Checkpoint
from lossscope.training.loop import resume, train
from lossscope.training.monitor import ProbeSchedule
from lossscope.training.recipe import Recipe

DATA = "scenes:train=24,val=6,test=6,size=16"
ENCODER = "vsepp:dim=8,words=8,width=4"
WITHIN = tuple(name for name in names("probes") if "gradients" not in build("probes", name).reads)


def recipe(**choices: Any) -> Recipe:
    usual = {"data": DATA, "encoder": ENCODER, "objective": "ntxent", "epochs": 2, "batch_size": 16, "min_count": 1}
    return Recipe(**{**usual, **choices})


def weights(run: Run) -> dict[str, torch.Tensor]:
    return dict(Checkpoint.load(run.last).weights)


def equal(a: Run, b: Run) -> bool:
    first, second = weights(a), weights(b)
    return first.keys() == second.keys() and all(torch.equal(first[name], second[name]) for name in first)


@pytest.mark.parametrize("objective", ["ntxent", "triplet-sh", "siglip", "smoothap", "meta_spn"])
def test_weights_are_the_same_bit_for_bit_with_and_without_probes(objective: str, tmp_path: Path) -> None:
    plain = train(recipe(objective=objective), tmp_path / "plain")
    probed = train(recipe(objective=objective), tmp_path / "probed", probe_schedule=ProbeSchedule(WITHIN, 2))
    assert equal(plain, probed)
    assert plain.trajectory.read_text() == probed.trajectory.read_text()
    assert plain.metrics.read_text() == probed.metrics.read_text()
    assert not plain.probes.exists() and not plain.probe_schedule.exists()
    assert plain.config.read_text() == probed.config.read_text()


def test_rows_are_of_the_batches_before_their_update(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[dict[str, float] | None] = []
    scope, weigh = LossScope("ntxent", ("cocos", "similarity")), lossscope.training.forward.batch_loss

    def noted(objective: Any, S: torch.Tensor, *rest: Any) -> Any:
        seen.append(scope.watch(S))
        return weigh(objective, S, *rest)

    monkeypatch.setattr(lossscope.training.step, "batch_loss", noted)
    run = train(recipe(), tmp_path / "run", probe_schedule=ProbeSchedule(("cocos", "similarity"), 3))
    rows = pd.read_csv(run.probes)
    steps = pd.read_csv(run.trajectory)
    last = int(steps["step"].max())
    wanted = [(epoch, step) for epoch in (1, 2) for step in range(1, last + 1, 3)]
    assert list(zip(rows["epoch"], rows["step"], strict=True)) == wanted
    assert set(rows["objective"]) == {"ntxent"}
    for row, (epoch, step) in zip(rows.to_dict("records"), wanted, strict=True):
        row_of_watch = seen[(epoch - 1) * last + step - 1]
        assert row_of_watch is not None and row_of_watch.pop("finite") == 1
        assert row == pytest.approx({**row_of_watch, "epoch": epoch, "step": step, "objective": "ntxent"}, nan_ok=True)


def test_the_warm_up_and_what_comes_after_share_a_table(tmp_path: Path) -> None:
    run = train(recipe(objective="ssp"), tmp_path / "run", probe_schedule=ProbeSchedule(("cocos",), 100))
    rows = pd.read_csv(run.probes)
    warm, main = build("objectives", build("objectives", "ssp").warmup), build("objectives", "ssp")
    assert rows["objective"].tolist() == ["triplet", "ssp"]
    for row, objective in enumerate((warm, main)):
        columns = {f"i2t/{s.name}" for s in build("probes", "cocos").statistics(objective)}
        filled = {name for name in rows if name.startswith("i2t/") and pd.notna(rows[name][row])}
        assert filled <= columns and f"i2t/{objective.traits.statistics[1]}" in filled


def test_captions_of_one_image_are_positives(tmp_path: Path) -> None:
    run = train(
        recipe(objective="smoothap", batch_size=6),
        tmp_path / "run",
        probe_schedule=ProbeSchedule(("cocos", "similarity")),
    )
    rows = pd.read_csv(run.probes)
    assert rows["i2t/s_pos"].notna().all() and rows["t2i/skipped"].tolist() == [0, 0]


@pytest.mark.parametrize("step", [0, 3])
def test_a_resumed_run_has_the_rows_of_an_unbroken_one(
    step: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    schedule = ProbeSchedule(("cocos", "similarity"), 2)
    whole = train(recipe(epochs=3), tmp_path / "whole", probe_schedule=schedule)
    count = {"n": 0}
    do = lossscope.training.forward.batch_loss

    def stop(*given: Any) -> Any:
        count["n"] += 1
        if count["n"] == 7 + step:
            raise Interrupted("here")
        return do(*given)

    monkeypatch.setattr(lossscope.training.step, "batch_loss", stop)
    with pytest.raises(Interrupted):
        train(recipe(epochs=3), tmp_path / "broken", save_every=3, probe_schedule=schedule)
    monkeypatch.setattr(lossscope.training.step, "batch_loss", do)
    broken = Run(tmp_path / "broken")
    with open(broken.probes, "a", encoding="utf-8") as file:
        file.write("2,1,ntxent,0.1")  # cut off by the kill
    run = resume(tmp_path / "broken")
    assert run.probes.read_bytes() == whole.probes.read_bytes()
    assert run.probe_schedule.read_bytes() == whole.probe_schedule.read_bytes()
    assert equal(run, whole)


def test_more_epochs_have_more_rows(tmp_path: Path) -> None:
    train(recipe(epochs=1), tmp_path / "run", probe_schedule=ProbeSchedule(("cocos",), 1000))
    run = resume(tmp_path / "run", epochs=3)
    assert pd.read_csv(run.probes)["epoch"].tolist() == [1, 2, 3]


def test_the_command_says_it_all_once(tmp_path: Path) -> None:
    out = str(tmp_path / "run")
    words = ["train", "--data", DATA, "--encoder", ENCODER, "--objective", "ntxent", "--epochs", "1", "--quiet"]
    done = CliRunner().invoke(
        app, [*words, "--probe", "cocos:eps=0.1", "--probe", "similarity", "--probe-every", "2", "--out", out]
    )
    assert done.exit_code == 0, done.output
    assert (
        ProbeSchedule.read(tmp_path / "run" / "probes.toml")
        == ProbeSchedule(("cocos:eps=0.1", "similarity"), 2).canonical()
    )
    assert "i2t/s_pos" in pd.read_csv(tmp_path / "run" / "probes.csv")
    again = CliRunner().invoke(app, ["train", "--resume", out, "--epochs", "2", "--quiet"])
    assert again.exit_code == 0, again.output
    assert set(pd.read_csv(tmp_path / "run" / "probes.csv")["epoch"]) == {1, 2}
    other = CliRunner().invoke(app, ["train", "--resume", out, "--probe", "cocos"])
    assert other.exit_code == 2
    assert "only --epochs may change; got --probe" in " ".join(re.sub(r"[│╭╮╰╯─]", " ", other.stderr).split())
    assert CliRunner().invoke(app, [*words, "--probe-every", "3"]).exit_code == 2


@pytest.mark.parametrize(
    ("probes", "message"),
    [
        (("cocos:convention=text",), "convention of Goal must be one of"),
        (("cocoa",), "did you mean 'cocos'"),
        (("parameter_gradients",), "must not need gradients of layers"),
    ],
)
def test_probes_that_cannot_run_are_refused_before_anything_is_written(
    probes: tuple[str, ...], message: str, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=message):
        train(recipe(objective="goal", warmup=0), tmp_path / "run", probe_schedule=ProbeSchedule(probes))
    assert not os.path.exists(tmp_path / "run")


def test_a_model_that_scores_pairs_has_no_embeddings_to_probe(tmp_path: Path) -> None:
    main = build("objectives", "ntxent")
    assert ProbeSchedule(("tangent",)).monitor(Run(tmp_path), [main], embeddings=True).needs_embeddings
    assert not ProbeSchedule(("cocos",)).monitor(Run(tmp_path), [main], embeddings=True).needs_embeddings
    with pytest.raises(InputError, match="this probe needs embeddings"):
        ProbeSchedule(("tangent",)).monitor(Run(tmp_path), [main], embeddings=False)


@pytest.mark.parametrize(
    "text", ["", "every = 2", 'every = 2\nprobes = "cocos"', 'every = true\nprobes = ["cocos"]', "every = 2\nprobes ="]
)
def test_a_damaged_file_is_an_error(text: str, tmp_path: Path) -> None:
    (tmp_path / "probes.toml").write_text(text)
    with pytest.raises(
        InputError, match=r"(probes|every) of .*probes\.toml must be|probes\.toml must (be a TOML file|have the keys)"
    ):
        ProbeSchedule.read(tmp_path / "probes.toml")


@pytest.mark.parametrize(("probes", "every"), [((), 1), (("cocos",), 0)])
def test_values_out_of_range_are_refused(probes: tuple[str, ...], every: int) -> None:
    with pytest.raises(InputError, match="every must be at least 1, and probes must not be empty"):
        ProbeSchedule(probes, every)


def test_what_is_written_is_read(tmp_path: Path) -> None:
    schedule = ProbeSchedule(('./a b.py:Mine:word="x,y"', "cocos"), 7)
    schedule.write(tmp_path / "probes.toml")
    assert ProbeSchedule.read(tmp_path / "probes.toml") == schedule


def test_a_batch_whose_embeddings_are_not_finite_has_a_row_without_numbers(tmp_path: Path) -> None:
    run = Run(tmp_path)
    monitor = ProbeSchedule(("effective_rank", "cocos")).monitor(run, [build("objectives", "ntxent")], True)
    sides = torch.eye(4), torch.eye(4)
    sides[1][2, 2] = torch.nan
    mask = replace(pair_mask(torch.arange(4)), info=dict(zip(("queries", "candidates"), sides, strict=True)))
    monitor.record(0, 0, build("objectives", "ntxent"), torch.eye(4), mask)
    rows = pd.read_csv(run.probes)
    assert (len(rows), int(rows[list(monitor.columns)].notna().sum().sum())) == (1, 0)


def test_each_direction_is_counted_under_its_own_mask(tmp_path: Path) -> None:
    """Rules such as `above` hide different negatives from a caption and from its images."""
    run = Run(tmp_path)
    monitor = ProbeSchedule(("similarity",)).monitor(run, [build("objectives", "ntxent")], True)
    S = torch.tensor([[0.9, 0.8, 0.1], [0.2, 0.5, 0.3], [0.0, 0.4, 0.7]])
    mask = pair_mask(torch.arange(3))
    of_captions = mask.t()
    valid = of_captions.valid.clone()
    valid[1, 0] = False  # 0.8 is above 0.5, the positive of the second caption, and below 0.9, that of the first image
    monitor.record(0, 0, build("objectives", "ntxent"), S, Pair(mask, replace(of_captions, valid=valid)))
    row = pd.read_csv(run.probes).iloc[0]
    assert row["i2t/s_neg"] == pytest.approx((0.8 + 0.3 + 0.4) / 3)
    assert row["t2i/s_neg"] == pytest.approx((0.2 + 0.4 + 0.3) / 3)
