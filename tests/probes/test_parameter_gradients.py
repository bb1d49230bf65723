"""Are gradients of layers those under the reduction of the objective's training?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

from lossscope.errors import InputError
from lossscope.registry import build
from tests.each import each
from tests.probes import lab


def linear(G: Tensor) -> Mapping[str, Tensor]:
    """Return the gradients of two layers: one sums all of dL/dS, the other takes its first row."""
    return {"image.fc": G.sum().abs(), "text.rnn": 2 * G[0].norm()}


def one_batch(**more: Any) -> Any:
    return replace(lab.random_batches(k=1, q=6, c=6, **more).rows(), gradients=linear)


@each(
    "objective, spec, scale",
    [
        ("triplet", "", 1.0),  # sum
        ("ntxent", "", 0.5 / 4),  # half the mean over the usable queries; two queries are not usable
        ("ntxent", ":reduction=sum", 0.5),
        ("triplet", ":reduction=pairs", 1 / 6),
        ("goal:pair=lin", ":reduction=cells", 1 / 60),
    ],
    "direction",
    ["i2t", "t2i"],
)
def test_dl_ds_is_reduced_as_in_training(objective: str, spec: str, scale: float, direction: Any) -> None:
    rows = one_batch()
    rows = replace(rows, shape=replace(rows.shape, direction=direction))
    W = build("objectives", objective)(rows.S, rows.mask).W
    expected = {name: float(norm) * scale for name, norm in linear(W).items()}
    result = lab.columns(lab.run(f"parameter_gradients{spec}", rows, objective))
    total = sum(norm**2 for norm in expected.values()) ** 0.5
    assert {name: float(v[0]) for name, v in result.items()} == pytest.approx({"gradient_norm": total, **expected})


def test_the_total_is_a_statistic_and_so_is_every_layer() -> None:
    result = lab.run("parameter_gradients", one_batch())
    assert [s.name for s in result.probe.statistics(None)] == ["gradient_norm"]
    layers = result.probe.layers(result.columns)
    assert [(s.name, s.column, s.reducer, s.unit) for s in layers] == [
        (name, name, "mean", "norm") for name in ("image.fc", "text.rnn")
    ]
    assert lab.statistics(result)["gradient_norm"] == pytest.approx(float(result.columns["gradient_norm"]))


def test_a_batch_without_violations_has_no_gradient() -> None:
    rows = one_batch(gaps=False)
    rows = replace(rows, S=torch.eye(6, dtype=torch.float64))
    assert lab.measure("parameter_gradients", rows, "triplet")["gradient_norm"].tolist() == [0]


def test_skipped_queries_alone_give_no_infinity() -> None:
    rows = one_batch()
    mask = replace(rows.mask, match=torch.zeros_like(rows.mask.match))
    assert lab.measure("parameter_gradients", replace(rows, mask=mask), "ntxent")["gradient_norm"].tolist() == [0]


def test_a_source_without_a_model_raises() -> None:
    with pytest.raises(InputError, match="parameter_gradients needs the model itself, which this source does not have"):
        lab.measure("parameter_gradients", lab.random_batches(k=1))


def test_a_batch_in_several_views_raises() -> None:
    with pytest.raises(InputError, match=r"needs a batch in one piece; a batch of 6 candidates comes in several"):
        lab.run_in_panels("parameter_gradients", one_batch(), [4, 2])
