"""Simulate a second device without a GPU: its tensors compute on the CPU, and refuse to meet tensors of the CPU.

It enforces the rules of CUDA: two tensors of one operation are on one device, except numbers (0-d) of
the CPU and indices; numpy takes tensors of the CPU alone; a random generator is of the device that it fills.
Values are those of the CPU, so that a test that compares both devices compares them to the last bit. It knows nothing
of kernels, streams and precisions.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.library import Library, fallthrough_kernel
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode, return_and_correct_aliasing
from torch.utils._pytree import tree_leaves, tree_map
from torch.utils.backend_registration import _setup_privateuseone_for_python_backend

NAME = "second"
_TRANSFERS = ("aten::_to_copy", "aten::copy_", "aten::to", "aten::_copy_from")
_WITH_CPU_INDICES = {  # operator -> how many first arguments may not be of the CPU
    "aten::index": 1, "aten::index_put": 1, "aten::index_put_": 1, "aten::_index_put_impl_": 1,
    "aten::_unsafe_index": 1, "aten::_pack_padded_sequence": 1, "aten::_pack_padded_sequence_backward": 1,
}  # fmt: skip
_AUTOCAST = Library("_", "IMPL")
_TO_PYTHON = ("aten::_local_scalar_dense", "aten::equal", "aten::is_same_size")


class SecondTensor(Tensor):
    """A tensor of the second device, whose numbers are those of `inner`."""

    inner: Tensor

    @staticmethod
    def __new__(cls, inner: Tensor) -> SecondTensor:
        made = torch.Tensor._make_wrapper_subclass(  # type: ignore[attr-defined]
            cls, inner.size(), strides=inner.stride(), storage_offset=inner.storage_offset(), dtype=inner.dtype,
            layout=inner.layout, device=torch.device(NAME, 0), requires_grad=False,
        )  # fmt: skip
        made.inner = inner
        return made  # type: ignore[no-any-return]

    def __repr__(self) -> str:  # type: ignore[override]
        return f"second({self.inner!r})"

    def __getitem__(self, index: Any) -> Tensor:
        return super().__getitem__(_as_tensors(index))

    def __setitem__(self, index: Any, value: Any) -> None:
        super().__setitem__(_as_tensors(index), value)

    def new_tensor(self, data: Any, **options: Any) -> Tensor:
        """Return numbers as a tensor of this device."""
        return torch.tensor(data, dtype=options.get("dtype", self.dtype)).to(self.device)

    def tolist(self) -> Any:
        """Return the numbers; torch has this for its own tensors alone."""
        return self.detach().cpu().tolist()

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Pickle the tensor as one of the CPU, as torch.load(map_location="cpu") would make it."""
        return self.detach().cpu().__reduce_ex__(protocol)

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return _run(func, args, kwargs or {})


class SecondDevice(TorchDispatchMode):
    """A mode in which `device="second"` makes tensors of the second device."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return _run(func, args, kwargs or {})


class _Constructors(TorchFunctionMode):
    """Make torch.tensor of numbers, for which torch needs an operator that only devices of C++ have."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        device = kwargs.get("device")
        if func not in (torch.tensor, torch.as_tensor) or device is None or torch.device(device).type != NAME:
            return func(*args, **kwargs)
        return func(*args, **{**kwargs, "device": "cpu"}).to(device)


class _Module:
    """The functions that torch calls in the module of a device."""

    def is_initialized(self) -> bool:
        return True

    def is_available(self) -> bool:
        return True

    def current_device(self) -> int:
        return 0

    def device_count(self) -> int:
        return 1

    def _is_in_bad_fork(self) -> bool:
        return False

    def manual_seed_all(self, seed: int) -> None:
        """Do nothing: random numbers are those of the CPU."""

    def get_rng_state(self, device: object = 0) -> Tensor:
        return torch.get_rng_state()

    def set_rng_state(self, state: Tensor, device: object = 0) -> None:
        torch.set_rng_state(state)

    def device(self, device: object) -> contextlib.AbstractContextManager[None]:
        return contextlib.nullcontext()

    def get_amp_supported_dtype(self) -> list[torch.dtype]:
        return [torch.bfloat16, torch.float16]


def register() -> None:
    """Register the device with torch, once in a process; autocast changes nothing on it."""
    _setup_privateuseone_for_python_backend(NAME, backend_module=_Module())
    _AUTOCAST.fallback(fallthrough_kernel, "AutocastPrivateUse1")


@contextlib.contextmanager
def second_device() -> Iterator[None]:
    """Make the device usable."""
    with SecondDevice(), _Constructors(), torch.autograd.set_multithreading_enabled(False):  # modes are of one thread
        yield


def _run(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    tensors = [x for x in tree_leaves((args, kwargs)) if isinstance(x, Tensor)]
    seconds = [x for x in tensors if isinstance(x, SecondTensor)]
    device = kwargs.get("device")
    wanted = None if device is None else torch.device(device)
    on_second = bool(seconds) if wanted is None else wanted.type == NAME
    if not seconds and not on_second:
        return func(*args, **kwargs)
    name = func._schema.name
    if name not in _TRANSFERS:
        _require_one_device(name, args, kwargs, seconds)
    generator = kwargs.get("generator")
    if generator is not None and on_second:
        raise RuntimeError(f"Expected a '{NAME}' device type for generator but found '{generator.device}'")
    inner = {k: torch.device("cpu") if k == "device" and v is not None else _inner(v) for k, v in kwargs.items()}
    inner.pop("pin_memory", None)
    result = _OWN.get(name, func)(*tree_map(_inner, args), **inner)
    if name in _TO_PYTHON:
        return result
    if name == "aten::copy_" or not on_second:
        return args[0] if name == "aten::copy_" else result
    if not seconds:
        return tree_map(_outer, result)
    if name == "aten::_pack_padded_sequence":
        return _outer(result[0]), result[1]  # the sizes of steps stay on the CPU
    return return_and_correct_aliasing(func, args, kwargs, tree_map(_outer, result))


def _gru_cell(x: Tensor, h: Tensor, hx: Tensor, bias: Tensor | None = None, other: Tensor | None = None) -> Any:
    """Return n + z (hx − n), and what its gradient needs; the CPU has no such operator."""
    x, h = (gates if b is None else gates + b for gates, b in ((x, bias), (h, other)))
    (xr, xz, xn), (hr, hz, hn) = x.chunk(3, 1), h.chunk(3, 1)
    r, z = (xr + hr).sigmoid(), (xz + hz).sigmoid()
    n = (xn + r * hn).tanh()
    return n + z * (hx - n), torch.cat([r, z, n, hx, hn], 1)


def _gru_cell_backward(dy: Tensor, saved: Tensor, has_bias: bool) -> Any:
    r, z, n, hx, hn = saved.chunk(5, 1)
    dn = dy * (1 - z) * (1 - n * n)
    dr, dz = dn * hn * r * (1 - r), dy * (hx - n) * z * (1 - z)
    dx, dh = torch.cat([dr, dz, dn], 1), torch.cat([dr, dz, dn * r], 1)
    return dx, dh, dy * z, dx.sum(0) if has_bias else None, dh.sum(0) if has_bias else None


_OWN = {"aten::_thnn_fused_gru_cell": _gru_cell, "aten::_thnn_fused_gru_cell_backward": _gru_cell_backward}


def _require_one_device(name: str, args: tuple[Any, ...], kwargs: dict[str, Any], seconds: list[SecondTensor]) -> None:
    """Raise RuntimeError where a tensor of the CPU meets one of the device, except where torch allows it."""
    index_argument = _WITH_CPU_INDICES.get(name)
    strict = args if index_argument is None else (*args[:index_argument], *args[2:3])
    strict = strict[:1] if name.startswith("aten::_pack") else strict
    for x in tree_leaves((strict, kwargs)):
        if isinstance(x, Tensor) and not isinstance(x, SecondTensor) and x.device.type == "cpu" and x.ndim:
            raise RuntimeError(
                f"Expected all tensors to be on the same device, but {name} found {NAME}:0 and cpu, {tuple(x.shape)}"
            )


def _as_tensors(index: Any) -> Any:
    """Return the index with tensors for lists and arrays, which torch would make with an operator of the device."""
    if isinstance(index, tuple):
        return tuple(_as_tensors(item) for item in index)
    return torch.tensor(index) if isinstance(index, list | np.ndarray) else index


def _inner(x: Any) -> Any:
    return x.inner if isinstance(x, SecondTensor) else x


def _outer(x: Any) -> Any:
    return SecondTensor(x) if isinstance(x, Tensor) and not isinstance(x, SecondTensor) else x
