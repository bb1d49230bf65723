"""Make pickles that no library writes: calls, dangling references, endless depth, doubling, false lengths."""

from __future__ import annotations

import struct

from numpy.random import Generator

_MARK_BY_CALL = b"cbuiltins\nexec\n(V" + b"open('evil.py.ran','w').close()\ntR"
_CALLS = (
    _MARK_BY_CALL,
    b"cos\nsystem\n(Vtouch evil.py.ran\ntR",
    b"csubprocess\ncheck_call\n(lp0\nVtouch\naVevil.py.ran\natR",
    b"cevil\nEvil\n(tR",
    b"ctorch.serialization\nload\n(Vevil.py\ntR",
    b"c__builtin__\neval\n(V1+1\ntR",
    b"cnumpy\nndarray\n((J\xff\xff\xff\x7fJ\xff\xff\xff\x7ftVf8\ntR",
    b"cnumpy\ndtype\n(VO\ntR",
    b"cbuiltins\nbytearray\n(L9999999999L\ntR",
    b"c_codecs\nencode\n(V" + b"x" * 1000 + b"\nVzip\ntR",
    b"ccollections\nOrderedDict\n(I1\ntR",
    b"cargparse\nNamespace\n)\x81}(V__class__\nI1\nub",
)
_ODD = (
    b"(" * 100_000, b"]" * 100_000 + b"a" * 99_999, b"I" + b"9" * 6000 + b"\n", b"\x8b\xff\xff\xff\x7f", b"g99999\n",
    b"\x8a\xff" + b"\xff" * 255, b"T\xff\xff\xff\x7f", b"\x8d" + b"\xff" * 8, b"\x95" + b"\xff" * 8, b"Pevil\n",
    b"0" * 9,
    b"F1e999\n", b"Vx\nQ", b"r\xff\xff\xff\x7f", b"\x82\x01", b"\x96" + struct.pack("<Q", 1 << 40), b"N}N\x93",
    b"}]s",
)  # fmt: skip


def odd_opcodes(rng: Generator) -> bytes:
    """Return opcodes to put into a pickle."""
    choice = rng.random()
    if choice < 0.4:
        return _CALLS[rng.integers(len(_CALLS))]
    return doubling() if choice < 0.5 else _ODD[rng.integers(len(_ODD))]


def doubling(levels: int = 60) -> bytes:
    """Return opcodes of lists that each hold the last list twice, `levels` deep: 2 ** levels items in a few bytes."""
    first = b"(lp1000\nI1\na"
    return first + b"".join(b"(lp%d\ng%d\nag%d\na" % (n, n - 1, n - 1) for n in range(1001, 1001 + levels))


def with_odd_opcodes(data: bytes, rng: Generator) -> tuple[bytes, str]:
    """Return a pickle with odd opcodes in it, or of odd opcodes alone, and their position."""
    odd = odd_opcodes(rng)
    if rng.random() < 0.4:
        return odd + b".", f"only {odd[:40]!r}"
    start = int(rng.integers(2, max(3, len(data))))
    return data[:start] + odd + data[start:], f"{odd[:40]!r} at {start}"
