"""Everything that a pickle may name, and what each name stands for when it is read here. All else is refused.

A stand-in keeps contents and runs nothing of the file's. A new name belongs here only with a stand-in that checks its
arguments.
"""

from __future__ import annotations

import collections
import pickle
from collections.abc import Mapping
from functools import cache
from typing import Any

from .callables import Constructor, PlainOrderedDict, build_bytes, build_integer, build_text, encode_latin1
from .numpy_arrays import NDARRAY, DtypeStub, build_empty, build_from_buffer, build_scalar
from .stubs import ConfigStub, PathStub

Globals = Mapping[tuple[str, str], Any]
"""(module, name) of a global in a pickle -> what it stands for when it is read here."""

_BUILTIN_TYPES = (list, dict, set, frozenset, tuple, float, bool, complex)
_BUILTINS: Mapping[str, Constructor] = {
    **{kind.__name__: Constructor(kind) for kind in _BUILTIN_TYPES},
    **{name: Constructor(build_text) for name in ("str", "unicode")},
    **{name: Constructor(build_integer) for name in ("int", "long")},
    "bytes": Constructor(build_bytes),
}
_CORES = ("numpy.core", "numpy._core")  # before and since numpy 2
_SCALAR = Constructor(build_scalar)
_NUMPY: Globals = {
    ("numpy", "ndarray"): NDARRAY,
    ("numpy", "dtype"): Constructor(DtypeStub),
    **{(f"{core}.multiarray", "_reconstruct"): Constructor(build_empty) for core in _CORES},
    **{(f"{core}.multiarray", "scalar"): _SCALAR for core in _CORES},
    **{(f"{core}.numeric", "_frombuffer"): Constructor(build_from_buffer) for core in _CORES},
}
_ORDERED_DICT = ("collections", "OrderedDict")
_STUBS: Mapping[tuple[str, str], type[Any]] = {
    ("argparse", "Namespace"): ConfigStub,
    ("parse_config", "ConfigParser"): ConfigStub,
    **{(m, f"{kind}Path"): PathStub for m in ("pathlib", "pathlib._local") for kind in ("Posix", "Windows", "")},
}
_VOCABULARY_MODULES = ("__main__", "vocab", "vsepp.vocab", "VSRN.vocab", "lib.vocab")  # where authors have the class
SCRIPT_PROGRAM = "__torch__"  # the module of every class that the program of a TorchScript archive defines


def _build_defaultdict(factory: object = None, *_: object) -> collections.defaultdict[Any, Any]:
    """Return an empty defaultdict whose absent values are one of the plain containers."""
    if factory is not None and factory not in _BUILTINS.values():
        raise pickle.UnpicklingError("a defaultdict of other things than plain containers")
    return collections.defaultdict(factory.function if isinstance(factory, Constructor) else None)


PLAIN_GLOBALS: Globals = {
    **_NUMPY,
    **{(module, name): kind for module in ("builtins", "__builtin__") for name, kind in _BUILTINS.items()},
    ("collections", "defaultdict"): Constructor(_build_defaultdict),
    _ORDERED_DICT: Constructor(PlainOrderedDict),
    ("_codecs", "encode"): Constructor(encode_latin1),
}
"""Of pickles of data sets: plain containers and numpy's arrays."""

WEIGHTS_ONLY_GLOBALS: list[tuple[Any, str]] = [
    *((stub, f"{module}.{name}") for (module, name), stub in _STUBS.items()),
    *((_SCALAR, f"{core}.multiarray.scalar") for core in _CORES),
    (DtypeStub, "numpy.dtype"),
]
"""(stand-in, full name in the file) of what torch's own reader is given beside tensors."""


@cache
def torch_globals() -> Globals:
    """Return those of torch files that are read without torch's own reader."""
    from .torch_storages import DTYPES, build_tensor_ref, unwrap_parameter

    return {
        **_STUBS,
        **_NUMPY,
        **{(module, name): name for module in ("torch", "torch.cuda") for name in DTYPES},
        _ORDERED_DICT: Constructor(PlainOrderedDict),
        ("_codecs", "encode"): Constructor(encode_latin1),
        **{("torch._utils", f"_rebuild_tensor{version}"): Constructor(build_tensor_ref) for version in ("", "_v2")},
        ("torch._utils", "_rebuild_parameter"): Constructor(unwrap_parameter),
    }


@cache
def script_globals() -> Globals:
    """Return those of TorchScript archives; classes of SCRIPT_PROGRAM stand for their attributes, too."""
    from .torch_storages import DTYPES, build_tensor_ref

    kinds = ("int", "double", "bool", "tensor")
    return {
        **{("torch", name): name for name in DTYPES},
        _ORDERED_DICT: Constructor(PlainOrderedDict),
        ("torch._utils", "_rebuild_tensor_v2"): Constructor(build_tensor_ref),
        **{("torch.jit._pickle", f"build_{kind}list"): Constructor(list) for kind in kinds},
        ("torch.jit._pickle", "restore_type_tag"): Constructor(lambda value, kind: value),
    }


def vocabulary_globals(vocabulary: type[Any]) -> Globals:
    """Return those of pickled vocabularies: `vocabulary`, made anew for each file, for the class of that name."""
    return {(module, "Vocabulary"): vocabulary for module in _VOCABULARY_MODULES}
