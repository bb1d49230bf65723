"""VSE++: unit vectors that depend on the item alone, and checks of the items that towers take."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from lossscope.encoders.base import Encoder, EncoderSpec
from lossscope.encoders.types import ReleasedFile
from lossscope.encoders.vsepp import VSEPP
from lossscope.errors import InputError
from lossscope.registry import build, spec_of
from lossscope.sources.checkpoints.checkpoint import Checkpoint

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
    expected = reduce(encoder.image.fc(regions))  # type: ignore[operator]
    assert torch.allclose(encoder.encode_images(regions).vectors, torch.nn.functional.normalize(expected, dim=1))


def test_features_without_regions_are_mapped() -> None:
    encoder = VSEPP(image="linear", dim=8, words=4).build((6,), 10)
    assert encoder.encode_images(torch.randn(3, 6)).vectors.shape == (3, 8)


@pytest.mark.parametrize(
    ("image", "shape", "fragment"),
    [
        ("cnn-small", (2048,), r"image=cnn-small must be given pixels, \(3, H, W\); .* shape \(2048,\)"),
        ("cnn-small", (36, 2048), "must be given pixels"),
        ("resnet18,finetune=true", (36, 2048), "must be given pixels"),
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
        ("vsepp:crop=-1", "crop must be >= 0, and 0 for image=linear; got -1"),
        ("vsepp:image=linear,crop=8", "crop must be >= 0, and 0 for image=linear; got 8"),
        ("vsepp:dim=0", "dim, words and width must be at least 1; got 0"),
        ("vsepp:weights=a.pth", "weights are for resnet, vgg19 and vit towers; got image=cnn-small"),
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
    ("spec", "centred"), [("vsepp:width=4,dim=8", True), ("vsepp:width=4,dim=8,centre=false", False)]
)
def test_the_small_cnn_centres_its_output_by_default(spec: str, centred: bool) -> None:
    model = build("encoders", spec).build((3, 16, 16), 10)
    assert any(name.startswith("image.bn.") for name in model.state_dict()) is centred


def test_the_demos_checkpoint_still_loads() -> None:
    checkpoint = Checkpoint.load(Path(__file__).parents[2] / "checkpoints" / "tiny.pt")
    assert checkpoint.model().is_cosine


@pytest.mark.parametrize(("network", "tensors"), [("resnet50", 320), ("resnet152", 932)])
def test_names_and_shapes_are_the_originals(network: Any, tensors: int) -> None:
    with torch.device("meta"):
        encoder = VSEPP(image=network, dim=1024, words=300).build((3, 256, 256), 8481)
    shapes = {k: tuple(v.shape) for k, v in encoder.state_dict().items()}
    assert {k: v for k, v in shapes.items() if k.startswith("text.")} == {
        "text.embed.weight": (8481, 300), "text.rnn.weight_ih_l0": (3072, 300),
        "text.rnn.weight_hh_l0": (3072, 1024), "text.rnn.bias_ih_l0": (3072,), "text.rnn.bias_hh_l0": (3072,),
    }  # fmt: skip
    assert len([name for name in shapes if name.startswith("image.")]) == tensors
    assert shapes["image.cnn.conv1.weight"] == (64, 3, 7, 7)
    assert shapes["image.cnn.layer1.0.downsample.1.running_var"] == (256,)
    assert shapes["image.cnn.layer4.2.conv3.weight"] == (2048, 512, 1, 1)
    assert (shapes["image.fc.weight"], shapes["image.fc.bias"]) == ((1024, 2048), (1024,))


def test_precomputed_vectors_have_the_originals_names() -> None:
    with torch.device("meta"):
        state = VSEPP(image="linear", dim=1024, words=300).build((4096,), 10).state_dict()
    assert {k: tuple(v.shape) for k, v in state.items() if k.startswith("image.")} == {
        "image.fc.weight": (1024, 4096), "image.fc.bias": (1024,)
    }  # fmt: skip


def test_unit_input_removes_the_length_of_features() -> None:
    torch.manual_seed(0)
    features = torch.randn(3, 6)
    plain, unit = (VSEPP(image="linear", dim=8, words=4, unit_input=on).build((6,), 10) for on in (False, True))
    nn.init.normal_(plain.image.fc.bias)  # type: ignore[union-attr, arg-type]
    unit.load_state_dict(plain.state_dict())
    first, second = plain.encode_images(features).vectors, unit.encode_images(5 * features).vectors
    assert torch.allclose(second, unit.encode_images(features).vectors, atol=1e-6)
    assert not torch.allclose(first, plain.encode_images(5 * features).vectors, atol=1e-3)
    of_unit = plain.encode_images(features / features.norm(dim=1, keepdim=True)).vectors
    assert torch.allclose(second, of_unit, atol=1e-6)


def test_order_embeddings_score_what_is_above() -> None:
    torch.manual_seed(0)
    encoder = VSEPP(image="linear", dim=8, words=4, measure="order", use_abs=True).build((6,), 10)
    images, texts = encoder.encode_images(torch.randn(4, 6)), encoder.encode_texts(IDS, LENGTHS)
    assert bool((images.vectors >= 0).all())
    assert bool((texts.vectors >= 0).all())
    S = encoder.score(images, texts)
    assert isinstance(S, Tensor)
    for i, v in enumerate(images.vectors):
        for j, t in enumerate(texts.vectors):
            expected = -(sum(max(0.0, float(b - a)) ** 2 for a, b in zip(v.detach(), t.detach(), strict=True)) ** 0.5)
            assert float(S[i, j].detach()) == pytest.approx(expected, abs=1e-6)
    assert (encoder.is_cosine, encoder.score_min, encoder.score_max) == (False, -2.0, 0.0)
    S.sum().backward()
    assert all(p.grad is not None and bool(p.grad.isfinite().all()) for p in encoder.parameters())


def test_the_order_score_of_equal_vectors_has_slope_zero() -> None:
    encoder = VSEPP(image="linear", dim=2, words=4, measure="order").build((6,), 10)
    side = encoder.encode_images(torch.randn(1, 6))
    same = type(side)(side.vectors.detach().clone().requires_grad_())
    S = encoder.score(same, same)
    assert isinstance(S, Tensor)
    S.sum().backward()
    assert same.vectors.grad is not None
    assert bool((same.vectors.grad == 0).all())


def test_no_imgnorm_keeps_the_length_of_images_only() -> None:
    encoder = VSEPP(image="linear", dim=8, words=4, no_imgnorm=True).build((6,), 10)
    features = torch.randn(3, 6)
    assert torch.allclose(encoder.encode_images(features).vectors, encoder.image.fc(features))  # type: ignore[union-attr, operator]
    assert torch.allclose(encoder.encode_texts(IDS, LENGTHS).vectors.norm(dim=1), torch.ones(3))
    assert (encoder.is_cosine, encoder.score_max) == (False, float("inf"))


def test_crops_are_random_in_training_and_the_middle_in_eval() -> None:
    torch.manual_seed(0)
    encoder = VSEPP(dim=8, words=4, width=4, crop=16).build((3, 24, 28), 10)
    whole = VSEPP(dim=8, words=4, width=4).build((3, 16, 16), 10)
    whole.load_state_dict(encoder.state_dict())
    images = torch.randint(0, 256, (3, 3, 24, 28), dtype=torch.uint8)
    middle = whole.eval().encode_images(images[..., 4:20, 6:22]).vectors
    assert torch.equal(encoder.eval().encode_images(images).vectors, middle)
    encoder.train()
    assert not torch.equal(encoder.encode_images(images).vectors, encoder.encode_images(images).vectors)
    with pytest.raises(InputError, match="crop must be at most the side of the pictures, 12; got 16"):
        VSEPP(crop=16).build((3, 12, 28), 10)


@pytest.mark.parametrize("mode", ["frozen", "ecir", "original"])
def test_batch_norms_of_a_frozen_network_do_as_named(mode: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lossscope.encoders.layers.vse_towers.CnnTower.LEAK_EVERY", 2)
    torch.manual_seed(0)
    encoder = VSEPP(image="resnet18", dim=8, words=4, bn_mode=mode).rebuild((3, 32, 32), 10, {}).train()
    follows = []
    for step in range(6):
        if step == 5:
            encoder.eval().encode_images(pictures(2, 32))
            encoder.train()
        before = encoder.image.cnn.bn1.running_mean.clone()  # type: ignore[union-attr, operator]
        encoder.encode_images(pictures(2, 32))
        follows.append(not torch.equal(encoder.image.cnn.bn1.running_mean, before))  # type: ignore[union-attr, arg-type]
    expected = {"frozen": [False] * 6, "ecir": [True] * 6, "original": [True, True, False, False, False, True]}
    assert follows == expected[mode]
    assert all(not p.requires_grad for p in encoder.image.cnn.parameters())  # type: ignore[union-attr]


@pytest.mark.parametrize("spec", ["vsepp:dim=8,words=4,width=4", "vsepp:image=resnet18,dim=8,words=4,finetune=true"])
def test_the_gradient_reaches_every_parameter(spec: str) -> None:
    torch.manual_seed(0)
    encoder = build("encoders", spec).build((3, 32, 32), 10).train()
    S = encoder.score(encoder.encode_images(pictures(3, 32)), encoder.encode_texts(IDS, LENGTHS))
    (S**2).sum().backward()
    assert [name for name, p in encoder.named_parameters() if p.grad is None] == []
    assert list(encoder.parameter_groups()) == (["backbone"] if "resnet" in spec else [])


@pytest.mark.parametrize("image", ["resnet18", "vgg19", "vit-small"])
def test_a_frozen_network_without_weights_is_refused_and_rebuilt_from_a_checkpoint(image: Any) -> None:
    spec = VSEPP(image=image, dim=8, words=4)
    fragment = rf"weights must be a file for the frozen network image={image}; got none, which leaves it random: "
    with pytest.raises(InputError, match=fragment + "name its weights, .* weights=FILE, or train it, finetune=true"):
        spec.build((3, 32, 32), 10)
    with torch.device("meta"):
        assert spec.rebuild((3, 32, 32), 10, {}).state_dict().keys() == spec.build((3, 32, 32), 10).state_dict().keys()
        VSEPP(image=image, finetune=True).build((3, 32, 32), 10)


def test_only_the_originals_batch_norms_put_a_count_into_the_state() -> None:
    with torch.device("meta"):
        names = {
            mode: set(VSEPP(image="resnet18", bn_mode=mode).build((3, 32, 32), 10).state_dict())  # type: ignore[arg-type]
            for mode in ("frozen", "ecir", "original")
        }
    assert names["frozen"] == names["ecir"] == names["original"] - {"image.steps", "image.leaked"}
    assert names["original"] - names["frozen"] == {"image.steps", "image.leaked"}


def released_file(encoder: Encoder, infix: bool = True, **options: Any) -> ReleasedFile:
    towers = [
        {k.removeprefix(name): v for k, v in encoder.state_dict().items() if k.startswith(name)}
        for name in ("image.", "text.")
    ]
    if infix:
        towers[0] = {k.replace("cnn.", "cnn.module."): v for k, v in towers[0].items()}
    return ReleasedFile(Path("model_best.pth.tar"), tuple(towers), {"margin": 0.2, "max_violation": True, **options})


def scores(encoder: Encoder, images: Tensor) -> Tensor:
    with torch.no_grad():
        S = encoder.eval().score(encoder.encode_images(images), encoder.encode_texts(IDS, LENGTHS))
    assert isinstance(S, Tensor)
    return S


@pytest.mark.slow
@pytest.mark.parametrize(
    ("spec", "options"),
    [
        ("vsepp:image=linear,dim=8,words=4", {}),
        ("vsepp:image=linear,dim=8,words=4,measure=order,use_abs=true", {"measure": "order", "use_abs": True}),
        ("vsepp:image=linear,dim=8,words=4,no_imgnorm=true", {"no_imgnorm": True}),
        ("vsepp:image=resnet18,dim=8,words=4,crop=224,finetune=true", {"finetune": True, "cnn_type": "resnet18"}),
    ],
)
def test_a_file_of_the_authors_gives_the_scores_of_its_model(spec: str, options: dict[str, Any]) -> None:
    torch.manual_seed(0)
    raw = "resnet" in spec
    shape = (3, 256, 256) if raw else (6,)
    encoder = build("encoders", spec).build(shape, 10)
    released = released_file(encoder, **options)
    opened = VSEPP.from_released(released)
    assert opened is not None
    assert (opened.item_shape, opened.vocabulary_size, opened.objective) == (shape, 10, "triplet_sh:margin=0.2")
    again = opened.encoder.build(opened.item_shape, opened.vocabulary_size)
    again.load_state_dict(opened.weights)
    images = pictures(2, 256) if raw else torch.randn(4, 6)
    assert torch.equal(scores(again, images), scores(encoder, images))
    assert opened.encoder.bn_mode == ("original" if raw else "frozen")


def test_old_files_of_vgg_and_without_batch_counters_are_read() -> None:
    with torch.device("meta"):
        encoder = VSEPP(image="vgg19", dim=8, words=4, crop=224).build((3, 256, 256), 10)
        image, text = released_file(encoder, infix=False).towers
        names = {
            "cnn.features.": "cnn.features.module.",
            "classifier.0": "classifier.1",
            "classifier.3": "classifier.4",
        }
        for ours, theirs in names.items():
            image = {k.replace(ours, theirs): v for k, v in image.items()}
        opened = VSEPP.from_released(ReleasedFile(Path("vgg.pth.tar"), (image, text)))
        assert opened is not None
        assert opened.encoder.image == "vgg19"
        assert opened.weights.keys() == encoder.state_dict().keys() | {"image.steps", "image.leaked"}
        older = released_file(VSEPP(image="resnet50", dim=8, words=4).build((3, 32, 32), 10))
    towers = ({k: v for k, v in older.towers[0].items() if "num_batches" not in k}, older.towers[1])
    opened = VSEPP.from_released(ReleasedFile(older.path, towers))
    assert opened is not None
    assert int(opened.weights["image.cnn.bn1.num_batches_tracked"]) == 0


def test_files_that_do_not_fit_are_refused_by_name() -> None:
    with torch.device("meta"):
        released = released_file(VSEPP(image="resnet50", dim=8, words=4).build((3, 32, 32), 10))
    image, text = released.towers
    less = {k: v for k, v in image.items() if k != "cnn.module.layer2.0.bn2.bias"}
    more = {**text, "rnn.odd": torch.zeros(2)}
    bent = {**image, "cnn.module.conv1.weight": torch.zeros(64, 1, 7, 7)}
    short = {k: v for k, v in image.items() if ".layer3.5." not in k}
    for towers, fragment in [
        ((less, text), r"missing \['image.cnn.layer2.0.bn2.bias'\]"),
        ((image, more), r"left over \['text.rnn.odd'\]"),
        ((bent, text), r"image.cnn.conv1.weight must be \(64, 3, 7, 7\); got \(64, 1, 7, 7\)"),
        ((short, text), r"must be one of resnet18, .*; got \(3, 4, 5, 3\) blocks of 3 convolutions"),
    ]:
        with pytest.raises(InputError, match=fragment):
            VSEPP.from_released(ReleasedFile(released.path, towers))
    for options, fragment in [
        ({"measure": "dot"}, "measure of the file must be cosine or order"),
        ({"finetune": "yes"}, "finetune of the file must be true or false"),
        ({"use_abs": None}, "use_abs of the file must be true or false"),
    ]:
        with pytest.raises(InputError, match=fragment):
            VSEPP.from_released(ReleasedFile(released.path, released.towers, options))


def test_files_of_other_families_are_not_opened() -> None:
    released = released_file(VSEPP(image="linear", dim=8, words=4).build((6,), 10))
    image, text = released.towers
    assert VSEPP.from_released(released) is not None
    assert VSEPP.from_released(ReleasedFile(released.path, released.towers, {"cross_attn": "t2i"})) is None
    assert (
        VSEPP.from_released(
            ReleasedFile(released.path, (image, {**text, "rnn.bias_hh_l0_reverse": text["rnn.bias_hh_l0"]}))
        )
        is None
    )
    assert (
        VSEPP.from_released(ReleasedFile(released.path, ({**image, "gpool.linear.weight": image["fc.weight"]}, text)))
        is None
    )
    assert VSEPP.from_released(ReleasedFile(released.path, (image,))) is None


def test_a_model_is_rebuilt_without_its_file_of_weights(tmp_path: Path) -> None:
    spec = VSEPP(image="resnet18", dim=8, words=4, weights=tmp_path / "gone.pth")
    assert spec.rebuild((3, 32, 32), 10, {}).state_dict().keys()
    with pytest.raises(InputError, match=r"gone.pth must exist"):
        spec.build((3, 32, 32), 10)
