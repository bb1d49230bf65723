"""Tests of a GPU, each of which compares it with the CPU: `make test-gpu`, and `make test-all` where there is one.

LOSSSCOPE_TEST_DEVICE names another device: `cpu`, which is taken where there is no GPU, compares the CPU with itself,
which shows that the tests run, and nothing else; `second` is a device without hardware that refuses what CUDA refuses
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
