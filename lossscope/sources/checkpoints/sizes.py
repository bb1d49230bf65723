"""Do the sizes that a checkpoint states fit its weights? Found on torch's meta device, where tensors have no memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules import module as hooks
from torch.overrides import TorchFunctionMode

from lossscope.encoders.base import EncoderSpec, require_fit
from lossscope.encoders.types import ItemShape
from lossscope.errors import InputError

_INIT = "torch.nn.init"
_PACKAGE = "lossscope.encoders."
_FREE_PARTS = 4096  # modules and tensors that a model of any file may have
_PARTS_A_WEIGHT = 32  # that a model of many weights may have


def require_possible_sizes(
    spec: EncoderSpec,
    shape: ItemShape,
    vocabulary_size: int,
    stored_files: Mapping[str, str],
    weights: Mapping[str, Tensor],
) -> None:
    """Raise InputError when a checkpoint's encoder has other sizes than its weights, before it is built.

    Encoders of plug-ins are not looked at: their code runs only where it is trusted.

    Args:
        spec: of the encoder.
        shape: of one item.
        vocabulary_size: number of ids.
        stored_files: what the checkpoint keeps of the spec's files.
        weights: of the checkpoint.
    """
    if not type(spec).__module__.startswith(_PACKAGE):
        return
    try:
        most = _FREE_PARTS + _PARTS_A_WEIGHT * len(weights)
        with _limited_parts(most), torch.random.fork_rng(devices=[]), torch.device("meta"), _WithoutValues():
            expected = spec.rebuild(shape, vocabulary_size, stored_files).state_dict()
    except InputError:
        raise
    except Exception as error:  # sizes that torch cannot state raise anything
        raise InputError(f"sizes of the encoder must be those of a model; got {_brief(error)}") from error
    require_fit(expected, weights, "the encoder")


class _WithoutValues(TorchFunctionMode):
    """Leave out what only changes the values of tensors; on `meta` it has no effect but to import seconds of torch."""

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        name, target = getattr(func, "__name__", ""), args[0] if args else kwargs.get("tensor")
        if name == "__setitem__":
            return None
        if (
            isinstance(target, Tensor)
            and target.is_meta
            and (name in _VALUES_ONLY or getattr(func, "__module__", "") == _INIT)
        ):
            return target
        if name in _ELEMENTWISE and isinstance(args[1], int):
            return args[0]
        return func(*args, **kwargs)


_VALUES_ONLY = frozenset({
    "add_", "clamp_", "copy_", "div_", "erfinv_", "exponential_", "fill_", "log_", "mul_", "normal_", "sub_",
    "uniform_", "zero_",
})  # fmt: skip
_ELEMENTWISE = frozenset({"__floordiv__", "__mod__"})


@contextmanager
def _limited_parts(most: int) -> Iterator[None]:
    """Raise InputError, while a model is built, when it gets more modules and tensors than that."""
    parts = 0

    def count(owner: nn.Module, name: str, part: object) -> None:
        nonlocal parts
        parts += 1
        if parts > most:
            raise InputError(f"the encoder must have the parts that its weights are of; its spec states over {most}")

    handles = [
        hooks.register_module_module_registration_hook(count),
        hooks.register_module_parameter_registration_hook(count),
        hooks.register_module_buffer_registration_hook(count),
    ]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def _brief(error: Exception) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
