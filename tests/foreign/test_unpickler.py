"""What the restricted reader takes: containers and arrays of every age. What it refuses: everything else, unrun."""

from __future__ import annotations

import collections
import fractions
import os
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lossscope.errors import InputError
from lossscope.foreign.unpickler import read_pickle

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
    """Runs a command when an ordinary reader opens it."""

    def __init__(self, function: Any, *arguments: Any) -> None:
        self.how = (function, arguments)

    def __reduce__(self) -> Any:
        return self.how


def written(path: Path, content: object, protocol: int = 4) -> Path:
    path.write_bytes(pickle.dumps(content, protocol))
    return path


@pytest.mark.parametrize("protocol", range(6))
def test_plain_containers_come_back(protocol: int, tmp_path: Path) -> None:
    found = read_pickle(written(tmp_path / "a.p", PLAIN, protocol))
    assert found == PLAIN
    assert found["default"].default_factory is list


@pytest.mark.parametrize("protocol", range(6))
@pytest.mark.parametrize(
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
    ids=str,
)
def test_arrays_come_back(array: Any, protocol: int, tmp_path: Path) -> None:
    found = read_pickle(written(tmp_path / "a.p", {"x": array}, protocol))["x"]
    assert np.array_equal(found, array)
    assert found.dtype.newbyteorder("=") == array.dtype.newbyteorder("=")


@pytest.mark.parametrize("protocol", range(6))
def test_arrays_of_objects_come_back(protocol: int, tmp_path: Path) -> None:
    array = np.empty(2, dtype=object)
    array[:] = [{"a": 1}, [2.0]]
    assert read_pickle(written(tmp_path / "a.p", array, protocol)).tolist() == [{"a": 1}, [2.0]]


def test_names_of_python_2_and_of_old_numpy_are_known(tmp_path: Path) -> None:
    (tmp_path / "a.p").write_bytes(b"c__builtin__\nunicode\n(S'x'\ntR.")
    assert read_pickle(tmp_path / "a.p") == "x"
    (tmp_path / "b.p").write_bytes(b"(dp0\nS'caf\\xe9'\np1\nL5L\ns.")
    assert read_pickle(tmp_path / "b.p") == {"caf\xe9": 5}
    held = pickle.dumps(np.arange(3.0), 2).replace(b"numpy._core.multiarray", b"numpy.core.multiarray")
    (tmp_path / "c.p").write_bytes(held)
    assert read_pickle(tmp_path / "c.p").tolist() == [0, 1, 2]


@pytest.mark.parametrize("protocol", range(6))
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
        path = written(tmp_path / f"{number}.p", {"x": [evil]}, protocol)
        with pytest.raises(InputError, match=r"must hold plain containers and arrays; got [\w.]+, which was not run"):
            read_pickle(path)
    assert not mark.exists()


def test_the_global_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"got (posix|nt|os)\.system, which was not run: do not trust this file"):
        read_pickle(written(tmp_path / "a.p", Evil(os.system, "true")))
    with pytest.raises(InputError, match=r"got fractions\.Fraction"):
        read_pickle(written(tmp_path / "a.p", fractions.Fraction(1, 2)))
    with pytest.raises(InputError, match=r"got builtins\.getattr"):
        read_pickle(written(tmp_path / "a.p", Evil(getattr, [], "append")))
    (tmp_path / "a.p").write_bytes(b"\x80\x04\x8c\x08builtins\x8c\x0dlist.__init__\x93.")
    with pytest.raises(InputError, match=r"got builtins\.list\.__init__"):
        read_pickle(tmp_path / "a.p")
    (tmp_path / "a.p").write_bytes(b"c_codecs\nencode\n(S'x'\nS'rot13'\ntR.")
    with pytest.raises(InputError, match="bytes in the encoding 'rot13'"):
        read_pickle(tmp_path / "a.p")


def test_references_to_things_outside_are_refused(tmp_path: Path) -> None:
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
