"""Do triplet losses take the hardest, a random or each positive, as pytorch-metric-learning and batch hard do?"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from lossscope.core.similarity import Mask, pair_mask
from lossscope.errors import InputError
from lossscope.registry import build, spec_of
from tests.command_line import lossscope, message
from tests.each import each

N, MARGIN = 12, 0.2


def batch() -> tuple[Tensor, Mask]:
    """Return S and the mask of 3 classes of 4 items."""
    x = torch.nn.functional.normalize(
        torch.randn(N, 6, generator=torch.Generator().manual_seed(3), dtype=torch.float64), dim=1
    )
    labels, itself = torch.arange(N) // 4, torch.eye(N, dtype=torch.bool)
    return x @ x.T, Mask((labels[:, None] == labels[None]) & ~itself, ~itself)


def slow(S: Tensor, mask: Mask, taken: str, hardest_negative: bool) -> Tensor:
    """Return the loss of each query, triplet by triplet."""
    losses = []
    for row in range(len(S)):
        positives = [c for c in range(N) if mask.positives[row, c]]
        negatives = [c for c in range(N) if mask.negatives[row, c]]
        if taken == "hardest":
            positives = [min(positives, key=lambda c: float(S[row, c].detach()))]
        if hardest_negative:
            negatives = [max(negatives, key=lambda c: float(S[row, c].detach()))]
        each_positive = [
            torch.stack([(MARGIN - S[row, p] + S[row, n]).relu() for n in negatives]).sum() for p in positives
        ]
        losses.append(torch.stack(each_positive).mean())
    return torch.stack(losses)


@each("taken", ["hardest", "all"], "name", ["triplet", "triplet_sh"])
def test_values_and_w_are_those_of_every_triplet(taken: str, name: str) -> None:
    S, mask = batch()
    weights = build("objectives", f"{name}:positive={taken}")(S, mask)
    leaf = S.clone().requires_grad_()
    expected = slow(leaf, mask, taken, name == "triplet_sh")
    (W,) = torch.autograd.grad(expected.sum(), leaf)
    assert torch.allclose(weights.values, expected.detach(), atol=1e-12)
    assert torch.allclose(weights.W, W, atol=1e-12)


@each("name", ["triplet", "triplet_sh"])
def test_a_random_positive_is_one_of_them_and_the_same_every_time(name: str) -> None:
    S, mask = batch()
    loss = build("objectives", f"{name}:positive=random,margin=3")
    W = loss(S, mask).W
    pulled = (W < 0) & mask.positives
    assert (pulled.sum(1) == 1).all() and torch.equal(W, loss(S, mask).W)
    assert len(set((pulled.int().argmax(1) % 4).tolist())) > 1


@each("taken", ["hardest", "random", "all"], "name", ["triplet", "triplet_sh"])
def test_with_one_positive_nothing_changes(taken: str, name: str) -> None:
    S, mask = batch()[0], pair_mask(torch.arange(N))
    plain, chosen = (build("objectives", spec)(S, mask) for spec in (name, f"{name}:positive={taken}"))
    assert torch.equal(plain.W, chosen.W) and torch.equal(plain.values, chosen.values)


def test_a_query_without_a_positive_is_skipped_and_numbers_of_positives_may_differ() -> None:
    S, mask = batch()
    match = mask.match.clone()
    match[0] = False
    match[1, 2:4] = False
    ragged = Mask(match, mask.valid)
    for taken in ("hardest", "random", "all"):
        weights = build("objectives", f"triplet:positive={taken}")(S, ragged)
        assert not weights.W[0].any() and weights.W.isfinite().all()
        assert torch.allclose(weights.W.sum(1), torch.zeros(N, dtype=torch.float64), atol=1e-12)


def test_all_positives_are_the_triplets_of_pytorch_metric_learning() -> None:
    losses = pytest.importorskip("pytorch_metric_learning.losses", reason="its losses are compared")
    from pytorch_metric_learning.distances import CosineSimilarity
    from pytorch_metric_learning.reducers import DoNothingReducer

    x = torch.randn(N, 6, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    loss = losses.TripletMarginLoss(MARGIN, distance=CosineSimilarity(), reducer=DoNothingReducer())
    triplets = loss(x, torch.arange(N) // 4)["loss"]["losses"]
    S, mask = batch()
    values = build("objectives", "triplet:positive=all")(S, mask).values
    assert float(values.sum() * 3) == pytest.approx(float(triplets.sum()), rel=1e-9)


def test_the_hardest_positive_and_negative_are_those_of_batch_hard() -> None:
    miners = pytest.importorskip("pytorch_metric_learning.miners", reason="its miners are compared")
    from pytorch_metric_learning.distances import CosineSimilarity

    x = torch.randn(N, 6, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    anchors, positives, negatives = miners.BatchHardMiner(distance=CosineSimilarity())(x, torch.arange(N) // 4)
    S, mask = batch()
    W = build("objectives", "triplet_sh:margin=3,positive=hardest")(S, mask).W
    assert (W[anchors, positives] == -1).all() and (W[anchors, negatives] == 1).all()


def test_the_command_line_counts_classes_and_says_how() -> None:
    assert spec_of(build("objectives", "triplet")) == "triplet:margin=0.2"
    with pytest.raises(InputError, match="each query must have one positive"):
        build("objectives", "triplet")(*batch())


def test_a_plain_triplet_on_classes_names_the_choice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    random = np.random.default_rng(0)
    np.savez("set.npz", embeddings=random.normal(size=(48, 6)).astype("f4"), labels=np.arange(48) // 4)
    refused = lossscope(*"cocos set.npz --objective triplet --per-class 4 --batch-size 16".split())
    assert "or write triplet:margin=0.2,positive=hardest, random or all" in message(refused)
    for taken in ("hardest", "random", "all"):
        line = f"cocos set.npz --objective triplet:positive={taken} --per-class 4 --batch-size 16"
        counted = lossscope(*line.split())
        assert counted.exit_code == 0 and "C_q" in counted.stdout, counted.stderr
