"""float64 through code whose constants are float32: `torch.eye(n)`, a weight made beside the loss, a module's own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_leaves, tree_map


class Float64Mode(TorchFunctionMode):
    """Promote what element-wise operations promote anyway, in matrix products, layers and factories too.

    Tensors that are created without a dtype are float64; an operation that refuses float32 beside float64 gets both in
    float64. One that writes into a tensor keeps the type of that tensor.
    """

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        """Run one operation."""
        kwargs = dict(kwargs or {})
        tensors = [x for x in tree_leaves((args, kwargs)) if isinstance(x, Tensor)]
        if not tensors:
            made = func(*args, **kwargs)
            is_default = isinstance(made, Tensor) and made.dtype == torch.float32 and kwargs.get("dtype") is None
            return made.double() if is_default else made
        if len({x.dtype for x in tensors if x.is_floating_point()}) < 2:
            return func(*args, **kwargs)
        try:
            return func(*args, **kwargs)
        except RuntimeError:
            dtype = tensors[0].dtype if _writes(func) else torch.float64
            args, kwargs = tree_map(lambda x: _in_dtype(x, dtype), (args, kwargs))
            return func(*args, **kwargs)


def _writes(func: Callable[..., Any]) -> bool:
    """Whether an operation writes into its first argument: `add_`, or `x[i] = y`."""
    name = getattr(func, "__name__", "")
    return name == "__setitem__" or (name.endswith("_") and not name.endswith("__"))


def _in_dtype(x: Any, dtype: torch.dtype) -> Any:
    return x.to(dtype) if isinstance(x, Tensor) and x.is_floating_point() and x.dtype != dtype else x
