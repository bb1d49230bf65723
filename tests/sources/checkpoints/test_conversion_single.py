"""Do released files of one state dict (MMT, CE, X-VLM) open with the scores of the original model?"""

from __future__ import annotations

import json
import sys
import types
from collections import OrderedDict
from collections.abc import Mapping
from pathlib import Path, PosixPath
from typing import Any

import pytest
import torch
from torch import Tensor

from lossscope.encoders.base import Encoder
from lossscope.errors import InputError
from lossscope.registry import build
from lossscope.sources.checkpoints.conversion import _ignored_notices, open_released
from lossscope.text.subwords import Subwords
from tests.each import each

pytest.importorskip("transformers")
CAPTIONS = ["a man talks to a dog", "two people dance", "a car drives on a road"] * 4
WIDTHS = {"face": 5, "ocr": 4, "rgb": 6}
FILES = {"mmt": "trained_model.pth", "ce": "trained_model.pth", "xvlm": "checkpoint_best.pth"}
SPECS = {
    "mmt": "mmt:dim=8,layers=1,heads=4,ffn=16,bert=1x64,lower=true",
    "ce": "ce:dim=8,clusters=ocr=3,text_clusters=4,word_dim=7,padded=true",
    "xvlm": "xvlm:embed=32,depths=2/2,window=4,patch=2,width=128,layers=3,fused=2,positions=64,dim=12",
}


def words() -> Subwords:
    return Subwords.train(CAPTIONS, 80, max_length=16)


def configured(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return an object of the authors' ConfigParser; its class no longer exists when the file is read."""
    module = types.ModuleType("parse_config")
    module.ConfigParser = type("ConfigParser", (), {"__module__": "parse_config"})  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "parse_config", module)
    config = module.ConfigParser()
    config._config = OrderedDict(experts=OrderedDict(modalities=sorted(WIDTHS)))
    config.cfg_fname, config._save_dir = PosixPath("/c.json"), PosixPath("/x/y")
    return config


def shape(name: str) -> Any:
    if name == "xvlm":
        return (3, 16, 16)
    arrays = {"": lambda d: (7, d), ".length": lambda d: (), ".time": lambda d: (7,), ".max": lambda d: (d,)}
    return {f"{expert}{kind}": shape_of(d) for expert, d in WIDTHS.items() for kind, shape_of in arrays.items()}


def model(name: str) -> Encoder:
    torch.manual_seed(0)
    encoder: Encoder = build("encoders", SPECS[name]).build(shape(name), len(words()))
    for key, tensor in encoder.state_dict().items():
        if tensor.is_floating_point() and "running_var" not in key:
            tensor.add_(0.1 * torch.randn_like(tensor))
    return encoder.eval()


def scores(name: str, encoder: Encoder) -> Tensor:
    rng = torch.Generator().manual_seed(1)
    items: Tensor | Mapping[str, Tensor]
    if name == "xvlm":
        items = torch.randint(0, 256, (3, 3, 16, 16), generator=rng, dtype=torch.uint8)
    else:
        items = {}
        for expert, d in WIDTHS.items():
            features = torch.randn(3, 7, d, generator=rng)
            items |= {expert: features, f"{expert}.length": torch.tensor([7, 7, 7])}
            items |= {f"{expert}.time": torch.full((3, 7), 1.0), f"{expert}.max": features.amax(1)}
    if name == "ce":
        texts, lengths = torch.randn(2, 5, 7, generator=rng), torch.tensor([5, 5])
    else:
        rows = [words().encode(caption) for caption in CAPTIONS[:2]]
        lengths = torch.tensor([len(row) for row in rows])
        texts = torch.tensor([row + [0] * (int(lengths.max()) - len(row)) for row in rows])
    with torch.no_grad():
        S = encoder.score(encoder.encode_images(items), encoder.encode_texts(texts, lengths))
    assert isinstance(S, Tensor)
    return S


def write(folder: Path, name: str, zipped: bool, config: Any) -> Path:
    state = {key: tensor.clone() for key, tensor in model(name).state_dict().items()}
    content: dict[str, Any] = {"arch": "CENet", "epoch": 3, "state_dict": state, "monitor_best": 1.5, "config": config}
    if name == "xvlm":
        content = {"model": state, "config": {"image_res": 16, "k_test": 8}}
    path = folder / FILES[name]
    torch.save(content, path, _use_new_zipfile_serialization=zipped)
    (folder / "tokenizer.json").write_text(words().content, encoding="utf-8")
    return path


@each("name", SPECS, "zipped", [True, False])
def test_a_released_file_has_the_scores_of_its_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, zipped: bool
) -> None:
    path = write(tmp_path, name, zipped, configured(monkeypatch))
    monkeypatch.delitem(sys.modules, "parse_config")
    checkpoint, _ = open_released(path)
    checkpoint.save(tmp_path / "ours.pt")
    checkpoint.save(tmp_path / "ours.safetensors")
    expected = scores(name, model(name))
    for file in ("ours.pt", "ours.safetensors"):
        loaded = type(checkpoint).load(tmp_path / file)
        assert loaded.encoder.startswith(f"{name}:")
        torch.testing.assert_close(scores(name, loaded.model()), expected, atol=1e-6, rtol=1e-5)


@each("name", SPECS)
def test_a_missing_and_a_surplus_tensor_are_refused_by_name(tmp_path: Path, name: str) -> None:
    path = write(tmp_path, name, True, {"experts": {"modalities": sorted(WIDTHS)}})
    content = torch.load(path, weights_only=True)
    state = content["model" if name == "xvlm" else "state_dict"]
    key = {"mmt": "moe_fc_txt.rgb.bias", "ce": "ce.moe_fc.bias", "xvlm": "vision_proj.bias"}[name]
    tensor = state.pop(key)
    torch.save(content, path)
    with pytest.raises(InputError, match=key.replace(".", r"\.")):
        open_released(path)
    state |= {key: tensor, "extra.weight": torch.ones(1)}
    torch.save(content, path)
    with pytest.raises(InputError, match=r"extra\.weight"):
        open_released(path)


def test_a_notice_names_a_few_of_many_tensors_that_are_left_out() -> None:
    (notice,) = _ignored_notices(tuple(f"bbox_head.{row}" for row in range(600)))
    assert notice.startswith("left out on purpose: bbox_head.0, bbox_head.1, ")
    assert notice.endswith("bbox_head.4 and 595 more, all in `training.ignored` of the converted file")
    assert _ignored_notices(("a", "b")) == ("left out on purpose: a, b",)


@each("options, missing", [({}, "measure, use_abs, no_imgnorm"), ({"measure": "order", "use_abs": True}, "no_imgnorm")])
def test_defaults_that_are_assumed_are_said(options: dict[str, Any], missing: str, tmp_path: Path) -> None:
    towers = [
        {"fc.weight": torch.ones(3, 4), "fc.bias": torch.ones(3)},
        {"embed.weight": torch.ones(5, 2), **torch.nn.GRU(2, 3).state_dict(prefix="rnn.")},
    ]
    torch.save({"model": towers, "opt": options}, tmp_path / "model_best.pth.tar")
    words = ["<pad>", "<start>", "<end>", "<unk>", "a"]
    content = {"word2idx": {w: k for k, w in enumerate(words)}, "idx2word": dict(enumerate(words)), "idx": 5}
    (tmp_path / "vocab.json").write_text(json.dumps(content))
    checkpoint, notices = open_released(tmp_path / "model_best.pth.tar", tmp_path / "vocab.json")
    assert f"does not say {missing}, which tensors do not show" in notices[0]
    assert checkpoint.encoder in notices[0]


def test_a_file_of_scan_without_its_option_is_refused_with_what_it_lacks(tmp_path: Path) -> None:
    towers = [{"fc.weight": torch.ones(3, 4)}, torch.nn.GRU(2, 3, bidirectional=True).state_dict(prefix="rnn.")]
    torch.save({"model": towers, "opt": {"lambda_softmax": 9.0}}, tmp_path / "model_best.pth.tar")
    with pytest.raises(InputError, match="Its option cross_attn marks SCAN, focal_type BFAN"):
        open_released(tmp_path / "model_best.pth.tar")
