"""Are similarities float32 products where the process has allowed TF32, and does its setting come back?"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch

from lossscope.core.embedded import SplitEmbeddings
from lossscope.core.float32_products import float32_products
from lossscope.engine.paired_sweep import PairedSweep
from lossscope.engine.sweep import Sweep
from lossscope.live.monitor import LossScope
from lossscope.retrieval.evaluate import evaluate
from lossscope.sources.base import load


@pytest.fixture(autouse=True)
def _high() -> Iterator[None]:
    torch.set_float32_matmul_precision("high")
    yield
    torch.set_float32_matmul_precision("highest")


def split() -> SplitEmbeddings:
    x = torch.nn.functional.normalize(torch.randn(8, 4, generator=torch.Generator().manual_seed(0)), dim=1)
    ids = [str(row) for row in range(8)]
    return SplitEmbeddings("source", x, x, None, np.arange(8), ids, ids, "f" * 64)


def test_the_setting_is_put_back_also_after_an_error() -> None:
    @float32_products()
    def fail() -> None:
        raise ValueError(torch.get_float32_matmul_precision())

    with pytest.raises(ValueError, match="highest"):
        fail()
    assert torch.get_float32_matmul_precision() == "high"


def test_what_was_set_by_the_newer_way_is_put_back() -> None:
    setting = torch.backends.cuda.matmul
    setting.fp32_precision = "tf32"
    with float32_products():
        assert setting.fp32_precision == "ieee"
    assert setting.fp32_precision == "tf32"


def test_convolutions_and_recurrent_layers_are_float32_too() -> None:
    cudnn = torch.backends.cudnn
    assert cudnn.allow_tf32  # torch allows it by default
    with float32_products():
        assert not cudnn.allow_tf32
        with cudnn.flags(enabled=False):  # the newer interface would make torch refuse this
            pass
    assert cudnn.allow_tf32


def test_layers_that_were_set_by_the_newer_way_are_put_back() -> None:
    layers = torch.backends.cudnn.conv, torch.backends.cudnn.rnn
    layers[0].fp32_precision = "ieee"
    try:
        with float32_products():
            assert [layer.fp32_precision for layer in layers] == ["ieee", "ieee"]
        assert [layer.fp32_precision for layer in layers] == ["ieee", "tf32"]
    finally:
        layers[0].fp32_precision = "tf32"


def test_frozen_models_compute_in_float32(tiny_checkpoint: Path) -> None:
    used: set[tuple[str, bool]] = set()

    def note(*_: object) -> None:
        used.add((torch.get_float32_matmul_precision(), torch.backends.cudnn.allow_tf32))

    hook = torch.nn.modules.module.register_module_forward_pre_hook(note)
    try:
        for mode in ("eval", "train"):
            load(tiny_checkpoint, split="val", cache=False, device="cpu", mode=mode)
            assert used == {("highest", False)}
            used.clear()
    finally:
        hook.remove()


def test_products_of_sweeps_retrieval_and_watch_are_float32(monkeypatch: pytest.MonkeyPatch) -> None:
    used: list[str] = []
    multiply, matrix = torch.Tensor.__matmul__, torch.mm

    def noted(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        used.append(torch.get_float32_matmul_precision())
        return multiply(x, y)

    def noted_mm(x: torch.Tensor, y: torch.Tensor, **options: torch.Tensor) -> torch.Tensor:
        used.append(torch.get_float32_matmul_precision())
        return matrix(x, y, **options)

    monkeypatch.setattr(torch.Tensor, "__matmul__", noted)
    monkeypatch.setattr(torch, "mm", noted_mm)
    data = split()
    assert data.images is not None and data.captions is not None
    sweep = Sweep(("ntxent",), ("cocos",), batch_size=None, engine="tiled")
    for run in (
        lambda: sweep.run(data),
        lambda: PairedSweep(sweep, sweep).run(data, data),
        lambda: evaluate([data]),
        lambda: LossScope("ntxent").watch(images=data.images, captions=data.captions),
    ):
        used.clear()
        run()
        assert used and set(used) == {"highest"}
        assert torch.get_float32_matmul_precision() == "high"
