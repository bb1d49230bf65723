"""Is a watched loss with class vectors items against all classes, with the numbers of the objective that it equals?"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from lossscope.core.similarity import Mask, normalise
from lossscope.errors import UnsupportedLoss
from lossscope.live.monitor import LossScope
from lossscope.live.observed import Observed
from lossscope.objectives.custom.class_vectors import equal_objective
from lossscope.registry import build
from tests.each import each

losses = pytest.importorskip("pytorch_metric_learning.losses")
miners = pytest.importorskip("pytorch_metric_learning.miners")
regularizers = pytest.importorskip("pytorch_metric_learning.regularizers")
reducers = pytest.importorskip("pytorch_metric_learning.reducers")

N, CLASSES, WIDTH = 16, 7, 6
LABELS = torch.arange(N) % (CLASSES - 1)  # class 6 has no item
NAMES = (
    "ArcFaceLoss", "CosFaceLoss", "NormalizedSoftmaxLoss", "ProxyAnchorLoss", "ProxyNCALoss", "SubCenterArcFaceLoss",
    "SoftTripleLoss",
)  # fmt: skip


def items(seed: int = 0) -> Tensor:
    random = torch.Generator().manual_seed(seed)
    return torch.randn(N, WIDTH, generator=random, dtype=torch.float64).requires_grad_()


def made(name: str, **options: Any) -> Any:
    torch.manual_seed(0)
    return getattr(losses, name)(num_classes=CLASSES, embedding_size=WIDTH, **options).double()


class Kept(LossScope):
    """A scope that also keeps the observations."""

    def record(self, observed: Any, step: int) -> Any:
        self.observed: list[Observed] = list(observed)
        return super().record(observed, step)


def observe(loss: Any, *arguments: Any) -> tuple[Tensor, Observed, dict[str, float]]:
    scope = Kept(probes=("similarity", "cocos"))
    value = scope.wrap(loss)(*arguments)
    (observation,) = scope.observed
    return value, observation, dict(scope.history[-1])


@each("name", NAMES)
def test_w_is_that_of_the_equal_objective_on_the_same_s_with_every_class_as_candidate(name: str) -> None:
    loss = made(name)
    value, observation, row = observe(loss, items(), LABELS)
    S, mask = observation.first.S, observation.first.mask
    assert S.shape == (N, CLASSES) and mask.all_valid
    assert torch.equal(mask.match, torch.nn.functional.one_hot(LABELS, CLASSES).bool())
    spec = equal_objective(loss)
    assert spec is not None
    expected = build("objectives", spec)(S.double(), mask)
    assert expected.values is not None and observation.objective is not None
    assert float(expected.values.mean()) == pytest.approx(float(value.detach()), rel=1e-5)
    W = observation.objective(S, mask).W
    torch.testing.assert_close(W, expected.W.float(), rtol=1e-3, atol=1e-4 * float(W.abs().max()))
    plain = LossScope(spec, probes=("similarity", "cocos"), sides="item/proxy").watch(S, mask)
    assert plain is not None
    shared = [key for key in plain if key.startswith("i2p/")]
    assert "i2p/C_neg" in shared and not any(key.startswith("p2i/") for key in row)
    assert {key: row[key] for key in shared} == pytest.approx({key: plain[key] for key in shared}, rel=1e-3, abs=1e-4)


@each("name", NAMES[:5])
def test_w_carries_the_whole_gradient_and_training_is_unchanged(name: str) -> None:
    x, loss = items(), made(name)
    expected = torch.autograd.grad(loss(x, LABELS), [x, *loss.parameters()])
    value, observation, _ = observe(loss, x, LABELS)
    actual = torch.autograd.grad(value, [x, *loss.parameters()])
    assert all(torch.equal(a, b) for a, b in zip(actual, expected, strict=True))
    W = observation.objective(observation.first.S, observation.first.mask).W.double()  # type: ignore[union-attr]
    vectors = loss.proxies if hasattr(loss, "proxies") else loss.W.t()
    (through,) = torch.autograd.grad((W * (normalise(x) @ normalise(vectors.detach()).T)).sum() / N, x)
    torch.testing.assert_close(through, expected[0], rtol=1e-4, atol=1e-5 * float(through.abs().max()))


def test_a_sum_counts_as_it_is_and_a_changed_scale_changes_the_unit() -> None:
    mean, total = made("CosFaceLoss"), made("CosFaceLoss", reducer=reducers.SumReducer())
    W = [
        o.objective(o.first.S, o.first.mask).W  # type: ignore[union-attr]
        for o in (observe(loss, items(), LABELS)[1] for loss in (mean, total))
    ]
    torch.testing.assert_close(*W)
    scope = LossScope(probes=("cocos",))
    watched = scope.wrap(mean)
    for mean.scale in (64, 4):
        watched(items(), LABELS)
    expected = LossScope("cosface:scale=4", probes=("cocos",), sides="item/proxy")
    match = torch.nn.functional.one_hot(LABELS, CLASSES).bool()
    S = normalise(items().detach()) @ normalise(mean.W.detach().t()).T
    row = expected.watch(S, Mask(match, torch.ones_like(match)))
    assert row is not None and scope.history[-1]["i2p/C_neg"] == pytest.approx(row["i2p/C_neg"])


def test_a_miner_weighs_items_and_leaves_no_class_out() -> None:
    x = items()
    mined = miners.MultiSimilarityMiner()(x, LABELS)
    _, observation, row = observe(made("ArcFaceLoss"), x, LABELS, mined)
    assert observation.first.mask.all_valid and "i2p/mined_pos" not in row


@pytest.mark.filterwarnings("ignore:__array_wrap__")  # scipy in the library
@each("name", ["SphereFaceLoss", "LargeMarginSoftmaxLoss"])
def test_a_loss_of_lengths_is_refused_and_the_line_of_the_message_works(name: str) -> None:
    x, loss = items(), made(name)
    with pytest.raises(UnsupportedLoss, match=r"LossScope\('arcface'\).wrap\(loss\)"):
        LossScope().wrap(loss)(x, LABELS)
    scope = LossScope("arcface")
    scope.wrap(loss)(x, LABELS)
    assert scope.history[-1]["i2p/C_neg"] > 0


def test_a_regulariser_of_embeddings_is_refused_as_w_would_leave_it_out() -> None:
    loss = made("ArcFaceLoss", embedding_regularizer=regularizers.LpRegularizer())
    with pytest.raises(UnsupportedLoss, match="a part of its gradient"):
        LossScope().wrap(loss)(items(), LABELS)


def test_the_flight_recorder_writes_a_dump_of_items_and_proxies(tmp_path: Path) -> None:
    from lossscope.core.request import Request
    from lossscope.sources.dump import Dump

    scope = LossScope(recorder=2, recorder_folder=tmp_path)
    scope.wrap(made("ArcFaceLoss"))(items(), LABELS)
    folder = scope.write_recorder("test")
    assert folder is not None
    (path,) = folder.glob("*.npz")
    split = Dump(path).read(Request(cache=False))
    assert split.sides.text == "item/proxy" and split.captions is not None
    assert np.array_equal(split.relations.positives[:, 1], LABELS.numpy())
    assert "W_second" not in np.load(path)
