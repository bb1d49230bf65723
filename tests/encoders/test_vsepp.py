"""VSE++: unit vectors that depend on the item alone, and towers that say what they take."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from lossscope.encoders.base import Encoder, EncoderSpec
from lossscope.encoders.vsepp import VSEPP
from lossscope.errors import InputError
from lossscope.registry import build, spec_of

IDS = torch.tensor([[1, 5, 6, 2, 0], [1, 7, 2, 0, 0], [1, 4, 5, 9, 2]])
LENGTHS = torch.tensor([4, 3, 5])


def pictures(n: int, size: int = 16) -> Tensor:
    return torch.randint(0, 256, (n, 3, size, size), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))


def model(size: int = 16) -> Encoder:
    torch.manual_seed(0)
    return VSEPP(dim=8, words=4, width=4).build((3, size, size), 10).eval()


@pytest.mark.parametrize("size", [16, 24, 64, 80])
def test_vectors_have_unit_length(size: int) -> None:
    encoder = model(size)
    assert isinstance(VSEPP(), EncoderSpec)
    for side in (encoder.encode_images(pictures(3, size)), encoder.encode_texts(IDS, LENGTHS)):
        assert side.vectors.shape == (3, 8)
        assert torch.allclose(side.vectors.norm(dim=1), torch.ones(3), atol=1e-6)


def test_the_score_is_the_cosine_with_image_rows() -> None:
    encoder = model()
    images, texts = encoder.encode_images(pictures(5)), encoder.encode_texts(IDS, LENGTHS)
    assert torch.equal(encoder.score(images, texts), images.vectors @ texts.vectors.T)


def test_padding_does_not_change_a_caption() -> None:
    encoder = model()
    longer = torch.nn.functional.pad(IDS, (0, 7))
    assert torch.equal(encoder.encode_texts(IDS, LENGTHS).vectors, encoder.encode_texts(longer, LENGTHS).vectors)


def test_the_batch_does_not_change_a_vector_in_eval_mode() -> None:
    encoder = model()
    whole = encoder.encode_images(pictures(6)).vectors
    texts = encoder.encode_texts(IDS, LENGTHS).vectors
    for row in range(3):
        alone = encoder.encode_images(pictures(6)[row : row + 1]).vectors
        word = encoder.encode_texts(IDS[row : row + 1], LENGTHS[row : row + 1]).vectors
        assert torch.allclose(whole[row], alone[0], atol=1e-6)
        assert torch.allclose(texts[row], word[0], atol=1e-6)


def test_word_order_matters() -> None:
    encoder = model()
    vectors = encoder.encode_texts(torch.tensor([[1, 5, 6, 2], [1, 6, 5, 2]]), torch.tensor([4, 4])).vectors
    assert not torch.allclose(vectors[0], vectors[1], atol=1e-4)


def test_the_same_seed_builds_the_same_model() -> None:
    assert all(
        torch.equal(a, b) for a, b in zip(model().state_dict().values(), model().state_dict().values(), strict=True)
    )


@pytest.mark.parametrize(("pool", "reduce"), [("max", lambda x: x.amax(1)), ("mean", lambda x: x.mean(1))])
def test_regions_are_mapped_then_pooled(pool: str, reduce: object) -> None:
    encoder = build("encoders", f"vsepp:image=linear,dim=8,words=4,pool={pool}").build((5, 6), 10)
    regions = torch.randn(3, 5, 6)
    wanted = reduce(encoder.image.fc(regions))  # type: ignore[operator]
    assert torch.allclose(encoder.encode_images(regions).vectors, torch.nn.functional.normalize(wanted, dim=1))


def test_features_without_regions_are_mapped() -> None:
    encoder = VSEPP(image="linear", dim=8, words=4).build((6,), 10)
    assert encoder.encode_images(torch.randn(3, 6)).vectors.shape == (3, 8)


@pytest.mark.parametrize(
    ("image", "shape", "fragment"),
    [
        ("cnn-small", (2048,), r"image=cnn-small must be given pixels, \(3, H, W\); .* shape \(2048,\)"),
        ("cnn-small", (36, 2048), "must be given pixels"),
        ("resnet18", (36, 2048), "must be given pixels"),
        ("linear", (3, 64, 64), r"image=linear must be given features, \(d,\) or \(regions, d\)"),
        ("cnn-small", (3, 8, 64), "at least 16 x 16; got 8 x 64"),
    ],
)
def test_items_of_another_shape_are_refused(image: str, shape: tuple[int, ...], fragment: str) -> None:
    with pytest.raises(InputError, match=fragment):
        build("encoders", f"vsepp:image={image}").build(shape, 10)


@pytest.mark.parametrize(
    ("spec", "fragment"),
    [
        ("vsepp:dim=0", "dim, words and width must be at least 1; got 0"),
        ("vsepp:weights=a.pth", "weights are for resnet towers; got image=cnn-small"),
        ("vsepp:image=resnet34", "must be one of cnn-small, linear, resnet18"),
    ],
)
def test_options_out_of_range_are_refused(spec: str, fragment: str) -> None:
    with pytest.raises(InputError, match=fragment):
        build("encoders", spec)


def test_the_spec_rebuilds_it() -> None:
    spec = spec_of(build("encoders", "vsepp:image=linear,dim=8,words=4,pool=mean"))
    assert spec_of(build("encoders", spec)) == spec
    assert "image=linear,dim=8,words=4" in spec


@pytest.mark.parametrize(
    ("spec", "there"), [("vsepp:width=4,dim=8", True), ("vsepp:width=4,dim=8,centre=false", False)]
)
def test_the_small_cnn_centres_its_output_unless_told_not_to(spec: str, there: bool) -> None:
    model = build("encoders", spec).build((3, 16, 16), 10)
    assert any(name.startswith("image.bn.") for name in model.state_dict()) is there
