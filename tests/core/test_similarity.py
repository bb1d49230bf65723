"""Do masks know relevance, validity, directions, and the captions of one image?"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from lossscope.core.pair import Pair
from lossscope.core.similarity import Mask, both_masks, cosine, group_mask, normalise, pair_mask
from lossscope.errors import InputError
from lossscope.registry import build
from tests.each import each

T, F = True, False


def test_pairs_match_on_the_diagonal_and_every_entry_is_valid() -> None:
    mask = pair_mask(torch.tensor([4, 4, 7]))
    assert torch.equal(mask.match, torch.eye(3, dtype=torch.bool))
    assert mask.valid.all()


def test_other_captions_of_the_same_image_can_be_left_out() -> None:
    mask = pair_mask(torch.tensor([4, 4, 7]), "mask")
    assert torch.equal(mask.match, torch.eye(3, dtype=torch.bool))
    assert mask.valid.tolist() == [[T, F, T], [F, T, T], [T, T, T]]
    assert mask.negatives.tolist() == [[F, F, T], [F, F, T], [T, T, F]]


def test_an_unknown_choice_for_same_image_raises() -> None:
    with pytest.raises(InputError, match="keep or mask; got 'drop'"):
        pair_mask(torch.arange(2), "drop")  # type: ignore[arg-type]


def test_images_match_all_their_captions() -> None:
    mask = group_mask(torch.tensor([3, 1]), torch.tensor([1, 3, 1]))
    assert mask.match.tolist() == [[F, T, F], [T, F, T]]
    assert mask.valid.all()


def test_positives_are_valid_and_usable_rows_have_both_kinds() -> None:
    match = torch.tensor([[T, F, F], [T, T, T], [T, F, F], [F, F, F]])
    valid = torch.tensor([[T, T, F], [T, T, T], [F, T, T], [T, T, T]])
    mask = Mask(match, valid)
    assert mask.positives.tolist() == [[T, F, F], [T, T, T], [F, F, F], [F, F, F]]
    assert mask.negatives.tolist() == [[F, T, F], [F, F, F], [F, T, T], [T, T, T]]
    assert mask.usable.tolist() == [T, F, F, F]


def test_the_other_direction_is_the_transpose_and_back_again_the_same() -> None:
    info = {"soft": torch.rand(2, 3), "scale": torch.rand(())}
    mask = Mask(torch.rand(2, 3) < 0.5, torch.rand(2, 3) < 0.5, info)
    other = mask.t()
    assert (mask.direction, other.direction) == ("i2t", "t2i")
    assert torch.equal(other.match, mask.match.T)
    assert torch.equal(other.valid, mask.valid.T)
    assert torch.equal(other.info["soft"], info["soft"].T)
    assert torch.equal(other.info["scale"], info["scale"])
    back = other.t()
    assert back.direction == "i2t"
    assert torch.equal(back.match, mask.match)


def test_info_of_pairs_is_in_both_directions_and_info_of_queries_alone_raises() -> None:
    pairs = Mask(torch.eye(3, dtype=torch.bool), torch.ones(3, 3, dtype=torch.bool), {"label": torch.rand(3)})
    assert torch.equal(pairs.t().info["label"], pairs.info["label"])
    wide = Mask(torch.eye(2, 3, dtype=torch.bool), torch.ones(2, 3, dtype=torch.bool), {"label": torch.rand(2)})
    with pytest.raises(InputError, match="label is one number for each query of i2t; the other side has none"):
        wide.t()


def test_a_mask_moves_to_a_device_with_its_info_and_is_itself_if_already_there() -> None:
    mask = pair_mask(torch.arange(3))
    assert mask.to(torch.device("cpu")) is mask
    moved = Mask(mask.match, mask.valid, {"label": torch.rand(3)}, "t2i").to(torch.device("meta"))
    assert {moved.match.device.type, moved.valid.device.type, moved.info["label"].device.type} == {"meta"}
    assert moved.direction == "t2i"


def test_embeddings_are_swapped_in_the_other_direction() -> None:
    info = {"queries": torch.rand(2, 4), "candidates": torch.rand(3, 4)}
    mask = Mask(torch.eye(2, 3, dtype=torch.bool), torch.ones(2, 3, dtype=torch.bool), info)
    other = mask.t()
    assert torch.equal(other.info["queries"], info["candidates"])
    assert torch.equal(other.info["candidates"], info["queries"])
    assert torch.equal(mask.rows(torch.tensor([1])).info["queries"], info["queries"][1:])
    assert torch.equal(mask.columns(torch.tensor([2, 0])).info["candidates"], info["candidates"][[2, 0]])


def test_selected_rows_keep_their_info() -> None:
    info = {"soft": torch.arange(6.0).reshape(2, 3), "label": torch.tensor([5, 6]), "scale": torch.tensor(2.0)}
    part = Mask(torch.ones(2, 3, dtype=torch.bool), torch.ones(2, 3, dtype=torch.bool), info).rows(torch.tensor([1]))
    assert part.match.shape == (1, 3)
    assert part.info["soft"].tolist() == [[3, 4, 5]]
    assert part.info["label"].tolist() == [6]
    assert float(part.info["scale"]) == 2


def test_both_masks_accepts_one_mask_or_two() -> None:
    mask = group_mask(torch.arange(2), torch.tensor([0, 0, 1]))
    given = Pair(mask, pair_mask(torch.arange(3)))
    assert both_masks(given) is given
    assert [m.match.shape for m in both_masks(mask)] == [(2, 3), (3, 2)]


@each("match, valid, message", [
    (torch.ones(2, 2), torch.ones(2, 2, dtype=torch.bool), "must be bool; got torch.float32"),
    (torch.ones(2, 2) > 0, torch.ones(2, 3) > 0, r"got \(2, 2\) and \(2, 3\)"),
    (torch.ones(2) > 0, torch.ones(2) > 0, r"\(queries, candidates\); got \(2,\)"),
])  # fmt: skip
def test_masks_of_different_shapes_or_types_raise(match: torch.Tensor, valid: torch.Tensor, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Mask(match, valid)


def test_normalise_makes_unit_rows_and_leaves_zero_rows() -> None:
    x = torch.tensor([[3.0, 4.0], [0.0, 0.0]])
    torch.testing.assert_close(normalise(x), torch.tensor([[0.6, 0.8], [0.0, 0.0]]))


def test_cosine_of_unit_rows_is_their_product_and_widths_must_agree() -> None:
    images, captions = normalise(torch.rand(2, 3)), normalise(torch.rand(4, 3))
    torch.testing.assert_close(cosine(images, captions)[1, 2], images[1] @ captions[2])
    with pytest.raises(InputError, match=r"\(n, d\) and \(m, d\) with one d; got \(2, 3\) and \(4, 2\)"):
        cosine(images, captions[:, :2])
    with pytest.raises(InputError, match="one d"):
        cosine(images[0], captions)


@each("rows", [[0, 0, 1], (0, 0, 1), np.array([0, 0, 1])])
def test_rows_of_pairs_may_be_any_sequence_of_numbers(rows: Any) -> None:
    expected = pair_mask(torch.tensor([0, 0, 1]), "mask")
    assert torch.equal(pair_mask(rows, "mask").valid, expected.valid)
    assert len(pair_mask(rows).match) == 3


@each("rows", [12, "abc", [[0, 1]], {"a": 1}])
def test_what_is_no_row_of_each_pair_is_refused(rows: Any) -> None:
    with pytest.raises(
        InputError, match=r"image_rows must be the row .* write lossscope.pair_mask\(torch.arange\(B\)\)"
    ):
        pair_mask(rows)


def test_a_mask_of_arrays_is_one_of_tensors() -> None:
    """It was refused, as S of numpy was."""
    sides: Any = np.eye(3, dtype=bool), np.ones((3, 3), dtype=bool)
    assert torch.equal(Mask(*sides).positives, torch.eye(3, dtype=torch.bool))
    with pytest.raises(InputError, match="match of a Mask must be a tensor or an array of numbers; got str"):
        Mask("x", sides[1])  # type: ignore[arg-type]


@each("S, mask, message", [
    ("a text", pair_mask(torch.arange(3)), "S must be a tensor or an array of numbers; got str"),
    (
        torch.eye(3),
        torch.eye(3).bool(),
        r"mask must be a lossscope.Mask; got Tensor. For pairs, .* lossscope.pair_mask",
    ),
])  # fmt: skip
def test_an_objective_says_what_it_takes(S: Any, mask: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        build("objectives", "ntxent")(S, mask)
