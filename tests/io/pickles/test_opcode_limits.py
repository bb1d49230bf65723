"""Is every opcode of a pickle followed, and anything endless or fatal refused before it is built?"""

from __future__ import annotations

import io
import pickle
import pickletools
import time
from pathlib import Path

import pytest

from lossscope.errors import InputError
from lossscope.io.files import read_torch
from lossscope.io.pickles.allow_list import PLAIN_GLOBALS
from lossscope.io.pickles.opcode_limits import require_buildable
from lossscope.io.pickles.unpickler import RestrictedUnpickler, read_pickle
from tests.each import each

HEAD = b"\x80\x04"
PREFIXES = (
    b"", b"N", b"NN", b"NNN", b"(", b"(N", b"(NN", b"]", b"]N", b"](N", b"}", b"}NN", b"}(NN", b"\x8f(N", b")N",
    b"cbuiltins\nlist\n)", b"(cbuiltins\nlist\n", b"\x8c\x08builtins\x8c\x04list", b"Np0\n", b"]Nb",
)  # fmt: skip
ARGUMENTS = (
    b"",
    b"\0",
    b"\1x",
    b"\0" * 4,
    b"\0" * 8,
    b"0\n",
    b"1\n",
    b"'x'\n",
    b"builtins\nlist\n",
    b"1L\n",
    b"\xff" * 9,
)


@each("opcode", pickletools.opcodes)
def test_every_opcode_is_followed_as_the_unpickler_does(opcode: pickletools.OpcodeInfo) -> None:
    """For any argument of an opcode, the check follows what the unpickler builds, and raises no other exception."""
    built = 0
    for prefix in PREFIXES:
        for argument in ARGUMENTS:
            content = HEAD + prefix + opcode.code.encode("latin1") + argument + b"."
            try:
                end = require_buildable(content)
            except (InputError, pickle.UnpicklingError):
                end = None
            if end is None and opcode.name in ("PUT", "LONG_BINPUT"):
                continue  # the unpickler would allocate the memory
            try:
                pickle.Unpickler.load(_plain(content))
            except Exception:
                continue
            built += 1
            assert end is not None, content
    assert built or opcode.name in NEVER_BUILT


NEVER_BUILT = (
    "MARK", "NEXT_BUFFER", "READONLY_BUFFER", "EXT1", "EXT2", "EXT4", "NEWOBJ", "NEWOBJ_EX", "PERSID", "BINPERSID",
)  # fmt: skip
"""Opcodes that need a buffer, a class or a reference, which no pickle here has; and a mark, which is no value."""


def _plain(content: bytes) -> RestrictedUnpickler:
    return RestrictedUnpickler(io.BytesIO(content), PLAIN_GLOBALS)


@each("protocol", range(6))
def test_what_pickle_writes_is_followed_to_its_end(protocol: int) -> None:
    content = {"a": [1, (2, 3.5)], "b": {"c": {4}, "d": frozenset({5})}, 6: b"x" * 300, "e": 10**40, "f": ("g",) * 3}
    written = pickle.dumps(content, protocol)
    assert require_buildable(written + b"rest") == len(written)


def nested_tuples(levels: int) -> bytes:
    return HEAD + b"})" + b"\x85" * levels + b"Ns."


def doubled_tuples(levels: int) -> bytes:
    steps = b"".join(b"q" + bytes([k]) + b"h" + bytes([k]) + b"\x86" for k in range(levels))
    return HEAD + b"})" + steps + b"Ns."


def doubled_lists(levels: int) -> bytes:
    value: list[object] = []
    for _ in range(levels):
        value = [value, value]
    return pickle.dumps({"a": value}, 4)


def late_lists(levels: int) -> bytes:
    """Return opcodes of lists that are filled after they are put into others: only the end shows their sizes."""
    made = b"".join(b"]q" + bytes([k]) for k in range(levels + 1))
    filled = b"".join(b"h%c(h%ch%ce0" % (k, k + 1, k + 1) for k in range(levels))
    return HEAD + made + filled + b"h\x00."


BOMBS = {
    "tuples 400,000 deep as a key": nested_tuples(400_000),
    "60 tuples that hold the next twice, as a key": doubled_tuples(60),
    "60 lists that hold the next twice": doubled_lists(60),
    "the same, filled afterwards": late_lists(60),
    "lists 100,000 deep": HEAD + b"]" * 100_000 + b"a" * 99_999 + b".",
    "an integer of 5,000 digits": HEAD + b"I" + b"9" * 5000 + b"\n.",
    "a long of 5,000 digits": HEAD + b"L" + b"9" * 5000 + b"L\n.",
    "an integer of 16,000 bits": HEAD + b"\x8b" + (2000).to_bytes(4, "little") + b"\x7f" * 2000 + b".",
    "a text of 2^60 bytes": HEAD + b"\x8d" + (1 << 60).to_bytes(8, "little") + b".",
    "bytes of a length": HEAD + b"cbuiltins\nbytes\n(\x8a\x06\x00\x00\x00\x00\x00\x01tR.",
    "the text of a list": HEAD + b"cbuiltins\nstr\n(]tR.",
    "a value of a large number": HEAD + b"Nr\xff\xff\xff\x7f.",
    "a list in itself": HEAD + b"]q\x00h\x00a.",
}


@each("bomb", BOMBS.values())
def test_bombs_are_refused_at_once(bomb: bytes, tmp_path: Path) -> None:
    (tmp_path / "a.p").write_bytes(bomb)
    begin = time.process_time()
    with pytest.raises(InputError, match=r"a\.p must"):
        read_pickle(tmp_path / "a.p")
    assert time.process_time() - begin < 2  # of the processor: other programs may use it too


@each("bomb", [nested_tuples(400_000), doubled_tuples(60)])
def test_torch_files_with_bombs_are_refused(bomb: bytes, tmp_path: Path) -> None:
    (tmp_path / "a.pt").write_bytes(bomb)
    with pytest.raises(InputError, match="must hold plain data; it h"):
        read_torch(tmp_path / "a.pt")


def test_a_name_of_many_letters_is_refused_before_torch_searches_it() -> None:
    """torch searched the name for its message with a pattern that takes minutes."""
    with pytest.raises(InputError, match="names a global of"):
        require_buildable(b"\x80\x02ctor" + b"]" * 5000 + b"\nx\n.")
