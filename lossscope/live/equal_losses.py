"""A key that is equal for losses of a library with the same state, so that they are measured once a process."""

from __future__ import annotations

import io
import pickle
import types
from typing import Any, NamedTuple

from torch import nn

from lossscope.objectives.custom.copies import is_small

_LIBRARIES = ("builtins", "collections", "copyreg", "numpy", "pytorch_metric_learning", "torch")  # users edit no code


class StateKey(NamedTuple):
    """The state of a loss, and the classes and functions that it names."""

    state: bytes
    names: tuple[Any, ...]

    def copy(self) -> Any:
        """Return a loss of this state."""
        return pickle.loads(self.state)


def state_key(loss: Any) -> StateKey | None:
    """Return the key of a loss; None of one with code of the user, which may change, of a large one, or of another."""
    if not isinstance(loss, nn.Module) or not is_small(loss):
        return None
    stream = io.BytesIO()
    pickler = _NamesPickler(stream)
    try:
        pickler.dump(loss)
    except Exception:
        return None
    names = tuple(pickler.names)
    of_libraries = all(str(getattr(name, "__module__", "")).partition(".")[0] in _LIBRARIES for name in names)
    return StateKey(stream.getvalue(), names) if of_libraries else None


class _NamesPickler(pickle.Pickler):
    """Note what is pickled by its name."""

    def __init__(self, stream: io.BytesIO) -> None:
        super().__init__(stream)
        self.names: list[Any] = []

    def reducer_override(self, obj: Any) -> Any:
        if isinstance(obj, type | types.FunctionType | types.BuiltinFunctionType):
            self.names.append(obj)
        return NotImplemented
