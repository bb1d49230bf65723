"""BERT through transformers: its configurations, its model, and the weights of a Hugging Face folder."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import nn

from lossscope.errors import InputError
from lossscope.io.json_files import read_json

SIZES = {"small": (4, 256), "base": (12, 768)}
HEAD = 64  # width of an attention head


def size_of(name: str) -> tuple[int, int] | None:
    """Layers and width of `small`, `base` or `LAYERSxWIDTH`; None for anything else, which names a folder.

    Raises InputError when the width is no multiple of 64.
    """
    found = re.fullmatch(r"(\d+)x(\d+)", name)
    size = (int(found[1]), int(found[2])) if found else SIZES.get(name)
    if size is not None and (size[0] < 1 or size[1] < HEAD or size[1] % HEAD):
        raise InputError(f"bert=LAYERSxWIDTH must have a layer and a width that is a multiple of {HEAD}; got {name}")
    return size


def configuration(name: str, vocabulary_size: int, kept: str | None = None) -> Mapping[str, Any]:
    """The configuration of a size of `size_of`, or that of a folder: `kept`, its JSON, else read from there.

    Raises InputError when it is no BERT's, or has fewer words than the tokeniser.
    """
    size = size_of(name)
    if size is None:
        found = _checked(_parsed(kept) if kept else _read(Path(name)), name)
        if found["vocab_size"] < vocabulary_size:
            got = f"{found['vocab_size']} for a tokeniser of {vocabulary_size}"
            raise InputError(f"vocab_size of {name} must be at least the tokeniser's; got {got}")
        return found
    return {
        "vocab_size": vocabulary_size,
        "hidden_size": size[1],
        "num_hidden_layers": size[0],
        "num_attention_heads": size[1] // HEAD,
        "intermediate_size": 4 * size[1],
    }


def kept_configuration(name: str) -> str | None:
    """What a checkpoint keeps of a folder, as JSON; None for sizes, which need nothing."""
    return None if size_of(name) else json.dumps(_checked(_read(Path(name)), name))


def _read(folder: Path) -> dict[str, Any]:
    return read_json(folder.expanduser() / "config.json")


def _parsed(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except ValueError as error:
        raise InputError(f"a kept configuration of BERT must be JSON; {error}") from error
    return found if isinstance(found, dict) else {}


def _checked(found: dict[str, Any], name: str) -> dict[str, Any]:
    numbers = all(type(found.get(key)) is int for key in ("vocab_size", "hidden_size"))
    if found.get("model_type", "bert") != "bert" or not numbers:
        raise InputError(f"{name} must hold a BERT; got model_type {found.get('model_type')!r}")
    return found


def empty(configuration: Mapping[str, Any]) -> nn.Module:
    """A freshly initialised BertModel. Raises InputError without transformers, or for a configuration it refuses."""
    try:
        from transformers import BertConfig, BertModel
    except ImportError as error:
        raise InputError("BERT text towers need transformers; install lossscope[hf]") from error
    known = {k: v for k, v in configuration.items() if k not in ("architectures", "transformers_version")}
    try:
        model: nn.Module = BertModel(BertConfig(**known))
    except (TypeError, ValueError) as error:
        raise InputError(f"the configuration of a BERT must be one that transformers takes; {error}") from error
    return model
