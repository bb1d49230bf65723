"""SCAN: scores equal a loop over pairs, padding does not matter, and names are the original's."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import product
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from torch import Tensor

from lossscope.encoders.base import Encoder
from lossscope.encoders.scan import SCAN
from lossscope.encoders.types import EncodedBatch, ReleasedFile
from lossscope.errors import InputError
from lossscope.registry import build, spec_of

Oracles = Callable[[str], ModuleType]
CAPTIONS = [[1, 5, 6, 2], [1], [1, 4, 5, 9, 7, 2], [1, 2], [1, 7, 2]]
LENGTHS = torch.tensor([len(caption) for caption in CAPTIONS])
ORIGINAL = {
    "image.fc.weight": (1024, 2048),
    "image.fc.bias": (1024,),
    "text.embed.weight": (8481, 300),
    "text.rnn.weight_ih_l0": (3072, 300),
    "text.rnn.weight_hh_l0": (3072, 1024),
    "text.rnn.bias_ih_l0": (3072,),
    "text.rnn.bias_hh_l0": (3072,),
    "text.rnn.weight_ih_l0_reverse": (3072, 300),
    "text.rnn.weight_hh_l0_reverse": (3072, 1024),
    "text.rnn.bias_ih_l0_reverse": (3072,),
    "text.rnn.bias_hh_l0_reverse": (3072,),
}
OPT = {
    "cross_attn": "t2i",
    "agg_func": "Mean",
    "lambda_softmax": 9.0,
    "lambda_lse": 6.0,
    "raw_feature_norm": "clipped_l2norm",
    "margin": 0.2,
    "max_violation": True,
    "bi_gru": True,
    "no_imgnorm": False,
    "no_txtnorm": False,
}


def padded(captions: list[list[int]] = CAPTIONS, more: int = 0) -> Tensor:
    longest = max(map(len, captions)) + more
    return torch.tensor([caption + [0] * (longest - len(caption)) for caption in captions])


def model(spec: str = "") -> Encoder:
    torch.manual_seed(0)
    encoder: Encoder = build("encoders", f"scan:dim=8,words=4,word_init=1{spec}").build((5, 6), 10)
    return encoder.eval()


def pictures(n: int = 3) -> Tensor:
    return torch.randn(n, 5, 6, generator=torch.Generator().manual_seed(1))


def sides(encoder: Encoder) -> tuple[EncodedBatch, EncodedBatch]:
    with torch.no_grad():
        return encoder.encode_images(pictures()), encoder.encode_texts(padded(), LENGTHS)


def unit_vectors(*shape: int) -> Tensor:
    vectors = torch.randn(*shape, generator=torch.Generator().manual_seed(2))
    return torch.nn.functional.normalize(vectors, dim=-1)


def shapes(state: Mapping[str, Tensor]) -> dict[str, tuple[int, ...]]:
    return {name: tuple(tensor.shape) for name, tensor in state.items()}


def released_file(encoder: Encoder, options: Mapping[str, Any]) -> ReleasedFile:
    state = encoder.state_dict()
    towers = tuple(
        {name.removeprefix(tower): value for name, value in state.items() if name.startswith(tower)}
        for tower in ("image.", "text.")
    )
    return ReleasedFile(Path("model_best.pth.tar"), towers, options)


def test_names_and_shapes_are_the_originals() -> None:
    with torch.device("meta"):
        state = SCAN().build((36, 2048), 8481).state_dict()
    assert shapes(state) == ORIGINAL
    text = [tensor for name, tensor in state.items() if name.startswith("text.")]
    assert (len(text), round(sum(tensor.numel() for tensor in text) / 1e6, 2)) == (9, 10.69)


def test_names_of_the_variants_are_the_originals() -> None:
    with torch.device("meta"):
        weight_norm = shapes(SCAN(weight_norm=True).build((36, 2048), 8481).state_dict())
        one_way = shapes(SCAN(bi_gru=False).build((36, 2048), 8481).state_dict())
    first = {"image.fc.bias": (1024,), "image.fc.weight_g": (), "image.fc.weight_v": (1024, 2048)}
    assert {name: shape for name, shape in weight_norm.items() if name.startswith("image.")} == first
    assert one_way == {name: shape for name, shape in ORIGINAL.items() if "reverse" not in name}


@pytest.mark.parametrize("spec", ["", ",bi_gru=false", ",weight_norm=true"])
def test_towers_equal_those_of_one_item_at_a_time(oracle: Oracles, spec: str) -> None:
    encoder = model(spec)
    images, texts = sides(encoder)
    assert images.local is not None and texts.local is not None and texts.mask is not None
    state = encoder.state_dict()
    assert torch.allclose(images.local, oracle("scan").regions(state, pictures()), atol=1e-6)
    assert torch.equal(texts.lengths, LENGTHS)
    for row, caption in enumerate(CAPTIONS):
        expected = oracle("scan").words(state, caption)
        assert torch.allclose(texts.local[row, : len(caption)], expected, atol=1e-6)
    assert not texts.local[~texts.mask].any(), "padded words must be zero vectors"


@pytest.mark.parametrize(("direction", "pool"), list(product(["t2i", "i2t"], ["avg", "lse", "sum", "max"])))
def test_scores_equal_a_loop_over_pairs_and_queries(oracle: Oracles, direction: str, pool: str) -> None:
    encoder = model(f",direction={direction},pool={pool}")
    images, texts = sides(encoder)
    assert images.local is not None and texts.local is not None
    captions = [texts.local[j, : len(caption)] for j, caption in enumerate(CAPTIONS)]
    expected = oracle("scan").scores(images.local, captions, direction, pool, {"t2i": 9, "i2t": 4}[direction])
    assert torch.allclose(encoder.score(images, texts), expected, atol=1e-5)


@pytest.mark.parametrize("direction", ["t2i", "i2t"])
@pytest.mark.parametrize(
    ("norm", "clip"),
    [
        ("clipped_l2norm", "hard"),
        ("l2norm", "leaky"),
        ("clipped_l1norm", "leaky"),
        ("clipped_l1norm", "hard"),
        ("l1norm", "leaky"),
        ("clipped", "leaky"),
        ("softmax", "leaky"),
        ("no_norm", "leaky"),
    ],
)
def test_every_norm_equals_the_loop(oracle: Oracles, direction: str, norm: str, clip: str) -> None:
    encoder = model(f",direction={direction},norm={norm},clip={clip},lambda_softmax=7")
    images, texts = sides(encoder)
    assert images.local is not None and texts.local is not None
    captions = [texts.local[j, : len(caption)] for j, caption in enumerate(CAPTIONS)]
    expected = oracle("scan").scores(images.local, captions, direction, "avg", 7.0, norm=norm, clip=clip)
    assert torch.allclose(encoder.score(images, texts), expected, atol=1e-5)


def test_clips_differ() -> None:
    assert not torch.allclose(model().score(*sides(model())), model(",clip=hard").score(*sides(model())), atol=1e-4)


@pytest.mark.parametrize("direction", ["t2i", "i2t"])
def test_the_closed_form_keeps_its_precision_at_the_original_width(oracle: Oracles, direction: str) -> None:
    encoder = model(f",direction={direction}")
    images, words = unit_vectors(2, 36, 1024), unit_vectors(3, 13, 1024)
    images[1] = torch.nn.functional.normalize(images[1] + 3 * images[1, :1], dim=-1)  # regions that are much alike
    S = encoder.score(EncodedBatch(None, images), EncodedBatch(None, words, torch.ones(3, 13, dtype=torch.bool)))
    expected = oracle("scan").scores(
        images.double(), list(words.double()), direction, "avg", {"t2i": 9, "i2t": 4}[direction]
    )
    assert torch.allclose(S.double(), expected, atol=1e-6)


@pytest.mark.parametrize("spec", [f",direction={d},pool={p}" for d in ("t2i", "i2t") for p in ("avg", "lse")])
def test_scores_depend_on_neither_padding_nor_the_batch(spec: str) -> None:
    encoder = model(spec)
    images, texts = sides(encoder)
    whole = encoder.score(images, texts)
    with torch.no_grad():
        wide = encoder.encode_texts(padded(more=5), LENGTHS)
        assert torch.allclose(encoder.score(images, wide), whole, atol=1e-6)
        assert torch.allclose(encoder.score_pairs(images, wide), whole, atol=1e-6)
        for j, caption in enumerate(CAPTIONS):
            alone = encoder.encode_texts(torch.tensor([caption]), LENGTHS[j : j + 1])
            for i in range(3):
                one = encoder.score(encoder.encode_images(pictures()[i : i + 1]), alone)
                assert one.shape == (1, 1)
                assert torch.allclose(one[0, 0], whole[i, j], atol=1e-5)


@pytest.mark.parametrize("spec", ["", ",direction=i2t", ",weight_norm=true,pool=lse", ",norm=softmax,bi_gru=false"])
def test_a_gradient_reaches_every_parameter(spec: str) -> None:
    encoder = model(spec).train()
    S = encoder.score(encoder.encode_images(pictures()), encoder.encode_texts(padded(), LENGTHS))
    (S * torch.randn(S.shape, generator=torch.Generator().manual_seed(3))).sum().backward()
    for name, parameter in encoder.named_parameters():
        assert parameter.grad is not None and parameter.grad.isfinite().all() and parameter.grad.any(), name


@pytest.mark.parametrize(("spec", "least", "most"), [
    ("", -1, 1),
    (",pool=max", -1, 1),
    (",direction=i2t,pool=sum", -5, 5),
    (",direction=i2t,pool=lse,lambda_lse=5", -1, 1.3218876),
    (",pool=lse", -1, float("inf")),
])  # fmt: skip
def test_the_range_of_the_score_is_stated(spec: str, least: float, most: float) -> None:
    encoder = model(spec)
    assert (encoder.score_min, encoder.score_max) == pytest.approx((least, most))
    S = encoder.score(*sides(encoder))
    assert isinstance(S, Tensor)
    assert least <= float(S.min()) and float(S.max()) <= most
    assert encoder.is_cosine == ("lse" not in spec and "sum" not in spec)


@pytest.mark.parametrize(
    ("changes", "spec"),
    [
        ({}, ""),
        ({"cross_attn": "i2t", "lambda_softmax": 4, "agg_func": "LogSumExp", "lambda_lse": 20}, ""),
        ({"raw_feature_norm": "softmax", "agg_func": "Max", "bi_gru": False}, ",bi_gru=false"),
        ({"agg_func": "Sum", "max_violation": False, "margin": 0.1}, ",weight_norm=true"),
    ],
)
def test_a_released_file_gives_the_scores_of_its_model(changes: dict[str, Any], spec: str) -> None:
    options = {**OPT, **changes}
    pool = {"Mean": "avg", "LogSumExp": "lse", "Max": "max", "Sum": "sum"}[options["agg_func"]]
    encoder = model(
        f"{spec},direction={options['cross_attn']},lambda_softmax={options['lambda_softmax']},pool={pool},"
        f"lambda_lse={options['lambda_lse']},norm={options['raw_feature_norm']}"
    )
    opened = SCAN.from_released(released_file(encoder, options))
    assert opened is not None
    assert (opened.item_shape, opened.vocabulary_size, opened.ignored) == ((36, 6), 10, ())
    objective = "triplet_sh:margin=0.2" if options["max_violation"] else "triplet:margin=0.1"
    assert opened.objective == objective
    again = build("encoders", spec_of(opened.encoder)).build(opened.item_shape, opened.vocabulary_size).eval()
    again.load_state_dict(opened.weights)
    assert torch.equal(again.score(*sides(again)), encoder.score(*sides(encoder)))


@pytest.mark.parametrize("options", [{}, {**OPT, "focal_type": "equal"}, {"margin": 0.2}])
def test_a_file_without_the_options_of_scan_is_not_opened(options: dict[str, Any]) -> None:
    assert SCAN.from_released(released_file(model(), options)) is None


def test_files_of_other_towers_are_not_opened() -> None:
    file = released_file(model(), OPT)
    first, second = file.towers
    assert SCAN.from_released(replace(file, towers=(first, second, {}))) is None
    assert SCAN.from_released(replace(file, towers=({**first, "cnn.conv1.weight": torch.zeros(1)}, second))) is None


@pytest.mark.parametrize(
    ("tower", "name", "value", "fragment"),
    [
        (0, "fc.bias", None, r"missing \['image.fc.bias'\]"),
        (0, "fc.weight", None, "image.fc.weight of the file must be a tensor of 2 dimensions; got none"),
        (1, "embed.weight", None, "text.embed.weight of the file must be a tensor of 2 dimensions; got none"),
        (1, "rnn.bias_hh_l0", None, r"missing \['text.rnn.bias_hh_l0'\]"),
        (1, "rnn.weight_ih_l1", torch.zeros(2, 2), r"left over \['text.rnn.weight_ih_l1'\]"),
        (1, "rnn.bias_hh_l0", torch.zeros(3), r"text.rnn.bias_hh_l0 must be \(24,\); got \(3,\)"),
        (0, "fc.weight", torch.zeros(0, 4), "image.fc.weight of the file must not be empty; got 0 x 4"),
    ],
)
def test_a_damaged_file_is_refused_by_name(tower: int, name: str, value: Tensor | None, fragment: str) -> None:
    file = released_file(model(), OPT)
    towers = [dict(state) for state in file.towers]
    towers[tower].pop(name, None)
    if value is not None:
        towers[tower][name] = value
    with pytest.raises(InputError, match=fragment):
        SCAN.from_released(replace(file, towers=tuple(towers)))


@pytest.mark.parametrize(
    ("changes", "fragment"),
    [
        ({"cross_attn": "both"}, "option cross_attn of the file must be one of t2i, i2t; got 'both'"),
        ({"agg_func": ["Mean"]}, "option agg_func of the file must be text"),
        ({"lambda_softmax": float("nan")}, "option lambda_softmax of the file must be a finite number"),
        ({"lambda_softmax": 0}, "lambda_softmax must be > 0 and finite; got 0.0"),
        ({"no_txtnorm": True}, "option no_txtnorm of the file must be false"),
        ({"max_violation": 1}, "option max_violation of the file must be true or false; got 1"),
    ],
)
def test_options_of_a_file_are_checked(changes: dict[str, Any], fragment: str) -> None:
    with pytest.raises(InputError, match=fragment):
        SCAN.from_released(released_file(model(), {**OPT, **changes}))


@pytest.mark.parametrize(
    ("spec", "fragment"),
    [
        ("scan:dim=0", "dim must be > 0 and finite; got 0"),
        ("scan:lambda_softmax=-1", "lambda_softmax must be > 0"),
        ("scan:lambda_lse=0", "lambda_lse must be > 0"),
        ("scan:pool=mean", "must be one of avg, lse, sum, max"),
    ],
)
def test_options_out_of_range_are_refused(spec: str, fragment: str) -> None:
    with pytest.raises(InputError, match=fragment):
        build("encoders", spec)


@pytest.mark.parametrize("shape", [(2048,), (3, 64, 64), (0, 4), {"rgb": (2048,)}])
def test_items_that_are_no_regions_are_refused(shape: Any) -> None:
    with pytest.raises(InputError, match=r"scan must be given region features, \(regions, d\)"):
        SCAN(dim=8, words=4).build(shape, 10)


def test_batches_that_are_no_regions_are_refused() -> None:
    with pytest.raises(InputError, match=r"images must be region features, \(n, regions, d\); got \(2, 6\)"):
        model().encode_images(torch.zeros(2, 6))


def test_half_precision_features_and_autocast_give_float32() -> None:
    encoder = model()
    assert torch.allclose(encoder.encode_images(pictures().half()).local, sides(encoder)[0].local, atol=1e-2)  # type: ignore[arg-type]
    with torch.autocast("cpu", torch.bfloat16):
        images, texts = encoder.encode_images(pictures()), encoder.encode_texts(padded(), LENGTHS)
    assert images.local is not None and texts.local is not None
    assert images.local.dtype == texts.local.dtype == torch.float32
