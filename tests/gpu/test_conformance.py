"""Has the check of a trainer's step the same outcome on a GPU as on the CPU, with nccl and one process a GPU?"""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from lossscope.conformance.suite import check_trainer
from lossscope.objectives.checks.verdict import Verdict
from tests.conformance import planted_steps

FILE = Path(planted_steps.__file__)
pytestmark = pytest.mark.usefixtures("typed")


def outcomes(found: list[Verdict]) -> dict[str, set[str]]:
    """Return the outcomes of each check, without the rounding of half precision."""
    names = dict.fromkeys(v.name for v in found if v.name != "half-precision")
    return {name: {v.outcome for v in found if v.name == name} for name in names}


@pytest.mark.parametrize("name", ["local_loss", "Clip", "cached", "masked", "mask_all", "last_chunk", "over_the_batch"])
def test_verdicts_of_one_gpu_are_those_of_the_cpu(name: str, is_cuda: bool) -> None:
    there = check_trainer(f"{FILE}:{name}", 1, device="cuda" if is_cuda else "cpu")
    assert outcomes(there) == outcomes(check_trainer(f"{FILE}:{name}", 1, device="cpu"))


@pytest.mark.parametrize("name", ["local_loss", *planted_steps.FOUND_BY])
def test_verdicts_of_two_gpus_are_those_of_two_processes(name: str, is_cuda: bool) -> None:
    if is_cuda and torch.cuda.device_count() < 2:
        pytest.skip("needs two GPUs")
    found = check_trainer(f"{FILE}:{name}", 2, device="cuda" if is_cuda else "cpu")
    expected = {planted_steps.FOUND_BY[name]} if name in planted_steps.FOUND_BY else set()
    assert {v.name for v in found if v.outcome == "fail"} == expected
