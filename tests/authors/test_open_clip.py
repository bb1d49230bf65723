"""open_clip: vectors and recalls are those of its own code, from its folders and from bare weights."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from lossscope.errors import InputError
from lossscope.sources.base import find_source
from lossscope.sources.checkpoints.conversion import open_released
from lossscope.sources.original import OriginalFile
from tests.authors.answers import Answers
from tests.authors.clip_answers import open_model, require_answers, require_ids
from tests.authors.clip_files import SPECIAL, write_merges
from tests.authors.rule import weights_by_rule

pytest.importorskip("transformers")
pytest.importorskip("ftfy")

ANSWERS = Answers("open_clip")
CASES: dict[str, Any] = ANSWERS.content["cases"]
BARE = {
    "ViT-B-32": ("activation=gelu", "heads=2", "text_heads=1"),
    "ViT-B-32-quickgelu": ("activation=quick_gelu", "heads=2", "text_heads=1"),
    "ViT-H-14": ("activation=gelu", "heads=2", "text_heads=4"),
    "custom_text": ("activation=gelu", "heads=2", "text_heads=1"),
}


def weights_of(case: str) -> dict[str, Tensor]:
    return weights_by_rule(CASES[case]["shapes"], scale=ANSWERS.content["scale"])


def write_folder(case: str, folder: Path) -> Path:
    """Write the two files that open_clip publishes."""
    folder.mkdir()
    torch.save(weights_of(case), folder / "open_clip_pytorch_model.bin")
    (folder / "open_clip_config.json").write_text(json.dumps(CASES[case]["config"]))
    return folder


def require_case(case: str, embedded: Any) -> None:
    arrays = (ANSWERS.array(f"{case}/{kind}") for kind in ("images", "captions"))
    require_answers(embedded, *arrays, CASES[case]["recalls"])


@pytest.mark.parametrize("case", CASES)
def test_a_folder_gives_the_vectors_of_open_clip(case: str, tmp_path: Path) -> None:
    embedded = open_model(write_folder(case, tmp_path / "model"), tmp_path)
    require_case(case, embedded)
    assert any(notice.startswith("pictures are read with fit=") for notice in embedded.notices)
    kind = "siglip:scale=" if case == "custom_text" else "infonce:tau="
    assert (embedded.objective or "").startswith(kind)


@pytest.mark.parametrize("case", BARE)
def test_bare_weights_give_the_vectors_of_open_clip_with_what_their_user_says(case: str, tmp_path: Path) -> None:
    content = {"epoch": 3, "name": "run", "state_dict": {f"module.{k}": v for k, v in weights_of(case).items()}}
    torch.save(content, tmp_path / "epoch_3.pt")
    require_case(case, open_model(tmp_path / "epoch_3.pt", tmp_path, encoder=BARE[case]))


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ((), "needs its attention heads, which no tensor shows; .* --encoder-option heads=N"),
        (("heads=2", "text_heads=1"), "needs its activation, which no tensor shows. .*activation=gelu"),
        (("heads=2", "text_heads=1", "activation=relu"), "activation must be gelu or quick_gelu; got 'relu'"),
        (("model=ViT-H-15",), "model must be one of .*; got 'ViT-H-15'; did you mean ViT-H-14?"),
        (("model=ViT-H-14-378-quickgelu",), "model=ViT-H-14-378-quickgelu must be of the sizes of the file"),
        (("heads=two", "text_heads=1"), "heads must be a whole number from 1 to 512; got 'two'"),
    ],
)
def test_what_no_tensor_shows_is_asked_for(choices: tuple[str, ...], message: str, tmp_path: Path) -> None:
    torch.save(weights_of("ViT-B-32"), tmp_path / "model.pt")
    with pytest.raises(InputError, match=message):
        open_model(tmp_path / "model.pt", tmp_path, encoder=choices)


def test_a_configuration_is_not_overruled(tmp_path: Path) -> None:
    folder = write_folder("ViT-H-14", tmp_path / "model")
    with pytest.raises(InputError, match=r"activation of .* must be gelu, as its configuration says; got 'quick_gelu'"):
        open_model(folder, tmp_path, encoder=("activation=quick_gelu",))


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("visual.layer1.0.conv1.weight", r"a ResNet as image tower \(RN50, RN101, RN50x4, RN50x16, RN50x64\)"),
        ("visual.trunk.blocks.0.norm1.weight", "an image tower of timm"),
        ("visual.attn_pool.query", "an image tower with attentional pooling"),
        ("visual.transformer.resblocks.0.ls_1.gamma", "layer scales"),
        ("text_decoder.ln_final.weight", r"a decoder of captions \(CoCa\)"),
        ("text.transformer.encoder.layer.0.output.dense.weight", "a text tower of Hugging Face"),
        ("text.text_projection.bias", "a text projection with a bias"),
        ("text.cls_emb", "a class embedding in its captions"),
    ],
)
def test_towers_that_are_not_built_are_refused_by_name(name: str, part: str, tmp_path: Path) -> None:
    torch.save({**weights_of("ViT-B-32"), name: torch.zeros(2)}, tmp_path / "model.pt")
    with pytest.raises(InputError, match=f"it has {part}"):
        open_model(tmp_path / "model.pt", tmp_path)


def test_an_image_tower_without_its_first_norm_is_refused_by_name(tmp_path: Path) -> None:
    weights = {name: tensor for name, tensor in weights_of("ViT-B-32").items() if "ln_pre" not in name}
    torch.save(weights, tmp_path / "model.pt")
    with pytest.raises(InputError, match=r"its image tower has no ln_pre \(CLIPA\)"):
        open_model(tmp_path / "model.pt", tmp_path)


REFUSED = [
    ("vision_cfg", "pool_type", "avg"), ("vision_cfg", "attentional_pool", True), ("vision_cfg", "no_ln_pre", True),
    ("vision_cfg", "ls_init_value", 1e-4), ("vision_cfg", "qk_norm", True), ("vision_cfg", "act_kwargs", {"a": "b"}),
    ("text_cfg", "pool_type", "last"), ("text_cfg", "no_causal_mask", True), ("text_cfg", "hf_model_name", "bert"),
    ("text_cfg", "hf_tokenizer_name", "bert"), ("text_cfg", "tokenizer_kwargs", {"clean": "canonicalize"}),
    ("text_cfg", "embed_cls", True), ("text_cfg", "proj_bias", True), ("text_cfg", "something_new", 1),
]  # fmt: skip


@pytest.mark.parametrize(("part", "name", "value"), REFUSED)
def test_options_that_are_not_done_are_refused_by_name(part: str, name: str, value: Any, tmp_path: Path) -> None:
    folder = write_folder("ViT-B-32", tmp_path / "model")
    config = json.loads((folder / "open_clip_config.json").read_text())
    config["model_cfg"][part][name] = value
    (folder / "open_clip_config.json").write_text(json.dumps(config))
    with pytest.raises(InputError, match=rf"model_cfg\.{part}\.{name}"):
        open_model(folder, tmp_path)


@pytest.mark.parametrize(("name", "value"), [("resize_mode", "longest"), ("interpolation", "nearest")])
def test_other_ways_of_reading_pictures_are_refused_by_name(name: str, value: str, tmp_path: Path) -> None:
    folder = write_folder("squash", tmp_path / "model")
    config = json.loads((folder / "open_clip_config.json").read_text())
    config["preprocess_cfg"][name] = value
    (folder / "open_clip_config.json").write_text(json.dumps(config))
    with pytest.raises(InputError, match=f"{name} of the file's image processor must be .*; got '{value}'"):
        open_model(folder, tmp_path)


def test_the_ids_are_those_of_open_clip(tmp_path: Path) -> None:
    require_ids(ANSWERS.array("ids"), tmp_path, cleaning="open_clip")


def test_special_words_in_captions_are_those_of_open_clip(tmp_path: Path) -> None:
    require_ids(ANSWERS.array("special_ids"), tmp_path, SPECIAL, "open_clip")


def test_captions_are_cut_to_a_context_above_77(tmp_path: Path) -> None:
    folder, caption = write_folder("ViT-B-32", tmp_path / "model"), " ".join(["dog"] * 200)
    state = weights_of("ViT-B-32")
    state["positional_embedding"] = torch.zeros(128, state["positional_embedding"].shape[1])
    torch.save(state, folder / "open_clip_pytorch_model.bin")
    change_config(folder, "model_cfg", "text_cfg", context_length=128)
    checkpoint, _ = open_released(folder, write_merges(tmp_path / "merges.txt.gz"))
    assert len(checkpoint.words().encode(caption)) == 128


def test_the_files_of_open_clip_are_sources_each_of_its_own(tmp_path: Path) -> None:
    from safetensors.torch import save_file

    folder = write_folder("ViT-B-32", tmp_path / "model")
    save_file(weights_of("ViT-B-32"), folder / "open_clip_model.safetensors")
    assert isinstance(find_source(folder / "open_clip_model.safetensors"), OriginalFile)
    require_case("ViT-B-32", open_model(folder / "open_clip_model.safetensors", tmp_path))


def test_what_is_assumed_of_bare_weights_is_said_and_can_be_changed(tmp_path: Path) -> None:
    torch.save(weights_of("ViT-B-32"), tmp_path / "model.pt")
    embedded = open_model(tmp_path / "model.pt", tmp_path, encoder=BARE["ViT-B-32"])
    (notice,) = (text for text in embedded.notices if "has no configuration" in text)
    assert "mean_std=openai" in notice and "fit=short-side, resample=bicubic, rgb=last" in notice
    folder = write_folder("ViT-B-32", tmp_path / "folder")
    half = {"mean": [0.5] * 3, "std": [0.5] * 3}
    change_config(folder, "preprocess_cfg", **half)
    words = tmp_path / "bpe_simple_vocab_16e6.txt.gz"
    stated, _ = open_released(folder, words)
    bare, _ = open_released(tmp_path / "model.pt", words, choices=(*BARE["ViT-B-32"], "mean_std=inception"))
    pictures = torch.randint(0, 256, (2, 3, 64, 64), dtype=torch.uint8)
    with torch.no_grad():
        vectors = [item.model().eval().encode_images(pictures).vectors for item in (stated, bare)]
    assert torch.equal(*vectors)
    with pytest.raises(InputError, match="mean_std must be one of openai, imagenet, inception; got 'mine'"):
        open_released(tmp_path / "model.pt", words, choices=(*BARE["ViT-B-32"], "mean_std=mine"))


def test_heads_that_do_not_divide_their_tower_are_named(tmp_path: Path) -> None:
    torch.save(weights_of("ViT-B-32"), tmp_path / "model.pt")
    with pytest.raises(InputError, match=r"heads of .* must divide 128, the width of its tower; got 7"):
        open_model(tmp_path / "model.pt", tmp_path, encoder=("heads=7", "text_heads=1", "activation=gelu"))


def test_a_refused_option_is_named_before_the_tensors_that_it_brings(tmp_path: Path) -> None:
    folder = write_folder("ViT-B-32", tmp_path / "model")
    extra = {"visual.transformer.resblocks.0.attn.ln_q.weight": torch.ones(8)}
    torch.save({**weights_of("ViT-B-32"), **extra}, folder / "open_clip_pytorch_model.bin")
    change_config(folder, "model_cfg", "vision_cfg", qk_norm=True)
    with pytest.raises(InputError, match=r"option model_cfg\.vision_cfg\.qk_norm of"):
        open_model(folder, tmp_path)


def change_config(folder: Path, *parts: str, **changes: Any) -> None:
    """Change options in one part of a folder's configuration."""
    config = json.loads((folder / "open_clip_config.json").read_text())
    part = config
    for name in parts:
        part = part[name]
    part.update(changes)
    (folder / "open_clip_config.json").write_text(json.dumps(config))
