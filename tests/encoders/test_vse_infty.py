"""VSE-infinity: the original's names, slow oracles, what training drops, grids and folders of BERT."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from lossscope.encoders.base import Encoder
from lossscope.encoders.layers.residual_network import RESNETS, ResnetConfig
from lossscope.encoders.types import ReleasedFile
from lossscope.encoders.vse_infty import VSEInfty
from lossscope.errors import InputError
from lossscope.registry import build, spec_of
from lossscope.text.subwords import SPECIAL, Subwords
from lossscope.text.vocabulary import Vocabulary
from tests.each import each
from tests.encoders.released.files import vse_infty_towers

IDS = torch.tensor([[2, 5, 6, 8, 3, 0], [2, 7, 3, 0, 0, 0], [2, 4, 5, 9, 7, 3], [2, 3, 0, 0, 0, 0]])
LENGTHS = torch.tensor([5, 3, 6, 2])
GRU = VSEInfty(text="bigru", dim=6, words=4)
BERT = VSEInfty(text="bert", bert="2x64", dim=6)


def regions(n: int = 4, count: int = 5, width: int = 7) -> Tensor:
    return torch.randn(n, count, width, generator=torch.Generator().manual_seed(2))


def perturb(encoder: Encoder) -> Encoder:
    """Change all parameters and statistics from their initial values, so that a mix-up shows."""
    torch.manual_seed(0)
    for name, tensor in encoder.state_dict().items():
        if "running_var" in name:
            tensor.uniform_(0.5, 2)
        elif tensor.is_floating_point() and "backbone" not in name:
            tensor.add_(0.3 * torch.randn_like(tensor))
    return encoder.eval()


def model(spec: VSEInfty = GRU) -> Encoder:
    torch.manual_seed(0)
    return perturb(spec.build((5, 7), 10))


def scores(encoder: Encoder, images: Tensor, ids: Tensor = IDS, lengths: Tensor = LENGTHS) -> Tensor:
    with torch.no_grad():
        S = encoder.score(encoder.encode_images(images), encoder.encode_texts(ids, lengths))
    assert isinstance(S, Tensor)
    return S


def numbers(encoder: Encoder, prefix: str) -> dict[str, np.ndarray]:
    return {k.removeprefix(prefix): v.double().numpy() for k, v in encoder.state_dict().items() if k.startswith(prefix)}


def test_regions_and_words_are_those_of_the_oracle(oracle: Callable[[str], ModuleType]) -> None:
    encoder, slow = model(), oracle("gpo")
    image, text = numbers(encoder, "image."), numbers(encoder, "text.")
    v, t = [], []
    for item in regions().double().numpy():
        hidden = item @ image["mlp.layers.0.weight"].T + image["mlp.layers.0.bias"]
        centred = (hidden - image["mlp.bns.0.running_mean"]) / np.sqrt(image["mlp.bns.0.running_var"] + 1e-5)
        hidden = np.maximum(centred * image["mlp.bns.0.weight"] + image["mlp.bns.0.bias"], 0)
        mapped = item @ image["fc.weight"].T + image["fc.bias"]
        mapped += hidden @ image["mlp.layers.1.weight"].T + image["mlp.layers.1.bias"]
        v.append(slow.pooled(mapped, image, "gpool."))
    for row, length in zip(IDS, LENGTHS.tolist(), strict=True):
        states = slow.both_ways(text["embed.weight"][row[:length].numpy()], text, "rnn")
        t.append(slow.pooled(states, text, "gpool."))
    rows = [np.array(x) / (np.linalg.norm(x, axis=1, keepdims=True) + 1e-8) for x in (v, t)]
    expected = torch.from_numpy(rows[0] @ rows[1].T).float()
    assert float(expected.std()) > 0.05
    assert torch.allclose(scores(encoder, regions()), expected, atol=1e-5)


def test_bert_is_read_to_its_length_then_pooled(oracle: Callable[[str], ModuleType]) -> None:
    encoder = model(BERT)
    state = numbers(encoder, "text.")
    with torch.no_grad():
        vectors = encoder.encode_texts(IDS, LENGTHS).vectors
        for row, length in enumerate(LENGTHS.tolist()):
            states = encoder.text.bert(input_ids=IDS[row : row + 1, :length]).last_hidden_state[0]  # type: ignore[union-attr, operator]
            mapped = states.double().numpy() @ state["linear.weight"].T + state["linear.bias"]
            pooled = oracle("gpo").pooled(mapped, state, "gpool.")
            expected = torch.from_numpy(pooled / np.linalg.norm(pooled)).float()
            assert torch.allclose(vectors[row], expected, atol=1e-5)


def test_the_order_of_regions_does_not_matter() -> None:
    encoder = model()
    assert torch.allclose(scores(encoder, regions()), scores(encoder, regions().flip(1)), atol=1e-6)


def test_groups_are_bert_and_the_backbone(small_backbone: None) -> None:
    encoder = VSEInfty(image="grid", bert="2x64", dim=6).rebuild((3, 64, 64), 10, {})
    groups = {name: list(members) for name, members in encoder.parameter_groups().items()}
    assert groups.keys() == {"bert", "backbone"}
    assert len(groups["backbone"]) == len(list(encoder.image.backbone.parameters()))  # type: ignore[union-attr]


def test_training_drops_regions_and_words_and_drop_zero_does_not() -> None:
    encoder = model().train()
    images = regions(30, 20)
    texts = IDS.repeat(8, 1), LENGTHS.repeat(8)
    assert not torch.equal(encoder.encode_texts(*texts).vectors, encoder.encode_texts(*texts).vectors)
    encoder.image.mlp.bns.eval()  # type: ignore[union-attr]
    assert not torch.equal(encoder.encode_images(images).vectors, encoder.encode_images(images).vectors)
    whole = VSEInfty(text="bigru", dim=6, words=4, drop=0).build((5, 7), 10)
    whole.load_state_dict(encoder.state_dict())
    assert torch.equal(whole.train().encode_texts(*texts).vectors, encoder.eval().encode_texts(*texts).vectors)


@each("ignore", [True, False])
def test_batch_norm_sees_padding_only_as_the_original_does(ignore: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    encoder = VSEInfty(text="bigru", dim=6, words=4, bn_ignore_padding=ignore).build((5, 7), 10).train()
    kept = torch.tensor([[1, 1, 1, 1, 1], [1, 0, 0, 1, 0]]).bool()
    monkeypatch.setattr("lossscope.encoders.layers.pooled_regions.keep_regions", lambda present, share: kept)
    images = regions(2)
    encoder.encode_images(images)
    rows = images[kept] if ignore else torch.cat([images[0], images[1, [0, 3]], torch.zeros(3, 7)])
    hidden = encoder.image.mlp.layers[0](rows)  # type: ignore[union-attr, index, operator]
    expected = 0.1 * hidden.mean(0)
    assert torch.allclose(encoder.image.mlp.bns[0].running_mean, expected, atol=1e-6)  # type: ignore[union-attr, index, arg-type]


@pytest.fixture
def small_backbone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replace the backbones by networks with one block in each stage."""
    plans = {**RESNETS, "detector": ResnetConfig((1, 1, 1, 1), caffe=True), "resnet50": ResnetConfig((1, 1, 1, 1))}
    monkeypatch.setattr("lossscope.encoders.layers.grid_backbone.RESNETS", plans)


@each("backbone", ["detector", "resnet50"])
def test_grids_pool_mapped_cells(backbone: Any, small_backbone: None, oracle: Callable[[str], ModuleType]) -> None:
    torch.manual_seed(0)
    spec = VSEInfty(image="grid", text="bigru", dim=6, words=4, backbone=backbone)
    encoder = spec.rebuild((3, 64, 64), 10, {}).eval()
    images = torch.randint(0, 256, (2, 3, 64, 64), dtype=torch.uint8)
    if backbone == "detector":
        pixels = images.float()[:, [2, 1, 0]] - torch.tensor([102.9801, 115.9465, 122.7717])[:, None, None]
    else:
        mean, deviation = torch.tensor([0.485, 0.456, 0.406]), torch.tensor([0.229, 0.224, 0.225])
        pixels = (images / 255 - mean[:, None, None]) / deviation[:, None, None]
    with torch.no_grad():
        maps = encoder.image.backbone.resnet(pixels).double().numpy()  # type: ignore[union-attr, operator]
        vectors = encoder.encode_images(images).vectors
    head = numbers(encoder, "image.image_encoder.")
    for row in range(2):
        mapped = maps[row].reshape(2048, -1).T @ head["fc.weight"].T + head["fc.bias"]
        pooled = oracle("gpo").pooled(mapped, head, "gpool.")
        expected = torch.from_numpy(pooled / np.linalg.norm(pooled)).float()
        assert torch.allclose(vectors[row], expected, atol=1e-4)


def test_grids_see_random_crops_in_training(small_backbone: None) -> None:
    torch.manual_seed(0)
    encoder = VSEInfty(image="grid", text="bigru", dim=6, words=4).rebuild((3, 64, 64), 10, {}).train()
    images = torch.randint(0, 256, (2, 3, 64, 64), dtype=torch.uint8)
    first = encoder.encode_images(images).vectors
    assert not torch.equal(first, encoder.encode_images(images).vectors)
    first.sum().backward()
    assert all(p.grad is not None for p in encoder.image.parameters())  # type: ignore[union-attr]
    assert not any(m.training for m in encoder.modules() if isinstance(m, nn.BatchNorm2d))


def test_a_grid_without_weights_is_refused_and_rebuilt_from_a_checkpoint(tmp_path: Path, small_backbone: None) -> None:
    spec = VSEInfty(image="grid", text="bigru", dim=6, words=4)
    expected = "weights must be a file for backbone=detector, whose .* name its weights, --encoder-option weights=FILE$"
    with pytest.raises(InputError, match=expected):
        spec.build((3, 64, 64), 10)
    encoder = spec.rebuild((3, 64, 64), 10, {})
    net = encoder.image.backbone.resnet.state_dict()  # type: ignore[union-attr, operator]
    torch.save(net, tmp_path / "net.pth")
    again = replace(spec, weights=tmp_path / "net.pth").build((3, 64, 64), 10)
    assert all(torch.equal(again.state_dict()[f"image.backbone.resnet.{k}"], v) for k, v in net.items())


def test_bigru_reads_words_with_a_mask_behind_them() -> None:
    words = GRU.build_tokeniser(["a dog", "a cat"], 1)
    assert words.encode("a mask") == [1, 4, 3, 2]
    assert len(words) == 8
    encoder = GRU.build((5, 7), len(words))
    assert encoder.text.embed.num_embeddings == 8  # type: ignore[union-attr]


def test_small_learns_its_tokeniser_and_masks_its_parts() -> None:
    spec = VSEInfty(bert="small", dim=6, pieces=60)
    words = spec.build_tokeniser(["A man is running.", "the man runs", "a man ran"] * 3, 1)
    assert isinstance(words, Subwords)
    assert len(words) <= 60
    with torch.device("meta"):
        encoder = spec.build((5, 7), len(words))
        assert encoder.state_dict()["text.bert.encoder.layer.3.output.dense.weight"].shape == (256, 1024)
        assert encoder.text.masking_ids.mask_id == words.id_of("[MASK]")  # type: ignore[union-attr]


def test_a_size_without_a_tokeniser_is_refused() -> None:
    with pytest.raises(InputError, match="bert=base must come with its tokeniser: tokeniser=FOLDER"):
        VSEInfty().build_tokeniser(["a dog"], 1)
    encoder = model(BERT).train()
    with pytest.raises(InputError, match="Name its folder in the encoder's spec"):
        encoder.encode_texts(IDS, LENGTHS)


PIECES = [*SPECIAL, "a", "dog", "run", "##ning", "##s", "the"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a Hugging Face folder with a BERT of two layers under a masked language model, and its vocabulary."""
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(3)
    config = transformers.BertConfig(
        vocab_size=len(PIECES), hidden_size=64, num_hidden_layers=2, num_attention_heads=2, intermediate_size=96
    )
    transformers.BertForMaskedLM(config).save_pretrained(tmp_path / "bert")
    (tmp_path / "bert" / "vocab.txt").write_text("\n".join(PIECES) + "\n")
    return tmp_path / "bert"


def test_a_folder_gives_its_weights_its_tokeniser_and_its_word_ends(folder: Path) -> None:
    transformers = pytest.importorskip("transformers")
    spec = VSEInfty(bert=str(folder), dim=6)
    words = spec.build_tokeniser([], 1)
    assert words.encode("The dog running") == [2, 10, 6, 7, 8, 3]
    encoder = spec.build((5, 7), len(words)).eval()
    theirs = transformers.BertModel.from_pretrained(str(folder), add_pooling_layer=False).eval()
    ids = torch.tensor([words.encode("the dog running")])
    with torch.no_grad():
        expected = theirs(input_ids=ids).last_hidden_state
        states = encoder.text.bert(input_ids=ids).last_hidden_state  # type: ignore[union-attr, operator]
    assert torch.allclose(states, expected, atol=1e-5)
    assert encoder.text.continuing.nonzero().flatten().tolist() == [8, 9]  # type: ignore[union-attr, operator]
    encoder.train().encode_texts(ids, torch.tensor([6]))


def test_words_of_several_parts_are_dropped_together(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    encoder = VSEInfty(bert=str(folder), dim=6).build((5, 7), len(PIECES)).train()
    seen: list[Tensor] = []
    monkeypatch.setattr(
        "lossscope.encoders.layers.pooled_words.perturb_words",
        lambda ids, lengths, *masks: (seen.extend(masks[:2]), (ids, lengths))[1],
    )
    encoder.encode_texts(torch.tensor([[2, 10, 6, 7, 8, 3], [2, 7, 9, 3, 0, 0]]), torch.tensor([6, 4]))
    starts, fixed = seen
    assert starts.tolist()[0] == [True, True, True, True, False, True]
    assert starts.tolist()[1][:4] == [True, True, False, True]
    assert fixed.tolist()[0] == [True, False, False, False, False, True]
    assert fixed.tolist()[1][:4] == [True, False, False, True]


def test_word_ends_are_rebuilt_from_stored_files(folder: Path) -> None:
    spec = VSEInfty(bert=str(folder), dim=6)
    stored, encoder = spec.stored_files(), spec.build((5, 7), len(PIECES))
    for file in folder.iterdir():
        file.unlink()
    again = spec.rebuild((5, 7), len(PIECES), json.loads(json.dumps(stored)))
    assert torch.equal(again.text.continuing, encoder.text.continuing)  # type: ignore[union-attr, arg-type]
    again.train().encode_texts(IDS, LENGTHS)


def test_folders_that_do_not_fit_are_refused(folder: Path) -> None:
    spec = VSEInfty(bert=str(folder), dim=6)
    with pytest.raises(InputError, match="must be at least the tokeniser's; got 11 for a tokeniser of 12"):
        spec.build((5, 7), 12)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "num_hidden_layers": 3}))
    with pytest.raises(InputError, match=r"missing \['encoder.layer.2.attention"):
        spec.build((5, 7), 11)
    (folder / "config.json").write_text(json.dumps({**config, "model_type": "t5"}))
    with pytest.raises(InputError, match="must hold a BERT; got model_type 't5'"):
        spec.build((5, 7), 11)
    with pytest.raises(InputError, match=r"none must hold tokenizer.json"):
        VSEInfty(bert=str(folder / "none"), dim=6).build((5, 7), 11)


def test_a_file_with_grids_gives_the_vectors_of_its_model(
    monkeypatch: pytest.MonkeyPatch, small_backbone: None
) -> None:
    monkeypatch.setattr("lossscope.encoders.layers.grid_backbone.identify_resnet", lambda names: "resnet101")
    encoder = VSEInfty(image="grid", text="bigru", dim=6, words=4).rebuild((3, 512, 512), 10, {}).eval()
    options = {"input_scale_factor": 2.0, "backbone_source": "detector", "precomp_enc_type": "backbone"}
    opened = VSEInfty.from_released(ReleasedFile(Path("a.pth"), vse_infty_towers(encoder.state_dict()), options))
    assert opened is not None
    assert (opened.item_shape, opened.encoder.backbone) == ((3, 512, 512), "detector")
    assert "backbone.resnet.fc.weight" in opened.ignored
    assert "backbone.base.0.weight" in opened.ignored
    again = opened.encoder.rebuild(opened.item_shape, opened.vocabulary_size, {})
    again.load_state_dict(opened.weights)
    images = torch.randint(0, 256, (1, 3, 64, 64), dtype=torch.uint8)
    with torch.no_grad():
        expected = encoder.encode_images(images).vectors
        assert torch.equal(again.eval().encode_images(images).vectors, expected)


def test_the_network_of_a_grid_is_asked_for_where_the_file_does_not_say_it(
    monkeypatch: pytest.MonkeyPatch, small_backbone: None
) -> None:
    monkeypatch.setattr("lossscope.encoders.layers.grid_backbone.identify_resnet", lambda names: "resnet101")
    encoder = VSEInfty(image="grid", text="bigru", dim=6, words=4).rebuild((3, 256, 256), 10, {})
    file = ReleasedFile(Path("a.pth"), vse_infty_towers(encoder.state_dict()), {"no_imgnorm": False})
    with pytest.raises(InputError, match=r"a\.pth must say which network .* --encoder-option backbone=detector"):
        VSEInfty.from_released(file)
    opened = VSEInfty.from_released(replace(file, choices={"backbone": "detector"}))
    assert opened is not None
    assert opened.encoder.backbone == "detector"
    stated = replace(file, options={"backbone_source": "detector"}, choices={"backbone": "resnet101_caffe"})
    with pytest.raises(InputError, match=r"backbone of a\.pth must be detector, as the file says"):
        VSEInfty.from_released(stated)


def test_a_size_with_the_folder_of_a_tokeniser_trains(folder: Path) -> None:
    spec = VSEInfty(bert="2x64", tokeniser=folder, dim=6)
    words = spec.build_tokeniser([], 1)
    ids, lengths = torch.tensor([words.encode("the dog running")] * 20), torch.full((20,), 6)
    encoder = spec.rebuild((5, 7), len(words), spec.stored_files()).train()
    assert encoder.text.continuing.nonzero().flatten().tolist() == [8, 9]  # type: ignore[union-attr, operator]
    encoder.encode_texts(ids, lengths).vectors.sum().backward()
    assert build("encoders", spec_of(spec)) == spec


def test_a_vocabulary_that_holds_the_mask_stays_as_it_is() -> None:
    words = Vocabulary(("<pad>", "<start>", "<end>", "<unk>", "<mask>"), "treebank")
    assert VSEInfty(text="bigru").prepare(words) == words
