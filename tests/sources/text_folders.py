"""Write Hugging Face folders of small text encoders with the words of the built-in passages, without a download."""

from __future__ import annotations

import json
import shutil
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch

from lossscope.datasets.base import Split, Texts
from lossscope.registry import build
from lossscope.text.subwords import Subwords

DATA = "passages:train=24,val=12,test=12"
WIDTH = 16
SIZES = {"hidden_size": WIDTH, "intermediate_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2}
SPECIAL = {f"{kind}_token": f"[{kind.upper()}]" for kind in ("pad", "unk", "cls", "sep", "mask")}


@cache
def words() -> Subwords:
    """Return a tokeniser of the passages."""
    split = build("datasets", DATA).split("train")
    return Subwords.train([*split.images.texts, *split.captions], 300, max_length=512)


def texts_of(name: str = "val") -> tuple[list[str], list[str]]:
    """Return the queries and the documents of a split."""
    split: Split = build("datasets", DATA).split(name)
    assert isinstance(split.images, Texts)
    return list(split.images.texts), list(split.captions)


def text_encoder(folder: Path, kind: str = "bert", positions: int = 128) -> Path:
    """Write a folder with a tokeniser and a network of random weights, large enough that texts differ.

    Args:
        folder: new or empty.
        kind: bert, distilbert (without token types), gpt2 (a decoder without padding) or t5 (its encoder alone).
        positions: of the network.
    """
    made = _made(kind, positions)
    shutil.copytree(made.name, folder, dirs_exist_ok=True)
    return folder


@cache
def _made(kind: str, positions: int) -> TemporaryDirectory[str]:
    import transformers

    made = TemporaryDirectory(prefix="text-encoder-")
    folder, size = Path(made.name), len(words())
    configs: dict[str, Any] = {
        "bert": lambda: transformers.BertConfig(**SIZES, vocab_size=size, max_position_embeddings=positions),
        "distilbert": lambda: transformers.DistilBertConfig(
            dim=WIDTH, hidden_dim=32, n_layers=2, n_heads=2, vocab_size=size, max_position_embeddings=positions
        ),
        "gpt2": lambda: transformers.GPT2Config(
            n_embd=WIDTH, n_layer=2, n_head=2, n_inner=32, vocab_size=size, n_positions=positions
        ),
        "t5": lambda: transformers.T5Config(
            d_model=WIDTH, d_kv=8, d_ff=32, num_layers=2, num_heads=2, vocab_size=size, decoder_start_token_id=0
        ),
    }
    torch.manual_seed(5)
    model = transformers.AutoModel.from_config(configs[kind]())
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.2)
    model.save_pretrained(folder)
    (folder / "tokenizer.json").write_text(words().content, encoding="utf-8")
    special = {name: token for name, token in SPECIAL.items() if kind != "gpt2" or name != "pad_token"}
    settings = {**special, "tokenizer_class": "PreTrainedTokenizerFast"}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings), encoding="utf-8")
    return made


def change_config(folder: Path, **changes: Any) -> Path:
    """Write config.json with other entries; None removes one."""
    file = folder / "config.json"
    config = {**json.loads(file.read_text(encoding="utf-8")), **changes}
    file.write_text(json.dumps({key: value for key, value in config.items() if value is not None}), encoding="utf-8")
    return folder
