"""Write files as the authors of each family do, around a small model."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from lossscope.encoders.base import Encoder, encoder_spec
from lossscope.encoders.types import ItemShape, ReleasedFile
from tests.encoders.examples import perturb

State = Mapping[str, Tensor]
Towers = tuple[State, ...]


@dataclass(frozen=True)
class Release:
    """A file of a family's authors, and the model that it must open as."""

    spec: str  # of the encoder
    shape: ItemShape  # of an item
    objective: str
    towers: Callable[[State], Towers]  # the state dicts in the file, from that of the encoder
    options: Mapping[str, Any] = field(default_factory=dict)  # in the file
    content: Callable[[Towers, Mapping[str, Any]], Any] | None = None  # what torch writes; None: safetensors
    config: Mapping[str, Any] | None = None  # of a model that is rebuilt from its configuration
    vocabulary_size: int = 12
    epoch: int = 0  # in the file
    context_length: int = 0  # ids of the longest caption
    notices: tuple[str, ...] = ()  # patterns of the notices to the user
    buffers: bool = False  # does the file hold the buffers that an encoder derives from its sizes?
    ignored: str = ""  # pattern of names in the file that are left out
    family: str = ""  # pattern of names without which lossscope does not recognise the family
    sizes: str = r"fc\.weight|embed\.weight"  # pattern of names of the tensors that the sizes are read from
    implied: Mapping[str, str] = field(
        default_factory=dict
    )  # pattern of a name that states an option -> the name in the message
    renames: tuple[str, str] | None = ("", "")  # part of the file's names -> ours; None: the names have other forms
    slow: bool = False  # does it take seconds?
    choices: Mapping[str, str] = field(default_factory=dict)  # options that the user states for the file
    open_shape: ItemShape | None = None  # of an item as the file opens, where it leaves a number to the data

    @property
    def name(self) -> str:
        """The encoder's name in the registry."""
        return self.spec.partition(":")[0]

    def build(self) -> Encoder:
        """Return the model in the file, in eval mode."""
        torch.manual_seed(0)
        stored = {} if self.config is None else {"config": json.dumps(self.config)}
        return perturb(encoder_spec(self.spec).rebuild(self.shape, self.vocabulary_size, stored)).eval()

    def file(self, encoder: Encoder | None = None) -> ReleasedFile:
        """Return the file as it is read."""
        encoder = encoder or self.build()
        tensors = {**(dict(encoder.named_buffers()) if self.buffers else {}), **encoder.state_dict()}
        state = {name: tensor.clone() for name, tensor in tensors.items()}
        return ReleasedFile(Path("model_best.pth.tar"), self.towers(state), self.options, choices=self.choices)

    def write(self, folder: Path) -> Path:
        """Write the file, or a Hugging Face folder where it has options but nothing that torch writes."""
        file = self.file()
        if self.content is not None:
            torch.save(self.content(file.towers, file.options), folder / "model_best.pth.tar")
            return folder / "model_best.pth.tar"
        from safetensors.torch import save_file

        save_file({name: tensor.contiguous() for name, tensor in file.towers[0].items()}, folder / "model.safetensors")
        if not self.options:
            return folder / "model.safetensors"
        (folder / "config.json").write_text(json.dumps(self.options), encoding="utf-8")
        return folder


def split(*prefixes: str) -> Callable[[State], Towers]:
    """Return the function that takes a state dict apart by the first part of its names."""

    def towers(state: State) -> Towers:
        return tuple({k.removeprefix(p): v for k, v in state.items() if k.startswith(p)} for p in prefixes)

    return towers


def whole(state: State) -> Towers:
    """Return one tower under our own names, which are the authors'."""
    return (dict(state),)


def vse_content(towers: Towers, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the five keys of the files of VSE++ and its descendants."""
    opt = argparse.Namespace(data_path="/nfs/data", **options)
    return {"epoch": 3, "model": list(towers), "best_rsum": 401.5, "opt": opt, "Eiters": 9}


def video_content(towers: Towers, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keys of the files of CE and MMT, whose configuration is inside an object."""
    config = argparse.Namespace(_config=dict(options), resume=None, cfg_fname=Path("configs/train.json"))
    return {"arch": "CENet", "epoch": 3, "state_dict": towers[0], "config": config}


def vsepp_towers(state: State) -> Towers:
    """Return the two towers with `module.` inside the names of the network, as after training on several GPUs."""
    image, text = split("image.", "text.")(state)
    image = {k.replace("cnn.", "cnn.module."): v for k, v in image.items() if k not in ("steps", "leaked")}
    return image, text


def vse_infty_towers(state: State) -> Towers:
    """Return the two towers; a backbone is there twice, with the layer behind it, and position ids of BERT."""
    image, text = (dict(tower) for tower in split("image.", "text.")(state))
    network = {k.removeprefix("backbone.resnet."): v for k, v in image.items() if k.startswith("backbone.")}
    parts = {"conv1": "base.0", "bn1": "base.1", "layer1": "base.4", "layer2": "base.5", "layer3": "base.6"}
    for name, tensor in network.items():
        head, _, rest = name.partition(".")
        image[f"backbone.{parts.get(head, 'top.0')}.{rest}"] = tensor.clone()
    if network:
        image["backbone.resnet.fc.weight"] = torch.zeros(3, 2048)
    if any(name.startswith("bert.") for name in text):
        text["bert.embeddings.position_ids"] = torch.arange(512)[None]
    return image, text


def mmt_towers(state: State) -> Towers:
    """Return the one tower, with the position ids of older transformers."""
    return ({**state, "txt_bert.embeddings.position_ids": torch.arange(512)[None]},)


def xvlm_towers(state: State) -> Towers:
    """Return the tower of a fine-tuned file, with position ids."""
    return ({**state, "text_encoder.embeddings.position_ids": torch.arange(16)[None]},)


def pretrained_xvlm_towers(state: State) -> Towers:
    """Return the tower of a pretrained file, with further heads and with `bert.` in names."""
    (tower,) = xvlm_towers(state)
    tower = {k.replace("text_encoder.", "text_encoder.bert."): v for k, v in tower.items()}
    return ({**tower, "text_encoder.cls.predictions.bias": torch.zeros(10), "bbox_head.0.weight": torch.zeros(2, 2)},)


def openai_names(state: State) -> dict[str, Tensor]:
    """Return the weights of a CLIP under OpenAI's names, written out by hand."""
    weights: dict[str, Tensor] = {
        "visual.class_embedding": state["vision_model.embeddings.class_embedding"],
        "visual.positional_embedding": state["vision_model.embeddings.position_embedding.weight"],
        "visual.conv1.weight": state["vision_model.embeddings.patch_embedding.weight"],
        "visual.proj": state["visual_projection.weight"].T.contiguous(),
        "token_embedding.weight": state["text_model.embeddings.token_embedding.weight"],
        "positional_embedding": state["text_model.embeddings.position_embedding.weight"],
        "text_projection": state["text_projection.weight"].T.contiguous(),
        "logit_scale": state["logit_scale"],
        "input_resolution": torch.tensor(16),
        "context_length": torch.tensor(16),
        "vocab_size": torch.tensor(12),
    }
    norms = {"visual.ln_pre": "vision_model.pre_layrnorm", "visual.ln_post": "vision_model.post_layernorm"}
    for theirs, ours in {**norms, "ln_final": "text_model.final_layer_norm"}.items():
        weights |= {f"{theirs}.{kind}": state[f"{ours}.{kind}"] for kind in ("weight", "bias")}
    for theirs, tower in (("visual.transformer", "vision_model"), ("transformer", "text_model")):
        for layer in range(2):
            home, there = f"{tower}.encoder.layers.{layer}", f"{theirs}.resblocks.{layer}"
            for kind in ("weight", "bias"):
                heads = [state[f"{home}.self_attn.{x}_proj.{kind}"] for x in "qkv"]
                weights[f"{there}.attn.in_proj_{kind}"] = torch.cat(heads)
                weights[f"{there}.attn.out_proj.{kind}"] = state[f"{home}.self_attn.out_proj.{kind}"]
                weights[f"{there}.ln_1.{kind}"] = state[f"{home}.layer_norm1.{kind}"]
                weights[f"{there}.ln_2.{kind}"] = state[f"{home}.layer_norm2.{kind}"]
                weights[f"{there}.mlp.c_fc.{kind}"] = state[f"{home}.mlp.fc1.{kind}"]
                weights[f"{there}.mlp.c_proj.{kind}"] = state[f"{home}.mlp.fc2.{kind}"]
    return weights


def custom_text_names(state: State) -> dict[str, Tensor]:
    """Return the weights of a CLIP under the names of open_clip's models with a text tower of their own."""
    weights = {k: v for k, v in openai_names(state).items() if v.is_floating_point()}
    alone = ("visual.", "logit_scale")
    return {k if k.startswith(alone) else f"text.{k}": v for k, v in weights.items()}
