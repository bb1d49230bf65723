"""Compare a GPU with the CPU in every test: `make test-gpu`, and `make test-all` on a machine with a GPU.

LOSSSCOPE_TEST_DEVICE names another device: `cpu`, the default without a GPU, compares the CPU with itself,
which shows only that the tests run; `second` is a device without hardware that refuses what CUDA refuses
(second_device.py).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from tests.gpu.second_device import NAME, register, second_device

HERE = Path(__file__).parent
DEVICE = os.environ.get("LOSSSCOPE_TEST_DEVICE", "cuda" if torch.cuda.is_available() else "cpu")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests of this folder as thorough."""
    if DEVICE == NAME:
        register()
    for item in items:
        if item.path.is_relative_to(HERE):
            item.add_marker(pytest.mark.thorough)


@pytest.fixture(scope="session")
def device() -> torch.device:
    """Return the device that a test compares with the CPU."""
    return torch.device(DEVICE)


@pytest.fixture(scope="session")
def is_cuda(device: torch.device) -> bool:
    """Is the device a GPU, with its kernels and precisions?"""
    return device.type == "cuda"


@pytest.fixture(autouse=True)
def _usable(device: torch.device) -> Iterator[None]:
    if device.type != NAME:
        yield
        return
    with second_device():
        yield
