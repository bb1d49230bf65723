"""Do processes share tensors of the device, by nccl's collectives, and by gloo where two share a GPU?"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
import torch.distributed as dist

from lossscope.core.distributed import ProcessGroup, join_group
from lossscope.objectives.checks.spawn import join_file_group
from tests.gpu.second_device import NAME, register, second_device

ROOT = Path(__file__).parents[2]


class Collective(ProcessGroup):
    """A group of one process that still calls the collectives."""

    @property
    def is_alone(self) -> bool:
        return False


def check(here: ProcessGroup, device: torch.device) -> None:
    """Raise AssertionError unless every collective gives what one process computes, on the device."""
    rank, size = here.rank, here.size
    counts = [2 + other for other in range(size)]
    whole = torch.arange(3.0 * sum(counts), dtype=torch.float64).view(-1, 3)
    begin = sum(counts[:rank])
    local = whole[begin : begin + counts[rank]].to(device).requires_grad_()
    rows = here.gather_rows(local)
    assert rows.device.type == device.type and torch.equal(rows.detach().cpu(), whole)
    torch.autograd.backward(rows, (whole * (rank + 1)).to(device))
    assert local.grad is not None
    assert torch.equal(local.grad.cpu(), whole[begin : begin + counts[rank]] * sum(range(1, size + 1)))
    x = torch.full((4,), float(rank + 1), device=device)
    assert here.sum(x).tolist() == [float(sum(range(1, size + 1)))] * 4
    assert here.max(x).tolist() == [float(size)] * 4
    assert here.stack(x).cpu().tolist() == [[float(r + 1)] * 4 for r in range(size)]
    assert here.any(rank == size - 1) and not here.any(False)
    assert here.gather(rank) == list(range(size))
    here.barrier()


def run(*command: str, processes: int) -> None:
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(processes)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [*launcher, *command], capture_output=True, text=True, timeout=200, check=False, env=environment, cwd=ROOT
    )
    assert done.returncode == 0, done.stderr[-4000:]


def test_collectives_of_nccl_on_one_gpu(device: torch.device) -> None:
    """On the CPU, the test uses gloo."""
    run("-m", "tests.gpu.test_processes", str(device), "nccl", processes=1)


def test_two_processes_share_one_device_by_gloo(device: torch.device) -> None:
    run("-m", "tests.gpu.test_processes", str(device), "gloo", processes=2)


def test_a_job_of_one_process_joins_nothing(device: torch.device, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "localhost", "MASTER_PORT": "1"}.items():
        monkeypatch.setenv(name, value)
    with join_group(str(device)) as here:
        assert here == ProcessGroup() and not dist.is_initialized()
        x = torch.ones(2, device=device)
        assert here.gather_rows(x) is x


def test_the_group_of_a_file_takes_tensors_of_the_device(device: torch.device, tmp_path: Path) -> None:
    with join_file_group(tmp_path / "group", 0, 1):
        check(Collective(), device)


def main(name: str, backend: str) -> None:
    """Check the collectives, as a process of torchrun."""
    if backend == "nccl" and name.startswith("cuda"):
        dist.init_process_group("nccl", device_id=torch.device("cuda", 0))
        check(Collective(), torch.device("cuda", 0))
        dist.destroy_process_group()
        return
    if name.startswith(NAME):
        register()
    usable = second_device() if name.startswith(NAME) else contextlib.nullcontext()
    with join_group("cpu") as here, usable:
        check(here, torch.device(name))
    if name.startswith(NAME):  # threads of gloo that still hold its tensors can end Python with SIGABRT at its exit
        os._exit(0)


if __name__ == "__main__":
    main(*sys.argv[1:])
