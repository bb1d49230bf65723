"""Do stacks, tiles, panels, samples of queries and retrieval give the numbers of the CPU?"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from lossscope.core.embedded import SplitEmbeddings
from lossscope.engine.paired_sweep import PairedSweep
from lossscope.engine.sweep import Sweep
from lossscope.errors import InputError
from lossscope.io.frames import Frame
from lossscope.registry import names
from lossscope.retrieval.evaluate import evaluate
from tests.gpu.small_split import assert_near, small_split

ONE = tuple(name for name in names("objectives") if name not in ("smoothap", "aoq"))
TILES = ("cocos", "weight_mass", "recall", "similarity")
PANELS = ("contributors", "tangent", "hubness", "influence")
MODES = ("pairs", "images")


def outcome(sweep: Sweep, data: SplitEmbeddings) -> pd.DataFrame | str:
    """Return the summary, or the refusal: an objective may refuse an engine or a rule, on any device."""
    try:
        return sweep.run(data).summary
    except InputError as refusal:
        return str(refusal)


def assert_same_outcome(sweep: Sweep, data: SplitEmbeddings, device: torch.device) -> None:
    expected, ours = outcome(sweep, data), outcome(sweep, data.to(device))
    if isinstance(expected, str) or isinstance(ours, str):
        assert isinstance(ours, str) and ours == expected
    else:
        assert_near(ours, expected, 1e-8)


@pytest.mark.parametrize("engine", ["dense", "tiled"])
@pytest.mark.parametrize("objective", names("objectives"))
def test_counts_of_every_objective(objective: str, engine: str, device: torch.device) -> None:
    data = small_split()
    sweep = Sweep((objective,), ("cocos", "weight_mass"), batch_size=16, engine=engine)  # type: ignore[arg-type]
    assert_same_outcome(sweep, data, device)


@pytest.mark.parametrize("probes", [TILES, PANELS], ids=["tiles", "panels"])
def test_one_large_batch(probes: tuple[str, ...], device: torch.device, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lossscope.engine.large_batches.PANEL", 200)
    data = small_split(images=60, captions=1)  # of an image that stands twice, rounding decides whether its margin is 0
    sweep = Sweep(("ntxent:tau=0.05", "triplet", "triplet_sh"), probes, batch_size=None, engine="tiled")
    assert_near(sweep.run(data.to(device)).summary, sweep.run(data).summary, 1e-8)


def test_tiles_count_as_the_dense_matrix_does_in_float32(device: torch.device) -> None:
    """Counts are whole numbers and no rounding decides them: tiles and stacks of the device agree."""
    data = small_split(images=60, dtype=torch.float32).to(device)
    dense, tiled = (
        Sweep(("ntxent:tau=0.05", "triplet", "unified"), ("cocos",), batch_size=None, engine=engine).run(data).summary
        for engine in ("dense", "tiled")
    )
    counts = dense["statistic"].isin(["C_neg", "C_0"])
    np.testing.assert_allclose(tiled["mean"][counts], dense["mean"][counts], rtol=1e-6)


@pytest.mark.parametrize("probes", [TILES, ("cocos", "tangent")], ids=["strips", "panels"])
def test_a_sample_of_queries_draws_the_same_and_says_the_same(probes: tuple[str, ...], device: torch.device) -> None:
    data = small_split(images=60)
    sweep = Sweep(("ntxent:tau=0.05",), probes, batch_size=None, queries=20)
    assert_near(sweep.run(data.to(device)).summary, sweep.run(data).summary, 1e-8)


@pytest.mark.parametrize("objective", ["ntxent:tau=0.05", "smoothap"])
def test_intervals_are_the_same(objective: str, device: torch.device) -> None:
    data = small_split(images=60)
    sweep = Sweep((objective,), TILES, batch_size=32, interval_groups=10)
    assert_near(sweep.run(data.to(device)).summary, sweep.run(data).summary, 1e-7)


@pytest.mark.parametrize("masks", [("above:margin=0.1",), ("percent",), ("same-text",)], ids=str)
def test_rules_for_false_negatives(masks: tuple[str, ...], device: torch.device) -> None:
    data = small_split()
    sweep = Sweep(("ntxent",), ("cocos",), batch_size=16, masks=masks)
    assert_same_outcome(sweep, data, device)


@pytest.mark.parametrize("terms", [("q2q",), ("d2q", "d2d"), ("p2p",)], ids=str)
def test_further_terms(terms: tuple[str, ...], device: torch.device) -> None:
    data = small_split()
    sweep = Sweep(("infonce",), ("cocos",), batch_size=16, terms=terms)
    assert_near(sweep.run(data.to(device)).summary, sweep.run(data).summary, 1e-8)


def test_a_sweep_of_the_device_resumes_from_its_frame(device: torch.device, tmp_path: Path) -> None:
    data = small_split().to(device)
    sweep = Sweep(("ntxent", "triplet"), TILES, batch_size=8, part=2, per_query=True)
    whole = sweep.run(data)
    seen: list[int] = []

    def stop(_label: str, done: int, _total: int) -> None:
        if seen:
            raise KeyboardInterrupt
        seen.append(done)

    with pytest.raises(KeyboardInterrupt):
        sweep.run(data, Frame.open(tmp_path / "frame", {}), stop)
    resumed = sweep.run(data, Frame.open(tmp_path / "frame", {}))
    assert_near(resumed.summary, whole.summary, 0)


def test_a_difference_of_two_sources(device: torch.device) -> None:
    first, second = small_split(), small_split()
    assert second.images is not None
    second = replace(second, images=second.images.roll(1, 1), name="other")
    sweep = Sweep(("ntxent",), TILES, batch_size=16)
    expected = PairedSweep(sweep, sweep).run(first, second).rows
    assert_near(PairedSweep(sweep, sweep).run(first.to(device), second.to(device)).rows, expected, 1e-7)


@pytest.mark.parametrize("cutoffs", [None, (1, 3, 10)])
def test_retrieval(cutoffs: tuple[int, ...] | None, device: torch.device) -> None:
    data = small_split(images=40)
    assert_near(evaluate([data.to(device)], cutoffs=cutoffs), evaluate([data], cutoffs=cutoffs), 1e-12)


def test_retrieval_of_an_ensemble_in_folds(device: torch.device) -> None:
    data = small_split(images=40)
    assert data.captions is not None
    other = replace(data, captions=-data.captions)
    expected = evaluate([data, other], folds=2)
    assert_near(evaluate([data.to(device), other.to(device)], folds=2), expected, 1e-12)
