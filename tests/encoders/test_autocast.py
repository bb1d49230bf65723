"""Each encoder trains in bfloat16 as the trainer runs it: the outputs of its towers are float32."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from lossscope.core.similarity import pair_mask
from lossscope.encoders.base import Encoder
from lossscope.encoders.layers.expert_inputs import item_shape_of
from lossscope.encoders.types import EncodedBatch, Items
from lossscope.registry import build, names

SIZE, WORDS, N = 16, 12, 4
WIDTHS = {"face": 5, "rgb": 4}
LENGTHS = torch.tensor([5, 3, 6, 2])
REGIONS = "dim=8,words=4"
SPECS = {
    "bfan": [f"bfan:{REGIONS}"],
    "ce": ["ce:dim=8,clusters=face=2,text_clusters=3,word_dim=4,words=embedding"],
    "clip": ["clip:width=16,depth=1,heads=2,dim=8", "clip:width=16,depth=1,heads=2,dim=8,layer=xavier"],
    "mmt": ["mmt:dim=8,layers=1,heads=2,ffn=12,bert=1x64", "mmt:dim=8,layers=1,heads=2,bert=1x64,keep_missing=false"],
    "scan": [f"scan:direction={direction},{REGIONS}" for direction in ("t2i", "i2t")],
    "sgraf": [f"sgraf:module={module},sim_dim=4,{REGIONS}" for module in ("sgr", "saf")],
    "siglip": ["siglip:path={folder}"],
    "vse_infty": [f"vse_infty:text=bigru,{REGIONS}", "vse_infty:bert=1x64,drop=0,dim=8"],
    "vsepp": [
        f"vsepp:{REGIONS},width=4",
        f"vsepp:image=vit-small,finetune=true,{REGIONS}",
        f"vsepp:image=linear,measure=order,{REGIONS}",
    ],
    "vsrn": [f"vsrn:{REGIONS},captions=true", f"vsrn:{REGIONS}"],
    "xvlm": [
        "xvlm:embed=32,depths=1/1,window=4,patch=2,width=64,layers=2,fused=1,positions=16,max_tokens=8,dim=8,"
        f"score={score},itm_loss=true"
        for score in ("itc", "itm")
    ],
}
PIXELS = ("clip", "siglip", "xvlm", "vsepp:dim", "vsepp:image=vit")


def items(spec: str) -> tuple[Any, Items]:
    """Return the shape of an item, and four items."""
    generator = torch.Generator().manual_seed(1)
    if spec.startswith(("ce", "mmt")):
        videos: dict[str, Tensor] = {}
        for name, width in WIDTHS.items():
            videos |= {
                name: torch.randn(N, 3, width, generator=generator),
                f"{name}.length": torch.tensor([3, 2, 1, 3]),
            }
            videos |= {f"{name}.time": torch.rand(N, 3, generator=generator)}
        return item_shape_of(WIDTHS, 3), videos
    if spec.startswith(PIXELS):
        return (3, SIZE, SIZE), torch.randint(0, 256, (N, 3, SIZE, SIZE), dtype=torch.uint8, generator=generator)
    return (5, 7), torch.randn(N, 5, 7, generator=generator)


def captions() -> Tensor:
    ids = torch.randint(4, WORDS, (N, 6), generator=torch.Generator().manual_seed(2))
    ids[:, 0] = 2
    ids[torch.arange(N), LENGTHS - 1] = 3
    return ids * (torch.arange(6) < LENGTHS[:, None])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Hugging Face folder of a small SigLIP."""
    transformers = pytest.importorskip("transformers")
    tower = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2}
    text = {**tower, "vocab_size": WORDS, "max_position_embeddings": 8, "projection_size": 16, "pad_token_id": 1}
    text |= {"bos_token_id": 2, "eos_token_id": 3}
    config = transformers.SiglipConfig(text_config=text, vision_config={**tower, "image_size": SIZE, "patch_size": 8})
    path = tmp_path_factory.mktemp("siglip")
    transformers.SiglipModel(config).save_pretrained(path)
    return path


def floats(side: EncodedBatch) -> dict[str, torch.dtype]:
    return {name: tensor.dtype for name, tensor in side.tensors.items() if tensor.is_floating_point()}


def step(encoder: Encoder, images: Items) -> tuple[EncodedBatch, EncodedBatch, Tensor, Tensor | None]:
    """Encode under autocast; score and compute the further loss outside, as in a training step."""
    ids = captions()
    with torch.autocast("cpu", torch.bfloat16):
        sides = encoder.encode_images(images), encoder.encode_texts(ids, LENGTHS)
    S = encoder.score(*sides)
    assert isinstance(S, Tensor)
    return *sides, S, encoder.extra_loss(*sides, S, pair_mask(torch.arange(N)), ids, LENGTHS)


def test_every_encoder_is_tested_here() -> None:
    assert set(SPECS) == set(names("encoders"))


@pytest.mark.slow
@pytest.mark.parametrize("spec", [spec for specs in SPECS.values() for spec in specs])
def test_a_training_step_in_bfloat16_gives_float32(spec: str, folder: Path) -> None:
    torch.manual_seed(0)
    shape, images = items(spec)
    encoder: Encoder = build("encoders", spec.format(folder=folder)).build(shape, WORDS).train()
    image_batch, text_batch, S, further = step(encoder, images)
    assert S.shape == (N, N) and S.dtype == torch.float32 and bool(S.isfinite().all())
    for side in (image_batch, text_batch):
        assert set(floats(side).values()) == {torch.float32}, floats(side)
    loss = (S * torch.randn(S.shape)).sum()
    if further is not None:
        assert further.dtype == torch.float32 and bool(further.isfinite())
        loss = loss + further
    loss.backward()  # type: ignore[no-untyped-call]
    for name, parameter in encoder.named_parameters():
        assert parameter.grad is None or bool(parameter.grad.isfinite().all()), name
    assert any(parameter.grad is not None for parameter in encoder.parameters())
