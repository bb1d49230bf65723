"""Does the flight recorder keep the last steps in bounded memory and write dumps that each command opens?"""

from __future__ import annotations

import errno
import json
import logging
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from lossscope_cli import app
from torch import Tensor, nn
from typer.testing import CliRunner

import lossscope
from lossscope.core.similarity import Mask, pair_mask
from lossscope.core.weights import Weights
from lossscope.engine.direction_rows import DirectionRows
from lossscope.errors import InputError
from lossscope.io.manifests import read_manifest
from lossscope.live import flight_recorder
from lossscope.live.callbacks import LightningHooks, TrainerHooks
from lossscope.live.doctor_options import DoctorOptions
from lossscope.live.flight_recorder import FlightRecorder
from lossscope.live.monitor import LossScope
from lossscope.live.observed import Observed
from lossscope.live.watched_step import WatchedStep
from lossscope.objectives.base import Objective
from tests.lengths import thorough

from .planted_loops import Loop

NTXENT = "ntxent:tau=0.1"
SOON = DoctorOptions(every=20, first=60, learning_by=80, settled=140)


def scope(folder: Path, keep: int = 3, objective: str = NTXENT, **options: Any) -> LossScope:
    return LossScope(objective, ("similarity",), recorder=keep, recorder_folder=folder / "recorder", **options)


def dumps(folder: Path) -> list[Path]:
    return [folder / entry["file"] for entry in read_manifest(folder / "manifest.json")["dumps"]]


def end_loop(monitor: LossScope, error: BaseException | None = None) -> Path:
    """Raise an error in the loop; return the folder that the recorder wrote."""
    with pytest.raises(type(error or ValueError())), monitor:
        raise error or ValueError("the loop is broken")
    (folder,) = monitor.recordings
    return folder


def lossscope_says(*arguments: str | Path) -> str:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == 0, result.output
    return result.stdout


def test_an_exception_leaves_the_last_batches(tmp_path: Path) -> None:
    monitor = Loop().run(scope(tmp_path), 6)
    monitor.log(lr=0.1)
    folder = end_loop(monitor)
    assert folder.name == "step-000005-exception"
    manifest = read_manifest(folder / "manifest.json")
    assert manifest["details"]["error"] == "ValueError: the loop is broken"
    assert [entry["step"] for entry in manifest["dumps"]] == [3, 4, 5]
    assert manifest["dumps"][0]["objective"] == NTXENT.replace(":tau=0.1", "") and manifest["schema"]
    log = pd.read_csv(folder / "log.csv")
    assert log["step"].tolist() == [3, 4, 5] and log["lr"].iloc[-1] == 0.1 and "q2d/s_pos" in log


def test_what_is_written_is_what_was_watched(tmp_path: Path) -> None:
    Q, D = torch.randn(2, 12, 8, generator=torch.Generator().manual_seed(0))
    monitor = scope(tmp_path)
    monitor.watch(queries=Q, documents=D, ids=[f"q{i}" for i in range(12)], second_ids=torch.arange(12))
    kept = Q.clone()
    Q.zero_()  # a later change by the loop does not matter
    (file,) = dumps(end_loop(monitor))
    with np.load(file) as opened_file:
        arrays = dict(opened_file)
    assert np.array_equal(arrays["queries"], kept.numpy()) and np.array_equal(arrays["documents"], D.numpy())
    S = nn.functional.normalize(kept) @ nn.functional.normalize(D).T
    assert np.allclose(arrays["similarity"], S.numpy(), atol=1e-6)
    mask = Mask(torch.eye(12, dtype=torch.bool), torch.ones(12, 12, dtype=torch.bool))
    W = lossscope.objective(NTXENT)(S, mask).W
    assert np.allclose(arrays["W"], W.numpy(), atol=1e-5)
    assert arrays["W_second"].shape == (12, 12)
    opened = lossscope.load(file)
    assert opened.image_ids == [f"q{i}" for i in range(12)] and opened.caption_ids == [str(i) for i in range(12)]
    assert opened.sides.text == "query/document"


@pytest.mark.parametrize("by_S", [False, True])
def test_commands_open_a_recorded_batch(tmp_path: Path, by_S: bool) -> None:
    monitor = Loop("triplet-sh", lr=1e4, takes_similarities=by_S).run(
        scope(tmp_path, doctor=SOON, objective="triplet-sh"), 160
    )
    folder = monitor.recordings[0]
    file = dumps(folder)[-1]
    assert '"C_0"' in lossscope_says("cocos", file, "--objective", "triplet-sh", "--format", "json")
    assert "s_pos" in lossscope_says("probe", file, "--probes", "similarity", "--format", "json")
    assert "R@1" in lossscope_says("eval", file, "--format", "json")
    document = json.loads(lossscope_says("doctor", file, "--objective", "triplet-sh", "--format", "json"))
    begun, found = {event.id for event in monitor.events}, {finding["id"] for finding in document["findings"]}
    assert begun & found


@pytest.mark.parametrize("by_S", [False, True])
def test_the_doctor_opens_a_batch_with_nan(tmp_path: Path, by_S: bool) -> None:
    monitor = Loop(zero_at=4, takes_similarities=by_S).run(scope(tmp_path), 7)
    (folder,) = monitor.recordings
    assert folder.name == "step-000004-non-finite"
    files = dumps(folder)
    assert [file.name for file in files] == ["step-000002.npz", "step-000003.npz", "step-000004.npz"]
    document = json.loads(lossscope_says("doctor", files[-1], "--format", "json"))
    assert document["findings"][0]["id"] == "non-finite"
    healthy = json.loads(lossscope_says("doctor", files[0], "--objective", NTXENT, "--format", "json"))
    assert "non-finite" not in {finding["id"] for finding in healthy["findings"]}


def test_items_of_one_set_images_and_captions_and_mined_negatives_are_opened(tmp_path: Path) -> None:
    random = torch.Generator().manual_seed(0)
    V, T = torch.randn(2, 8, 6, generator=random)
    labels = torch.tensor([0, 0, 0, 1, 1, 2, 2, 2])
    other = torch.eye(8, dtype=torch.bool).logical_not()
    match = torch.arange(4)[:, None] == torch.arange(8)[None, :] // 2
    shared = torch.zeros(4, 8, dtype=torch.bool)
    shared[:, :6] = torch.rand(4, 6, generator=random) < 0.5
    shared[torch.arange(4), torch.arange(4)] = True
    calls: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
        "items": ({"sides": "product"}, {"embeddings": V, "labels": labels}),
        "items-of-S": ({"sides": "product"}, {"S": V @ T.T, "mask": Mask((labels[:, None] == labels) & other, other)}),
        "pairs": ({}, {"images": V, "captions": T}),
        "pairs-of-S": ({}, {"S": V @ T.T}),
        "captions": ({}, {"S": V[:4] @ T.T, "mask": Mask(match, torch.ones_like(match))}),
        "many": ({}, {"S": V[:4] @ T.T, "mask": Mask(shared, torch.ones_like(shared))}),
        "users": ({"sides": ("user", "item")}, {"queries": V, "documents": T}),
        "mined": ({}, {"queries": V, "documents": T, "negatives": torch.randn(8, 2, 6, generator=random)}),
        "offset": ({}, {"S": V[:4] @ T.T, "offset": 4, "S_second": T[:4] @ V.T}),
    }
    for name, (options, arguments) in calls.items():
        has_many = name in ("items", "items-of-S", "captions", "many")
        monitor = scope(tmp_path / name, objective="supcon" if has_many else NTXENT, **options)
        monitor.watch(**arguments)
        opened = lossscope.load(dumps(end_loop(monitor))[0])
        relations = opened.relations
        arrays = np.load(dumps(monitor.recordings[0])[0])
        assert arrays["W"].shape == arrays["similarity"].shape, name
        assert ("W_second" in arrays) == (not relations.one_set)
        if name.startswith("items"):
            same = np.asarray(relations.labels)[:, None] == relations.labels
            assert relations.one_set and np.array_equal(same, (labels[:, None] == labels).numpy())
        elif name == "many":
            assert relations.positives.tolist() == shared.nonzero().tolist()
        elif name == "captions":
            assert relations.caption_image.tolist() == [0, 0, 1, 1, 2, 2, 3, 3]
        elif name == "mined":
            assert relations.negatives is not None and relations.negatives[3].tolist() == [8 + 6, 8 + 7]
        elif name == "offset":
            assert relations.positives.tolist() == [[i, 4 + i] for i in range(4)]
        else:
            assert relations.positives.tolist() == [[i, i] for i in range(8)]
            assert relations.sides.text == {"users": "user/item"}.get(name, "image/caption")


def test_a_finding_is_written_once(tmp_path: Path) -> None:
    monitor = Loop(divides=True, takes_similarities=True, ends=30).run(scope(tmp_path, doctor=SOON), 160)
    assert [event.kind for event in monitor.events] == ["begins", "ends"]
    assert [folder.name for folder in monitor.recordings] == ["step-000000-temperature-twice"]
    manifest = read_manifest(monitor.recordings[0] / "manifest.json")
    assert manifest["details"]["id"] == "temperature-twice" and manifest["details"]["advice"]
    examined = manifest["details"]["examined"]
    assert examined["steps"][0] == 0 and {"temperature-too-high", "no-learning"} <= {*examined["not_yet"]}


def test_an_earlier_recording_of_the_same_step_is_kept(tmp_path: Path) -> None:
    for expected in ("step-000000-exception", "step-000000-exception-2", "step-000000-exception-3"):
        monitor = scope(tmp_path)
        monitor.watch(torch.eye(4))
        assert end_loop(monitor).name == expected


def test_nothing_is_written_where_nothing_is_wrong(tmp_path: Path) -> None:
    with Loop().run(scope(tmp_path, doctor=SOON), 90):
        pass
    for wanted in (KeyboardInterrupt(), SystemExit(0)):
        monitor = scope(tmp_path)
        monitor.watch(torch.eye(4))
        with pytest.raises(type(wanted)), monitor:
            raise wanted
        assert not monitor.recordings
    assert not (tmp_path / "recorder").exists()
    assert LossScope(NTXENT).write_recorder("exception") is None


@settings(max_examples=30)
@given(
    st.lists(st.integers(2, 60), min_size=1, max_size=40), st.integers(1, 12), st.integers(1_000, 100_000),
    st.booleans(),
)  # fmt: skip
def test_memory_is_bounded(sizes: list[int], keep: int, limit: int, with_ids: bool) -> None:
    recorder = FlightRecorder(keep, Path("never"), limit)
    masks = {n: Mask(torch.eye(n, dtype=torch.bool), torch.ones(n, n, dtype=torch.bool)) for n in sizes}
    for step, n in enumerate(sizes):
        observed = Observed(DirectionRows(torch.rand(n, n), masks[n]))
        recorder.add(WatchedStep(step, observed, None, True, ids=(None, range(n) if with_ids else None)))
        entries = [entry for entry in recorder._kept if entry.copy is not None]
        kept = {id(entry.mask): entry.mask for entry in entries}.values()
        held = sum(entry.batch.rows.S.nbytes for entry in entries if entry.batch.rows is not None) + sum(
            2 * mask.match.nbytes for mask in kept
        )
        names = [entry.ids[1] for entry in entries if entry.ids[1] is not None]
        held += sum(sys.getsizeof(ids) + sum(map(sys.getsizeof, ids)) for ids in names)
        assert held == recorder.bytes <= limit
        steps = [entry.step for entry in entries]
        assert steps == sorted(set(steps) & set(range(step + 1 - keep, step + 1)))


def test_fewer_steps_of_large_batches_are_kept_and_the_manifest_says_so(tmp_path: Path) -> None:
    monitor = scope(tmp_path, keep=10, recorder_bytes=50_000)
    for _ in range(10):
        monitor.watch(torch.eye(60))
    manifest = read_manifest(end_loop(monitor) / "manifest.json")
    assert manifest["asked"] == 10 and manifest["kept"] == len(manifest["dumps"]) == 2
    assert manifest["bytes"] <= manifest["limit"] == 50_000
    too_large = scope(tmp_path, keep=2, recorder_bytes=1_000)
    too_large.watch(torch.eye(60))
    assert read_manifest(end_loop(too_large) / "manifest.json")["too_large"] == 1


def test_a_step_without_room_is_missing_in_the_manifest_and_the_log_says_so(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    monitor = scope(tmp_path, recorder_bytes=10_000)
    for n in (20, 20, 60):
        monitor.watch(torch.eye(n))
    manifest = read_manifest(end_loop(monitor) / "manifest.json")
    assert [entry["step"] for entry in manifest["dumps"]] == [0, 1] and manifest["missing"] == [2]
    assert "without the newest batch" in caplog.text
    for n in (60, 60):
        monitor.watch(torch.eye(n))
    folder = monitor.write_recorder("later")
    assert folder is not None and not dumps(folder)  # the folder has no dump of an earlier step


def test_a_step_without_room_is_not_copied(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def copy(*_: object) -> None:
        copied.append(True)
        raise ValueError("a failure of the recorder is logged and stops nothing")

    copied: list[bool] = []
    monkeypatch.setattr(flight_recorder, "on_host", copy)
    scope(tmp_path, recorder_bytes=10_000).watch(torch.eye(60))
    assert not copied
    scope(tmp_path, recorder_bytes=1_000_000).watch(torch.eye(60))
    assert copied


def test_ids_must_be_one_an_item(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="ids of captions must be one per item, 4; got 3"):
        scope(tmp_path).watch(torch.eye(4), second_ids=["a", "b", "c"])


def test_a_disk_that_cannot_be_written_never_stops_the_loop(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "recorder").write_text("a file")
    monitor = scope(tmp_path)
    with caplog.at_level(logging.ERROR, "lossscope"):
        monitor.watch(torch.full((4, 4), torch.nan))
    assert not monitor.recordings and "could not write" in caplog.text


def test_a_disk_that_fills_leaves_no_half_folder_and_is_tried_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(file: Path, entries: object) -> None:
        tried.append(file)
        raise OSError(errno.ENOSPC, "No space left on device")

    tried: list[Path] = []
    monkeypatch.setattr(flight_recorder, "write_manifest", fail)
    monitor = scope(tmp_path)
    for _ in range(3):
        monitor.watch(torch.full((4, 4), torch.nan))
    assert len(tried) == 1 and not list((tmp_path / "recorder").iterdir()) and not monitor.recordings
    assert caplog.text.count("No space left on device") == 1


@pytest.mark.parametrize("name", ["savez", "copy"])
def test_no_failure_of_the_recorder_stops_the_loop(
    tmp_path: Path, name: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise MemoryError("no memory")

    owner = (np, "savez") if name == "savez" else (flight_recorder, "on_host")
    monkeypatch.setattr(*owner, fail)
    monitor = scope(tmp_path)
    for _ in range(3):
        assert monitor.watch(torch.full((4, 4), torch.nan)) is not None
    assert caplog.text.count("MemoryError") and caplog.text.count("could not") == 1


def test_weights_that_cannot_be_computed_are_named_with_the_reason(tmp_path: Path) -> None:
    @dataclass(frozen=True)
    class Broken(Objective):
        def __call__(self, S: Tensor, mask: Mask) -> Weights:
            raise KeyError("mine")

    recorder = FlightRecorder(1, tmp_path)
    recorder.add(WatchedStep(0, Observed(DirectionRows(torch.eye(4), pair_mask(torch.arange(4)))), Broken(), True))
    folder = recorder.write("broken")
    assert folder is not None
    (entry,) = read_manifest(folder / "manifest.json")["dumps"]
    assert entry["not_computed"] == dict.fromkeys(("W", "W_second"), "KeyError: 'mine'")
    assert "W" not in np.load(folder / entry["file"])


def test_the_exception_of_the_loop_is_never_replaced(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("of the recorder")

    monkeypatch.setattr(FlightRecorder, "write", fail)
    monitor, seen = scope(tmp_path), []
    with pytest.raises(ValueError, match="of the loop"), monitor:
        raise ValueError("of the loop")
    LightningHooks(monitor).on_exception(None, None, ValueError("of the loop"))
    monkeypatch.setattr(sys, "excepthook", lambda *exception: seen.append(exception))
    monitor.watch(torch.eye(4))
    sys.excepthook(ValueError, ValueError("of the loop"), None)
    monitor.close()
    assert [str(value) for _, value, _ in seen] == ["of the loop"]
    assert caplog.text.count("could not be written after ValueError") == 3


SCRIPT = """
import sys, torch, lossscope
scope = lossscope.LossScope("ntxent", recorder=2)
{before}
for step in range(5):
    scope.watch(torch.eye(8) + 0.01 * step)
    if step == 3:
        {fault}
{after}
"""


@pytest.mark.parametrize(
    ("before", "fault", "after", "written"),
    [
        ("", "raise RuntimeError('broken')", "", ["step-000003-exception"]),
        *thorough(
            (
                "sys.excepthook = lambda *e: print('mine')",
                "raise RuntimeError('broken')",
                "",
                ["step-000003-exception"],
            ),
            ("", "sys.exit(3)", "", []),
            ("", "raise KeyboardInterrupt", "", []),
            ("", "pass", "", []),
            ("", "pass", "scope.close(); raise RuntimeError('of the evaluation')", []),
            ("", "pass", "del scope; raise RuntimeError('of something else')", []),
        ),
    ],
)
def test_a_script_that_dies_leaves_its_last_batches(
    tmp_path: Path, before: str, fault: str, after: str, written: list[str]
) -> None:
    code = SCRIPT.format(before=before, fault=fault, after=after)
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    folder = tmp_path / "recorder"
    assert sorted(path.name for path in folder.glob("step-*")) == written if written else not folder.exists()
    assert ("mine" in done.stdout) == bool(before)
    if "RuntimeError" in fault + after and not before:
        assert "RuntimeError" in done.stderr and done.returncode == 1


def test_the_hook_of_the_interpreter_is_given_back(tmp_path: Path) -> None:
    before = sys.excepthook
    first, second = scope(tmp_path), scope(tmp_path)
    assert sys.excepthook is before  # no step was watched yet
    first.watch(torch.eye(4))
    second.watch(torch.eye(4))
    second.close()
    first.close()
    assert sys.excepthook is before
    third = scope(tmp_path)
    third.watch(torch.eye(4))
    del third
    assert sys.excepthook is before


def test_trainers_write_it_where_training_dies(tmp_path: Path) -> None:
    monitor = scope(tmp_path)
    hooks, module = LightningHooks(monitor), SimpleNamespace(log_dict=lambda row: None)
    trainer = SimpleNamespace(global_step=1, optimizers=[torch.optim.SGD([torch.zeros(1)], 0.25)])
    hooks.on_train_batch_end(trainer, module, {"S": torch.eye(5)}, None, 0)
    hooks.on_exception(trainer, module, KeyboardInterrupt())
    assert not monitor.recordings
    hooks.on_exception(trainer, module, ValueError("broken"))
    assert pd.read_csv(monitor.recordings[0] / "log.csv")["lr"].tolist() == [0.25]
    before = sys.excepthook
    hooks.on_train_end(trainer, module)
    assert sys.excepthook is not before


def test_trainers_tell_the_doctor_what_they_log(tmp_path: Path) -> None:
    monitor = scope(tmp_path, doctor=SOON)
    hooks, model, state = TrainerHooks(monitor), nn.Identity(), SimpleNamespace(global_step=0, log_history=[{}])
    model.forward = lambda S: {"S": S}  # type: ignore[method-assign]
    hooks.on_train_begin(None, state, None, model=model)
    for step in range(90):
        state.global_step = step
        model(torch.eye(32) if step % 2 else 0.9 * torch.eye(32))
        hooks.on_step_end(None, state, None)
        logs = {"loss": 1.0, "grad_norm": 0.0, "learning_rate": 1e-4}
        hooks.on_log(None, state, None, logs=logs)
    assert [event.id for event in monitor.events] == ["frozen"]
    assert state.log_history[-1]["lossscope/doctor/frozen"] == 1.0
    before = sys.excepthook
    hooks.on_train_end(None, state, None)
    assert sys.excepthook is not before


def test_processes_of_a_job_write_folders_of_their_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("is_initialized", True), ("get_world_size", 2), ("get_rank", 1)):
        monkeypatch.setattr(torch.distributed, name, lambda *_, value=value: value)
    monitor = scope(tmp_path)
    monitor.watch(torch.eye(4))
    assert end_loop(monitor).name == "step-000000-exception-rank1"
