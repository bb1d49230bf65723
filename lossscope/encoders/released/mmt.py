"""MMT's released files: the experts, sizes and settings that follow from their weights and configuration."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from torch import Tensor
from torch.nn.functional import pad

from lossscope.errors import InputError
from lossscope.io.json_files import shorten

from ..layers.expert_inputs import item_shape_of
from ..types import OpenedModel, ReleasedFile
from .bert_folder import count_bert_layers, infer_bert
from .expert_config import nested_options, read_margin
from .options import fit_weights, read_count, read_flag, read_number, read_text, require_agreement, require_tensor

_TYPES: Mapping[str, int] = MappingProxyType(
    {"s3d": 1, "vggish": 2, "face": 3, "audio": 4, "rgb": 5, "speech": 6, "ocr": 7, "flow": 8, "scene": 9}
)
_FIRST_NEW_TYPE = 10  # type of the first expert that the original does not have
_ROWS, _FRAMES, _LENGTH = 32, 30, 30
_IGNORED = frozenset({"txt_bert.embeddings.position_ids"})


def expert_types(experts: Sequence[str], types: int) -> list[int]:
    """Return the type of each expert: the original's, and numbers from 10 on for experts that the original lacks.

    Raises InputError when there are more than `types`.
    """
    new = [name for name in experts if name not in _TYPES]
    types_by_name = {**_TYPES, **{name: _FIRST_NEW_TYPE + index for index, name in enumerate(new)}}
    result = [types_by_name[name] for name in experts]
    if max(result) >= types:
        raise InputError(f"types must be more than {max(result)} for the experts {', '.join(experts)}; got {types}")
    return result


def open_mmt(encoder: Callable[..., Any], released: ReleasedFile) -> OpenedModel | None:
    """Return the model of a file whose one state dict has a `vid_bert`; None for other files.

    Where the configuration states more position embeddings than the file has (files trained on HowTo100M), the others
    are zeros, as in the original. Raises InputError for a file that does not fit, or that was trained as another model.
    """
    tower = released.towers[0]
    if len(released.towers) != 1 or not any(name.startswith("vid_bert.") for name in tower):
        return None
    arch = nested_options(released.options, "arch", "args")
    video_options = nested_options(arch, "vid_bert_params")
    _require_first_state(arch)
    ignored = tuple(sorted(_IGNORED & tower.keys()))
    tower = {name: tensor for name, tensor in tower.items() if name not in _IGNORED}
    tower, notices = _pad_positions(tower, read_count(video_options, "max_position_embeddings", _ROWS))
    data_options = _data_options(released.options)
    options = encoder(**_infer_options(tower, arch, video_options, data_options))
    widths = _infer_widths(tower)
    shape = item_shape_of(widths, read_count(data_options, "max_expert_tokens", _FRAMES))
    rows = len(require_tensor(tower, "txt_bert.embeddings.word_embeddings.weight", 2))
    fitted = fit_weights(options, shape, rows, tower)
    _require_sizes(released.options, options, widths)
    return OpenedModel(
        options,
        fitted,
        shape,
        rows,
        f"triplet:margin={read_margin(released.options, 0.05):g}",
        ignored,
        notices,
        context_length=options.length,
    )


def _require_first_state(arch: Mapping[str, Any]) -> None:
    """Raise InputError unless the caption is BERT's first state."""
    text_output = read_text(arch, "txt_agg", "bertftn")
    if not re.fullmatch(r"bert(ftn|frz)\d*(cls)?", text_output):
        raise InputError(f"option txt_agg of the file must be a BERT's first state (bertftn); got {text_output!r}")


def _require_sizes(options: Mapping[str, Any], encoder: Any, widths: Mapping[str, int]) -> None:
    """Raise InputError for the first size in the configuration that is not that of the tensors."""
    require_agreement(nested_options(options, "arch", "args"), {"same_dim": encoder.dim})
    sizes = {
        "hidden_size": encoder.dim, "num_hidden_layers": encoder.layers, "intermediate_size": encoder.ffn,
        "type_vocab_size": encoder.types,
    }  # fmt: skip
    require_agreement(nested_options(options, "arch", "args", "vid_bert_params"), sizes)
    experts = nested_options(options, "experts").get("modalities", sorted(widths))
    if not isinstance(experts, list) or set(map(str, experts)) != widths.keys():
        got = shorten(experts)
        raise InputError(f"experts.modalities of the file must be {sorted(widths)}, as its tensors are; got {got}")


def _infer_options(
    tower: Mapping[str, Tensor],
    arch: Mapping[str, Any],
    video_options: Mapping[str, Any],
    data_options: Mapping[str, Any],
) -> dict[str, Any]:
    """Return the options of the encoder from the shapes of the weights and the configuration."""
    positions = require_tensor(tower, "vid_bert.embeddings.position_embeddings.weight", 2)
    return {
        "dim": positions.shape[1],
        "layers": count_bert_layers(tower, "vid_bert"),
        "heads": read_count(video_options, "num_attention_heads", 4),
        "ffn": len(require_tensor(tower, "vid_bert.encoder.layer.0.intermediate.dense.weight", 2)),
        "positions": len(positions),
        "types": len(require_tensor(tower, "vid_bert.embeddings.token_type_embeddings.weight", 2)),
        "window": read_number(data_options, "temporal_encoding_window", 1.0),
        "dropout": read_number(video_options, "hidden_dropout_prob", 0.1),
        "bert": infer_bert(tower, "txt_bert"),
        "length": read_count(data_options, "max_text_words", _LENGTH),
        "lower": True,
        "keep_missing": read_flag(arch, "keep_missing_modalities", True),
    }


def _infer_widths(tower: Mapping[str, Tensor]) -> dict[str, int]:
    """Return expert -> width of its features. Raises InputError for an expert without a type in the original."""
    start, end = "video_dim_reduce.", ".fc.weight"
    names = [k[len(start) : -len(end)] for k in tower if k.startswith(start) and k.endswith(end)]
    unknown = sorted(set(names) - _TYPES.keys())
    if unknown or not names:
        got = ", ".join(unknown) or "none"
        raise InputError(f"experts of the file must be among {', '.join(sorted(_TYPES))}; got {got}")
    return {name: require_tensor(tower, f"{start}{name}{end}", 2).shape[1] for name in names}


def _pad_positions(tower: Mapping[str, Tensor], rows: int) -> tuple[dict[str, Tensor], tuple[str, ...]]:
    """Return the weights with at least `rows` position embeddings, and a notice when zeros were added."""
    name = "vid_bert.embeddings.position_embeddings.weight"
    embeddings = require_tensor(tower, name, 2)
    if len(embeddings) >= rows:
        return dict(tower), ()
    notice = f"position embeddings: {len(embeddings)} in the file, {rows - len(embeddings)} of zeros behind them"
    return {**tower, name: pad(embeddings, (0, 0, 0, rows - len(embeddings)))}, (notice,)


def _data_options(options: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return how the training data were read: options of the last training set, on which the model was fine-tuned."""
    sets = options.get("train_sets")
    last = sets[-1] if isinstance(sets, list) and sets and isinstance(sets[-1], Mapping) else {}
    mix = nested_options(last, "args").get("mix")
    return mix[0] if isinstance(mix, list) and mix and isinstance(mix[0], Mapping) else {}
