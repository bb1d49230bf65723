"""VSE++: its image towers, measures and batch norms, the original's names, and checks of the items that towers take."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from lossscope.encoders.base import Encoder
from lossscope.encoders.types import ReleasedFile
from lossscope.encoders.vsepp import VSEPP
from lossscope.errors import InputError
from lossscope.registry import build
from lossscope.sources.checkpoints.checkpoint import Checkpoint
from tests.each import each
from tests.encoders.released.files import split, vsepp_towers

IDS = torch.tensor([[1, 5, 6, 2, 0], [1, 7, 2, 0, 0], [1, 4, 5, 9, 2]])
LENGTHS = torch.tensor([4, 3, 5])


def pictures(n: int, size: int = 16) -> Tensor:
    return torch.randint(0, 256, (n, 3, size, size), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))


def model(size: int = 16) -> Encoder:
    torch.manual_seed(0)
    return VSEPP(dim=8, words=4, width=4).build((3, size, size), 10).eval()


@each("size", [16, 24, 64, 80])
def test_pictures_of_any_size_give_vectors_of_unit_length(size: int) -> None:
    vectors = model(size).encode_images(pictures(3, size)).vectors
    assert vectors.shape == (3, 8)
    assert torch.allclose(vectors.norm(dim=1), torch.ones(3), atol=1e-6)


def test_word_order_matters() -> None:
    encoder = model()
    vectors = encoder.encode_texts(torch.tensor([[1, 5, 6, 2], [1, 6, 5, 2]]), torch.tensor([4, 4])).vectors
    assert not torch.allclose(vectors[0], vectors[1], atol=1e-4)


@each("pool, reduce", [("max", lambda x: x.amax(1)), ("mean", lambda x: x.mean(1))])
def test_regions_are_mapped_then_pooled(pool: str, reduce: object) -> None:
    encoder = build("encoders", f"vsepp:image=linear,dim=8,words=4,pool={pool}").build((5, 6), 10)
    regions = torch.randn(3, 5, 6)
    expected = reduce(encoder.image.fc(regions))  # type: ignore[operator]
    assert torch.allclose(encoder.encode_images(regions).vectors, torch.nn.functional.normalize(expected, dim=1))


@each("spec, centred", [("vsepp:width=4,dim=8", True), ("vsepp:width=4,dim=8,centre=false", False)])
def test_the_small_cnn_centres_its_output_by_default(spec: str, centred: bool) -> None:
    model = build("encoders", spec).build((3, 16, 16), 10)
    assert any(name.startswith("image.bn.") for name in model.state_dict()) is centred


def test_the_demos_checkpoint_still_loads() -> None:
    checkpoint = Checkpoint.load(Path(__file__).parents[2] / "checkpoints" / "tiny.pt")
    assert checkpoint.model().is_cosine


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


@each("mode", ["frozen", "ecir", "original"])
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


@each("image", ["resnet18", "vgg19", "vit-small"])
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


def test_old_files_of_vgg_and_without_batch_counters_are_read() -> None:
    with torch.device("meta"):
        encoder = VSEPP(image="vgg19", dim=8, words=4, crop=224).build((3, 256, 256), 10)
        image, text = split("image.", "text.")(encoder.state_dict())
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
        image, text = vsepp_towers(VSEPP(image="resnet50", dim=8, words=4).build((3, 32, 32), 10).state_dict())
    image = {k: v for k, v in image.items() if "num_batches" not in k}
    opened = VSEPP.from_released(ReleasedFile(Path("older.pth.tar"), (image, text)))
    assert opened is not None
    assert int(opened.weights["image.cnn.bn1.num_batches_tracked"]) == 0


def test_a_missing_file_of_weights_is_named(tmp_path: Path) -> None:
    spec = VSEPP(image="resnet18", dim=8, words=4, weights=tmp_path / "gone.pth")
    with pytest.raises(InputError, match=r"gone.pth must exist"):
        spec.build((3, 32, 32), 10)
