"""Pictures, captions and parts of words for the known answers of X-VLM, as its files hold them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .rule import write_pictures

SIDE = 64
SIZES = ((90, 61), (50, 120), (64, 64), (131, 70))  # (width, height) of each picture
CAPTIONS = (
    ("A man doesn't wear a t-shirt.", "Two dogs run. They're wet!"),
    ('The sign reads "STOP"', "red/blue <person> in the street; it's 3,000 m away"),
    ("a very long caption " + "of a man with two wet dogs " * 8, "someone sings"),
    ("men - women & children?", "A café: nobody there"),
)
WORDS = (
    "[PAD] [UNK] [CLS] [SEP] [MASK] a man doesnt wear t shirt two dog ##s run theyre wet the sign reads stop red blue "
    "person in street its 3000 m away very long caption of with some ##one sing men women & children cafe no ##body "
    "there does ##nt"
).split()
TEXT_CONFIG: Mapping[str, Any] = {
    "architectures": ["BertForMaskedLM"], "attention_probs_dropout_prob": 0.1, "hidden_act": "gelu",
    "hidden_dropout_prob": 0.1, "hidden_size": 64, "initializer_range": 0.02, "intermediate_size": 256,
    "layer_norm_eps": 1e-12, "max_position_embeddings": 48, "model_type": "bert", "num_attention_heads": 1,
    "num_hidden_layers": 3, "pad_token_id": 0, "type_vocab_size": 2, "vocab_size": len(WORDS), "fusion_layer": 2,
    "encoder_width": 256,
}  # fmt: skip
VISION_CONFIG: Mapping[str, Any] = {
    "ckpt": "", "vision_width": 256, "image_res": SIDE, "window_size": 2, "embed_dim": 32, "depths": [2, 2, 2, 2],
    "num_heads": [1, 2, 4, 8],
}  # fmt: skip
CONFIG: Mapping[str, Any] = {
    "train_file": ["data/finetune/flickr30k_train.json"], "val_file": "data/finetune/flickr30k_val.json",
    "test_file": "data/finetune/flickr30k_test.json", "image_root": "images/",
    "vision_config": "configs/config_swinB_384.json", "use_clip_vit": False, "use_swin": True, "image_res": SIDE,
    "patch_size": 32, "use_roberta": False, "text_config": "configs/config_bert.json",
    "text_encoder": "data/bert-base-uncased", "batch_size_train": 20, "batch_size_test": 12,
    "batch_size_test_text": 64, "max_tokens": 40, "embed_dim": 12, "temp": 0.07, "k_test": 4,
    "optimizer": {"opt": "adamW", "lr": 3e-5, "weight_decay": 0.01, "lr_mult": 2},
    "schedular": {"sched": "linear", "lr": 3e-5, "epochs": 10, "num_warmup_steps": 0.1},
}  # fmt: skip


def write_data(root: Path) -> list[Path]:
    """Write the pictures, and `small_test.json` with the captions; return the paths of the pictures."""
    root.mkdir(exist_ok=True)
    paths = write_pictures(root, SIZES)
    records = [{"image": path.name, "caption": list(texts)} for path, texts in zip(paths, CAPTIONS, strict=True)]
    (root / "small_test.json").write_text(json.dumps(records), "utf-8")
    return paths


def write_words(file: Path) -> Path:
    """Write the parts of words, a line each."""
    file.write_text("\n".join(WORDS) + "\n", "utf-8")
    return file
