"""What stands in an original checkpoint beside its form: state dicts, options, numbers; each checked before use."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from lossscope.errors import InputError
from lossscope.io.pickles.stubs import plain

_BITS = 64  # of the greatest whole number that an option or a metric can be


def is_state(tower: Any) -> bool:
    """Whether it is a dict of tensors under texts, with one at least."""
    tensors = isinstance(tower, dict) and bool(tower)
    return tensors and all(isinstance(k, str) and isinstance(v, Tensor) for k, v in dict.items(tower))


def require_dense(tower: Mapping[str, Tensor], path: Path) -> None:
    """Raise InputError naming the first tensor that is no ordinary one, as sparse and quantised ones are not."""
    for name, tensor in _named(tower).items():
        known = type(tensor) in (Tensor, torch.nn.Parameter) and not tensor.is_nested and not tensor.is_quantized
        if not known or tensor.layout is not torch.strided or tensor.device.type != "cpu":
            got = f"one of {tensor.dtype}, {tensor.layout} on {tensor.device}"
            raise InputError(f"{name} of {path} must be an ordinary tensor with its numbers; got {got}")


def without_module(tower: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
    """The same without `module.` in front of the names, where every name has it."""
    named = _named(tower)
    if all(name.startswith("module.") for name in named):
        return {name.removeprefix("module."): tensor for name, tensor in named.items()}
    return named


def _named(tower: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """As a plain dict; a file can hang values on the methods of other kinds."""
    return dict(dict.items(tower)) if isinstance(tower, dict) else dict(tower)


def options_of(found: Mapping[Any, Any], path: Path) -> Mapping[str, Any]:
    """`opt` or `config` of a checkpoint as plain values, {} when it has none. Raises InputError as plain_options."""
    options = plain_options(found.get("opt", found.get("config", {})), path)
    inner = options.get("_config") if isinstance(options, dict) else None
    if isinstance(inner, dict):
        return inner
    return options if isinstance(options, dict) else {}


def plain_options(options: Any, path: Path) -> Any:
    """Options as plain values under texts. Raises InputError for endless depth, and numbers that no option is."""
    try:
        return plain(options, _value, _name)
    except InputError as error:
        raise InputError(f"options of {path} must be ordinary ones; {error}") from None


def epoch_of(found: Mapping[Any, Any]) -> int:
    """The epoch that a checkpoint tells, 0 when it tells none that could be."""
    epoch = found.get("epoch", 0)
    whole = isinstance(epoch, int) and not isinstance(epoch, bool)
    return epoch if whole and 0 <= epoch < 1 << 31 else 0


def metrics_of(found: Mapping[Any, Any]) -> Mapping[str, float]:
    """Metrics of a checkpoint that are finite numbers; what diverged or is damaged is not told."""
    named = {"best_rsum": "rsum", "monitor_best": "monitor_best"}
    return {ours: float(found[theirs]) for theirs, ours in named.items() if _finite(found.get(theirs))}


def _value(value: Any) -> Any:
    if isinstance(value, int) and value.bit_length() > _BITS:
        raise InputError(f"it holds a whole number of {value.bit_length()} bits")
    return value


def _name(key: Any) -> str:
    if not isinstance(key, str | int | float | None):
        raise InputError(f"it holds a {type(key).__name__} as a name")
    return str(_value(key))


def _finite(value: Any) -> bool:
    if isinstance(value, int):
        return value.bit_length() <= _BITS
    return isinstance(value, float) and math.isfinite(value)
