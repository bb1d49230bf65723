"""Can a user follow the advice: does it name columns of the log, and commands that run as typed?"""

from __future__ import annotations

from pathlib import Path

import numpy as np

import lossscope
from lossscope.doctor.parts.batches import Batches, QueryStatistics
from lossscope.doctor.parts.patient import Patient
from lossscope.doctor.zero_loss import ZeroLoss
from lossscope.registry import build
from tests.planted.base import log


def test_a_score_has_the_name_of_its_column(tmp_path: Path) -> None:
    falls = {"eval_g0_accuracy": 40 - 3.0 * np.abs(np.arange(12) - 4)}
    path = log(tmp_path, validation=falls, loss=np.linspace(4, 0.1, 400))
    (finding,) = lossscope.doctor(log=path).findings
    assert finding.id == "overfitting" and "eval_g0_accuracy" in finding.title
    text = " ".join([finding.title, finding.why, *(advice.text for advice in finding.advice)])
    assert "recall" not in text and "best.pt" not in text


def test_a_command_is_for_a_source_that_can_be_named(tmp_path: Path) -> None:
    (tmp_path / "a dump.npz").write_bytes(b"")
    assert Patient("the newest batch").source_command("cocos") is None
    command = Patient(str(tmp_path / "a dump.npz")).source_command("cocos", "--objective", "ntxent")
    assert command == f"lossscope cocos '{tmp_path}/a dump.npz' --objective ntxent"
    assert Patient("tiny").source_command("cocos") == "lossscope cocos tiny"


def test_losses_of_batches_that_are_all_0_are_found_where_recall_is_not_perfect() -> None:
    for recall, ids in ((0.4, ["zero-loss"]), (1.0, [])):
        numbers = {name: np.ones(50) for name in QueryStatistics.__dataclass_fields__}
        numbers |= {"loss": np.zeros(50), "first": np.full(50, recall)}
        batches = Batches(build("objectives", "contrastive"), 8, QueryStatistics(**numbers))
        found = ZeroLoss().examine(Patient("x", given={Batches: batches}))
        assert [finding.id for finding in (found,) if finding is not None] == ids
