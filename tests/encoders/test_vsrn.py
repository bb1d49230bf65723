"""VSRN: the original's names, a slow oracle, and what differs from other graph networks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from lossscope.core.similarity import pair_mask
from lossscope.encoders.base import Encoder
from lossscope.encoders.layers.captioning import Captioning
from lossscope.encoders.vsrn import VSRN
from lossscope.errors import InputError
from tests.each import each
from tests.encoders.released.releases import VSRN_SPEC, release_of

IDS = torch.tensor([[1, 5, 6, 2, 0], [1, 7, 2, 0, 0], [1, 4, 5, 9, 2], [1, 2, 0, 0, 0]])
LENGTHS = torch.tensor([4, 3, 5, 2])
SMALL = VSRN(dim=6, words=4, blocks=2)


def regions(n: int = 4, count: int = 5, width: int = 7) -> Tensor:
    return torch.randn(n, count, width, generator=torch.Generator().manual_seed(2))


def model(spec: VSRN = SMALL) -> Encoder:
    """Return a model in eval mode whose parameters all differ from their initial values, so that a mix-up shows."""
    torch.manual_seed(0)
    encoder = spec.build((5, 7), 10)
    for name, tensor in encoder.state_dict().items():
        if "running_var" in name:
            tensor.uniform_(0.5, 2)
        elif tensor.is_floating_point():
            tensor.normal_(0, 0.5)
    return encoder.eval()


def numbers(encoder: torch.nn.Module) -> dict[str, np.ndarray]:
    return {name: tensor.double().numpy() for name, tensor in encoder.state_dict().items()}


def scores(encoder: Encoder, images: Tensor, ids: Tensor = IDS, lengths: Tensor = LENGTHS) -> Tensor:
    with torch.no_grad():
        S = encoder.score(encoder.encode_images(images), encoder.encode_texts(ids, lengths))
    assert isinstance(S, Tensor)
    return S


@each("axis", ["channels", "regions"], "fc_norm, final_bn", [(False, True), (True, False)])
def test_scores_are_those_of_the_oracle(
    axis: Any, fc_norm: bool, final_bn: bool, oracle: Callable[[str], ModuleType]
) -> None:
    encoder = model(VSRN(dim=6, words=4, blocks=2, region_norm_axis=axis, fc_norm=fc_norm, final_bn=final_bn))
    slow, state, images = oracle("vsrn"), numbers(encoder), regions()
    v = [slow.image(x.double().numpy(), state, 2, axis == "regions", fc_norm)[0] for x in images]
    t = [slow.text(row[:length].tolist(), state) for row, length in zip(IDS, LENGTHS.tolist(), strict=True)]
    expected = torch.from_numpy(np.array(v) @ np.array(t).T).float()
    assert float(expected.std()) > 0.03
    assert torch.allclose(scores(encoder, images), expected, atol=1e-5)


def test_a_block_is_the_identity_at_the_start() -> None:
    torch.manual_seed(0)
    tower = SMALL.build((5, 7), 10).image
    x = torch.randn(3, 6, 5)
    assert torch.equal(tower.Rs_GCN_1(x), x)  # type: ignore[operator, union-attr]


@each("axis, summed", [("regions", 1), ("channels", 2)])
def test_regions_are_scaled_along_the_axis_named(axis: Any, summed: int) -> None:
    encoder = model(VSRN(dim=6, words=4, blocks=2, region_norm_axis=axis))
    _, graph = encoder.image(regions())  # type: ignore[operator]
    squares = (graph**2).sum(summed)
    assert torch.allclose(squares, torch.ones_like(squares), atol=1e-5)


@each("longest", [4, 5, 8])
def test_the_caption_loss_is_that_of_the_oracle(longest: int, oracle: Callable[[str], ModuleType]) -> None:
    torch.manual_seed(1)
    branch = Captioning(6, 10, 3, longest).eval()
    graph = torch.randn(4, 5, 6)
    captions = [row[:length].tolist() for row, length in zip(IDS, LENGTHS.tolist(), strict=True)]
    expected = oracle("vsrn").caption_loss([x.double().numpy() for x in graph], captions, numbers(branch), longest)
    assert float(branch(graph, IDS, LENGTHS).detach()) == pytest.approx(expected, rel=1e-5)


def test_captions_are_learnt_from_their_own_image_in_training_only() -> None:
    encoder = model(VSRN(dim=6, words=4, blocks=2, captions=True)).train()
    encoder.captioning.eval()  # type: ignore[union-attr, operator]
    images, texts = encoder.encode_images(regions()), encoder.encode_texts(IDS, LENGTHS)
    S = encoder.score(images, texts)
    assert isinstance(S, Tensor)
    owner = torch.tensor([2, 0, 2, 1])
    mask = pair_mask(torch.arange(4))
    match = torch.nn.functional.one_hot(owner, 4).T.bool()
    shuffled = type(mask)(match, torch.ones_like(match))
    loss = encoder.extra_loss(images, texts, S, shuffled, IDS, LENGTHS)
    expected = encoder.captioning(images.extra["regions"][owner], IDS, LENGTHS)  # type: ignore[operator]
    assert loss is not None
    assert torch.equal(loss, expected)
    assert encoder.eval().encode_images(regions()).extra == {}
    assert encoder.extra_loss(encoder.encode_images(regions()), texts, S, mask, IDS, LENGTHS) is None
    assert model().train().encode_images(regions()).extra == {}


def test_names_of_the_caption_branch_stand_apart() -> None:
    names = VSRN(dim=6, words=4, blocks=1, captions=True).build((5, 7), 10).state_dict().keys()
    assert {name.partition(".")[0] for name in names} == {"image", "text", "captioning"}


def test_li_files_of_coco_have_no_batch_norm_of_the_state() -> None:
    file = release_of(f"{VSRN_SPEC},fc_norm=true,final_bn=true").file()
    options = {name: value for name, value in file.options.items() if name != "criterion"}
    with pytest.raises(InputError, match=r"left over \['image\.bn\.bias'"):
        VSRN.from_released(replace(file, options=options))
