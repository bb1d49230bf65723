"""MMT's original files: the experts, sizes and settings that the weights and the configuration in them tell."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from torch import Tensor
from torch.nn.functional import pad

from lossscope.errors import InputError

from ..layers.bert import HEAD
from ..layers.expert_inputs import shape_of
from ..types import OpenedModel, ReleasedFile
from . import options as told
from .expert_config import inside, margin_of, require_settings, whole

_TYPES: Mapping[str, int] = MappingProxyType(
    {"s3d": 1, "vggish": 2, "face": 3, "audio": 4, "rgb": 5, "speech": 6, "ocr": 7, "flow": 8, "scene": 9}
)
_FURTHER = 10  # the first type that no known expert has
_ROWS, _FRAMES, _LENGTH = 32, 30, 30
_IGNORED = frozenset({"txt_bert.embeddings.position_ids"})
_ARCHITECTURE: Mapping[str, Any] = MappingProxyType({
    "vid_cont": "bert", "vid_inp": "both", "out_tok": "mxp", "pos_enc": "tint", "txt_wgh": "emb", "vid_wgh": "none",
    "txt_pro": "gbn", "l2renorm": False, "normalize_experts": True,
})  # fmt: skip


def types_of(experts: Sequence[str], types: int) -> list[int]:
    """The type of each expert: the original's, and further ones, from 10 on, for experts it does not know.

    Raises InputError when there are more than `types`.
    """
    further = [name for name in experts if name not in _TYPES]
    known = {**_TYPES, **{name: _FURTHER + place for place, name in enumerate(further)}}
    found = [known[name] for name in experts]
    if max(found) >= types:
        raise InputError(f"types must be more than {max(found)} for the experts {', '.join(experts)}; got {types}")
    return found


def opened_mmt(encoder: Callable[..., Any], original: ReleasedFile) -> OpenedModel | None:
    """A file whose one state dict has a `vid_bert`; None for others.

    Fewer position embeddings than the configuration says (files trained on HowTo100M) are filled up with zeros, as
    the original does. Raises InputError for a file that does not fit, or that was trained as another model.
    """
    tower = original.towers[0]
    if len(original.towers) != 1 or not any(name.startswith("vid_bert.") for name in tower):
        return None
    arch = inside(original.options, "arch", "args")
    plan = inside(arch, "vid_bert_params")
    _check(arch, plan)
    ignored = tuple(sorted(_IGNORED & tower.keys()))
    tower = {name: tensor for name, tensor in tower.items() if name not in _IGNORED}
    tower, notices = _filled(tower, whole(plan, "max_position_embeddings", _ROWS))
    mix = _mix(original.options)
    spec = encoder(**_options(tower, arch, plan, mix))
    shape = shape_of(_widths(tower), whole(mix, "max_expert_tokens", _FRAMES))
    rows = len(told.tensor_of(tower, "txt_bert.embeddings.word_embeddings.weight", 2))
    return OpenedModel(
        spec,
        told.fitted(spec, shape, rows, tower),
        shape,
        rows,
        f"triplet:margin={margin_of(original.options, 0.05):g}",
        ignored,
        notices,
        context=spec.length,
    )


def _check(arch: Mapping[str, Any], plan: Mapping[str, Any]) -> None:
    require_settings(arch, _ARCHITECTURE)
    require_settings(plan, {"hidden_act": "gelu", "layer_norm_eps": 1e-12})
    read = told.text(arch, "txt_agg", "bertftn")
    if not re.fullmatch(r"bert(ftn|frz)\d*(cls)?", read):
        raise InputError(f"option txt_agg of the file must be a BERT's first state (bertftn); got {read!r}")


def _options(
    tower: Mapping[str, Tensor], arch: Mapping[str, Any], plan: Mapping[str, Any], mix: Mapping[str, Any]
) -> dict[str, Any]:
    positions = told.tensor_of(tower, "vid_bert.embeddings.position_embeddings.weight", 2)
    return {
        "dim": positions.shape[1],
        "layers": _layers(tower, "vid_bert"),
        "heads": whole(plan, "num_attention_heads", 4),
        "ffn": len(told.tensor_of(tower, "vid_bert.encoder.layer.0.intermediate.dense.weight", 2)),
        "positions": len(positions),
        "types": len(told.tensor_of(tower, "vid_bert.embeddings.token_type_embeddings.weight", 2)),
        "window": told.number(mix, "temporal_encoding_window", 1.0),
        "dropout": told.number(plan, "hidden_dropout_prob", 0.1),
        "bert": _bert(tower),
        "length": whole(mix, "max_text_words", _LENGTH),
        "lower": True,
        "keep_missing": told.flag(arch, "keep_missing_modalities", True),
    }


def _widths(tower: Mapping[str, Tensor]) -> dict[str, int]:
    """Expert -> width of its features. Raises InputError for one whose type the original does not tell."""
    start, end = "video_dim_reduce.", ".fc.weight"
    names = [k[len(start) : -len(end)] for k in tower if k.startswith(start) and k.endswith(end)]
    unknown = sorted(set(names) - _TYPES.keys())
    if unknown or not names:
        got = ", ".join(unknown) or "none"
        raise InputError(f"experts of the file must be among {', '.join(sorted(_TYPES))}; got {got}")
    return {name: told.tensor_of(tower, f"{start}{name}{end}", 2).shape[1] for name in names}


def _filled(tower: Mapping[str, Tensor], rows: int) -> tuple[dict[str, Tensor], tuple[str, ...]]:
    name = "vid_bert.embeddings.position_embeddings.weight"
    held = told.tensor_of(tower, name, 2)
    if len(held) >= rows:
        return dict(tower), ()
    notice = f"position embeddings: {len(held)} in the file, {rows - len(held)} of zeros behind them"
    return {**tower, name: pad(held, (0, 0, 0, rows - len(held)))}, (notice,)


def _layers(tower: Mapping[str, Tensor], part: str) -> int:
    start = f"{part}.encoder.layer."
    return len({name.removeprefix(start).split(".")[0] for name in tower if name.startswith(start)})


def _bert(tower: Mapping[str, Tensor]) -> str:
    width = told.tensor_of(tower, "txt_bert.embeddings.word_embeddings.weight", 2).shape[1]
    layers = _layers(tower, "txt_bert")
    if width % HEAD or not layers:
        raise InputError(f"the BERT must have layers, and a width that is a multiple of {HEAD}; got {width}")
    return "base" if (layers, width) == (12, 768) else f"{layers}x{width}"


def _mix(options: Mapping[str, Any]) -> Mapping[str, Any]:
    """How the training data were read: that of the last training set, on which a model was fine-tuned."""
    sets = options.get("train_sets")
    last = sets[-1] if isinstance(sets, list) and sets and isinstance(sets[-1], Mapping) else {}
    mix = inside(last, "args").get("mix")
    return mix[0] if isinstance(mix, list) and mix and isinstance(mix[0], Mapping) else {}
