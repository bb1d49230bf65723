"""The sums of finished strips beside a frame, from which the same sweep over a sample of queries resumes."""

from __future__ import annotations

from pathlib import Path

import pytest

from lossscope.engine import fold
from lossscope.engine.blocks import strips
from lossscope.engine.sampled import checkpoint
from lossscope.engine.sweep import Sweep
from lossscope.io.frames import Frame
from tests.fuzz.vectors import embedded

FILES = {"frame/strips.pt": "torch_zip", "frame": "folder"}
CHECKSUMMED = ("frame/strips.pt",)
_SWEEP = Sweep(("ntxent:tau=0.1", "triplet"), ("cocos", "recall"), batch_size=None, queries=6)


def make(folder: Path) -> None:
    """Interrupt a sweep after some strips."""
    computed: list[int] = []
    fold_band = fold._Pass._fold_band

    def stop(self: fold._Pass, tasks: object, band: int, *others: object) -> object:
        computed.append(band)
        if len(computed) == 3:
            raise KeyboardInterrupt
        return fold_band(self, tasks, band, *others)  # type: ignore[arg-type]

    with pytest.MonkeyPatch.context() as patch:
        _small_strips(patch)
        patch.setattr(fold._Pass, "_fold_band", stop)
        with pytest.raises(KeyboardInterrupt):
            _SWEEP.run(embedded(), Frame.open(folder / "frame", {}))
    assert (folder / "frame" / checkpoint.NAME).is_file()


def read(folder: Path) -> object:
    """Resume it."""
    with pytest.MonkeyPatch.context() as patch:
        _small_strips(patch)
        return _SWEEP.run(embedded(), Frame.open(folder / "frame", {})).summary


def _small_strips(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(strips, "STRIP", 5)
    patch.setattr(checkpoint, "EVERY", 0.0)
