"""Does `lossscope.Loss` equal the libraries' losses where they coincide, and run in their trainers and wrappers?"""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

import lossscope
from lossscope.core.similarity import normalise
from lossscope.errors import InputError
from tests.each import each

pytest.importorskip("pytorch_metric_learning")
pytest.importorskip("sentence_transformers")

from pytorch_metric_learning import losses, miners
from sentence_transformers.sentence_transformer import losses as sentence_losses

N, WIDTH = 8, 6
LABELS = torch.arange(N) // 2


def vectors(seed: int, rows: int = N) -> Tensor:
    return torch.randn(rows, WIDTH, generator=torch.Generator().manual_seed(seed)).requires_grad_()


def equal(ours: Any, theirs: Any, *arguments: Any, **options: Any) -> None:
    """Compare values and gradients of the first argument."""
    values = [loss(*arguments, **options) for loss in (ours, theirs)]
    torch.testing.assert_close(values[0].detach(), values[1].detach(), rtol=1e-5, atol=1e-6)
    mine, other = (torch.autograd.grad(value, arguments[0])[0] for value in values)
    torch.testing.assert_close(mine, other, rtol=1e-4, atol=1e-6)


@each("spec, theirs", [
    ("ntxent:tau=0.1", losses.NTXentLoss(0.1)),
    ("supcon:tau=0.1", losses.SupConLoss(0.1)),
    ("multi_similarity:alpha=2,beta=50,lam=0.5,mining=false", losses.MultiSimilarityLoss(2, 50, 0.5)),
    ("circle:margin=0.4,gamma=80", losses.CircleLoss(0.4, 80)),
])  # fmt: skip
def test_labels_have_the_number_of_pytorch_metric_learning(spec: str, theirs: nn.Module) -> None:
    equal(lossscope.Loss(spec), theirs, vectors(0), LABELS)


def test_references_are_candidates_of_anchors_alone() -> None:
    references, others = vectors(1, 20).detach(), torch.arange(20) % 4
    equal(
        lossscope.Loss("supcon:tau=0.1"), losses.SupConLoss(0.1), vectors(0), LABELS,
        ref_emb=references, ref_labels=others,
    )  # fmt: skip


def test_a_miner_says_which_pairs_count() -> None:
    x = vectors(0)
    mined = miners.MultiSimilarityMiner(0.3)(x, LABELS)
    theirs = losses.MultiSimilarityLoss(2, 50, 0.5)
    value = lossscope.Loss("multi_similarity:alpha=2,beta=50,lam=0.5,mining=false")(x, LABELS, mined)
    usable = len(set(mined[0].tolist()) & set(mined[2].tolist()))  # theirs has anchors with pairs of one kind, too
    if usable == N:
        torch.testing.assert_close(value, theirs(x, LABELS, mined), rtol=1e-5, atol=1e-6)
    assert torch.isfinite(value)
    assert not lossscope.Loss("supcon")(x, LABELS, tuple(torch.zeros(0, dtype=torch.long) for _ in range(3)))


def test_a_memory_of_batches_calls_it_by_position() -> None:
    """CrossBatchMemory takes losses by the names of their classes."""

    class SupConLoss(lossscope.Loss):
        pass

    ours, theirs = (
        losses.CrossBatchMemory(loss, WIDTH, 32) for loss in (SupConLoss("supcon:tau=0.1"), losses.SupConLoss(0.1))
    )
    for seed in range(2):
        torch.testing.assert_close(ours(vectors(seed), LABELS), theirs(vectors(seed), LABELS), rtol=1e-5, atol=1e-6)


class Texts(nn.Module):
    """A stand-in of a SentenceTransformer: features are embeddings already."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Linear(WIDTH, WIDTH)

    def forward(self, features: dict[str, Tensor]) -> dict[str, Tensor]:
        return {"sentence_embedding": self.net(features["x"])}


@each("columns", [2, 4])
def test_columns_of_texts_have_the_number_of_the_symmetric_ranking_loss(columns: int) -> None:
    torch.manual_seed(0)
    model = Texts()
    features = [{"x": vectors(seed).detach()} for seed in range(columns)]
    ours = lossscope.Loss("ntxent:tau=0.05").for_sentence_transformers(model)
    theirs = sentence_losses.MultipleNegativesRankingLoss(
        model, 20.0, directions=("query_to_doc", "doc_to_query"), partition_mode="per_direction"
    )
    for loss in (ours, theirs):
        loss(features, None).backward()
    value = ours(features).detach()
    torch.testing.assert_close(value, theirs(features, None).detach(), rtol=1e-5, atol=1e-6)


def test_a_column_with_labels_is_one_set_and_labels_of_pairs_are_refused() -> None:
    model, features = Texts(), [{"x": vectors(seed).detach()} for seed in range(2)]
    loss = lossscope.Loss("supcon:tau=0.1").for_sentence_transformers(model)
    x = model(features[0])["sentence_embedding"]
    assert torch.equal(loss(features[:1], LABELS), lossscope.Loss("supcon:tau=0.1")(x, LABELS))
    with pytest.raises(InputError, match="a data set of one column must have labels of classes; got none"):
        loss(features[:1])
    with pytest.raises(InputError, match=r"pairs of texts must come without labels.*remove_columns\('label'\)"):
        loss(features, LABELS)
    assert loss.get_config_dict() == {"objective": "supcon"}  # with its default tau


@each("spec", ["unified:gamma=60", "goal", "siglip", "supcon"])
def test_a_wrapped_one_is_watched_with_its_own_objective(spec: str) -> None:
    probes, Q, D = ("similarity", "cocos"), vectors(0), vectors(1)
    scope, loss = lossscope.LossScope(probes=probes), lossscope.Loss(spec)
    loss._told.add("value")
    watched = scope.wrap(loss)
    assert isinstance(watched, lossscope.Loss)
    assert list(watched.state_dict()) == list(loss.state_dict())
    assert torch.equal(watched(Q, D), loss(Q, D))
    expected = lossscope.LossScope(loss.objective, probes).watch(queries=Q, documents=D)
    row = dict(scope.history[-1])
    assert expected is not None and ("loss" in row) == (spec != "goal")
    assert {name: row[name] for name in expected} == pytest.approx(expected, rel=1e-5, abs=1e-7)
    watched(Q, LABELS) if spec in ("siglip", "supcon") else watched(normalise(Q) @ normalise(D).T)
    assert len(scope.history) == 2
    given = lossscope.LossScope("triplet", probes)
    given.wrap(loss)(Q, D)
    assert "loss" in given.history[-1] or spec == "goal"


def test_offline_candidates_are_watched_without_them() -> None:
    scope, mask = lossscope.LossScope(probes=("similarity",)), torch.eye(N, dtype=torch.bool)
    scope.wrap(lossscope.Loss("aoq"))(vectors(0, 3 * N), vectors(1, 3 * N), mask=mask)
    expected = lossscope.LossScope("aoq", ("similarity",)).watch(
        queries=vectors(0, 3 * N)[:N], documents=vectors(1, 3 * N)[:N]
    )
    assert expected is not None
    assert scope.history[-1]["q2d/s_pos"] == pytest.approx(expected["q2d/s_pos"])
