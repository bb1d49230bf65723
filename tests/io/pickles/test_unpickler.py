"""Does the restricted reader accept containers and arrays of all protocols, and refuse all else without a run?"""

from __future__ import annotations

import collections
import fractions
import io
import os
import pickle
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lossscope.errors import InputError
from lossscope.io.pickles.unpickler import RestrictedUnpickler, read_pickle, read_stream
from tests.each import each

PLAIN: dict[str, Any] = {
    "list": [1, 2.5, "text", b"\xff\x00 bytes", True, None, 10**30],
    "set": {1, 2},
    "frozen": frozenset({3}),
    "tuple": (1, (2, 3)),
    "complex": 1j,
    "default": collections.defaultdict(list, {"a": [1]}),
    "ordered": collections.OrderedDict([("b", 1), ("a", 2)]),
}


class Evil:
    """An object that runs a command when an ordinary reader opens it."""

    def __init__(self, function: Any, *arguments: Any) -> None:
        self.mode = (function, arguments)

    def __reduce__(self) -> Any:
        return self.mode


def write_pickle(path: Path, content: object, protocol: int = 4) -> Path:
    path.write_bytes(pickle.dumps(content, protocol))
    return path


@each("protocol", range(6))
def test_plain_containers_come_back(protocol: int, tmp_path: Path) -> None:
    read = read_pickle(write_pickle(tmp_path / "a.p", PLAIN, protocol))
    assert read == PLAIN
    assert read["default"].default_factory is list


@each(
    "protocol",
    range(6),
    "array",
    [
        np.arange(6, dtype=np.float32).reshape(2, 3),
        np.arange(3, dtype=">i2"),
        np.asfortranarray(np.ones((2, 2))),
        np.zeros((0, 4)),
        np.array(["a", "bc"]),
        np.array([b"a", b"bc"]),
        np.float64(0.5),
        np.int64(3),
    ],
)
def test_arrays_come_back(array: Any, protocol: int, tmp_path: Path) -> None:
    read = read_pickle(write_pickle(tmp_path / "a.p", {"x": array}, protocol))["x"]
    assert np.array_equal(read, array)
    assert read.dtype.newbyteorder("=") == array.dtype.newbyteorder("=")


@each("protocol", range(6))
def test_arrays_of_objects_come_back(protocol: int, tmp_path: Path) -> None:
    array = np.empty(2, dtype=object)
    array[:] = [{"a": 1}, [2.0]]
    assert read_pickle(write_pickle(tmp_path / "a.p", array, protocol)).tolist() == [{"a": 1}, [2.0]]


def test_globals_of_python_2_and_of_old_numpy_are_known(tmp_path: Path) -> None:
    (tmp_path / "a.p").write_bytes(b"c__builtin__\nunicode\n(S'x'\ntR.")
    assert read_pickle(tmp_path / "a.p") == "x"
    (tmp_path / "b.p").write_bytes(b"(dp0\nS'caf\\xe9'\np1\nL5L\ns.")
    assert read_pickle(tmp_path / "b.p") == {"caf\xe9": 5}
    content = pickle.dumps(np.arange(3.0), 2).replace(b"numpy._core.multiarray", b"numpy.core.multiarray")
    (tmp_path / "c.p").write_bytes(content)
    assert read_pickle(tmp_path / "c.p").tolist() == [0, 1, 2]


@each("protocol", range(6))
def test_code_is_named_and_never_run(protocol: int, tmp_path: Path) -> None:
    mark = tmp_path / "ran"
    for number, evil in enumerate(
        (
            Evil(os.system, f"touch {mark}"),
            Evil(eval, f"open({str(mark)!r}, 'w')"),
            Evil(exec, f"open({str(mark)!r}, 'w')"),
            Evil(open, str(mark), "w"),
            Evil(getattr, "text", "upper"),
            Evil(np.load, str(mark)),
        )
    ):
        path = write_pickle(tmp_path / f"{number}.p", {"x": [evil]}, protocol)
        with pytest.raises(InputError, match=r"must hold plain containers and arrays; got [\w.]+, which was not run"):
            read_pickle(path)
    assert not mark.exists()


def test_the_global_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"got (posix|nt|os)\.system, which was not run: do not trust this file"):
        read_pickle(write_pickle(tmp_path / "a.p", Evil(os.system, "true")))
    with pytest.raises(InputError, match=r"got fractions\.Fraction"):
        read_pickle(write_pickle(tmp_path / "a.p", fractions.Fraction(1, 2)))
    with pytest.raises(InputError, match=r"got builtins\.getattr"):
        read_pickle(write_pickle(tmp_path / "a.p", Evil(getattr, [], "append")))
    (tmp_path / "a.p").write_bytes(b"\x80\x04\x8c\x08builtins\x8c\x0dlist.__init__\x93.")
    with pytest.raises(InputError, match=r"got builtins\.list\.__init__"):
        read_pickle(tmp_path / "a.p")
    (tmp_path / "a.p").write_bytes(b"c_codecs\nencode\n(S'x'\nS'rot13'\ntR.")
    with pytest.raises(InputError, match="bytes in the encoding 'rot13'"):
        read_pickle(tmp_path / "a.p")


def test_references_to_objects_outside_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.p").write_bytes(b"Pname\n.")
    with pytest.raises(InputError, match="got a reference to something outside"):
        read_pickle(tmp_path / "a.p")


def test_pickles_cut_off_anywhere_are_refused(tmp_path: Path) -> None:
    whole = pickle.dumps({"x": np.arange(5.0), **PLAIN})
    for length in range(len(whole)):
        (tmp_path / "a.p").write_bytes(whole[:length])
        with pytest.raises(InputError, match="must be a whole pickle"):
            read_pickle(tmp_path / "a.p")


def test_no_pickle_and_no_file(tmp_path: Path) -> None:
    (tmp_path / "a.p").write_bytes(b"hello")
    with pytest.raises(InputError, match="must be a whole pickle"):
        read_pickle(tmp_path / "a.p")
    with pytest.raises(InputError, match="must exist"):
        read_pickle(tmp_path / "gone.p")


class Crafted:
    """A call in a crafted file: a function, its arguments, and a state that is set on the result."""

    def __init__(self, function: Any, arguments: tuple[Any, ...], state: Any = None) -> None:
        self.mode = (function, arguments, state)

    def __reduce__(self) -> Any:
        return self.mode


def dtype(code: str = "f8", order: str = "<", parts: Any = None, itemsize: int = -1, flags: int = 0) -> Crafted:
    return Crafted(np.dtype, (code, False, True), (3, order, parts, None, None, itemsize, -1, flags))


RECONSTRUCT, SCALAR = np.zeros(1).__reduce__()[0], np.float64(0).__reduce__()[0]


def array(state: Any) -> Crafted:
    return Crafted(RECONSTRUCT, (np.ndarray, (0,), b"b"), state)


@each("content, message", [
    (array((1, (1,), dtype("O", "|"), False, b"A" * 8)), "an array of 1 objects must hold a list of 1 values"),
    (array((1, (3,), dtype("O", "|"), False, [1])), "an array of 3 objects must hold a list of 3 values"),
    (array((1, (2,), dtype(), False, bytes(15))), "2 elements of float64 must be of 8 bytes each; got 15 bytes"),
    (array((1, (2,), dtype(), False, [1.0, 2.0])), "got list"),
    (array((1, (-1,), dtype(), False, b"")), "shapes of arrays must be whole numbers >= 0"),
    (array((1, (1 << 62, 4), dtype(), False, b"")), "must be of 8 bytes each"),
    (array((1, (1,), dtype(itemsize=16), False, bytes(8))), "a float64 with parts"),
    (array((1, (1,), dtype(parts=("f8", (2,))), False, bytes(8))), "a float64 with parts"),
    (array((1, (1,), dtype(order="?"), False, bytes(8))), "changed by hand"),
    (array((1, (1,), np.dtype("M8[D]"), False, bytes(8))), "one of kind M8"),
    (array((1, (1,), dtype("V8"), False, bytes(8))), "one of kind V8"),
    (array((1, (1,), dtype("O,f8"), False, bytes(16))), "one of kind O,f8"),
    (array((1, (1,), "f8", False, bytes(8))), "must state their dtype; got str"),
    (Crafted(SCALAR, (dtype("O", "|"), b"A" * 8)), "it holds an object as one"),
    (Crafted(SCALAR, (dtype(), b"A" * 7)), "must be of 8 bytes each; got 7 bytes"),
    (Crafted(np.ndarray, ((2,),)), "it holds one without"),
    (Crafted(RECONSTRUCT, (str, (0,), b"b")), "of another class"),
])  # fmt: skip
def test_arrays_that_would_reach_outside_of_their_bytes_are_refused(content: Any, message: str, tmp_path: Path) -> None:
    for protocol in (2, 4):
        with pytest.raises(InputError, match=f"must hold plain containers and arrays; .*{message}"):
            read_pickle(write_pickle(tmp_path / "a.p", {"x": content}, protocol))


def test_patched_flags_of_a_dtype_are_ignored(tmp_path: Path) -> None:
    for flags in (0, 1, 4, 27, 63):
        read = read_pickle(write_pickle(tmp_path / "a.p", array((1, (2,), dtype(flags=flags), False, bytes(16))), 2))
        assert read.tolist() == [0.0, 0.0]
        assert read.dtype == np.dtype("f8") and read.dtype.flags == np.dtype("f8").flags


def test_an_array_is_filled_once(tmp_path: Path) -> None:
    class Twice:
        def __reduce__(self) -> Any:
            return RECONSTRUCT, (np.ndarray, (0,), b"b"), (1, (2,), np.dtype("f8"), False, bytes(16))

    content = pickle.dumps(Twice(), 2)
    again = content[:-1] + pickle.dumps((1, (9,), np.dtype("i1"), False, bytes(9)), 2)[2:-1] + b"b."
    (tmp_path / "a.p").write_bytes(again)
    with pytest.raises(InputError, match="built once and whole"):
        read_pickle(tmp_path / "a.p")


def test_booleans_of_other_bytes_are_true(tmp_path: Path) -> None:
    content = array((1, (3,), dtype("b1", "|"), False, b"\x00\x01\xff"))
    assert read_pickle(write_pickle(tmp_path / "a.p", content, 2)).view(np.uint8).tolist() == [0, 1, 1]


@each("named", [b"c__builtin__\nlist\n", b"ccollections\nOrderedDict\n", b"cnumpy\ndtype\n", b"c_codecs\nencode\n"])
def test_a_pickle_cannot_change_the_globals_it_names(named: bytes, tmp_path: Path) -> None:
    for state in (b"}U\x08__name__U\x01xs", b"N}U\x0c__defaults__)s\x86"):
        (tmp_path / "a.p").write_bytes(b"\x80\x02" + named + state + b"b.")
        with pytest.raises(InputError, match="it changes one of the globals that it names"):
            read_pickle(tmp_path / "a.p")


def test_a_defaultdict_of_other_things_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.p").write_bytes(b"ccollections\ndefaultdict\n(cnumpy\ndtype\ntR.")
    with pytest.raises(InputError, match="a defaultdict of other things than plain containers"):
        read_pickle(tmp_path / "a.p")


def test_a_reader_knows_the_globals_of_its_table_and_no_others(tmp_path: Path) -> None:
    content = b"(cshop\nAnswer\nPname\nt."
    reader = RestrictedUnpickler(io.BytesIO(content), {("shop", "Answer"): 42}, load_reference=str.upper)
    assert reader.load() == (42, "NAME")
    reader = RestrictedUnpickler(io.BytesIO(b"cshop\nOther\n."), {("shop", "Answer"): 42}, "it holds {name}")
    with pytest.raises(InputError, match=r"^it holds shop\.Other$"):
        reader.load()
    with pytest.raises(InputError, match=r"a\.p must hold an answer; got builtins\.list, which was not run"):
        read_stream(io.BytesIO(b"cbuiltins\nlist\n."), tmp_path / "a.p", {("shop", "Answer"): 42}, "an answer")


@each("module, name", [("numpy.core", "multiarray.scalar"), ("collections.abc", "OrderedDict")])
def test_a_global_of_the_table_is_known_by_its_module_and_name_together(module: str, name: str, tmp_path: Path) -> None:
    (tmp_path / "a.p").write_bytes(f"c{module}\n{name}\n.".encode())
    with pytest.raises(InputError, match=re.escape(f"got {module}.{name}, which was not run")):
        read_pickle(tmp_path / "a.p")
