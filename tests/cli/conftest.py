"""Run commands in an empty folder, on a wide terminal without colours; write a dump that they read."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest


@pytest.fixture(autouse=True)
def _in_tmp_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("TERM", "dumb")


@pytest.fixture
def dump(tmp_path: Path) -> Path:
    """Write a dump of twelve images with two captions each, of random vectors."""
    random = np.random.default_rng(0)
    images, captions = random.normal(size=(12, 6)), random.normal(size=(24, 6))
    np.savez(tmp_path / "dump.npz", images=images, captions=captions, caption_image=np.repeat(np.arange(12), 2))
    return tmp_path / "dump.npz"
