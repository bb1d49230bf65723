"""BERT in released files: its size in the tensors of a model, and the weights of a Hugging Face folder."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from torch import Tensor, nn

from lossscope.errors import InputError

from ..base import require_fit
from ..layers.bert import HEAD_WIDTH, SIZES
from .checkpoint_file import read_released
from .options import require_tensor


def infer_bert(weights: Mapping[str, Tensor], part: str) -> str:
    """Return the size of the BERT whose tensors begin with `part.`, as the option `bert` has it: base, 4x256.

    Raises InputError when it has no layers, or heads of another width.
    """
    width = require_tensor(weights, f"{part}.embeddings.word_embeddings.weight", 2).shape[1]
    layers = count_bert_layers(weights, part)
    if width % HEAD_WIDTH or not layers:
        raise InputError(f"the BERT must have layers, and a width that is a multiple of {HEAD_WIDTH}; got {width}")
    return "base" if (layers, width) == SIZES["base"] else f"{layers}x{width}"


def count_bert_layers(weights: Mapping[str, Tensor], part: str) -> int:
    """Return the number of layers of a transformer under the names of BERT, `part.encoder.layer.0.`..."""
    start = f"{part}.encoder.layer."
    return len({name.removeprefix(start).split(".")[0] for name in weights if name.startswith(start)})


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
