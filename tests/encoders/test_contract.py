"""Does every encoder keep the contract, whatever its architecture? A new file in lossscope/encoders/ is included."""

from __future__ import annotations

import re
import shutil
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import get_args

import pytest
import torch
from torch import Tensor

from lossscope.core.pair import Pair
from lossscope.core.similarity import pair_mask
from lossscope.encoders.base import Encoder, EncoderSpec
from lossscope.encoders.types import EncodedBatch, Items
from lossscope.errors import InputError
from lossscope.registry import build, names, spec_of
from lossscope.sources.checkpoints.checkpoint import Checkpoint, stored_shape, stored_tokens
from lossscope.sources.checkpoints.sizes import require_possible_sizes
from tests.encoders.examples import (
    EXAMPLES,
    LENGTHS,
    PROPERTIES,
    SHAPES,
    Case,
    Example,
    Kind,
    N,
    captions,
    double_precision,
    each_but_large,
    examples,
    select,
    tokeniser,
    without_dropout,
)

pytest.importorskip("transformers")

Sides = tuple[EncodedBatch, EncodedBatch]
every_example = each_but_large("case", [Case(example) for example in examples()])
ZERO = 1e-12  # relative size of a gradient that is zero but for rounding, in float64


def encode(encoder: Encoder, items: Items, words: tuple[Tensor, Tensor]) -> Sides:
    with torch.no_grad():
        return encoder.encode_images(items), encoder.encode_texts(*words)


def score(encoder: Encoder, images: EncodedBatch, texts: EncodedBatch) -> list[Tensor]:
    """Return S, or both directions with images as rows."""
    with torch.no_grad():
        S = encoder.score(images, texts)
    return [S.i2t, S.t2i.T] if isinstance(S, Pair) else [S]


def all_scores(encoder: Encoder, example: Example, spec: EncoderSpec) -> list[Tensor]:
    return score(encoder, *encode(encoder, example.items(spec), captions(spec)))


def scores_in_training(encoder: Encoder, example: Example, spec: EncoderSpec) -> list[Tensor]:
    """Return the scores in training mode, of one seed; statistics and counters change."""
    torch.manual_seed(4)
    return all_scores(encoder.train(), example, spec)


def equal(xs: list[Tensor], ys: list[Tensor]) -> bool:
    """Are all bits the same? NaN, for an unscored pair, equals NaN."""
    return len(xs) == len(ys) and all(
        torch.equal(x.nan_to_num(7e7), y.nan_to_num(7e7)) for x, y in zip(xs, ys, strict=True)
    )


def matching(pattern: str, encoder: Encoder) -> set[str]:
    """Return the names of the parameters that match a pattern; none for an empty pattern."""
    return {name for name, _ in encoder.named_parameters() if pattern and re.search(pattern, name)}


def training_step(encoder: Encoder, items: Items, words: tuple[Tensor, Tensor], autocast: bool = False) -> list[Tensor]:
    """Encode, under autocast if asked; score and backpropagate outside it; return S and the further loss."""
    with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
        images, texts = encoder.encode_images(items), encoder.encode_texts(*words)
    if autocast:
        floats = {
            tensor.dtype for side in (images, texts) for tensor in side.tensors.values() if tensor.is_floating_point()
        }
        assert floats == {torch.float32}, "what the towers return must not be of half precision"
    S = encoder.score(images, texts)
    assert isinstance(S, Tensor), "in training every pair has a score"
    assert S.shape == (N, N)
    W = torch.randn(S.shape, generator=torch.Generator().manual_seed(3))
    further = encoder.extra_loss(images, texts, S, pair_mask(torch.arange(N)), *words)
    ((S * W).sum() + (0 if further is None else further)).backward()  # type: ignore[no-untyped-call]
    return [S, *([] if further is None else [further])]


def test_every_encoder_has_an_example() -> None:
    assert EXAMPLES.keys() <= set(names("encoders"))
    assert {example.name for example in examples()} == set(names("encoders"))


@every_example
def test_the_spec_rebuilds_the_options(case: Case) -> None:
    spec = case.spec
    assert build("encoders", spec_of(spec)) == spec


@every_example
def test_the_same_seed_builds_the_same_model(case: Case) -> None:
    example, spec, model = case.example, case.spec, case.model
    state, rebuilt = model.state_dict(), example.build(spec).state_dict()
    assert state.keys() == rebuilt.keys()
    assert [name for name, tensor in state.items() if not torch.equal(tensor, rebuilt[name])] == []


@every_example
def test_items_of_each_kind_are_taken_or_refused(case: Case) -> None:
    example, spec = case.example, case.spec
    for kind in get_args(Kind):
        refused = nullcontext() if kind == example.kind else suppress(InputError)
        with refused, torch.device("meta"):
            spec.rebuild(SHAPES[kind](example), len(tokeniser(spec)), spec.stored_files())


@every_example
def test_n_items_and_m_captions_give_n_and_m_rows_and_s_in_its_range(case: Case) -> None:
    example, spec, encoder = case.example, case.spec, case.encoder
    images, texts = encode(encoder, select(example.items(spec), slice(3)), captions(spec))
    for side, rows in ((images, 3), (texts, N)):
        assert len(side) == rows and {len(tensor) for tensor in side.tensors.values()} == {rows}
        assert all(bool(tensor.isfinite().all()) for tensor in side.tensors.values())
        assert side.global_ is not None or side.local is not None
        assert side.global_ is None or (side.global_.ndim == 2 and side.global_.dtype == torch.float32)
    with torch.no_grad():
        S = encoder.score(images, texts)
    directions = list(S) if isinstance(S, Pair) else [S]
    assert [tuple(s.shape) for s in directions] == [(3, N), (N, 3)][: len(directions)]
    assert encoder.score_min < encoder.score_max
    for s in directions:
        scored = s[~s.isnan()]
        assert s.dtype == torch.float32 and bool(scored.isfinite().all())
        assert len(scored) == s.numel() or (encoder.needs_full_matrix and bool((~s.isnan()).any(1).all()))
        assert encoder.score_min - 1e-6 <= float(scored.min()) and float(scored.max()) <= encoder.score_max + 1e-6
        assert float(scored.std()) > 1e-3, "scores must differ for the tests to say something"
    assert images.select(slice(0, 2)).tensors.keys() == images.tensors.keys()


@every_example
def test_the_score_has_the_stated_properties_and_bounds(case: Case) -> None:
    example, encoder = case.example, case.encoder
    properties = {name for name in PROPERTIES if getattr(encoder, name)}
    assert example.score is None or properties == example.score
    bounds = (encoder.score_min, encoder.score_max)
    assert example.bounds is None or bounds == pytest.approx(example.bounds)


@every_example
def test_vectors_give_the_score_where_the_encoder_says_so(case: Case) -> None:
    example, spec, encoder = case.example, case.spec, case.encoder
    images, texts = encode(encoder, example.items(spec), captions(spec))
    if not encoder.is_dot_product:
        return
    (S,) = score(encoder, images, texts)
    torch.testing.assert_close(S, images.vectors @ texts.vectors.T, rtol=0, atol=1e-6)
    if encoder.is_cosine and example.unit:
        for side in (images, texts):
            torch.testing.assert_close(side.vectors.norm(dim=1), torch.ones(N), rtol=0, atol=1e-6)


@every_example
def test_masks_have_the_present_entries_first(case: Case) -> None:
    example, spec, encoder = case.example, case.spec, case.encoder
    for training in (False, True):
        encoder.train(training)
        for side in encode(encoder, example.items(spec), captions(spec, longer=2)):
            if side.mask is not None:
                assert side.local is not None
                assert side.mask.dtype == torch.bool and side.mask.shape == side.local.shape[:2]
                assert torch.equal(side.mask, torch.arange(side.mask.shape[1]) < side.lengths[:, None])
        if side.mask is not None:
            assert torch.equal(side.lengths, LENGTHS), "of the captions"
    assert encode(encoder, example.items(spec), captions(spec))[0].mask is None or encoder.pairwise


@every_example
def test_eval_mode_gives_the_same_bits_and_changes_no_state(case: Case) -> None:
    example, spec, encoder = case.example, case.spec, case.encoder
    before = {name: tensor.clone() for name, tensor in encoder.state_dict().items()}
    torch.manual_seed(1)
    first = all_scores(encoder, example, spec)
    torch.manual_seed(2)
    assert equal(all_scores(encoder, example, spec), first)
    assert [name for name, tensor in encoder.state_dict().items() if not torch.equal(tensor, before[name])] == []


@every_example
def test_what_is_random_is_so_in_training_only(case: Case) -> None:
    example, spec, encoder = case.example, case.spec, case.encoder
    encoder.train()
    torch.manual_seed(1)
    first = all_scores(encoder, example, spec)
    torch.manual_seed(2)
    second = all_scores(encoder, example, spec)
    assert example.stochastic is None or equal(second, first) != example.stochastic


@every_example
def test_nothing_is_random_in_training_without_dropout_and_with_the_quiet_options(case: Case) -> None:
    example, spec, files = case.example, case.spec, case.files
    if not example.stochastic:
        return
    encoder = without_dropout(example.build(example.options(files, example.quiet))).train()
    scores = []
    for seed in (1, 2):
        torch.manual_seed(seed)
        scores.append(all_scores(encoder, example, spec))
    assert equal(*scores)


@every_example
@double_precision()
def test_scores_depend_on_neither_padding_nor_the_batch(case: Case) -> None:
    example, spec = case.example, case.spec
    encoder = example.build(spec)
    items, (ids, lengths) = example.items(spec), captions(spec)

    def pairs(items: Items, words: tuple[Tensor, Tensor]) -> list[Tensor]:
        """Return the scores of pairs, or their inputs where a pair's score depends on other pairs."""
        images, texts = encode(encoder, items, words)
        if not encoder.needs_full_matrix:
            return score(encoder, images, texts)
        with torch.no_grad():
            return [encoder.score_pairs(images, texts), images.vectors @ texts.vectors.T]

    def require_same(scores: list[Tensor], expected: list[Tensor], what: str) -> None:
        for x, y in zip(scores, expected, strict=True):
            torch.testing.assert_close(x, y, rtol=0, atol=1e-9, msg=lambda text: f"{what}: {text}")

    whole = pairs(items, (ids, lengths))
    assert all(float(S.std()) > 1e-3 for S in whole), "scores must differ for the test to say something"
    require_same(pairs(example.items(spec, longer=3), captions(spec, longer=5)), whole, "longer padding")
    rows, columns = torch.tensor([3, 0, 4, 1, 2]), torch.tensor([1, 4, 2, 0, 3])
    permuted = [S[rows][:, columns] for S in whole]
    require_same(pairs(select(items, rows), (ids[columns], lengths[columns])), permuted, "another order")
    fewer = [S[:2, 1:] for S in whole]
    require_same(pairs(select(items, slice(2)), (ids[1:], lengths[1:])), fewer, "other items beside")
    for i in range(N):
        caption = (ids[i : i + 1, : int(lengths[i])], lengths[i : i + 1])
        j = (i + 1) % N
        alone = pairs(select(items, slice(j, j + 1)), caption)
        require_same(alone, [S[j : j + 1, i : i + 1] for S in whole], "one item and one caption")


@every_example
@double_precision()
def test_pairwise_scores_are_those_of_all_pairs_at_once(case: Case) -> None:
    example, spec, model = case.example, case.spec, case.model
    if not model.pairwise or model.needs_full_matrix:
        return
    encoder = example.build(spec)
    sides = encode(encoder, example.items(spec), captions(spec))
    with torch.no_grad():
        expected = encoder.score_pairs(*sides)
        wide = encoder.encode_texts(*captions(spec, longer=5))
        torch.testing.assert_close(encoder.score_pairs(sides[0], wide), expected, rtol=0, atol=1e-9)
    for pairs in (1, 2 * N, 1 << 20):
        encoder.pairs_per_chunk = pairs
        torch.testing.assert_close(score(encoder, *sides)[0], expected, rtol=0, atol=1e-12)


@every_example
def test_a_checkpoint_gives_the_same_bits_without_any_file_of_the_spec(case: Case, tmp_path: Path) -> None:
    example = case.example
    spec = example.options(tmp_path / "files")
    encoder, words = example.build(spec).train(), tokeniser(spec)
    encode(encoder, example.items(spec), captions(spec))  # statistics and counters that are not those of a new model
    checkpoint = Checkpoint(
        encoder=spec_of(spec), objective="triplet", data="", **stored_tokens(words),
        item_shape=stored_shape(example.shape(spec)), data_fingerprint="", epoch=1, metrics={},
        weights=encoder.state_dict(), training={}, kept=dict(spec.stored_files()),
    )  # fmt: skip
    paths = [tmp_path / f"checkpoint{suffix}" for suffix in (".pt", ".safetensors")]
    for path in paths:
        checkpoint.save(path)
    shutil.rmtree(tmp_path / "files", ignore_errors=True)
    expected, further = all_scores(encoder.eval(), example, spec), scores_in_training(encoder, example, spec)
    for path in paths:
        stored = Checkpoint.load(path)
        assert stored.words() == words
        again = stored.model()
        assert not again.training
        assert equal(all_scores(again, example, spec), expected)
        assert equal(scores_in_training(again, example, spec), further)


@every_example
@double_precision()
def test_a_gradient_reaches_every_parameter_that_trains(case: Case) -> None:
    example, spec = case.example, case.spec
    encoder = example.build(spec).train()
    torch.manual_seed(3)
    training_step(encoder, example.items(spec), captions(spec))
    gradients = {name: p.grad for name, p in encoder.named_parameters() if p.grad is not None}
    frozen = {name for name, p in encoder.named_parameters() if not p.requires_grad}
    assert gradients and not frozen & gradients.keys()
    assert [name for name, gradient in gradients.items() if not bool(gradient.isfinite().all())] == []
    without = {name for name, _ in encoder.named_parameters()} - frozen - gradients.keys()
    assert without == matching(example.unused, encoder)
    if example.frozen is not None:
        assert frozen == matching(example.frozen, encoder)
    largest = max(float(gradient.abs().max()) for gradient in gradients.values())
    silent = {name for name, gradient in gradients.items() if float(gradient.abs().max()) <= ZERO * largest}
    if example.silent is not None:
        assert silent == matching(example.silent, encoder) & gradients.keys()


@every_example
def test_a_training_step_in_bfloat16_gives_float32(case: Case) -> None:
    example, spec, encoder = case.example, case.spec, case.encoder
    encoder.train()
    torch.manual_seed(3)
    for tensor in training_step(encoder, example.items(spec), captions(spec), autocast=True):
        assert tensor.dtype == torch.float32 and bool(tensor.isfinite().all())
    for name, parameter in encoder.named_parameters():
        assert parameter.grad is None or bool(parameter.grad.isfinite().all()), name
    assert any(parameter.grad is not None for parameter in encoder.parameters())


@every_example
def test_groups_and_weight_decay_are_of_its_own_parameters(case: Case) -> None:
    example, encoder = case.example, case.encoder
    named = {id(p): name for name, p in encoder.named_parameters()}
    groups = {group: [named.get(id(p), "foreign") for p in ps] for group, ps in encoder.parameter_groups().items()}
    everything = [name for members in groups.values() for name in members]
    assert len(everything) == len(set(everything)) and "foreign" not in everything
    assert all(members for members in groups.values())
    if example.groups is not None:
        expected = {group: {n for n in named.values() if re.search(p, n)} for group, p in example.groups.items()}
        assert {group: set(members) for group, members in groups.items()} == expected
    assert all(isinstance(encoder.uses_weight_decay(name), bool) for name in named.values())


@every_example
def test_its_sizes_are_found_without_memory(case: Case) -> None:
    example, spec, encoder = case.example, case.spec, case.encoder
    vocabulary_size = len(tokeniser(spec))
    require_possible_sizes(spec, example.shape(spec), vocabulary_size, spec.stored_files(), encoder.state_dict())
