"""Have objectives on pairs the values and gradients of pytorch-metric-learning (pml), or a stated difference?

Images are the queries, captions the references. Losses of pml are not reduced (DoNothingReducer) but summed here; its
gradient is propagated through its own normalisation, ours through W, the captions and the tangent plane.
"""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from lossscope.core.similarity import Mask, group_mask, normalise
from lossscope.core.weights import Weights, both, reduce_weights
from lossscope.registry import build

pytest.importorskip("pytorch_metric_learning")

from pytorch_metric_learning import distances, losses, miners, reducers

from tests.each import each

LABELS = torch.tensor([0, 0, 1, 1, 2, 3])
CAPTION_LABELS = torch.tensor([0, 1, 1, 2, 2, 2, 3, 0, 3])


def image_embeddings(seed: int) -> Tensor:
    """(6, 5) rows of any length, around a common direction so that similarities are mostly positive."""
    vectors = torch.randn(6, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(seed)) + 0.8
    return vectors.requires_grad_()


CAPTIONS = torch.randn(9, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(9)) + 0.8
"""(9, 5) rows of any length."""


def of(spec: str, images: Tensor, captions: Tensor) -> Weights:
    """Return the Weights of our objective; every image has positives and negatives among the captions."""
    match = LABELS[:, None] == CAPTION_LABELS
    S = normalise(images.detach()) @ normalise(captions).T
    weights: Weights = build("objectives", spec)(S, Mask(match, torch.ones_like(match)))
    assert weights.usable.all()
    return weights


def gradient_of(rows: Tensor, W: Tensor, others: Tensor) -> Tensor:
    """Return dL/d rows of any length: the tangent part of W times the other side's unit vectors, over the length."""
    unit, g = normalise(rows.detach()), W @ normalise(others.detach())
    return (g - (g * unit).sum(1, keepdim=True) * unit) / rows.detach().norm(dim=1, keepdim=True)


def theirs(loss: Any, images: Tensor, captions: Tensor, mined: Any = None) -> dict[str, Tensor]:
    """Return the unreduced losses of pml by name."""
    actual = loss(images, LABELS, mined, captions, CAPTION_LABELS)
    return {name: part["losses"] for name, part in actual.items()}


def assert_agree(actual: Tensor, expected: Tensor, atol: float = 1e-10) -> None:
    torch.testing.assert_close(actual, expected, rtol=0, atol=atol)


def assert_same(weights: Weights, rows: Tensor, others: Tensor, per_row: Tensor, atol: float = 1e-10) -> None:
    """Assert that the values of rows, and the gradient of their sum with respect to the rows, are equal."""
    assert weights.values is not None
    assert_agree(weights.values, per_row.detach(), atol)
    assert_agree(gradient_of(rows, weights.W, others), torch.autograd.grad(per_row.sum(), rows)[0], atol)


@each("seed", range(3))
def test_contrastive_on_cosines_equals_pml_with_neg_margin_1_minus_margin(seed: int) -> None:
    images = image_embeddings(seed)
    for margin in (1.0, 0.6):
        loss = losses.ContrastiveLoss(
            pos_margin=1, neg_margin=1 - margin, distance=distances.CosineSimilarity(), reducer=nothing()
        )
        weights = of(f"contrastive:distance=cosine,margin={margin}", images, CAPTIONS)
        parts = theirs(loss, images, CAPTIONS)
        total = parts["pos_loss"].sum() + parts["neg_loss"].sum()
        assert weights.values is not None
        assert_agree(weights.values.sum(), total.detach())
        assert_agree(gradient_of(images, weights.W, CAPTIONS), torch.autograd.grad(total, images)[0])


@each("seed", range(3))
def test_contrastive_on_distances_is_half_the_squares_of_pml(seed: int) -> None:
    images = image_embeddings(seed)
    weights = of("contrastive:margin=1.1", images, CAPTIONS)
    parts = theirs(losses.ContrastiveLoss(neg_margin=1.1, reducer=nothing()), images, CAPTIONS)
    total = (parts["pos_loss"].square().sum() + parts["neg_loss"].square().sum()) / 2
    assert weights.values is not None
    assert_agree(weights.values.sum(), total.detach())
    assert_agree(gradient_of(images, weights.W, CAPTIONS), torch.autograd.grad(total, images)[0])


@each("spec, loss, power", [
    ("contrastive", losses.ContrastiveLoss, 2),
    ("lifted_structure:form=anchor", losses.GeneralizedLiftedStructureLoss, 1),
])  # fmt: skip
def test_a_negative_at_distance_zero_has_no_gradient_here_or_in_pml(spec: str, loss: Any, power: int) -> None:
    image = torch.tensor([[1.0, 0.0]], dtype=torch.float64, requires_grad=True)
    captions = torch.tensor([[1.0, 0.0], [0.6, 0.8], [0.8, -0.6]], dtype=torch.float64)
    labels, match = torch.tensor([1, 0, 1]), torch.tensor([[False, True, False]])
    parts = loss(reducer=nothing())(image, torch.tensor([0]), None, captions, labels).values()
    total = sum((part["losses"].pow(power) / power).sum() for part in parts)
    W = build("objectives", spec)((image @ captions.T).detach(), Mask(match, torch.ones_like(match))).W
    assert W[0, 0] == 0
    assert_agree(gradient_of(image, W, captions), torch.autograd.grad(total, image)[0])


@each("seed", range(3), "alpha, beta, lam", [(2, 50, 0.5), (2, 50, 1), (2, 40, 0.5)])
def test_multi_similarity_without_mining_equals_pml(seed: int, alpha: float, beta: float, lam: float) -> None:
    images = image_embeddings(seed)
    loss = losses.MultiSimilarityLoss(alpha=alpha, beta=beta, base=lam, reducer=nothing())
    per_row = theirs(loss, images, CAPTIONS)["loss"].squeeze(1)
    weights = of(f"multi_similarity:mining=false,alpha={alpha},beta={beta},lam={lam}", images, CAPTIONS)
    assert_same(weights, images, CAPTIONS, per_row)


@each("seed", range(3), "epsilon", [0.1, -0.1])
def test_multi_similarity_with_mining_equals_pml_with_its_miner(seed: int, epsilon: float) -> None:
    images = image_embeddings(seed)
    mined = miners.MultiSimilarityMiner(epsilon=epsilon)(images, LABELS, CAPTIONS, CAPTION_LABELS)
    assert len(mined[0]) + len(mined[2]) < len(LABELS) * len(CAPTION_LABELS)
    loss = losses.MultiSimilarityLoss(reducer=nothing())
    per_row = theirs(loss, images, CAPTIONS, mined)["loss"].squeeze(1)
    assert_same(of(f"multi_similarity:ms_eps={epsilon}", images, CAPTIONS), images, CAPTIONS, per_row)


@each("seed", range(3), "margin, gamma", [(0.4, 80), (0.25, 256), (0.25, 4)])
def test_circle_equals_pml_up_to_its_softplus_which_is_linear_above_20(seed: int, margin: float, gamma: float) -> None:
    images = image_embeddings(seed)
    loss = losses.CircleLoss(m=margin, gamma=gamma, reducer=nothing())
    per_row = theirs(loss, images, CAPTIONS)["loss"].squeeze(1)
    weights = of(f"circle:margin={margin},gamma={gamma}", images, CAPTIONS)
    assert_same(weights, images, CAPTIONS, per_row, atol=3e-9 * gamma)  # e^-20 = 2e-9


@each("seed", range(3))
def test_the_attached_circle_has_the_values_of_pml_but_not_its_gradient(seed: int) -> None:
    images = image_embeddings(seed)
    per_row = theirs(losses.CircleLoss(m=0.25, gamma=4, reducer=nothing()), images, CAPTIONS)["loss"].squeeze(1)
    weights = of("circle:gamma=4,factors=attached", images, CAPTIONS)
    assert weights.values is not None
    assert_agree(weights.values, per_row.detach())
    gradient = torch.autograd.grad(per_row.sum(), images)[0]
    assert (gradient_of(images, weights.W, CAPTIONS) - gradient).abs().max() > 0.01


@each("seed", range(3), "margin", [1.0, 0.3])
def test_the_anchor_form_of_lifted_structure_equals_the_generalised_one_of_pml(seed: int, margin: float) -> None:
    images = image_embeddings(seed)
    loss = losses.GeneralizedLiftedStructureLoss(neg_margin=margin, reducer=nothing())
    per_row = theirs(loss, images, CAPTIONS)["loss"].squeeze(1)
    assert_same(of(f"lifted_structure:form=anchor,margin={margin}", images, CAPTIONS), images, CAPTIONS, per_row)


@each("seed", range(3), "per_image", [1, 2], "margin", [1.0, 0.3])
def test_the_pair_form_of_lifted_structure_equals_pml_on_one_set_of_images_and_captions(
    seed: int, per_image: int, margin: float
) -> None:
    """pml gets pairs across the two sides only, in both directions, so its sum holds each positive pair twice."""
    images = image_embeddings(seed)
    mask = group_mask(torch.arange(6), torch.arange(6).repeat_interleave(per_image))
    captions = torch.randn(6 * per_image, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(9)) + 0.8
    crossed = [rows for kind in (mask.match, ~mask.match) for rows in both_ways(*kind.nonzero(as_tuple=True), 6)]
    labels = torch.cat([torch.arange(6), torch.arange(6).repeat_interleave(per_image)])
    loss = losses.LiftedStructureLoss(neg_margin=margin, reducer=nothing())
    per_pair = loss(torch.cat([images, captions]), labels, tuple(crossed))["loss"]["losses"]

    objective = build("objectives", f"lifted_structure:margin={margin}")
    S = normalise(images.detach()) @ normalise(captions).T
    weights = objective(S, mask)
    assert_agree(per_image * weights.values.sum(), per_pair.detach().sum() / 2)
    assert_agree(
        per_image * gradient_of(images, weights.W, captions), torch.autograd.grad(per_pair.sum() / 2, images)[0]
    )
    if per_image == 1:
        traits = objective.traits
        training = reduce_weights(both(objective, S, mask), traits.directions, traits.reduction, 6).value
        assert training is not None
        assert_agree(training, per_pair.detach().mean())


def test_the_pair_form_of_pml_with_references_omits_the_other_negatives_of_the_caption() -> None:
    """With pair i on the diagonal, pml takes the negatives of IMAGE p for those of caption p: the same ones twice.

    J is then log Σ_n e^{margin − d_qn} + d_qp, the anchor form, and the loss of a pair half its square.
    """
    images, captions = torch.randn(2, 7, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(0)) + 0.8
    rows, match = torch.arange(7), torch.eye(7, dtype=torch.bool)
    loss = losses.LiftedStructureLoss(reducer=nothing())
    actual = loss(images, rows, None, captions, rows.clone())  # labels that are the same object lose the diagonal
    S, mask = normalise(images) @ normalise(captions).T, Mask(match, torch.ones_like(match))
    anchor, pair = (build("objectives", f"lifted_structure:form={form}")(S, mask).values for form in ("anchor", "pair"))
    assert_agree(actual["loss"]["losses"].flatten(), anchor.square() / 2)
    assert (pair > anchor.square() / 2).all()


@each("seed", range(3))
def test_ranked_list_values_equal_pml_up_to_its_constants_but_pml_differentiates_the_weights(seed: int) -> None:
    """Theirs takes one set of embeddings only; it adds 1e-5 to each weight of a denominator, zeros included."""
    images = image_embeddings(seed)
    labels = torch.tensor([0, 0, 1, 1, 2, 2])
    match, valid = labels[:, None] == labels, ~torch.eye(6, dtype=torch.bool)
    weights = build("objectives", "ranked_list:T=5")(
        normalise(images.detach()) @ normalise(images.detach()).T, Mask(match & valid, valid)
    )
    loss = losses.RankedListLoss(margin=0.4, Tn=5, alpha=1.2, reducer=nothing())
    per_row = loss(images, labels)["loss"]["losses"]
    assert weights.values.sum() > 0
    torch.testing.assert_close(weights.values, per_row.detach(), rtol=1e-3, atol=0)
    gradient = torch.autograd.grad(per_row.sum(), images)[0]
    ours = gradient_of(images, weights.W + weights.W.T, images)
    assert (ours - gradient).abs().max() > 0.01


def nothing() -> Any:
    return reducers.DoNothingReducer()


def both_ways(image_rows: Tensor, caption_rows: Tensor, images: int) -> tuple[Tensor, Tensor]:
    """Pairs as (first, second) indices into images followed by captions, each pair in both directions."""
    caption_rows = caption_rows + images
    return torch.cat([image_rows, caption_rows]), torch.cat([caption_rows, image_rows])
