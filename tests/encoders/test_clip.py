"""CLIP: names and shapes of the published model, three naming schemes, and the extra layer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from lossscope.encoders.base import Encoder
from lossscope.encoders.clip import CLIP
from lossscope.encoders.released.clip import rename_openai
from lossscope.errors import InputError
from lossscope.registry import build
from lossscope.sources.checkpoints.conversion import open_released
from lossscope.text.subwords import Subwords
from tests.each import each
from tests.encoders.examples import clip_folder
from tests.encoders.released.files import openai_names

pytest.importorskip("transformers")

LARGE = {
    "text_config": {"vocab_size": 49408, "hidden_size": 768, "intermediate_size": 3072, "num_hidden_layers": 12,
                    "num_attention_heads": 12, "max_position_embeddings": 77, "hidden_act": "quick_gelu"},
    "vision_config": {"image_size": 336, "patch_size": 14, "hidden_size": 1024, "intermediate_size": 4096,
                      "num_hidden_layers": 24, "num_attention_heads": 16, "hidden_act": "quick_gelu"},
    "projection_dim": 768,
}  # fmt: skip
PUBLISHED = {
    "vision_model.embeddings.class_embedding": (1024,),
    "vision_model.embeddings.patch_embedding.weight": (1024, 3, 14, 14),
    "vision_model.embeddings.position_embedding.weight": (577, 1024),
    "vision_model.pre_layrnorm.weight": (1024,),
    "vision_model.encoder.layers.23.self_attn.q_proj.weight": (1024, 1024),
    "vision_model.encoder.layers.0.self_attn.out_proj.bias": (1024,),
    "vision_model.encoder.layers.0.mlp.fc1.weight": (4096, 1024),
    "vision_model.encoder.layers.0.layer_norm2.weight": (1024,),
    "vision_model.post_layernorm.bias": (1024,),
    "text_model.embeddings.token_embedding.weight": (49408, 768),
    "text_model.embeddings.position_embedding.weight": (77, 768),
    "text_model.encoder.layers.11.self_attn.v_proj.bias": (768,),
    "text_model.final_layer_norm.weight": (768,),
    "visual_projection.weight": (768, 1024),
    "text_projection.weight": (768, 768),
    "logit_scale": (),
}
CAPTIONS = ["a red square", "two blue dots near a line", "green circle left of a red one"] * 4


def words() -> Subwords:
    return Subwords.train(CAPTIONS, 80, max_length=12)


def tiny(layer: str = "none") -> Encoder:
    torch.manual_seed(0)
    spec = f"clip:width=16,heads=2,patch=8,dim=12,depth=2,context=12,layer={layer}"
    return build("encoders", spec).build((3, 16, 16), len(words())).eval()  # type: ignore[no-any-return]


def inputs() -> tuple[Tensor, Tensor, Tensor]:
    torch.manual_seed(1)
    ids = [words().encode(caption) for caption in CAPTIONS[:3]]
    lengths = torch.tensor([len(row) for row in ids])
    padded = torch.zeros(3, int(lengths.max()), dtype=torch.long)
    for row, values in enumerate(ids):
        padded[row, : len(values)] = torch.tensor(values)
    return torch.randint(0, 256, (4, 3, 16, 16), dtype=torch.uint8), padded, lengths


def similarity(model: Encoder) -> Tensor:
    images, ids, lengths = inputs()
    with torch.no_grad():
        S = model.score(model.encode_images(images), model.encode_texts(ids, lengths))
    assert isinstance(S, Tensor)
    return S


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return the folder of a tiny CLIP as transformers saves it, with its tokeniser."""
    return write_folder(tmp_path)


def write_folder(path: Path) -> Path:
    clip_folder(path / "clip", words(), context=12)
    return path / "clip"


def test_names_and_shapes_are_those_of_the_published_model() -> None:
    import json

    with torch.device("meta"):
        model = CLIP().rebuild((3, 336, 336), 49408, {"config": json.dumps(LARGE)})
    state = model.state_dict()
    assert {name: tuple(state[name].shape) for name in PUBLISHED} == PUBLISHED
    assert len(state) == 590
    assert sum(p.numel() for p in model.parameters()) == pytest.approx(427.94e6, rel=1e-4)


def test_the_model_is_transformers_own(folder: Path) -> None:
    from transformers import CLIPModel

    theirs = CLIPModel.from_pretrained(folder).eval()
    images, ids, lengths = inputs()
    mean, deviation = (
        torch.tensor([0.48145466, 0.4578275, 0.40821073]),
        torch.tensor([0.26862954, 0.26130258, 0.27577711]),
    )
    pixels = (images.float() / 255 - mean[:, None, None]) / deviation[:, None, None]
    present = (torch.arange(ids.shape[1])[None] < lengths[:, None]).long()
    with torch.no_grad():
        logits = theirs(input_ids=ids, pixel_values=pixels, attention_mask=present).logits_per_image
    ours = CLIP(path=folder).build((3, 16, 16), len(words())).eval()
    torch.testing.assert_close(similarity(ours) * theirs.logit_scale.exp(), logits)


def test_an_identity_layer_begins_as_plain_clip_and_others_do_not(folder: Path) -> None:
    layers: tuple[Any, ...] = ("none", "identity", "xavier")
    plain, same, other = (CLIP(folder, layer).build((3, 16, 16), len(words())).eval() for layer in layers)
    torch.testing.assert_close(similarity(same), similarity(plain))
    assert not torch.allclose(similarity(other), similarity(plain), atol=1e-3)
    assert {n for n, _ in same.named_parameters() if n.startswith("head.")} == {
        "head.img.weight", "head.img.bias", "head.txt.weight", "head.txt.bias"
    }  # fmt: skip


def test_openais_names_are_translated() -> None:
    state = tiny().state_dict()
    weights = rename_openai(openai_names(state))
    assert weights.keys() == state.keys()
    assert all(torch.equal(weights[name], state[name]) for name in state)
    with pytest.raises(InputError, match=r"names of a CLIP file must be CLIP's; got 'visual.attnpool.c_proj.weight'"):
        rename_openai({"visual.attnpool.c_proj.weight": torch.ones(1)})


@each("older", [False, True])
def test_a_folder_opens_whole_with_its_tokeniser(tmp_path: Path, older: bool) -> None:
    folder = write_folder(tmp_path)
    if older:
        from safetensors.torch import load_file

        state: dict[str, Any] = load_file(folder / "model.safetensors")
        state["text_model.embeddings.position_ids"] = torch.arange(12)[None]
        torch.save(state, folder / "pytorch_model.bin")
        (folder / "model.safetensors").unlink()
    checkpoint, _ = open_released(folder)
    assert checkpoint.training["ignored"] == (["text_model.embeddings.position_ids"] if older else [])
    direct = CLIP(path=folder).build((3, 16, 16), len(words())).eval()
    torch.testing.assert_close(similarity(checkpoint.model()), similarity(direct), rtol=0, atol=0)
    assert checkpoint.words().encode(CAPTIONS[1]) == words().encode(CAPTIONS[1])


def test_a_folder_that_lacks_a_weight_or_has_one_too_many_is_refused(folder: Path) -> None:
    from safetensors.torch import load_file, save_file

    state = load_file(folder / "model.safetensors")
    save_file({k: v for k, v in state.items() if k != "visual_projection.weight"}, folder / "model.safetensors")
    with pytest.raises(InputError, match=r"missing \['visual_projection.weight'\]"):
        CLIP(path=folder).build((3, 16, 16), len(words()))
    save_file({**state, "extra": torch.ones(1)}, folder / "model.safetensors")
    with pytest.raises(InputError, match=r"left over \['extra'\]"):
        open_released(folder)


@each("change, message", [
    ("activation=gelu", "activation of the CLIP in this file is quick_gelu and stays so; got gelu"),
    ("text_heads=4", "text_heads of the CLIP in this file is 2 and stays so; got 4"),
    ("depth=99", "depth of the CLIP in this file is 2 and stays so; got 99"),
    ("context=5", "context of the CLIP in this file is 12 and stays so; got 5"),
    ("patch=16", "patch of the CLIP in this file is 8 and stays so; got 16"),
    ("heads=8", "heads of the CLIP in this file is 2 and stays so; got 8"),
    ("path=X", "path is where a new model begins"),
    ("mean_std=imagenet", "mean_std of the CLIP in this file is openai and stays so; got imagenet"),
    ("model=ViT-H-14", "model=ViT-H-14 must be of the sizes of the file"),
])  # fmt: skip
def test_what_a_converted_model_is_cannot_be_changed(folder: Path, change: str, message: str) -> None:
    checkpoint, _ = open_released(folder)
    with pytest.raises(InputError, match=message):
        checkpoint.with_encoder([change]).model()
    assert checkpoint.with_encoder(["activation=quick_gelu", "text_heads=2"]).model()


def test_a_new_model_has_the_activation_and_heads_it_is_given() -> None:
    spec = "clip:width=16,heads=2,text_heads=4,activation=gelu,patch=8,dim=12,context=12"
    model: Any = build("encoders", spec).build((3, 16, 16), 20)
    text, vision = model.text_model.config, model.vision_model.config
    assert (text.num_attention_heads, vision.num_attention_heads) == (4, 2)
    assert text.hidden_act == vision.hidden_act == "gelu"
    with pytest.raises(InputError, match="model is for released files"):
        build("encoders", "clip:model=ViT-H-14").build((3, 16, 16), 20)


def test_pictures_of_another_size_are_refused(folder: Path) -> None:
    with pytest.raises(
        InputError, match=r"pictures must be \(3, 16, 16\) for this CLIP; the data set has \(3, 32, 32\)"
    ):
        CLIP(path=folder).build((3, 32, 32), len(words()))
    with pytest.raises(InputError, match="patch must divide"):
        CLIP(patch=7).build((3, 16, 16), 10)
