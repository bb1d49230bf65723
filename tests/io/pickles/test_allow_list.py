"""Do the tables of names that a pickle may use hold stand-ins only, and no name that reaches code?"""

from __future__ import annotations

import builtins
import io
import pickle

import pytest

from lossscope.errors import InputError
from lossscope.io.pickles.allow_list import (
    PLAIN_GLOBALS,
    WEIGHTS_ONLY_GLOBALS,
    Globals,
    script_globals,
    torch_globals,
    vocabulary_globals,
)
from lossscope.io.pickles.callables import Constructor
from lossscope.io.pickles.numpy_arrays import DtypeStub
from lossscope.io.pickles.stubs import ConfigStub, PathStub
from lossscope.io.pickles.unpickler import RestrictedUnpickler
from tests.each import each


class Words:
    """The stand-in that a pickled vocabulary becomes."""


TABLES = {
    "plain": PLAIN_GLOBALS,
    "torch": torch_globals(),
    "script": script_globals(),
    "vocabulary": vocabulary_globals(Words),
}
STAND_INS = (ConfigStub, PathStub, DtypeStub, Words)
PLAIN_BUILTINS = {
    "list", "dict", "set", "frozenset", "tuple", "float", "bool", "complex", "str", "unicode", "int", "long", "bytes",
}  # fmt: skip


@each("name", TABLES)
def test_every_name_stands_for_a_stand_in(name: str) -> None:
    for value in TABLES[name].values():
        assert isinstance(value, Constructor | str) or value in STAND_INS
    assert all(isinstance(stub, Constructor) or stub in STAND_INS for stub, _ in WEIGHTS_ONLY_GLOBALS)


@each("name", TABLES)
def test_no_name_of_a_module_that_could_run_something_is_in_a_table(name: str) -> None:
    modules = {module.partition(".")[0] for module, _ in TABLES[name]}
    assert modules <= {
        "builtins", "__builtin__", "collections", "_codecs", "numpy", "torch", "argparse", "parse_config", "pathlib",
        "__main__", "vocab", "vsepp", "VSRN", "lib",
    }  # fmt: skip
    assert {n for module, n in TABLES[name] if module in ("builtins", "__builtin__")} <= PLAIN_BUILTINS


@each("name", TABLES)
def test_every_other_builtin_is_refused(name: str) -> None:
    for function in sorted(set(dir(builtins)) - PLAIN_BUILTINS):
        _refuses(TABLES[name], "builtins", function)


@each("module, function", [
    ("os", "system"), ("posix", "system"), ("subprocess", "Popen"), ("importlib", "import_module"), ("torch", "load"),
    ("numpy", "load"), ("numpy.core.multiarray", "fromfile"), ("collections", "namedtuple"), ("_codecs", "decode"),
    ("builtins", "list.__class__"), ("pathlib", "os"), ("torch.storage", "_load_from_bytes"),
])  # fmt: skip
def test_what_reaches_code_is_refused(module: str, function: str) -> None:
    for table in TABLES.values():
        _refuses(table, module, function)


def _refuses(table: Globals, module: str, function: str) -> None:
    content = b"\x80\x04\x8c" + bytes([len(module)]) + module.encode()
    content += b"\x8c" + bytes([len(function)]) + function.encode() + b"\x93."
    with pytest.raises((InputError, pickle.UnpicklingError)):
        RestrictedUnpickler(io.BytesIO(content), table).load()
