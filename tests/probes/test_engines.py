"""Do panels of a sweep equal the whole batch for all probes, and do sources provide what probes read?"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from lossscope.core.embedded import SplitEmbeddings
from lossscope.core.pair import Pair
from lossscope.engine.sweep import Sweep
from lossscope.errors import InputError
from lossscope.registry import build, names
from lossscope.sources.base import load
from tests.each import each

WITHOUT_MODEL = tuple(name for name in names("probes") if name != "parameter_gradients")
KEYS = ["objective", "direction", "probe", "statistic"]


@pytest.fixture(scope="module")
def embedded() -> SplitEmbeddings:
    """Return twenty images with two captions each; some captions are the same."""
    random = torch.Generator().manual_seed(0)
    owner = np.repeat(np.arange(20), 2)
    images = torch.nn.functional.normalize(torch.randn(20, 8, generator=random, dtype=torch.float64), dim=1)
    noise = torch.randn(40, 8, generator=random, dtype=torch.float64)
    captions = torch.nn.functional.normalize(images[owner] + 0.3 * noise, dim=1)
    ids = [str(row) for row in range(40)]
    keys = Pair(np.arange(20) // 2, np.arange(40) % 7)
    return SplitEmbeddings("source", images, captions, None, owner, ids[:20], ids, "f", read_input_keys=lambda: keys)


def run_sweep(embedded: SplitEmbeddings, *probes: str, **options: Any) -> pd.DataFrame:
    probes = tuple(f"{name}:unit=paper" if name in ("cocos", "weight_mass") else name for name in probes)
    plan = Sweep(("ntxent", "triplet", "smoothap"), probes, **{"batch_size": 12, **options})
    return plan.run(embedded).summary.set_index(KEYS)


def test_panels_give_the_statistics_of_the_whole_batch(
    embedded: SplitEmbeddings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lossscope.engine.large_batches.PANEL", 60)
    probes = (*WITHOUT_MODEL, "tangent:of=candidate", "tangent:of=hardest")
    dense, counting_rule = (run_sweep(embedded, *probes, engine=engine) for engine in ("dense", "tiled"))
    assert {str(probe).partition(":")[0] for probe in dense.index.get_level_values("probe")} == set(WITHOUT_MODEL)
    assert dense.index.equals(counting_rule.index)
    for column in ("mean", "std", "n_defined"):
        np.testing.assert_allclose(counting_rule[column], dense[column], rtol=1e-9, atol=1e-12, err_msg=column)


def test_false_negatives_are_those_of_the_source(embedded: SplitEmbeddings) -> None:
    """In a batch of all pairs, each has another caption of its image; copies are counted by hand."""
    actual = run_sweep(embedded, "false_negatives", batch_size=None, sampling="pairs")["mean"]
    owner, texts = embedded.caption_image, np.arange(40) % 7
    copies = [(texts == texts[c]) & (owner != owner[c]) for c in range(40)]
    for direction in ("i2t", "t2i"):
        by_statistic = actual.xs(direction, level="direction").droplevel(["objective", "probe"])
        assert not by_statistic.index.has_duplicates
        assert by_statistic["same_image"] == 1
        assert by_statistic["duplicates"] == (np.sum(copies) / 40 if direction == "i2t" else 2)


def test_a_checkpoint_gives_the_gradients_of_its_layers(tiny_checkpoint: Path) -> None:
    actual = run_sweep(load(tiny_checkpoint, split="val"), "parameter_gradients", "cocos", batch_size=16)
    actual = actual.xs("parameter_gradients", level="probe").xs("t2i", level="direction")["mean"]
    for objective in ("ntxent:tau=0.1", "smoothap:tau=0.01"):
        layers = actual.xs(objective, level="objective")
        total = layers.pop("gradient_norm")
        assert list(layers.index) == ["image.features", "image.fc", "image.bn", "text.embed", "text.rnn"]
        assert 0 < layers.max() <= total <= layers.sum()


def test_a_source_without_a_model_has_no_gradients(embedded: SplitEmbeddings) -> None:
    with pytest.raises(InputError, match="parameter_gradients needs the model itself"):
        run_sweep(embedded, "parameter_gradients")


@each("name", names("probes"))
def test_the_attributes_of_a_probe(name: str) -> None:
    probe = build("probes", name)
    statistics = probe.statistics(build("objectives", "ntxent") if probe.needs_objective else None)
    assert probe.axis in ("query", "candidate", "batch", "layer")
    assert len({statistic.name for statistic in statistics}) == len(statistics) > 0
    units = {"samples", "weight", "similarity", "%", "rank", "queries", "1", "norm"}
    assert {statistic.unit for statistic in statistics} <= units
    if probe.cheap:
        assert not probe.reads & {"embeddings", "gradients", "keys"}, "a cheap probe must work on any source"
