"""Which statistics does a trainer log, and which lines end a training?"""

from __future__ import annotations

import logging
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from lossscope.doctor.logs.column_names import READ, rank_name
from lossscope.errors import InputError
from lossscope.live.callbacks import LightningHooks, TrainerLogs
from lossscope.live.logged_columns import DETAILS, MAIN, LoggedColumns
from lossscope.live.monitor import LossScope
from lossscope.live.sentence_losses.pairs import pair_statistics
from lossscope.registry import names
from tests.each import each

MATRIX = torch.randn(12, 12, generator=torch.Generator().manual_seed(0)).clamp(-1, 1)


def statistics(row: dict[str, float]) -> set[str]:
    return {name.rpartition("/")[2] for name in row}


@each("objective", names("objectives"))
def test_each_statistic_of_the_usual_probes_is_logged_by_default_or_on_request(objective: str) -> None:
    """At most six statistics of a direction by default; each new statistic must join one of the lists."""
    row = LossScope(objective).watch(MATRIX)
    assert row is not None
    assert statistics(row) <= {*MAIN} | DETAILS and not {*MAIN} & DETAILS
    by_default = LoggedColumns("").of(row)
    assert 4 <= len(by_default) / len({name.partition("/")[0] for name in by_default}) <= 6
    assert {"N_eff", "s_pos", "s_neg", "inverted"} <= statistics(by_default)


def test_statistics_of_losses_of_pairs_are_in_a_list_too() -> None:
    numbers = pair_statistics(torch.rand(6), torch.rand(6), torch.tensor([1.0, 0, 1, 0, 1, 0]))
    assert {name.rpartition("/")[2] for name in numbers} <= {*MAIN} | DETAILS
    by_default = LoggedColumns("").of(dict.fromkeys(numbers, 0.0))
    assert by_default.keys() == {"pairs/s_pos", "pairs/s_neg", "pairs/N_eff", "pairs/in_order"}


def test_probes_that_the_user_adds_and_intervals_of_the_six_are_logged() -> None:
    row = LossScope("ntxent", ("recall", "cocos", "cocos:eps=0.3")).watch(MATRIX)
    assert row is not None
    assert {"i2t/R@1", "i2t/cocos/C_neg", "i2t/cocos:eps=0.3/N_eff"} <= LoggedColumns("").of(row).keys()
    bounds = {"i2t/C_neg_low": 1.0, "i2t/C_neg_high": 2.0, "i2t/W_neg_low": 0.1, "i2t/W_low_high": 0.2}
    assert LoggedColumns("").of(bounds).keys() == {"i2t/C_neg_low", "i2t/C_neg_high"}


def test_with_the_doctor_all_that_it_reads_in_a_log_is_logged() -> None:
    row: dict[str, float] = {"finite": 1.0, "loss": 2.0, **{f"q2d/{name}": 0.5 for name in (*MAIN, *DETAILS)}}
    read = {name for name in row if any(rank_name(field, f"lossscope/{name}") is not None for field in READ)}
    logged = LoggedColumns("", for_doctor=True).of(row)
    assert {"loss", "q2d/s_pos", "q2d/s_neg", "q2d/C_neg"} <= read <= logged.keys()
    assert "loss" not in LoggedColumns("").of(row)


def test_other_columns_are_an_error() -> None:
    with pytest.raises(InputError, match='columns must be "main" or "all"; got \'few\''):
        LightningHooks(LossScope("ntxent"), columns="few")  # type: ignore[arg-type]


def test_a_summary_has_the_first_and_the_last_steps_of_the_newest_training() -> None:
    scope = LossScope("ntxent:tau=0.1", ("cocos", "similarity"))
    scope.begin(20)
    for _ in range(20):
        scope.watch(torch.zeros(8, 8))
    assert "C_neg    7 -> 7 " in scope.summary()
    scope.begin(20)
    for step in range(20):
        scope.watch(torch.eye(8) * step / 19)
    lines = scope.summary().splitlines()
    assert lines[0] == "lossscope: 20 steps were watched"
    assert lines[1] == "  i2t, mean of the first -> of the last 2 steps:"
    assert lines[2] == "    C_neg    7 -> 0  (negatives of a query with weight above eps)"
    assert lines[4] == "    s_pos    0.0263 -> 0.974"
    assert lines[-1] == "  faults: not checked; try LossScope(..., doctor=True), which checks for 23"


def test_a_summary_says_what_is_not_there() -> None:
    assert "0 steps were watched" in LossScope("ntxent").summary()
    scope = LossScope("ntxent", keep=0)
    scope.watch(torch.eye(4))
    assert scope.summary().splitlines()[:2] == [
        "lossscope: 1 step was watched", "  no row of them is kept; LossScope(keep=10_000) keeps the newest"
    ]  # fmt: skip
    broken = LossScope("ntxent")
    broken.watch(torch.full((4, 4), float("nan")))
    assert "C_neg    nan -> nan" in broken.summary()


def test_a_summary_has_the_findings_and_what_to_try() -> None:
    scope = LossScope("ntxent:tau=0.05", doctor=True)
    for _ in range(3):
        scope.watch(20 * MATRIX)
    (finding,) = scope.findings
    lines = scope.summary().splitlines()
    assert f"  doctor: {finding.severity} {finding.id}: {finding.title}" in lines
    assert [f"    try: {advice.text}" for advice in finding.advice] == [line for line in lines if "try:" in line]


def end_of_trainer(scope: LossScope, is_first: bool) -> None:
    TrainerLogs(scope, "").on_train_end(None, SimpleNamespace(is_world_process_zero=is_first), None)


def end_of_lightning(scope: LossScope, is_first: bool) -> None:
    LightningHooks(scope).on_train_end(SimpleNamespace(is_global_zero=is_first), None)


@pytest.mark.parametrize("end", [end_of_trainer, end_of_lightning])
def test_the_first_process_tells_the_summary_once_on_stderr_or_by_the_logger(
    end: Any, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    scope = LossScope("ntxent")
    scope.watch(MATRIX)
    end(scope, False)
    assert capsys.readouterr().err == ""
    end(scope, True)
    assert capsys.readouterr().err == f"{scope.summary()}\n"
    with caplog.at_level(logging.INFO, "lossscope"):
        end(scope, True)
    assert capsys.readouterr().err == "" and scope.summary() in caplog.messages
