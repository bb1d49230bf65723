"""Weights of a Hugging Face folder of BERT."""

from __future__ import annotations

from pathlib import Path

from torch import Tensor, nn

from ..base import require_fit
from .checkpoint_file import read_released


def load_bert_folder(model: nn.Module, folder: Path) -> None:
    """Load the weights of a Hugging Face folder into a BertModel; all must fit but for the heads on top and the pooler.

    A folder without a pooler (of a masked language model) leaves the model's pooler as it is; nothing reads it here.
    Raises InputError that names the first tensor that does not fit.
    """
    weights = {_rename(k): v for k, v in read_released(folder).towers[0].items()}
    expected = model.state_dict()
    weights = {k: v for k, v in weights.items() if not k.startswith(_IGNORED)}
    pooler: dict[str, Tensor] = {k: v for k, v in expected.items() if k.startswith("pooler.")}
    weights = {**pooler, **weights}
    require_fit(expected, weights, f"the BERT that {folder / 'config.json'} describes")
    model.load_state_dict(weights)


_IGNORED = ("cls.", "embeddings.position_ids", "embeddings.token_type_ids")


def _rename(name: str) -> str:
    """Return a name without `bert.`, and as written since 2019: LayerNorm's parameters were gamma and beta before."""
    name = name.removeprefix("bert.")
    return name.replace("LayerNorm.gamma", "LayerNorm.weight").replace("LayerNorm.beta", "LayerNorm.bias")
