"""X-VLM: the original's names, slow oracles, re-ranking, the pairs of its matching loss, and files to begin with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from lossscope.core.pair import Pair
from lossscope.core.similarity import Mask, group_mask, pair_mask
from lossscope.encoders.base import Encoder
from lossscope.encoders.layers.image_text_matching import sample_pairs
from lossscope.encoders.released.checkpoint_file import read_released
from lossscope.encoders.types import EncodedBatch, ReleasedFile
from lossscope.encoders.xvlm import XVLM
from lossscope.errors import InputError
from lossscope.registry import build
from lossscope.retrieval.evaluate import retrieve
from tests.each import each
from tests.encoders.released.files import pretrained_xvlm_towers

Oracles = Callable[[str], ModuleType]
CAPTIONS = [[2, 5, 6, 8, 3], [2, 7], [2, 4, 5, 9, 7, 3], [2, 8, 9], [2, 6, 3]]
LENGTHS = torch.tensor([len(caption) for caption in CAPTIONS])
OWNER = np.array([0, 0, 1, 2, 2])
SMALL = (
    "embed=32,depths=2/2,window=4,patch=2,width=128,layers=3,fused=2,positions=64,max_tokens=16,dim=12,"
    "dropout=0,drop_path=0"
)
SIZE = 16


def model(options: str = "", size: int = SIZE) -> Encoder:
    torch.manual_seed(0)
    encoder: Encoder = build("encoders", f"xvlm:{SMALL}{options}").build((3, size, size), 10)
    for name, parameter in encoder.named_parameters():
        if name != "temp":
            parameter.data.add_(0.15 * torch.randn_like(parameter))
    return encoder.eval()


def pictures(n: int = 3, size: int = SIZE) -> Tensor:
    generator = torch.Generator().manual_seed(1)
    return torch.randint(0, 256, (n, 3, size, size), dtype=torch.uint8, generator=generator)


def pad(more: int = 0) -> Tensor:
    longest = max(map(len, CAPTIONS)) + more
    return torch.tensor([caption + [0] * (longest - len(caption)) for caption in CAPTIONS])


def sides(encoder: Encoder) -> tuple[EncodedBatch, EncodedBatch]:
    with torch.no_grad():
        return encoder.encode_images(pictures()), encoder.encode_texts(pad(), LENGTHS)


def cosines(encoder: Encoder) -> Tensor:
    images, texts = sides(encoder)
    return images.vectors @ texts.vectors.T


def rerank(encoder: Encoder) -> Pair[Tensor]:
    with torch.no_grad():
        pair = encoder.score(*sides(encoder))
    assert isinstance(pair, Pair)
    return pair


def logits(oracle: Oracles, encoder: Encoder) -> tuple[Tensor, Tensor]:
    """Return cosines (n, m) and the logits of no match and match (n, m, 2), pair by pair."""
    slow, state = oracle("xvlm"), encoder.state_dict()
    images = [slow.image(state, picture / 255, (2, 2), 4, 2) for picture in pictures()]
    texts = [slow.text(state, caption, 1) for caption in CAPTIONS]
    vectors = [[slow.vectors(state, image, caption) for caption in texts] for image in images]
    match_logits = [[slow.match_logits(state, caption, image, range(1, 3)) for caption in texts] for image in images]
    return torch.tensor([[float(v @ t) for v, t in row] for row in vectors]), torch.stack(
        [*map(torch.stack, match_logits)]
    )


def loss(encoder: Encoder, mask: Mask | None = None) -> Tensor | None:
    """Return the model's own loss on five pairs of picture and caption."""
    torch.manual_seed(5)
    images = encoder.encode_images(pictures()[torch.from_numpy(OWNER)])
    texts = encoder.encode_texts(pad(), LENGTHS)
    mask = mask or pair_mask(torch.from_numpy(OWNER), "mask")
    return encoder.extra_loss(images, texts, torch.zeros(5, 5), mask, pad(), LENGTHS)


def test_cosines_and_logits_equal_loops_over_pairs(oracle: Oracles) -> None:
    encoder = model(",score=itm,k_test=9")
    expected, match_logits = logits(oracle, encoder)
    assert torch.allclose(cosines(encoder), expected, atol=1e-5)
    with torch.no_grad():
        scores = encoder.score_pairs(*sides(encoder))
    assert torch.allclose(scores, match_logits[..., 1], atol=1e-5)
    assert min(float(scores.std()), float(expected.std())) > 1e-2, "scores must differ for the test to say something"
    both = rerank(encoder)
    assert torch.allclose(both.i2t, match_logits[..., 1], atol=1e-5)
    assert torch.allclose(both.t2i, match_logits[..., 1].T, atol=1e-5)


@each("k", [1, 2])
def test_the_best_by_cosine_are_reranked_and_the_rest_is_left_unscored(oracle: Oracles, k: int) -> None:
    encoder = model(f",score=itm,k_test={k}")
    expected, match_logits = logits(oracle, encoder)
    both = rerank(encoder)
    for scores, S, logit in (
        (both.i2t, expected, match_logits[..., 1]),
        (both.t2i, expected.T, match_logits[..., 1].T),
    ):
        assert scores.shape == S.shape
        for row in range(len(S)):
            best = set(S[row].argsort(descending=True)[:k].tolist())
            assert set((~scores[row].isnan()).nonzero().flatten().tolist()) == best
            assert all(abs(float(scores[row, j] - logit[row, j])) < 1e-5 for j in best)
    assert not torch.equal(both.i2t.isnan(), both.t2i.T.isnan())


def test_retrieval_puts_unscored_pairs_last() -> None:
    both = rerank(model(",score=itm,k_test=1"))
    i2t, _ = retrieve(both, OWNER)
    for image in range(3):
        first = int(both.i2t[image].nan_to_num(nan=-torch.inf).argmax())
        assert (int(i2t.ranks[image]) == 0) == (OWNER[first] == image)


def test_an_image_is_projected_once_for_all_its_captions() -> None:
    encoder = model(",score=itm,k_test=9")
    encoder.pairs_per_chunk = 2
    calls: list[int] = []
    for layer in (1, 2):
        key = encoder.get_submodule(f"text_encoder.encoder.layer.{layer}.crossattention.self.key")
        key.register_forward_hook(lambda _, given, out: calls.append(given[0].shape[0]))
    whole = rerank(encoder)
    assert sum(calls) == 3 * 2
    assert torch.allclose(whole.i2t, rerank(model(",score=itm,k_test=9")).i2t, atol=1e-6)


def test_the_gradient_in_chunks_is_that_of_all_pairs_at_once() -> None:
    encoder = model(",score=itm").double().train()
    W = torch.randn(3, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(3))
    gradients = []
    for pairs in (2, 1000, 0):
        encoder.pairs_per_chunk = pairs
        images, texts = encoder.encode_images(pictures().double() / 255), encoder.encode_texts(pad(), LENGTHS)
        S = encoder.score(images, texts) if pairs else encoder.score_pairs(images, texts)
        assert isinstance(S, Tensor)
        trained = {n: p for n, p in encoder.named_parameters() if p.requires_grad and "_proj" not in n}
        gradients.append(dict(zip(trained, torch.autograd.grad(S, list(trained.values()), W), strict=True)))
    for name, gradient in gradients[2].items():
        assert torch.allclose(gradients[0][name], gradient, atol=1e-9), name
        assert torch.allclose(gradients[1][name], gradient, atol=1e-9), name


def test_the_matching_loss_is_the_cross_entropy_of_the_drawn_pairs(oracle: Oracles) -> None:
    encoder = model(",itm_loss=true,itm_weight=2").train()
    match_logits = logits(oracle, encoder)[1][torch.from_numpy(OWNER)]
    mask = pair_mask(torch.from_numpy(OWNER), "mask")
    images = encoder.encode_images(pictures()[torch.from_numpy(OWNER)])
    S = images.vectors @ encoder.encode_texts(pad(), LENGTHS).vectors.T
    torch.manual_seed(5)
    pairs = sample_pairs(S.detach() / 0.07, mask)
    each = [
        -float(match_logits[i, j].log_softmax(0)[y])
        for i, j, y in zip(pairs.images.tolist(), pairs.texts.tolist(), pairs.label.tolist(), strict=True)
    ]
    total = loss(encoder)
    assert total is not None and len(each) == 15
    assert float(total.detach()) == pytest.approx(2 * sum(each) / 15, abs=1e-4)
    total.backward()  # type: ignore[no-untyped-call]
    expected = {name: p.grad for name, p in encoder.named_parameters() if p.grad is not None}
    again = model(",itm_loss=true,itm_weight=2").train()
    again.pairs_per_chunk = 4
    parts = loss(again)
    assert parts is not None
    parts.backward()  # type: ignore[no-untyped-call]
    for name, parameter in again.named_parameters():
        if name in expected:
            assert torch.allclose(parameter.grad, expected[name], atol=1e-5), name  # type: ignore[arg-type]
    assert loss(model().train()) is None


def test_a_re_ranker_learns_the_two_vectors_by_the_contrast(oracle: Oracles) -> None:
    encoder = model(",score=itm").train()
    rows = torch.from_numpy(OWNER)
    mask = Mask(rows[:, None] == rows, torch.ones(5, 5, dtype=torch.bool))
    total = loss(encoder, mask)
    assert total is not None
    expected = oracle("xvlm").contrast(cosines(encoder)[rows].detach(), 0.07, mask.match)
    assert float(total.detach()) == pytest.approx(expected, rel=1e-4)
    assert loss(model(",score=itm,itc_loss=false").train(), mask) is None


@each("tau", [0.07, 0.2])
def test_supcon_on_all_captions_is_the_contrast_with_soft_targets(oracle: Oracles, tau: float) -> None:
    from lossscope.core.weights import both, reduce_weights

    S, mask = cosines(model()), group_mask(torch.arange(3), torch.from_numpy(OWNER))
    objective = build("objectives", f"supcon:tau={tau}")
    value = reduce_weights(both(objective, S, mask), objective.traits.directions, objective.traits.reduction, 5).value
    assert value is not None
    assert float(value) == pytest.approx(oracle("xvlm").contrast(S, tau, mask.match), rel=1e-5)


@each("size", [16, 32])
def test_a_released_file_can_rerank(size: int) -> None:
    encoder = model(size=size)
    tower = {**dict(encoder.named_buffers()), **encoder.state_dict()}
    opened = XVLM.from_released(ReleasedFile(Path("checkpoint_best.pth"), (tower,)))
    assert opened is not None
    matcher: Encoder = replace(opened.encoder, score="itm").build(opened.item_shape, opened.vocabulary_size).eval()
    matcher.load_state_dict(opened.weights)
    images, texts = matcher.encode_images(pictures(size=size)), matcher.encode_texts(pad(), LENGTHS)
    assert matcher.score_pairs(images, texts).isfinite().all()


def test_a_model_begins_with_a_file_and_resizes_its_tables(tmp_path: Path) -> None:
    encoder, path = model(), tmp_path / "pretrained.th"
    (tower,) = pretrained_xvlm_towers({**dict(encoder.named_buffers()), **encoder.state_dict()})
    torch.save({"model": tower, "config": {"image_res": SIZE}}, path)
    assert read_released(path).options == {"image_res": SIZE}
    same = build("encoders", f"xvlm:{SMALL},weights={path}").build((3, SIZE, SIZE), 10).eval()
    assert torch.equal(cosines(same), cosines(encoder))
    wider = SMALL.replace("window=4", "window=6")
    larger = build("encoders", f"xvlm:{wider},weights={path}").build((3, 24, 24), 10).state_dict()
    name = "vision_encoder.layers.1.blocks.1.attn.relative_position_bias_table"
    before, after = encoder.state_dict()[name], larger[name]
    assert (tuple(before.shape), tuple(after.shape)) == ((49, 2), (121, 2))
    middle = (after.view(11, 11, 2)[5, 5], before.view(7, 7, 2)[3, 3])
    assert torch.allclose(*middle, atol=1e-5)
    assert torch.equal(larger["text_proj.weight"], encoder.state_dict()["text_proj.weight"])
    with pytest.raises(InputError, match=r"word_embeddings.weight must be \(11, 128\); got \(10, 128\)"):
        build("encoders", f"xvlm:{SMALL},weights={path}").build((3, SIZE, SIZE), 11)


def test_random_views_are_for_training_only() -> None:
    encoder = model(",augment=true")
    assert torch.equal(encoder.encode_images(pictures()).vectors, model().encode_images(pictures()).vectors)
    encoder.train()
    torch.manual_seed(0)
    first, second = (encoder.encode_images(pictures()).vectors for _ in range(2))
    assert not torch.allclose(first, second, atol=1e-4)


@pytest.mark.thorough
def test_a_tiny_one_learns_scenes(tmp_path: Path) -> None:
    from lossscope.training.loop import train
    from lossscope.training.observers import Observers
    from lossscope.training.recipe import Recipe

    small = "embed=32,depths=2/2,window=4,width=64,layers=2,fused=1,dim=32,pieces=300,dropout=0,drop_path=0,init=0.08"
    recipe = Recipe(
        data="scenes:train=200,val=60,test=20,size=32", encoder=f"xvlm:{small},itm_loss=true", objective="infonce",
        batch_size=25, epochs=3, lr=1e-3,
    )  # fmt: skip
    rows: list[dict[str, Any]] = []
    train(recipe, tmp_path / "run", observers=Observers(on_epoch=rows.append))
    assert rows[-1]["loss"] < rows[1]["loss"]
    assert rows[-1]["rsum"] > 3 * rows[0]["rsum"]


def test_captions_of_one_length_score_the_same_with_and_without_padding() -> None:
    """Training passes no mask for chunks whose captions are equally long."""
    encoder = model(",score=itm").train()
    ids = torch.tensor([caption[:2] for caption in CAPTIONS])
    images, texts = encoder.encode_images(pictures()), encoder.encode_texts(ids, torch.full((5,), 2))
    wide = encoder.encode_texts(torch.nn.functional.pad(ids, (0, 3)), torch.full((5,), 2))
    scores, expected = encoder.score(images, wide), encoder.score_pairs(images, texts)
    assert isinstance(scores, Tensor) and scores.shape == (3, 5)
    assert torch.allclose(scores, expected, atol=1e-5)
