"""BERT through transformers: its configurations and its model."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import nn

from lossscope.errors import InputError, needing
from lossscope.io.json_files import parse_json, read_json

SIZES = {"small": (4, 256), "base": (12, 768)}
HEAD_WIDTH = 64  # width of an attention head


def parse_size(name: str) -> tuple[int, int] | None:
    """Return the layers and width of `small`, `base` or `LAYERSxWIDTH`; None for any other text, which names a folder.

    Raises InputError when the width is no multiple of 64.
    """
    match = re.fullmatch(r"(\d+)x(\d+)", name)
    size = (int(match[1]), int(match[2])) if match else SIZES.get(name)
    if size is not None and (size[0] < 1 or size[1] < HEAD_WIDTH or size[1] % HEAD_WIDTH):
        raise InputError(
            f"bert=LAYERSxWIDTH must have a layer and a width that is a multiple of {HEAD_WIDTH}; got {name}"
        )
    return size


def bert_configuration(name: str, vocabulary_size: int, stored: str | None = None) -> Mapping[str, Any]:
    """Return the configuration of a size (parse_size) or of a folder. Raises InputError when it is no BERT's.

    Also raises InputError when it has fewer words than the tokeniser.

    Args:
        name: the option `bert`, a size or a folder.
        vocabulary_size: ids of the tokeniser.
        stored: configuration of the folder as JSON, from a checkpoint; None reads the folder.
    """
    size = parse_size(name)
    if size is None:
        options = _require_bert(_parse_configuration(stored) if stored else _read_configuration(Path(name)), name)
        if options["vocab_size"] < vocabulary_size:
            got = f"{options['vocab_size']} for a tokeniser of {vocabulary_size}"
            raise InputError(f"vocab_size of {name} must be at least the tokeniser's; got {got}")
        return options
    return {
        "vocab_size": vocabulary_size,
        "hidden_size": size[1],
        "num_hidden_layers": size[0],
        "num_attention_heads": size[1] // HEAD_WIDTH,
        "intermediate_size": 4 * size[1],
    }


def stored_configuration(name: str) -> str | None:
    """Return the configuration of a folder as JSON, for a checkpoint; None for a size, which needs no file."""
    return None if parse_size(name) else json.dumps(_require_bert(_read_configuration(Path(name)), name))


def _read_configuration(folder: Path) -> dict[str, Any]:
    return read_json(folder.expanduser() / "config.json")


def _parse_configuration(text: str) -> dict[str, Any]:
    options = parse_json(text, "a stored configuration of BERT")
    return options if isinstance(options, dict) else {}


def _require_bert(options: dict[str, Any], name: str) -> dict[str, Any]:
    """Return the options. Raises InputError when they are not those of a BERT."""
    numbers = all(type(options.get(key)) is int for key in ("vocab_size", "hidden_size"))
    if options.get("model_type", "bert") != "bert" or not numbers:
        raise InputError(f"{name} must hold a BERT; got model_type {options.get('model_type')!r}")
    return options


def build_bert(configuration: Mapping[str, Any]) -> nn.Module:
    """Return a newly initialised BertModel. Raises InputError without transformers, or for an invalid configuration."""
    with needing("hf", "BERT text towers need transformers"):
        from transformers import BertConfig, BertModel
    options = {k: v for k, v in configuration.items() if k not in ("architectures", "transformers_version")}
    try:
        model: nn.Module = BertModel(BertConfig(**options))
    except (TypeError, ValueError) as error:
        raise InputError(f"the configuration of a BERT must be one that transformers takes; {error}") from error
    return model
