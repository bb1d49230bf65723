"""Does every probe give the same numbers for tensors on the device as for the same tensors on the CPU?"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from lossscope.core.similarity import pair_mask
from lossscope.engine.direction_rows import DirectionRows
from lossscope.engine.one_batch import OneBatch
from lossscope.engine.sweep import Sweep
from lossscope.registry import build, names
from tests.gpu.small_split import assert_near, small_split

ELSEWHERE = ("false_negatives", "parameter_gradients")  # they read an audit and a model, and have separate tests
PROBES = tuple(name for name in names("probes") if name not in ELSEWHERE)
OBJECTIVES = ("ntxent:tau=0.05", "triplet", "smoothap")


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("name", PROBES)
def test_a_probe_of_one_batch(name: str, objective: str, device: torch.device) -> None:
    run = OneBatch(build("objectives", objective), (build("probes", name),))
    data = small_split(captions=1)
    assert data.images is not None and data.captions is not None
    mask = pair_mask(torch.arange(len(data.images)))
    expected = run([DirectionRows(data.images @ data.captions.T, mask, data.images, data.captions)])
    images, captions = data.images.to(device), data.captions.to(device)
    ours = run([DirectionRows(images @ captions.T, mask.to(device), images, captions)])
    assert ours[0] is expected[0] is True
    tolerance = 1e-7 if name == "tangent" else 1e-9  # a rounding error of 1e-16 is 1e-8 in its roots of differences
    np.testing.assert_allclose(ours[1], expected[1], rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("engine", ["dense", "auto"])
@pytest.mark.parametrize("name", PROBES)
def test_a_probe_in_a_sweep(name: str, engine: str, device: torch.device) -> None:
    data = small_split()
    probe = f"{name}:unit=paper" if name in ("cocos", "weight_mass") else name  # smoothap has no other unit
    sweep = Sweep(OBJECTIVES, (probe,), batch_size=16, engine=engine, per_query=True)  # type: ignore[arg-type]
    expected, ours = sweep.run(data), sweep.run(data.to(device))
    assert_near(ours.summary, expected.summary, 1e-8)
    assert_near(ours.batches, expected.batches, 1e-6)
    if len(expected.queries):
        assert_near(ours.queries, expected.queries, 1e-6)


@pytest.mark.parametrize("name", PROBES)
def test_a_probe_in_a_sweep_in_float32(name: str, device: torch.device) -> None:
    data = small_split(dtype=torch.float32)
    sweep = Sweep(OBJECTIVES[:1], (name,), batch_size=16)
    assert_near(sweep.run(data.to(device)).summary, sweep.run(data).summary, 1e-3)


def test_unscored_pairs_are_left_out_on_the_device_too(device: torch.device) -> None:
    data = small_split()
    assert data.images is not None and data.captions is not None
    S = data.images @ data.captions.T
    S[3, 7] = float("nan")
    dumped = replace(data, images=None, captions=None, similarity=S)
    sweep = Sweep(OBJECTIVES[:1], ("cocos",), batch_size=16)
    assert_near(sweep.run(dumped.to(device)).summary, sweep.run(dumped).summary, 1e-9)
