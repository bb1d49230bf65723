"""Do softmax and sigmoid losses agree with pytorch-metric-learning (pml), each other, and at learnt scales?"""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest
import torch
from torch import Tensor

from lossscope.core.similarity import Mask, cosine, normalise, pair_mask
from lossscope.core.weights import both, reduce_weights
from lossscope.errors import InputError
from lossscope.registry import build
from tests.each import each

losses = pytest.importorskip("pytorch_metric_learning.losses")
B, WIDTH = 7, 5


class Batch(NamedTuple):
    """Embeddings of any length, and the labels of their images."""

    images: Tensor
    captions: Tensor
    image_labels: Tensor
    caption_labels: Tensor

    @property
    def mask(self) -> Mask:
        match = self.image_labels[:, None] == self.caption_labels[None, :]
        return Mask(match, torch.ones_like(match))


class Result(NamedTuple):
    """A mean over queries, and its gradient with respect to images and captions."""

    value: Tensor
    images: Tensor
    captions: Tensor


def batch_of(image_labels: list[int], caption_labels: list[int], seed: int = 0) -> Batch:
    generator = torch.Generator().manual_seed(seed)
    images, captions = (
        2 * torch.randn(len(labels), WIDTH, dtype=torch.float64, generator=generator)
        for labels in (image_labels, caption_labels)
    )
    return Batch(images, captions, torch.tensor(image_labels), torch.tensor(caption_labels))


def pairs(seed: int = 0) -> Batch:
    return batch_of(list(range(B)), list(range(B)), seed)


def groups(seed: int = 0) -> Batch:
    """Four images with three, one, two and one captions."""
    return batch_of([0, 1, 2, 3], [0, 0, 0, 1, 2, 2, 3], seed)


def ours(spec: str, batch: Batch, mask: Mask | None = None) -> Result:
    """Return our mean over usable queries, and its gradient with respect to embeddings that are normalised first."""
    v, t = normalise(batch.images), normalise(batch.captions)
    weights = build("objectives", spec)(cosine(v, t), batch.mask if mask is None else mask)
    assert weights.values is not None
    number = weights.usable.sum()
    G = weights.W / number
    return Result(weights.values.sum() / number, tangent(G @ t, batch.images), tangent(G.T @ v, batch.captions))


def tangent(gradient: Tensor, embeddings: Tensor) -> Tensor:
    """Return the gradient with respect to rows before normalisation, from that with respect to unit rows."""
    unit = normalise(embeddings)
    along = (gradient * unit).sum(1, keepdim=True) * unit
    return (gradient - along) / embeddings.norm(dim=1, keepdim=True)


def theirs(loss: Any, batch: Batch, stacked: bool = False) -> Result:
    """Return the result of pml: images as anchors and captions as references, or both stacked, with labels of pairs."""
    images, captions = batch.images.clone().requires_grad_(), batch.captions.clone().requires_grad_()
    if stacked:
        labels = torch.cat([batch.image_labels, batch.caption_labels])
        value = loss(torch.cat([images, captions]), labels)
    else:
        value = loss(images, batch.image_labels, ref_emb=captions, ref_labels=batch.caption_labels)
    return Result(value.detach(), *torch.autograd.grad(value, [images, captions]))


def assert_same(actual: Result, expected: Result, tolerance: float = 1e-12) -> None:
    for ours, theirs in zip(actual, expected, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=0, atol=tolerance * max(1.0, float(theirs.abs().max())))


@each("name", ["ntxent", "infonce"], "tau", [0.05, 0.07, 0.5])
def test_ntxent_and_infonce_are_pml_ntxent_on_pairs(name: str, tau: float) -> None:
    for seed in range(3):
        assert_same(ours(f"{name}:tau={tau}", pairs(seed)), theirs(losses.NTXentLoss(temperature=tau), pairs(seed)))


def test_infonce_starts_at_the_temperature_of_pml_ntxent_and_ntxent_does_not() -> None:
    assert losses.NTXentLoss().temperature == build("objectives", "infonce").tau == 0.07
    assert build("objectives", "ntxent").tau == losses.SupConLoss().temperature == 0.1


def test_pml_ntxent_compares_each_of_several_positives_with_the_negatives_alone() -> None:
    batch = groups()
    anchors, captions = batch.mask.match.nonzero(as_tuple=True)
    repeated = batch._replace(images=batch.images[anchors])
    positive = torch.zeros(len(anchors), len(batch.captions), dtype=torch.bool)
    positive[torch.arange(len(anchors)), captions] = True
    separate = ours("ntxent:tau=0.1", repeated, Mask(positive, positive | ~batch.mask.match[anchors]))
    images = torch.zeros_like(batch.images).index_add_(0, anchors, separate.images)
    assert_same(separate._replace(images=images), theirs(losses.NTXentLoss(temperature=0.1), batch))
    with pytest.raises(InputError, match="one positive; row 0 has 3"):
        ours("ntxent", batch)


@each("tau", [0.05, 0.1, 1])
def test_supcon_out_is_pml_supcon_on_pairs_and_on_groups(tau: float) -> None:
    for seed in range(3):
        for batch in (pairs(seed), groups(seed)):
            assert_same(ours(f"supcon:tau={tau}", batch), theirs(losses.SupConLoss(temperature=tau), batch))


def test_supcon_in_is_not_pml_supcon_where_a_query_has_several_positives() -> None:
    inside, outside = ours("supcon:form=in", groups()), theirs(losses.SupConLoss(), groups())
    assert float(inside.value) < float(outside.value) - 0.1
    assert_same(ours("supcon:form=in", pairs()), theirs(losses.SupConLoss(), pairs()))


def test_supcon_and_pml_supcon_both_leave_rows_without_a_positive_out_of_the_mean() -> None:
    batch = batch_of([0, 1, 8, 2, 9], [0, 0, 1, 2, 2, 7])
    assert_same(ours("supcon", batch), theirs(losses.SupConLoss(), batch))


def test_pml_supcon_counts_rows_without_a_negative_which_are_skipped_here() -> None:
    batch = batch_of([0, 1], [0, 0, 0])
    S = cosine(normalise(batch.images), normalise(batch.captions))
    weights = build("objectives", "supcon")(S, batch.mask)
    assert not weights.usable.any()
    logits = S[0] / 0.1
    torch.testing.assert_close(theirs(losses.SupConLoss(), batch).value, logits.logsumexp(0) - logits.mean())


def test_npair_is_pml_npairs_given_one_stack_as_it_takes_no_references() -> None:
    for seed in range(3):
        assert_same(ours("npair", pairs(seed)), theirs(losses.NPairsLoss(), pairs(seed), stacked=True))
    with pytest.raises(ValueError, match="ref_emb is not supported"):
        theirs(losses.NPairsLoss(), pairs())


def test_the_scale_of_npair_is_the_product_of_norms_of_pml_npairs_without_normalisation() -> None:
    from pytorch_metric_learning.distances import DotProductSimilarity

    batch = pairs()
    v, t = normalise(batch.images), normalise(batch.captions)
    long = batch._replace(images=4 * v, captions=2 * t)
    plain = losses.NPairsLoss(distance=DotProductSimilarity(normalize_embeddings=False))
    weights = build("objectives", "npair:scale=8")(cosine(v, t), batch.mask)
    assert weights.values is not None
    inner = weights.W / 8 / B  # with respect to the inner product, which is 8 times the cosine
    expected = Result(weights.values.mean(), inner @ long.captions, inner.T @ long.images)
    assert_same(expected, theirs(plain, long, stacked=True))


def similarities(seed: int = 0) -> tuple[Tensor, Mask]:
    """(B, B) cosines of pairs."""
    batch = pairs(seed)
    return cosine(normalise(batch.images), normalise(batch.captions)), pair_mask(torch.arange(B))


@each("spec_a, spec_b", [
    ("npair:scale=20", "vlc:gamma=20"),
    ("supcon:tau=0.2", "ntxent:tau=0.2"),
    ("supcon:tau=0.2,form=in", "ntxent:tau=0.2"),
    ("infonce:tau=0.2", "ntxent:tau=0.2"),
])  # fmt: skip
def test_losses_that_are_one_formula_on_pairs(spec_a: str, spec_b: str) -> None:
    actual, expected = (build("objectives", spec)(*similarities()) for spec in (spec_a, spec_b))
    torch.testing.assert_close(actual.values, expected.values, rtol=0, atol=1e-12)
    torch.testing.assert_close(actual.W, expected.W, rtol=0, atol=1e-12)


def test_ntxent_is_the_softplus_of_dcl_so_its_weights_have_a_factor_1_minus_p_plus() -> None:
    S, mask = similarities()
    dcl, ntxent = (build("objectives", f"{name}:tau=0.1")(S, mask) for name in ("dcl", "ntxent"))
    assert dcl.values is not None
    torch.testing.assert_close(torch.logaddexp(dcl.values, torch.zeros(B, dtype=S.dtype)), ntxent.values)
    torch.testing.assert_close(dcl.W * dcl.values.sigmoid()[:, None], ntxent.W)


def test_both_directions_of_siglip_have_the_same_terms_so_half_of_both_is_the_sum_over_pairs() -> None:
    S, mask = similarities()
    siglip = build("objectives", "siglip")
    i2t, t2i = directions = both(siglip, S, mask)
    torch.testing.assert_close(i2t.W, t2i.W.T, rtol=0, atol=1e-14)
    z = 2 * torch.eye(B, dtype=S.dtype) - 1
    expected = torch.log1p((-z * (10 * S - 10)).exp()).sum() / B
    actual = reduce_weights(directions, siglip.traits.directions, siglip.traits.reduction, B)
    torch.testing.assert_close(actual.value, expected)
    torch.testing.assert_close(actual.gradient, i2t.W / B)


def test_siglip_stays_exact_far_from_the_bend() -> None:
    match = torch.tensor([[True, False]])
    S = torch.tensor([[1.0, -1.0]], dtype=torch.float64)
    weights = build("objectives", "siglip:scale=30,bias=0")(S, Mask(match, match | True))
    tail = torch.log1p(torch.tensor(-30.0, dtype=torch.float64).exp())
    torch.testing.assert_close(weights.values, (2 * tail).reshape(1), rtol=1e-12, atol=0)
    torch.testing.assert_close(weights.W, torch.tensor([[-1, 1]]) * 30 * (-tail).expm1().neg(), rtol=1e-12, atol=0)
    wrong = build("objectives", "siglip:scale=300,bias=0")(-S, Mask(match, match | True))
    assert wrong.values is not None
    assert (float(wrong.values), wrong.W.tolist()) == (600, [[-300, 300]])


@each("learnt", [{"scale": 3.0, "bias": 0.0}, {"scale": 40.0, "bias": -12.0}])
def test_siglip_is_a_function_of_scale_times_s_plus_bias(learnt: dict[str, float]) -> None:
    S, mask = similarities()
    at = build("objectives", "siglip").with_learnt(learnt)
    moved, plain = at(S, mask), build("objectives", "siglip:scale=1,bias=0")
    expected = plain(learnt["scale"] * S + learnt["bias"], mask)
    assert (at.scale, at.bias, at.learnable) == (learnt["scale"], learnt["bias"], learnt)
    torch.testing.assert_close(moved.values, expected.values)
    torch.testing.assert_close(moved.W, learnt["scale"] * expected.W)


@each("scale", [0.5, 14.0, 100.0])
def test_infonce_is_a_function_of_scale_times_s(scale: float) -> None:
    S, mask = similarities()
    at = build("objectives", "infonce").with_learnt({"scale": scale})
    moved, expected = at(S, mask), build("objectives", "infonce:tau=1")(scale * S, mask)
    assert at.learnable == pytest.approx({"scale": scale})
    torch.testing.assert_close(moved.values, expected.values)
    torch.testing.assert_close(moved.W, scale * expected.W)


@each("spec", ["infonce", "infonce:tau=0.3,scale_max=7", "siglip", "siglip:scale=3,bias=1"])
def test_learnt_values_at_their_start_change_nothing(spec: str) -> None:
    objective = build("objectives", spec)
    S, mask = similarities()
    assert objective.with_learnt({}) == objective
    assert set(objective.learnable) == ({"scale"} if spec.startswith("infonce") else {"scale", "bias"})
    torch.testing.assert_close(
        objective.with_learnt(objective.learnable)(S, mask).W, objective(S, mask).W, rtol=1e-14, atol=0
    )
    kept = build("objectives", f"{spec}{',' if ':' in spec else ':'}learn=false")
    assert kept.learnable == {}


def test_the_scale_of_infonce_is_clamped_and_can_be_set_to_the_bound() -> None:
    for scale_max in (100.0, 49.0, 30.0, 3.0):
        start = build("objectives", f"infonce:tau=0.5,scale_max={scale_max}")
        top = start.with_learnt({"scale": 1e6})
        assert top.learnable == pytest.approx({"scale": scale_max})
        assert top.with_learnt(top.learnable) == top


@each("spec, complaint", [
    ("infonce:tau=0", "tau and scale_max must be > 0"),
    ("infonce:scale_max=-1", "tau and scale_max must be > 0"),
    ("infonce:tau=0.005", "tau must be >= 1/scale_max = 0.01 where it is learnt; got 0.005"),
    ("siglip:scale=0", "scale must be > 0"),
    ("supcon:tau=0", "tau must be > 0"),
    ("dcl:tau=-1", "tau must be > 0"),
    ("npair:scale=0", "scale must be > 0"),
    ("cmpm:scale=0", "scale and floor must be > 0"),
    ("cmpm:floor=0", "scale and floor must be > 0"),
])  # fmt: skip
def test_invalid_temperatures_and_scales_raise(spec: str, complaint: str) -> None:
    with pytest.raises(InputError, match=complaint):
        build("objectives", spec)


def test_scales_that_are_not_positive_raise_and_a_fixed_temperature_may_be_any_positive_number() -> None:
    for name in ("infonce", "siglip"):
        with pytest.raises(InputError, match="scale must be > 0; got 0"):
            build("objectives", name).with_learnt({"scale": 0.0})
    assert build("objectives", "infonce:tau=0.005,learn=false").tau == 0.005


def test_cmpm_divides_match_by_the_number_of_positives_where_many_copies_divide_by_its_root() -> None:
    batch = groups()
    S, mask = cosine(normalise(batch.images), normalise(batch.captions)), batch.mask
    actual = build("objectives", "cmpm:scale=5")(S, mask).values
    log_p, match = (5 * S).log_softmax(1), mask.match.double()
    right, copied = (
        (log_p.exp() * (log_p - (match / divisor[:, None] + 1e-8).log())).sum(1)
        for divisor in (match.sum(1), match.sum(1).sqrt())
    )
    torch.testing.assert_close(actual, right)
    differ = (right - copied).abs() > 1e-6
    assert differ.tolist() == (match.sum(1) > 1).tolist()
