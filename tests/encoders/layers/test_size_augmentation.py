"""Size augmentation: probabilities, what stays together, and that no set is emptied."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from lossscope.encoders.layers.size_augmentation import keep_cells, keep_regions, pack, perturb_words
from tests.each import each

N, LENGTH = 4000, 12


def present(n: int = N, length: int = LENGTH) -> Tensor:
    return torch.ones(n, length, dtype=torch.bool)


def test_regions_are_dropped_one_by_one() -> None:
    torch.manual_seed(0)
    kept = keep_regions(present(), 0.2).float()
    assert float(kept.mean()) == pytest.approx(0.8, abs=0.01)
    assert float(kept.sum(1).var()) == pytest.approx(LENGTH * 0.16, rel=0.1)


def test_cells_are_dropped_at_a_rate_of_each_picture() -> None:
    torch.manual_seed(0)
    kept = keep_cells(present(N, 100), 0.2).float()
    dropped = 1 - kept.mean(1)
    assert float((dropped == 0).float().mean()) > 0.19
    assert float(dropped.mean()) == pytest.approx(0.2 * (1 - 0.04) / 2, abs=0.005)
    assert float(dropped.max()) > 0.2


@each("keep", [keep_regions, keep_cells])
def test_an_item_of_which_nothing_would_stay_stays_whole(keep: object) -> None:
    present_rows = present(500, 3)
    present_rows[:, 2] = False
    kept_rows = keep(present_rows, 0.6)  # type: ignore[operator]
    assert bool(kept_rows.any(1).all())
    assert not bool(kept_rows[:, 2].any())
    assert not torch.equal(kept_rows, present_rows)


def test_what_is_kept_moves_to_the_front_in_order() -> None:
    x = torch.arange(1, 13).view(2, 6).float()
    kept = torch.tensor([[1, 0, 1, 1, 0, 1], [0, 0, 1, 0, 0, 1]]).bool()
    packed, lengths = pack(x, kept)
    assert packed.tolist() == [[1, 3, 4, 6], [9, 12, 0, 0]]
    assert lengths.tolist() == [4, 2]
    deep, _ = pack(torch.stack([x, -x], 2), kept)
    assert torch.equal(deep, torch.stack([packed, -packed], 2))


def words(n: int = N) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """[2, 10, (20, 21), 11, (22, 23, 24), 12, 3, 0]: five words between the ends, two of several parts; padding."""
    row = torch.tensor([2, 10, 20, 21, 11, 22, 23, 24, 12, 3, 0])
    starts = torch.tensor([1, 1, 1, 0, 1, 1, 0, 0, 1, 1, 1]).bool()
    fixed = (row == 2) | (row == 3)
    return row.expand(n, -1), torch.full((n,), 10), starts.expand(n, -1), fixed.expand(n, -1)


def test_whole_words_change_with_the_probabilities_of_the_original() -> None:
    torch.manual_seed(0)
    ids, lengths, starts, fixed = words()
    changed, left = perturb_words(ids, lengths, starts, fixed, 4, 1_000_000, 0.2)
    assert bool((changed[:, 0] == 2).all())
    assert bool((changed.gather(1, left[:, None] - 1) == 3).all())
    masks = (changed == 4).sum(1)
    single = [float((changed == word).any(1).float().mean()) for word in (10, 11, 12)]
    assert single == pytest.approx([0.8] * 3, abs=0.03)
    parts = torch.stack([(changed == part).any(1) for part in (22, 23, 24)], 1)
    assert torch.equal(parts.all(1), parts.any(1))
    assert float(parts.all(1).float().mean()) == pytest.approx(0.8, abs=0.03)
    lost = 10 - left
    assert float(lost.float().mean()) == pytest.approx(8 * 0.2 * 0.4, abs=0.06)
    assert float(masks.float().mean()) == pytest.approx(8 * 0.2 * 0.5, abs=0.06)
    known = torch.isin(changed, torch.tensor([0, 2, 3, 4, 10, 11, 12, 20, 21, 22, 23, 24]))
    assert float((~known).float().sum(1).mean()) == pytest.approx(8 * 0.2 * 0.1, abs=0.04)
    assert bool((changed[torch.arange(changed.shape[1]) >= left[:, None]] == 0).all())


def test_a_caption_of_which_nothing_would_stay_keeps_its_length() -> None:
    torch.manual_seed(0)
    ids = torch.full((2000, 1), 7)
    each = torch.ones_like(ids, dtype=torch.bool)
    changed, left = perturb_words(ids, torch.ones(2000, dtype=torch.long), each, ~each, 4, 9, 0.9)
    assert bool((left == 1).all())
    assert float((changed == 7).float().mean()) > 0.1 + 0.9 * 0.4 - 0.05


def test_a_seed_repeats_and_a_share_of_zero_changes_nothing() -> None:
    ids, lengths, starts, fixed = words(50)
    torch.manual_seed(5)
    first = perturb_words(ids, lengths, starts, fixed, 4, 99, 0.5)[0]
    torch.manual_seed(5)
    assert torch.equal(first, perturb_words(ids, lengths, starts, fixed, 4, 99, 0.5)[0])
    same, left = perturb_words(ids, lengths, starts, fixed, 4, 99, 0.0)
    assert torch.equal(same, ids[:, :10])
    assert torch.equal(left, lengths)
