"""CE's original files: the experts, sizes and settings that the weights and the configuration in them tell."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from torch import Tensor

from lossscope.errors import InputError

from ..layers.expert_inputs import keys_of, shape_of
from ..types import OpenedModel, ReleasedFile
from . import options as told
from .expert_config import inside, margin_of, require_settings, whole

_EXPERTS: Mapping[str, int] = MappingProxyType({
    "audio": 128, "face": 512, "i3d.i3d.0": 1024, "imagenet.resnext101_32x48d.0": 2048, "imagenet.senet154.0": 2048,
    "ocr": 300, "r2p1d.r2p1d-ig65m.0": 512, "scene.densenet161.0": 2208, "speech": 300,
})  # fmt: skip
_ROWS: Mapping[str, int] = MappingProxyType({"audio": 29, "ocr": 49, "speech": 32})
_WORDS = 37
_ARCHITECTURE: Mapping[str, Any] = MappingProxyType({
    "use_ce": "pairwise", "use_mish": True, "use_bn_reason": True, "include_self": True, "num_g_layers": 3,
    "num_h_layers": 0, "l2renorm": False, "freeze_weights": False, "concat_experts": False,
    "concat_mix_experts": False, "randomise_feats": "",
})  # fmt: skip


def opened_ce(encoder: Callable[..., Any], original: ReleasedFile) -> OpenedModel | None:
    """A file whose one state dict has a `ce.moe_fc`; None for others.

    Raises InputError for a file that does not fit, or that was trained as another model.
    """
    tower = original.towers[0]
    if len(original.towers) != 1 or "ce.moe_fc.weight" not in tower:
        return None
    arch = inside(original.options, "arch", "args")
    require_settings(arch, _ARCHITECTURE)
    most = inside(original.options, "data_loader", "args", "max_tokens")
    clusters = _clusters(tower)
    rows = {name: whole(most, name, _ROWS.get(name, 1)) for name in clusters}
    spec = encoder(**_options(tower, clusters), rows=_written(rows), length=whole(most, "text", _WORDS),
                   keep_missing=told.flag(arch, "keep_missing_modalities", False))  # fmt: skip
    frames = max(rows.values(), default=1)
    shape = shape_of(_widths(tower, clusters, _names(original.options, tower)), frames)
    return OpenedModel(
        spec,
        told.fitted(spec, shape, 0, tower),
        shape,
        0,
        f"triplet:margin={margin_of(original.options, 0.09381):g}",
        notices=(f"data: videos of frames={frames}, captions as vectors of words (msrvtt:words=STEM)",),
    )


def _options(tower: Mapping[str, Tensor], clusters: Mapping[str, int]) -> dict[str, Any]:
    words = told.tensor_of(tower, "text_pooling.clusters2", 3)
    return {
        "dim": len(told.tensor_of(tower, "ce.g_reason_1.weight", 2)),
        "clusters": _written(clusters),
        "text_clusters": words.shape[2],
        "ghosts": told.tensor_of(tower, "text_pooling.clusters", 2).shape[1] - words.shape[2],
        "word_dim": words.shape[1],
        "padded": True,
    }


def _clusters(tower: Mapping[str, Tensor]) -> dict[str, int]:
    """Expert -> clusters of its NetVLAD. Raises InputError for a name that could not be written in a spec."""
    start, end = "pooling.", ".clusters2"
    names = sorted(k[len(start) : -len(end)] for k in tower if k.startswith(start) and k.endswith(end))
    for name in names:
        if not name.isidentifier():
            raise InputError(f"experts that are pooled must have plain names; the file has {name!r}")
    return {name: told.tensor_of(tower, f"{start}{name}{end}", 3).shape[2] for name in names}


def _names(options: Mapping[str, Any], tower: Mapping[str, Tensor]) -> list[str]:
    """The experts, sorted, as the configuration lists them; without one, the nine of MSR-VTT if there are nine."""
    number = len(told.tensor_of(tower, "ce.moe_fc.weight", 2))
    told_names = inside(options, "experts").get("modalities", sorted(_EXPERTS))
    texts = isinstance(told_names, list) and all(isinstance(name, str) for name in told_names)
    if not texts or len(set(told_names)) != number or len(told_names) != number:
        raise InputError(f"experts.modalities of the file must name {number} experts, each once; got {told_names!r}")
    keys_of(told_names)
    return sorted(told_names)


def _widths(tower: Mapping[str, Tensor], clusters: Mapping[str, int], names: list[str]) -> dict[str, int]:
    """Expert -> width of its frames, before pooling. Raises InputError when a pooled expert is none of them."""
    unknown = sorted(clusters.keys() - set(names))
    if unknown:
        raise InputError(f"experts that are pooled must be among {', '.join(names)}; got {', '.join(unknown)}")
    widths = {}
    for place, name in enumerate(names):
        pooled = told.tensor_of(tower, f"ce.video_dim_reduce.{place}.fc.weight", 2).shape[1]
        widths[name] = pooled // clusters.get(name, 1)
    return widths


def _written(numbers: Mapping[str, int]) -> str:
    return "+".join(f"{name}={number}" for name, number in numbers.items())
