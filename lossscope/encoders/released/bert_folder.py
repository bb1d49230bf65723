"""Weights of a BERT folder of Hugging Face."""

from __future__ import annotations

from pathlib import Path

from torch import Tensor, nn

from ..base import require_fit
from .checkpoint_file import read_released


def load_folder(model: nn.Module, folder: Path) -> None:
    """Put the weights of a Hugging Face folder into a BertModel, strictly but for the heads on top and the pooler.

    A folder without a pooler (of a masked language model) leaves it as it is; here nothing reads it. Raises
    InputError naming the first tensor that does not fit.
    """
    found = {_ours(k): v for k, v in read_released(folder).towers[0].items()}
    wanted = model.state_dict()
    found = {k: v for k, v in found.items() if not k.startswith(_IGNORED)}
    pooler: dict[str, Tensor] = {k: v for k, v in wanted.items() if k.startswith("pooler.")}
    found = {**pooler, **found}
    require_fit(wanted, found, f"the BERT that {folder / 'config.json'} describes")
    model.load_state_dict(found)


_IGNORED = ("cls.", "embeddings.position_ids", "embeddings.token_type_ids")


def _ours(name: str) -> str:
    """Names without `bert.`, and as written since 2019, when LayerNorm's were gamma and beta."""
    name = name.removeprefix("bert.")
    return name.replace("LayerNorm.gamma", "LayerNorm.weight").replace("LayerNorm.beta", "LayerNorm.bias")
