"""CE's released files: the experts, sizes and settings that follow from their weights and configuration."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from torch import Tensor

from lossscope.errors import InputError

from ..layers.expert_inputs import item_shape_of, module_keys
from ..types import OpenedModel, ReleasedFile
from .expert_config import nested_options, read_margin
from .options import fit_weights, read_count, read_flag, require_agreement, require_tensor

_EXPERTS: Mapping[str, int] = MappingProxyType({
    "audio": 128, "face": 512, "i3d.i3d.0": 1024, "imagenet.resnext101_32x48d.0": 2048, "imagenet.senet154.0": 2048,
    "ocr": 300, "r2p1d.r2p1d-ig65m.0": 512, "scene.densenet161.0": 2208, "speech": 300,
})  # fmt: skip
_ROWS: Mapping[str, int] = MappingProxyType({"audio": 29, "ocr": 49, "speech": 32})
_WORDS = 37


def open_ce(encoder: Callable[..., Any], released: ReleasedFile) -> OpenedModel | None:
    """Return the model of a file whose one state dict has a `ce.moe_fc`; None for other files.

    Raises InputError for a file that does not fit, or that was trained as another model.
    """
    tower = released.towers[0]
    if len(released.towers) != 1 or "ce.moe_fc.weight" not in tower:
        return None
    arch = nested_options(released.options, "arch", "args")
    max_tokens = nested_options(released.options, "data_loader", "args", "max_tokens")
    clusters = _infer_clusters(tower)
    rows = {name: read_count(max_tokens, name, _ROWS.get(name, 1)) for name in clusters}
    options = encoder(
        **_infer_options(tower, clusters),
        rows=_format_counts(rows),
        length=read_count(max_tokens, "text", _WORDS),
        keep_missing=read_flag(arch, "keep_missing_modalities", False),
    )
    frames = max(rows.values(), default=1)
    shape = item_shape_of(_infer_widths(tower, clusters, _expert_names(released.options, tower)), frames)
    fitted = fit_weights(options, shape, 0, tower)
    _require_sizes(released.options, options, clusters)
    return OpenedModel(
        options,
        fitted,
        shape,
        0,
        f"triplet:margin={read_margin(released.options, 0.09381):g}",
        notices=(f"data: videos of frames={frames}, captions as vectors of words (msrvtt:words=STEM)",),
    )


def _infer_options(tower: Mapping[str, Tensor], clusters: Mapping[str, int]) -> dict[str, Any]:
    """Return the options of the encoder that follow from the shapes of the weights."""
    words = require_tensor(tower, "text_pooling.clusters2", 3)
    return {
        "dim": len(require_tensor(tower, "ce.g_reason_1.weight", 2)),
        "clusters": _format_counts(clusters),
        "text_clusters": words.shape[2],
        "ghosts": require_tensor(tower, "text_pooling.clusters", 2).shape[1] - words.shape[2],
        "word_dim": words.shape[1],
        "padded": True,
    }


def _require_sizes(options: Mapping[str, Any], encoder: Any, clusters: Mapping[str, int]) -> None:
    """Raise InputError for the first size in the configuration that is not that of the tensors."""
    require_agreement(nested_options(options, "experts"), {"ce_shared_dim": encoder.dim})
    pooled = nested_options(options, "arch", "args", "vlad_clusters")
    require_agreement(pooled, {"text": encoder.text_clusters, **clusters})
    require_agreement(nested_options(options, "arch", "args", "ghost_clusters"), {"text": encoder.ghosts})


def _infer_clusters(tower: Mapping[str, Tensor]) -> dict[str, int]:
    """Return expert -> clusters of its NetVLAD. Raises InputError for a name that cannot be written in a spec."""
    start, end = "pooling.", ".clusters2"
    names = sorted(k[len(start) : -len(end)] for k in tower if k.startswith(start) and k.endswith(end))
    for name in names:
        if not name.isidentifier():
            raise InputError(f"pooled experts must have plain names; got {name!r}")
    return {name: require_tensor(tower, f"{start}{name}{end}", 3).shape[2] for name in names}


def _expert_names(options: Mapping[str, Any], tower: Mapping[str, Tensor]) -> list[str]:
    """Return the experts in the configuration, sorted; without one, those of MSR-VTT if their number fits."""
    number = len(require_tensor(tower, "ce.moe_fc.weight", 2))
    experts = nested_options(options, "experts").get("modalities", sorted(_EXPERTS))
    valid = isinstance(experts, list) and all(isinstance(name, str) for name in experts)
    if not valid or len(set(experts)) != number or len(experts) != number:
        raise InputError(f"experts.modalities of the file must name {number} experts, each once; got {experts!r}")
    module_keys(experts)
    return sorted(experts)


def _infer_widths(tower: Mapping[str, Tensor], clusters: Mapping[str, int], names: list[str]) -> dict[str, int]:
    """Return expert -> width of its frames before pooling. Raises InputError when a pooled expert is not in `names`."""
    unknown = sorted(clusters.keys() - set(names))
    if unknown:
        raise InputError(f"pooled experts must be among {', '.join(names)}; got {', '.join(unknown)}")
    widths = {}
    for index, name in enumerate(names):
        pooled = require_tensor(tower, f"ce.video_dim_reduce.{index}.fc.weight", 2).shape[1]
        widths[name] = pooled // clusters.get(name, 1)
    return widths


def _format_counts(numbers: Mapping[str, int]) -> str:
    """Return counts as in a spec, `audio=8+ocr=43`."""
    return "+".join(f"{name}={number}" for name, number in numbers.items())
