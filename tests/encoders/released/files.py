"""Files as the authors of each family write them, around small models: what opens them must give the same model."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from lossscope.encoders.base import Encoder, encoder_spec
from lossscope.encoders.layers.expert_inputs import item_shape_of
from lossscope.encoders.types import ItemShape, ReleasedFile
from tests.encoders.examples import CE_WIDTHS, TOWER, perturb

State = Mapping[str, Tensor]
Towers = tuple[dict[str, Tensor], ...]


@dataclass(frozen=True)
class Release:
    """A file of a family's authors, and what it must open as."""

    spec: str  # of the encoder
    shape: ItemShape  # of an item
    objective: str
    towers: Callable[[State], Towers]  # the state dicts in the file, from that of the encoder
    options: Mapping[str, Any] = field(default_factory=dict)  # in the file
    content: Callable[[Towers, Mapping[str, Any]], Any] | None = None  # what torch writes; None: safetensors
    config: Mapping[str, Any] | None = None  # of a model that is rebuilt from its configuration
    vocabulary_size: int = 12
    added: tuple[str, ...] = ()  # tensors of the encoder that the file lacks
    slow: bool = False  # whether it takes seconds

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
        state = {name: tensor.clone() for name, tensor in (encoder or self.build()).state_dict().items()}
        return ReleasedFile(Path("model_best.pth.tar"), self.towers(state), self.options)

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
    image, text = split("image.", "text.")(state)
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


def xvlm_towers(pretrained: bool, buffers: Mapping[str, Tensor]) -> Callable[[State], Towers]:
    """Return the function that adds buffers; a pretrained file has heads too, and `bert.` in names."""

    def towers(state: State) -> Towers:
        tower = {**state, **buffers, "text_encoder.embeddings.position_ids": torch.arange(16)[None]}
        if pretrained:
            tower = {k.replace("text_encoder.", "text_encoder.bert."): v for k, v in tower.items()}
            tower |= {"text_encoder.cls.predictions.bias": torch.zeros(10), "bbox_head.0.weight": torch.zeros(2, 2)}
        return (tower,)

    return towers


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


SMALL = "dim=8,words=4"
FEATURES = (36, 7)  # regions of the authors' files
MARGIN = {"margin": 0.2, "max_violation": True}
TRIPLET = "triplet_sh:margin=0.2"
SCAN = {
    "cross_attn": "t2i", "agg_func": "Mean", "lambda_softmax": 9.0, "lambda_lse": 6.0, "bi_gru": True,
    "raw_feature_norm": "clipped_l2norm", "no_imgnorm": False, "no_txtnorm": False, **MARGIN,
}  # fmt: skip
CE_CONFIG: dict[str, Any] = {
    "experts": {"modalities": ["i3d.i3d.0", "face", "ocr", "audio"], "face_dim": 512},
    "arch": {
        "type": "CENet",
        "args": {
            "keep_missing_modalities": False, "use_ce": "pairwise", "use_mish": 1, "use_bn_reason": 1,
            "num_g_layers": 3, "num_h_layers": 0, "include_self": 1, "l2renorm": False, "randomise_feats": "",
            "vlad_clusters": {"ocr": 3, "text": 4, "audio": 2}, "ghost_clusters": {"text": 1, "ocr": 1},
        },
    },
    "data_loader": {"args": {"max_tokens": {"ocr": 6, "text": 8, "audio": 4, "speech": 3}}},
    "loss": {"type": "MaxMarginRankingLoss", "args": {"margin": 0.09381161988446174}},
}  # fmt: skip
MMT_WIDTHS = {"face": 5, "ocr": 3, "rgb": 4}
MMT_CONFIG: dict[str, Any] = {
    "experts": {"modalities": ["rgb", "face", "ocr"], "face_dim": 5},
    "arch": {
        "type": "CENet",
        "args": {
            "keep_missing_modalities": True, "txt_agg": "bertftn", "txt_wgh": "emb", "vid_wgh": "none",
            "vid_cont": "bert", "vid_inp": "both", "pos_enc": "tint", "out_tok": "mxp", "l2renorm": False,
            "txt_pro": "gbn",
            "vid_bert_params": {
                "num_attention_heads": 2, "hidden_act": "gelu", "hidden_dropout_prob": 0.1,
                "max_position_embeddings": 6, "layer_norm_eps": 1e-12,
            },
        },
    },
    "loss": {"type": "MaxMarginRankingLoss", "args": {"margin": 0.05, "fix_norm": True}},
    "train_sets": [{"args": {"mix": [{"max_text_words": 30, "max_expert_tokens": 7, "temporal_encoding_window": 2}]}}],
}  # fmt: skip


def with_architecture(config: Mapping[str, Any], **changed: Any) -> dict[str, Any]:
    """Return a configuration of CE or MMT with other options of the architecture."""
    return {**config, "arch": {"args": {**config["arch"]["args"], **changed}}}


CLIP_SPEC = "clip:width=16,depth=2,heads={heads},patch=8,dim=12,context=16"
ENDS = {"bos_token_id": 2, "eos_token_id": 3}
CLIP_CONFIG: dict[str, Any] = {
    "text_config": {**TOWER, **ENDS, "pad_token_id": 0, "vocab_size": 12, "max_position_embeddings": 16},
    "vision_config": {**TOWER, "image_size": 16, "patch_size": 8},
    "projection_dim": 12,
}
SIGLIP_CONFIG: dict[str, Any] = {
    "text_config": {**CLIP_CONFIG["text_config"], "pad_token_id": 1, "projection_size": 16},
    "vision_config": CLIP_CONFIG["vision_config"],
}


def inferred_config(activation: str) -> dict[str, Any]:
    """Return the configuration that follows from the shapes of a CLIP of the size of CLIP_CONFIG."""
    text, vision = (
        {**CLIP_CONFIG[part], "num_attention_heads": 1, "hidden_act": activation}
        for part in ("text_config", "vision_config")
    )
    return {"text_config": {**text, "eos_token_id": 11}, "vision_config": vision, "projection_dim": 12}


XVLM_SPEC = (
    "xvlm:embed=32,depths=2/2,window=4,patch=2,width=64,layers=2,fused=1,positions=16,max_tokens=12,dim=8,"
    "itm_loss=true,sep=false,k_test={k_test}"
)


def xvlm_release(pretrained: bool, side: int, options: Mapping[str, Any]) -> Release:
    spec = XVLM_SPEC.format(k_test=options.get("k_test", 128))
    with torch.device("cpu"):
        buffers = dict(encoder_spec(spec).build((3, side, side), 12).named_buffers())
    return Release(
        spec,
        (3, side, side),
        "infonce:tau=0.0700000003,learn=false",
        xvlm_towers(pretrained, buffers),
        {"max_tokens": 12, **options},
        lambda towers, options: {"model": towers[0], "config": dict(options)},
    )


def vse_release(spec: str, options: Mapping[str, Any], towers: Callable[[State], Towers], **more: Any) -> Release:
    """Return a file of VSE++ or of a descendant, for regions."""
    shape = more.pop("shape", FEATURES)
    return Release(spec, shape, TRIPLET, towers, {**MARGIN, **options}, vse_content, **more)


TWO, THREE = split("image.", "text."), split("image.", "text.", "similarity.")
RELEASES: list[Release] = [
    *(vse_release(f"bfan:focal={f},{SMALL}", {"focal_type": f, "lambda_softmax": 20}, TWO) for f in ("equal", "prob")),
    *(
        Release(
            f"ce:dim=6,clusters=audio=2+ocr=3,text_clusters=4,word_dim=7,length=8,rows=audio=4+ocr=6,padded=true,"
            f"keep_missing={keep}",
            item_shape_of(CE_WIDTHS, 6),
            "triplet:margin=0.0938116",
            whole,
            with_architecture(CE_CONFIG, keep_missing_modalities=keep == "true"),
            video_content,
            vocabulary_size=0,
        )
        for keep in ("false", "true")
    ),
    Release(
        CLIP_SPEC.format(heads=2),
        (3, 16, 16),
        "infonce:tau=0.070004206,learn=false",
        whole,
        CLIP_CONFIG,
        config=CLIP_CONFIG,
    ),
    Release(
        CLIP_SPEC.format(heads=1),
        (3, 16, 16),
        "infonce:tau=0.070004206,learn=false",
        whole,
        config=inferred_config("gelu"),
    ),
    Release(
        CLIP_SPEC.format(heads=1),
        (3, 16, 16),
        "infonce:tau=0.070004206,learn=false",
        lambda state: (openai_names(state),),
        content=lambda towers, options: towers[0],
        config=inferred_config("quick_gelu"),
    ),
    *(
        Release(
            f"mmt:dim=8,layers=1,heads=2,ffn=12,positions=6,bert=1x64,window=2,lower=true,keep_missing={keep}",
            item_shape_of(MMT_WIDTHS, 7),
            "triplet:margin=0.05",
            whole,
            with_architecture(MMT_CONFIG, keep_missing_modalities=keep == "true"),
            video_content,
        )
        for keep in ("false", "true")
    ),
    vse_release(f"scan:direction=t2i,lambda_softmax=9,{SMALL}", SCAN, TWO),
    vse_release(
        f"scan:direction=i2t,lambda_softmax=4,pool=lse,lambda_lse=20,{SMALL}",
        {**SCAN, "cross_attn": "i2t", "lambda_softmax": 4, "agg_func": "LogSumExp", "lambda_lse": 20},
        TWO,
    ),
    vse_release(
        f"scan:direction=t2i,lambda_softmax=9,norm=softmax,pool=max,bi_gru=false,{SMALL}",
        {**SCAN, "raw_feature_norm": "softmax", "agg_func": "Max", "bi_gru": False},
        TWO,
    ),
    replace(
        vse_release(
            f"scan:direction=t2i,lambda_softmax=9,pool=sum,weight_norm=true,{SMALL}",
            {**SCAN, "agg_func": "Sum", "max_violation": False, "margin": 0.1},
            TWO,
        ),
        objective="triplet:margin=0.1",
    ),
    *(
        vse_release(f"sgraf:{options},sim_dim=6,{SMALL}", {"module_name": "SGR"}, THREE, shape=(5, 7))
        for options in ("module=sgr", "module=saf", "module=sgr,steps=2", "module=saf,bi_gru=false")
    ),
    Release(
        "siglip",
        (3, 16, 16),
        "siglip:scale=1,bias=0,learn=false",
        whole,
        SIGLIP_CONFIG,
        config=SIGLIP_CONFIG,
    ),
    *(
        vse_release(f"vse_infty:{text},bn_ignore_padding=false,dim=8", {}, vse_infty_towers)
        for text in ("text=bigru,words=4", "bert=1x64")
    ),
    vse_release(f"vsepp:image=linear,word_init=0.1,{SMALL}", {}, vsepp_towers, shape=(7,)),
    vse_release(
        f"vsepp:image=linear,word_init=0.1,measure=order,use_abs=true,{SMALL}",
        {"measure": "order", "use_abs": True},
        vsepp_towers,
        shape=(7,),
    ),
    vse_release(
        f"vsepp:image=linear,word_init=0.1,no_imgnorm=true,{SMALL}", {"no_imgnorm": True}, vsepp_towers, shape=(7,)
    ),
    vse_release(
        f"vsepp:image=resnet18,word_init=0.1,crop=224,finetune=true,bn_mode=original,{SMALL}",
        {"finetune": True, "cnn_type": "resnet18"},
        vsepp_towers,
        shape=(3, 256, 256),
        added=("image.steps", "image.leaked"),
        slow=True,
    ),
    *(
        vse_release(
            f"vsrn:dim=8,words=4,blocks=2,region_norm_axis=regions,fc_norm={fc_norm},final_bn={final_bn}",
            {"data_name": data},
            TWO,
        )
        for data, fc_norm in (("f30k_precomp", "false"), ("coco_precomp", "true"))
        for final_bn in ("true", "false")
    ),
    xvlm_release(False, 16, {"k_test": 256, "image_res": 16}),
    xvlm_release(True, 32, {}),
]
