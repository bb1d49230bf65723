"""The contents of a released checkpoint, each checked before use: state dicts, options, numbers."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from lossscope.errors import InputError
from lossscope.io.pickles.stubs import ConfigStub, to_plain

_OPTION_KEYS = ("opt", "config", "args", "hparams", "hyper_parameters", "options")
_MAX_BITS = 64  # of the greatest whole number that an option or a metric can be


def is_state_dict(tower: Any) -> bool:
    """Return whether it is a dict of tensors under texts, with at least one."""
    tensors = isinstance(tower, dict) and bool(tower)
    return tensors and all(isinstance(k, str) and isinstance(v, Tensor) for k, v in dict.items(tower))


def require_dense(tower: Mapping[str, Tensor], path: Path) -> None:
    """Raise InputError that names the first tensor that is not an ordinary one, such as a sparse or quantised one."""
    for name, tensor in _to_dict(tower).items():
        ordinary = type(tensor) in (Tensor, torch.nn.Parameter) and not tensor.is_nested and not tensor.is_quantized
        if not ordinary or tensor.layout is not torch.strided or tensor.device.type != "cpu":
            got = f"one of {tensor.dtype}, {tensor.layout} on {tensor.device}"
            raise InputError(f"{name} of {path} must be an ordinary tensor with its numbers; got {got}")


def strip_module_prefix(tower: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
    """Return the tensors without `module.` in front of their names, where all names have it."""
    named = _to_dict(tower)
    if all(name.startswith("module.") for name in named):
        return {name.removeprefix("module."): tensor for name, tensor in named.items()}
    return named


def _to_dict(tower: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return a plain dict: a file can replace the methods of other classes."""
    return dict(dict.items(tower)) if isinstance(tower, dict) else dict(tower)


def read_options(content: Mapping[Any, Any], path: Path) -> Mapping[str, Any]:
    """Return the options of a checkpoint, under `opt`, `config` or a name like these, as plain values; {} without any.

    Raises InputError when there are several, or some under a name that is not known, and as to_plain_options does.
    """
    named = [name for name in _OPTION_KEYS if name in content]
    unknown = [str(k)[:60] for k, v in content.items() if isinstance(v, ConfigStub) and k not in _OPTION_KEYS]
    if len(named) > 1 or unknown:
        got = ", ".join([*named, *unknown])
        raise InputError(f"{path} must hold its options once, as `opt` or `config`; got {got}. Save it with one")
    options = to_plain_options(content[named[0]] if named else {}, path)
    if not isinstance(options, dict):
        raise InputError(f"{named[0]} of {path} must hold options by name; got {type(options).__name__}")
    inner = options.get("_config")
    return inner if isinstance(inner, dict) else options


def to_plain_options(options: Any, path: Path) -> Any:
    """Return options as plain values under texts. Raises InputError for endless nesting and for oversized numbers."""
    try:
        return to_plain(options, _require_value, _to_name)
    except InputError as error:
        raise InputError(f"options of {path} must be ordinary ones; {error}") from None


def read_epoch(content: Mapping[Any, Any]) -> int:
    """Return the epoch of a checkpoint, 0 when it has no valid one."""
    epoch = content.get("epoch", 0)
    is_integer = isinstance(epoch, int) and not isinstance(epoch, bool)
    return epoch if is_integer and 0 <= epoch < 1 << 31 else 0


def read_metrics(content: Mapping[Any, Any]) -> Mapping[str, float]:
    """Return the metrics of a checkpoint that are finite numbers; others (of diverged or damaged ones) are left out."""
    named = {"best_rsum": "rsum", "monitor_best": "monitor_best"}
    return {ours: float(content[theirs]) for theirs, ours in named.items() if _is_finite(content.get(theirs))}


def _require_value(value: Any) -> Any:
    if isinstance(value, int) and value.bit_length() > _MAX_BITS:
        raise InputError(f"it holds a whole number of {value.bit_length()} bits")
    return value


def _to_name(key: Any) -> str:
    if not isinstance(key, str | int | float | None):
        raise InputError(f"it holds a {type(key).__name__} as a name")
    return str(_require_value(key))


def _is_finite(value: Any) -> bool:
    if isinstance(value, int):
        return value.bit_length() <= _MAX_BITS
    return isinstance(value, float) and math.isfinite(value)
