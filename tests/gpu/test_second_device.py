"""Does everything that runs on a GPU keep its tensors on one device? The device needs no hardware.

The tests of this folder run on it in a new process, since a process can register a device with torch only once.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FILES = sorted(path.name for path in Path(__file__).parent.glob("test_*.py") if path.name != Path(__file__).name)
RULES = """
import torch
from tests.gpu.second_device import register, second_device

def refused(function, error=RuntimeError):
    try:
        function()
    except error as refusal:
        return str(refusal)
    raise AssertionError("it was not refused")

register()
with second_device():
    x, own = torch.arange(6.0, device="second").view(2, 3), torch.ones(2, 3)
    assert x.device.type == "second" and (x + 1).sum().item() == 21 and x.cpu().device.type == "cpu"
    assert "one device" in refused(lambda: x + own).replace("the same device", "one device")
    assert "same device" in refused(lambda: torch.cat([x, own]))
    assert "same device" in refused(lambda: x @ own.T)
    assert "same device" in refused(lambda: own[torch.tensor([1], device="second")])
    assert "same device" in refused(lambda: torch.where(own > 0, x, 0.0))
    assert "generator" in refused(lambda: torch.randn(2, device="second", generator=torch.Generator()))
    refused(x.numpy)
    assert (x + torch.tensor(1.0)).device.type == "second"  # a number of the CPU may meet any device
    assert x[torch.tensor([1])].tolist() == [[3.0, 4.0, 5.0]]  # so may an index
    w = torch.ones(3, 3, device="second", requires_grad=True)
    (x @ w).square().sum().backward()
    v = torch.ones(3, 3, requires_grad=True)
    (x.cpu() @ v).square().sum().backward()
    assert torch.equal(w.grad.cpu(), v.grad)
    row = x[0]
    row += 1
    assert x[0].tolist() == [1.0, 2.0, 3.0]  # views share their numbers
"""


def run(*command: str, seconds: int, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *command], capture_output=True, text=True, timeout=seconds, check=False, cwd=ROOT,
        env={**os.environ, "OMP_NUM_THREADS": "1", **environment},
    )  # fmt: skip


def test_the_device_refuses_what_cuda_refuses() -> None:
    done = run("-c", RULES, seconds=100)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("file", FILES)
def test_nothing_leaves_its_device(file: str) -> None:
    command = ("-m", "pytest", "-q", "--tb=short", "-p", "no:cacheprovider", f"tests/gpu/{file}")
    done = run(*command, seconds=1500, LOSSSCOPE_TEST_DEVICE="second")
    assert done.returncode == 0, done.stdout[-6000:]
    assert "passed" in done.stdout
