"""`lossscope train --doctor`: events on stderr, in events.jsonl and TensorBoard; --stop-on ends a run that resumes."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from typer.testing import Result

from lossscope.io.run_folder import Run
from lossscope.sources.checkpoints.checkpoint import Checkpoint
from tests.command_line import lossscope

TINY = ("--data", "scenes:train=60,val=10,test=10,size=16", "--encoder", "vsepp:dim=16,words=8,width=4")
SHORT = ("--batch-size", "32", "--min-count", "1")
COLLAPSES = ("--objective", "triplet-sh", "--warmup", "0", "--lr", "0.5", "--epochs", "40")


def run(*arguments: str | Path) -> Result:
    return lossscope("train", *arguments)


def test_options_of_the_doctor_need_it() -> None:
    for options, says in (
        (("--stop-on", "error"), "--doctor --stop-on error"),
        (("--recorder", "3"), "--doctor --recorder 3"),
        (("--doctor", "--stop-on", "note"), "not one of"),
    ):
        result = run(*TINY, "--objective", "ntxent", *options)
        assert result.exit_code == 2 and says in result.output


def test_a_siglip_bias_far_from_the_prior_is_found_and_stops_on_a_warning() -> None:
    pytest.importorskip("tensorboard")
    choices = (*TINY, *SHORT, "--objective", "siglip:bias=-12", "--epochs", "1")
    plain = run(*choices, "--out", "plain")
    assert plain.exit_code == 0
    watched = run(*choices, "--out", "watched", "--doctor", "--stop-on", "error", "--recorder", "2", "--tensorboard")
    assert watched.exit_code == 0
    assert "Doctor: step 0: warning siglip-start begins" in watched.stderr
    steps = len(Path("watched/trajectory.csv").read_text(encoding="utf-8").splitlines()) - 1
    assert watched.stderr.count(f"Doctor: not examined in {steps} steps: ") == 1
    (event,) = [recorded for recorded in Run(Path("watched")).events() if recorded["event"] == "finding"]
    assert event["id"] == "siglip-start" and event["kind"] == "begins" and event["severity"] == "warning"
    assert Path("watched/trajectory.csv").read_bytes() == Path("plain/trajectory.csv").read_bytes()
    (folder,) = Path("watched/recorder").iterdir()
    with np.load(folder / "step-000000.npz") as arrays:
        assert arrays["images"].shape == (32, 16) and arrays["image_id"].shape == (32,)
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    accumulator = EventAccumulator("watched.tb")
    accumulator.Reload()
    assert [scalar.value for scalar in accumulator.Scalars("doctor/siglip-start")] == [1.0]

    stopped = run(*choices, "--out", "stopped", "--doctor", "--stop-on", "warning")
    assert stopped.exit_code == 3
    assert "siglip-start begins" in stopped.stderr and "resume with --resume stopped" in stopped.stderr
    assert run("--resume", "stopped").exit_code == 0
    weights = [Checkpoint.load(Run(Path(name)).last).weights for name in ("plain", "stopped")]
    assert all(torch.equal(weights[0][name], weights[1][name]) for name in weights[0])


def test_a_collapse_stops_the_run_and_its_batches_can_be_opened() -> None:
    healthy = run(*TINY, *SHORT, "--objective", "triplet-sh", "--warmup", "2", "--lr", "0.002", "--epochs", "8",
                  "--doctor", "--stop-on", "error", "--out", "healthy")  # fmt: skip
    assert healthy.exit_code == 0 and "Doctor: " not in healthy.stderr
    ill = run(*TINY, *SHORT, *COLLAPSES, "--doctor", "--stop-on", "error", "--recorder", "3", "--out", "ill")
    assert ill.exit_code == 3, ill.output
    (folder,) = Path("ill/recorder").iterdir()
    id = folder.name.partition("-")[2].partition("-")[2]
    assert id in {"margin-plateau", "complete-collapse", "no-learning"}
    dump = max(folder.glob("*.npz"))
    result = lossscope("doctor", dump, "--objective", "triplet-sh", "--format", "json")
    found = json.loads(result.stdout)["findings"]
    assert found and found[0]["id"] in {"margin-plateau", "complete-collapse", "no-learning"}
    resumed = run("--resume", "ill", "--doctor", "--epochs", "1")
    assert resumed.exit_code in (0, 1)
