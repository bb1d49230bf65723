"""Stand-ins for the classes that original checkpoints hold beside tensors: they keep their contents and do nothing."""

from __future__ import annotations

import pickle
import types
from collections import OrderedDict
from pathlib import Path
from typing import Any

import numpy as np
import torch

from ..errors import InputError
from ..files import torch_file


class Bag:
    """Any configuration object: takes every argument, keeps the attributes it is given."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        self.__dict__.update(named)


class PathBag:
    """A path of another machine: its parts, never looked up."""

    def __init__(self, *parts: Any) -> None:
        self.parts = tuple(str(part) for part in parts)

    def __str__(self) -> str:
        return "/".join(self.parts).replace("//", "/")


_SCALAR = np.float64(0).__reduce__()[0]  # numpy's own maker of scalars
_PATHS = [f"{module}.{kind}Path" for module in ("pathlib", "pathlib._local") for kind in ("Posix", "Windows", "")]
INERT: list[Any] = [
    (Bag, "argparse.Namespace"),
    (Bag, "parse_config.ConfigParser"),
    *((PathBag, name) for name in _PATHS),
    (_SCALAR, "numpy._core.multiarray.scalar"),
    (_SCALAR, "numpy.core.multiarray.scalar"),
    np.dtype,
    *(type(np.dtype(kind)) for kind in ("float64", "float32", "int64", "int32", "bool")),
]


def read_old(path: Path | str) -> Any:
    """What a torch file holds, by a restricted unpickler that also knows the texts and long numbers of Python 2.

    It makes tensors, plain containers and inert stand-ins, and nothing else: any other name in the file is an error.
    Raises InputError: no torch file, damaged, or holding objects that are not data.
    """
    path = torch_file(path)
    reader: Any = types.ModuleType("restricted")
    reader.Unpickler, reader.load = _Reader, lambda file, **named: _Reader(file, **named).load()
    try:
        return torch.load(path, map_location="cpu", weights_only=False, pickle_module=reader, encoding="latin1")
    except InputError as error:
        raise InputError(f"{path} must hold plain data; {error}") from None
    except Exception as error:  # a damaged pickle fails in any way it likes
        raise InputError(f"{path} must be a whole torch file; it is cut off or damaged. Copy it again") from error


class _Reader(pickle.Unpickler):
    """Finds what a file of weights needs and nothing else. Storages are found by torch before it is asked."""

    def find_class(self, module: str, name: str) -> Any:
        known = _KNOWN.get(f"{module}.{name}")
        if known is None:
            raise InputError(f"it holds {module}.{name}, which is never loaded because that runs code")
        return known


_KNOWN: dict[str, Any] = {
    **{entry[1]: entry[0] for entry in INERT if isinstance(entry, tuple)},
    "collections.OrderedDict": OrderedDict,
    "numpy.dtype": np.dtype,
    "torch._utils._rebuild_tensor": torch._utils._rebuild_tensor,
    "torch._utils._rebuild_tensor_v2": torch._utils._rebuild_tensor_v2,
    "torch._utils._rebuild_parameter": torch._utils._rebuild_parameter,
}
