"""Do the reasons against DistributedDataParallel, SyncBatchNorm and torch's gather still hold?

If a test fails with another version of torch, docs/processes.md is wrong there, and the choice needs a review.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import warnings
from pathlib import Path

import pytest
import torch
from torch import nn

from lossscope.objectives.checks.spawn import join_file_group

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "benchmarks" / "data_parallel.py"
SMALL = "--sizes 3 --repeats 1 --pairs 12 --rows 8 --width 4 --encoders vsepp:dim=16,words=8,width=4"
VARIANTS = ("ours", "DDP", "DDP unused", "DDP sum")
PRECISE = 1e-12


@pytest.fixture(scope="module")
def printed() -> str:
    """Return the benchmark's output for three processes, on small batches."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    command = [sys.executable, str(SCRIPT), *SMALL.split()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=1500, check=False, env=environment)
    assert done.returncode == 0, done.stderr[-4000:]
    return done.stdout


@pytest.fixture(scope="module")
def gradients(printed: str) -> dict[str, dict[str, str]]:
    """Return case -> variant -> difference of its gradients to those of one process."""
    rows = [re.split(r"\s{2,}", line) for line in printed.split("\n\n")[1].splitlines()]
    assert rows[0] == ["gradients", "processes", *VARIANTS]
    return {row[0]: dict(zip(VARIANTS, row[2:], strict=True)) for row in rows[1:]}


def number(text: str) -> float:
    return float(text.replace("−", "-"))


@pytest.mark.thorough
@pytest.mark.parametrize("case", ["even", "uneven", "empty", "accumulated", "learnt scale"])
def test_ours_and_the_mean_of_ddp_are_the_gradient_of_one_process(
    case: str, gradients: dict[str, dict[str, str]]
) -> None:
    for variant in ("ours", "DDP", "DDP unused"):
        assert number(gradients[case][variant]) < PRECISE, variant


@pytest.mark.thorough
def test_the_gradient_of_an_outer_step_is_not_reduced_by_ddp(gradients: dict[str, dict[str, str]]) -> None:
    assert number(gradients["outer step"]["ours"]) < PRECISE
    assert all(number(gradients["outer step"][variant]) > 0.1 for variant in VARIANTS[1:])


@pytest.mark.thorough
@pytest.mark.parametrize("case", ["unused by some", "unused by all"])
def test_a_layer_without_gradient_ends_a_job_of_ddp_unless_it_searches_the_graph(
    case: str, gradients: dict[str, dict[str, str]]
) -> None:
    assert gradients[case]["DDP"] == "error"
    assert all(number(gradients[case][variant]) < PRECISE for variant in ("ours", "DDP unused"))


@pytest.mark.thorough
def test_buckets_of_ddp_change_the_bits_of_a_run_that_is_resumed(gradients: dict[str, dict[str, str]]) -> None:
    assert int(gradients["bits"]["DDP"]) > 0
    assert int(gradients["bits"]["ours"]) == int(gradients["bits"]["DDP unused"]) == 0


@pytest.mark.thorough
def test_a_hook_that_adds_up_counts_an_accumulated_batch_again(gradients: dict[str, dict[str, str]]) -> None:
    assert number(gradients["accumulated"]["DDP sum"]) > 0.5


@pytest.mark.thorough
def test_the_gather_of_torch_takes_even_shares_alone(printed: str) -> None:
    rows = [re.split(r"\s{2,}", line) for line in printed.split("\n\n")[3].splitlines()[1:]]
    found = {(row[0], row[2]): row[3] for row in rows if len(row) > 3}
    for gather in ("ours", "functional", "collective"):
        assert number(found[gather, "even"]) == 0
    assert number(found["ours", "uneven"]) == 0
    assert found["functional", "uneven"] == found["collective", "uneven"] == "error"


def test_the_page_has_the_numbers_of_the_results() -> None:
    page = " ".join((ROOT / "docs" / "processes.md").read_text(encoding="utf-8").split())
    gradients, steps = (ROOT / "benchmarks" / "results" / "data_parallel.txt").read_text().split("\n\n")[1:3]
    cells = [re.split(r"\s{2,}", line) for line in steps.splitlines()]
    column = cells[0].index("DDP unused")
    ratios = [float(row[column].split(" / ")[1]) for row in cells[1:]]
    assert f"{min(ratios):.2f} to {max(ratios):.2f} of the processor time" in page
    of_three = {
        row[0]: row[2:] for row in (re.split(r"\s{2,}", line) for line in gradients.splitlines()) if row[1] == "3"
    }
    assert f"{of_three['bits'][1]} parameters" in page
    assert f"{of_three['outer step'][2]} times the largest number" in page


def test_sync_batch_norm_refuses_tensors_of_the_cpu(tmp_path: Path) -> None:
    with (
        join_file_group(tmp_path / "group", 0, 1),
        pytest.raises(ValueError, match="expected input tensor to be on GPU"),
    ):
        nn.SyncBatchNorm(4)(torch.randn(3, 4))


def test_kernels_of_sync_batch_norm_are_not_there_on_the_cpu() -> None:
    with pytest.raises(NotImplementedError, match="batch_norm_stats"):
        torch.batch_norm_stats(torch.randn(3, 4), 1e-5)


def test_towers_refuse_an_empty_share() -> None:
    """SyncBatchNorm counts all items of a process: it could not leave out a stand-in for an empty share."""
    with pytest.raises(RuntimeError, match="empty"):
        nn.utils.rnn.pack_padded_sequence(torch.zeros(0, 3, 2), torch.zeros(0, dtype=torch.int64), batch_first=True)


def test_the_public_gather_of_torch_is_deprecated(tmp_path: Path) -> None:
    from torch.distributed.nn.functional import all_gather

    with join_file_group(tmp_path / "group", 0, 1), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        all_gather(torch.zeros(2))
    assert any("deprecated" in str(warning.message) for warning in caught)
