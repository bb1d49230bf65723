"""Tests of a GPU, each of which compares it with the CPU: `make test-gpu`; skipped where there is no GPU.

LOSSSCOPE_TEST_DEVICE names another device: `cpu` compares the CPU with itself, which shows that the tests run, and
nothing else; `second` is a device without hardware that refuses what CUDA refuses (second_device.py).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from tests.gpu.second_device import NAME, register, second_device

HERE = Path(__file__).parent
DEVICE = os.environ.get("LOSSSCOPE_TEST_DEVICE", "cuda")
OF_THE_CPU = ("test_second_device.py",)  # they need no GPU, and run everywhere
NO_GPU = "needs a CUDA device, and torch sees none; LOSSSCOPE_TEST_DEVICE=cpu runs it on the CPU"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests of this folder, and skip them where their device is not there."""
    if DEVICE == NAME:
        register()
    missing = DEVICE.startswith("cuda") and not torch.cuda.is_available()
    for item in items:
        if item.path.is_relative_to(HERE) and item.path.name not in OF_THE_CPU:
            item.add_marker(pytest.mark.gpu)
            if missing:
                item.add_marker(pytest.mark.skip(reason=NO_GPU))


@pytest.fixture(scope="session")
def device() -> torch.device:
    """The device that is compared with the CPU."""
    return torch.device(DEVICE)


@pytest.fixture(scope="session")
def is_cuda(device: torch.device) -> bool:
    """Whether it is a GPU, with its kernels and precisions."""
    return device.type == "cuda"


@pytest.fixture(autouse=True)
def _usable(device: torch.device) -> Iterator[None]:
    if device.type != NAME:
        yield
        return
    with second_device():
        yield
