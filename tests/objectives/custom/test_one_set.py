"""Is W of a user's loss of one set, of two or all views, of labels or of S and its mask, that of the built-in?"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from lossscope.core.similarity import Mask, normalise, pair_mask
from lossscope.errors import InputError, UnsupportedLoss
from lossscope.live.monitor import LossScope
from lossscope.objectives.counting.units import saturated_weight
from lossscope.objectives.custom.as_objective import as_objective
from lossscope.objectives.custom.one_set import mask_of_views
from tests.each import each

TAU, PAIRS = 0.5, 7
Loss = Callable[..., Tensor]


def itself(n: int) -> Tensor:
    """Return (n, n), True where an item meets itself."""
    return torch.eye(n, dtype=torch.bool)


def simclr(z1: Tensor, z2: Tensor) -> Tensor:
    z = functional.normalize(torch.cat([z1, z2]), dim=1)
    logits = z @ z.T / TAU
    logits.fill_diagonal_(-1e9)
    return functional.cross_entropy(logits, torch.arange(len(z)).roll(len(z1)))


def by_cosine_similarity(z1: Tensor, z2: Tensor) -> Tensor:
    z = torch.cat([z1, z2])
    S = functional.cosine_similarity(z[:, None], z[None], dim=-1)
    positives = torch.cat([S.diag(len(z1)), S.diag(-len(z1))]) / TAU
    return (((S / TAU).exp() * ~itself(len(z))).sum(1).log() - positives).mean()


def positives_once(z1: Tensor, z2: Tensor) -> Tensor:
    z = functional.normalize(torch.cat([z1, z2]), dim=1)
    positive = (z[: len(z1)] * z[len(z1) :]).sum(1) / TAU
    others = (z @ z.T / TAU).masked_fill(itself(len(z)), -torch.inf).logsumexp(1)
    return (others - positive.repeat(2)).mean()


def in_blocks(z1: Tensor, z2: Tensor) -> Tensor:
    a, b = functional.normalize(z1, dim=1), functional.normalize(z2, dim=1)
    me, labels = itself(len(a)) * 1e9, torch.arange(len(a))
    of_a = torch.cat([a @ b.T / TAU, a @ a.T / TAU - me], 1)
    of_b = torch.cat([b @ a.T / TAU, b @ b.T / TAU - me], 1)
    return (functional.cross_entropy(of_a, labels) + functional.cross_entropy(of_b, labels)) / 2


def squared_distances(z1: Tensor, z2: Tensor) -> Tensor:
    z = functional.normalize(torch.cat([z1, z2]), dim=1)
    distances = (z[:, None] - z[None]).square().sum(-1)
    return functional.cross_entropy(
        (-distances / (2 * TAU)).masked_fill(itself(len(z)), -torch.inf), torch.arange(len(z)).roll(len(z1))
    )


def all_views(features: Tensor) -> Tensor:
    return simclr(*features.unbind(1))


def with_labels(embeddings: Tensor, labels: Tensor) -> Tensor:
    z = functional.normalize(embeddings, dim=1)
    return masked(z @ z.T, (labels[:, None] == labels[None]) & ~itself(len(z))).mean()


def masked(S: Tensor, mask: Tensor) -> Tensor:
    shares = (S / TAU).masked_fill(itself(len(S)) & ~mask, -torch.inf).log_softmax(1)
    return -shares.masked_fill(~mask, 0).sum(1) / mask.sum(1)


def of_similarities(S: Tensor) -> Tensor:
    logits = (S / TAU).masked_fill(itself(len(S)), -1e9)
    return functional.cross_entropy(logits, torch.arange(len(S)).roll(len(S) // 2))


def items(seed: int = 0) -> tuple[Tensor, Mask]:
    """Return S of two views as one set, and its mask with the vectors."""
    x = torch.randn(2, PAIRS, 5, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    views = normalise(torch.cat([x[0], x[0] + x[1]]))
    return views @ views.T, replace(mask_of_views(PAIRS), info={"queries": views, "candidates": views})


OF_VIEWS = [simclr, by_cosine_similarity, positives_once, in_blocks, squared_distances, all_views, of_similarities]


@each("loss", [*OF_VIEWS, masked, with_labels])
def test_w_of_two_views_is_that_of_simclr(loss: Loss) -> None:
    S, mask = items()
    expected = as_objective(f"ntxent:tau={TAU}")(S, mask)
    actual = as_objective(loss)(S, mask)
    assert torch.allclose(actual.W, expected.W, atol=1e-9)
    assert actual.values is not None and expected.values is not None
    assert float(actual.values.sum()) == pytest.approx(float(expected.values.sum()), rel=1e-9)


def test_the_order_of_views_in_a_batch_does_not_matter() -> None:
    S, mask = items()
    order = torch.randperm(2 * PAIRS, generator=torch.Generator().manual_seed(1))
    views = mask.info["queries"][order]
    moved = Mask(mask.match[order][:, order], mask.valid, info={"queries": views, "candidates": views})
    loss = as_objective(simclr)
    assert torch.allclose(loss(S[order][:, order], moved).W, loss(S, mask).W[order][:, order], atol=1e-9)


@each("loss", [masked, with_labels])
def test_w_of_classes_is_that_of_supcon(loss: Loss) -> None:
    S, mask = items()
    labels = torch.arange(2 * PAIRS) // 4
    match = labels[:, None] == labels[None]
    of_classes = Mask(match & ~itself(len(S)), ~itself(len(S)), info=mask.info)
    expected = as_objective(f"supcon:tau={TAU}")(S, of_classes).W
    assert torch.allclose(as_objective(loss)(S, of_classes).W, expected, atol=1e-9)


def test_s_and_its_mask_are_pairs_too() -> None:
    S = torch.rand(6, 6, dtype=torch.float64)
    expected = as_objective(f"ntxent:tau={TAU}")(S, pair_mask(torch.arange(6)))
    assert torch.allclose(as_objective(masked)(S, pair_mask(torch.arange(6))).W, expected.W, atol=1e-9)


@each("loss", OF_VIEWS)
def test_the_saturated_weight_is_nearly_that_of_two_candidates(loss: Loss) -> None:
    two = saturated_weight(as_objective(f"ntxent:tau={TAU}"))
    assert saturated_weight(as_objective(loss)) == pytest.approx(two, rel=1e-3)


@each("loss", [simclr, all_views])
def test_a_wrapped_loss_of_views_is_watched_as_one_set(loss: Loss) -> None:
    a, b = (x.float().requires_grad_() for x in items()[1].info["queries"].split(PAIRS))
    scope = LossScope()
    scope.wrap(loss)(*((a, b) if loss is simclr else (torch.stack([a, b], 1),))).backward()
    direct = LossScope(f"ntxent:tau={TAU}").watch(embeddings=torch.stack([a, b], 1).detach())
    assert scope.frame()["all/N_eff"][0] == pytest.approx(direct["all/N_eff"], rel=1e-5)


def test_a_wrapped_loss_of_labels_is_watched_as_one_set() -> None:
    z, labels = items()[1].info["queries"].float(), torch.arange(2 * PAIRS) // 4
    scope = LossScope()
    scope.wrap(with_labels)(z.requires_grad_(), labels).backward()
    direct = LossScope(f"supcon:tau={TAU}").watch(embeddings=z.detach(), labels=labels)
    assert scope.frame()["all/N_eff"][0] == pytest.approx(direct["all/N_eff"], rel=1e-5)


def test_distances_that_are_no_similarities_are_refused_with_the_form_that_works() -> None:
    def roots(z1: Tensor, z2: Tensor) -> Tensor:
        z = functional.normalize(torch.cat([z1, z2]), dim=1)
        distances = torch.cdist(z, z).masked_fill(itself(len(z)), 1e9)
        return functional.cross_entropy(-distances, torch.arange(len(z)).roll(len(z1)))

    with pytest.raises(UnsupportedLoss, match=r"def loss\(S, mask\)"):
        as_objective(roots)(*items())


def test_one_block_for_both_views_is_refused() -> None:
    def one_block(z1: Tensor, z2: Tensor) -> Tensor:
        a, b = functional.normalize(z1, dim=1), functional.normalize(z2, dim=1)
        S, me, labels = a @ b.T / TAU, itself(len(a)) * 1e9, torch.arange(len(a))
        of_a, of_b = torch.cat([S, a @ a.T / TAU - me], 1), torch.cat([S.T, b @ b.T / TAU - me], 1)
        return functional.cross_entropy(of_a, labels) + functional.cross_entropy(of_b, labels)

    with pytest.raises(UnsupportedLoss, match=r"z = torch.cat\(\[z1, z2\]\); S = z @ z.T"):
        as_objective(one_block)(*items())


def test_an_item_must_not_be_its_own_candidate() -> None:
    def forgets_the_diagonal(S: Tensor, mask: Tensor) -> Tensor:
        return -(S / TAU).log_softmax(1).masked_fill(~mask, 0).sum(1).mean()

    with pytest.raises(UnsupportedLoss, match="must leave out the similarity of an item with itself"):
        as_objective(forgets_the_diagonal)(*items())


def test_more_than_two_items_of_a_class_are_no_views() -> None:
    S, mask = items()
    match = itself(2 * PAIRS).roll(1, 0) | itself(2 * PAIRS).roll(-1, 0)
    with pytest.raises(InputError, match="each query must have one positive"):
        as_objective(simclr)(S, Mask(match, mask.valid, info=mask.info))
