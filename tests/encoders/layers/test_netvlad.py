"""NetVLAD: closed forms, absent rows, and what training normalises."""

from __future__ import annotations

import torch
from torch import Tensor

from lossscope.encoders.layers.netvlad import NetVLAD
from tests.each import each

MASK = torch.tensor([[1, 1, 1, 0], [1, 0, 0, 0], [0, 0, 0, 0]], dtype=torch.bool)


def pool(ghosts: int = 0, clusters: int = 2) -> NetVLAD:
    torch.manual_seed(0)
    return NetVLAD(3, clusters, ghosts).eval()


def rows(behind: float = 0.0) -> Tensor:
    x = torch.randn(3, 4, 3, generator=torch.Generator().manual_seed(1))
    return x.masked_fill(~MASK[..., None], behind)


def test_one_cluster_is_the_unit_sum_of_differences_from_its_centre() -> None:
    net = pool(clusters=1)
    expected = (rows()[0, :3] - net.clusters2[0, :, 0]).sum(0)
    assert torch.allclose(net(rows(), MASK)[0], expected / expected.norm(), atol=1e-6)


def test_numbers_are_in_the_order_of_dimension_and_cluster() -> None:
    v = pool()(rows(), MASK)
    assert v.shape == (3, pool().width) == (3, 6)
    parts = v[0].view(3, 2)
    assert torch.allclose(parts.norm(dim=0), torch.full((2,), 0.5**0.5))


def test_absent_rows_do_not_count_and_a_set_without_rows_gives_0() -> None:
    for training in (False, True):
        v = pool().train(training)(rows(), MASK)
        assert torch.equal(v, pool().train(training)(rows(behind=7.0), MASK))
        assert torch.equal(v[2], torch.zeros(6))


def test_the_batch_norm_of_training_sees_only_present_rows() -> None:
    clean, filled = pool().train(), pool().train()
    flat = rows()[MASK][None]
    clean(flat, torch.ones(1, 4, dtype=torch.bool))
    filled(rows(), MASK)
    assert torch.allclose(clean.batch_norm.running_mean, filled.batch_norm.running_mean)  # type: ignore[arg-type]
    padded = pool().train()
    padded(rows())
    assert not torch.allclose(padded.batch_norm.running_mean, filled.batch_norm.running_mean)  # type: ignore[arg-type]


def test_without_a_mask_rows_of_zeros_count() -> None:
    assert not torch.allclose(pool()(rows()), pool()(rows(), MASK), atol=1e-3)
    whole = torch.ones(3, 4, dtype=torch.bool)
    assert torch.allclose(pool()(rows()), pool()(rows(), whole), atol=1e-6)


def test_a_ghost_takes_its_share_and_is_dropped() -> None:
    net = pool(ghosts=1)
    assert net.clusters.shape == (3, 3) and net.clusters2.shape == (1, 3, 2)
    with torch.no_grad():
        shares = (net.batch_norm(rows()[0, :1] @ net.clusters)).softmax(1)[0, :2]
        far = torch.tensor([[-50.0], [0], [0]])
        net.clusters2.copy_(torch.cat([far, 0 * far], 1)[None])
        pooled = net(rows()[:1, :1], torch.ones(1, 1, dtype=torch.bool)).view(3, 2)
        expected = torch.stack([shares[k] * (rows()[0, 0] - net.clusters2[0, :, k]) for k in range(2)], 1)
    assert shares.sum() < 1
    assert torch.allclose(pooled, torch.nn.functional.normalize(expected, dim=0) / 2**0.5, atol=1e-6)


@each("count", [0, 1])
def test_training_on_fewer_than_two_rows_uses_the_running_statistics(count: int) -> None:
    net, mask = pool().train(), torch.zeros(3, 4, dtype=torch.bool)
    mask[0, :count] = True
    assert torch.equal(net(rows(), mask), pool()(rows(), mask))
    assert net.batch_norm.num_batches_tracked == 0
