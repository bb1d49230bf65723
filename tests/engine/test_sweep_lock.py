"""Has a frame one writer at a time?"""

from __future__ import annotations

import threading
from pathlib import Path

import pandas as pd
import pytest
import torch

from lossscope.core.embedded import SplitEmbeddings
from lossscope.core.similarity import normalise
from lossscope.engine.sweep import Sweep
from lossscope.errors import InputError
from lossscope.io import folder_lock
from lossscope.io.folder_lock import lock_folder
from lossscope.io.frames import Frame


@pytest.fixture
def embedded() -> SplitEmbeddings:
    generator = torch.Generator().manual_seed(0)
    images, captions = (normalise(torch.randn(40, 6, generator=generator)) for _ in range(2))
    ids = [str(number) for number in range(40)]
    return SplitEmbeddings("dump", images, captions, None, torch.arange(40).numpy(), ids, ids, "abc")


def test_a_second_sweep_into_a_frame_is_refused_and_the_first_is_whole(
    tmp_path: Path, embedded: SplitEmbeddings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two sweeps at once left a frame with twice the batches, without an error."""
    monkeypatch.setattr(folder_lock, "_PATIENCE", 0.05)
    sweep, frame = Sweep(("triplet",), batch_size=8), Frame.open(tmp_path / "frame", {"name": "test"})
    refused: list[str] = []

    def sweep_again() -> None:
        for attempt in (lambda: sweep.run(embedded, frame), lambda: Frame.open(frame.path, {"name": "test"})):
            try:
                attempt()
            except InputError as error:
                refused.append(str(error))

    with lock_folder(frame.path):
        other = threading.Thread(target=sweep_again)
        other.start()
        other.join()
        result = sweep.run(embedded, frame)
    assert len(refused) == 2 and all("must have one writer at a time" in text for text in refused)
    pd.testing.assert_frame_equal(frame.read(), result.batches)
    assert sorted(path.name for path in frame.path.iterdir()) == [
        "items-00000.parquet", "manifest.json", "part-00000.parquet",
    ]  # fmt: skip


def test_a_frame_that_was_begun_and_killed_at_once_is_begun_again(tmp_path: Path) -> None:
    for name in (".lock", ".lock.json", ".manifest.json.abcdefgh.part"):
        (tmp_path / name).touch()
    Frame.open(tmp_path, {"name": "test"})
    assert [path.name for path in tmp_path.iterdir()] == ["manifest.json"]
