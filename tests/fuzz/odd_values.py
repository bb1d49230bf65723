"""Draw values that a reader does not expect: literals of JSON and TOML, texts, and Python objects."""

from __future__ import annotations

import json
from typing import Any

from numpy.random import Generator

PLUGIN = "./evil.py:Evil"  # a file in the case's folder that leaves a mark when it is imported
DEPTH = 100_000

_TEXTS = (
    "", " ", "x" * 300, "x" * 100_000, "a/b/c", "../../../x", "/etc/passwd", ".", "..", "a\0b", "\x1b[31mred\x07",
    "\ud800", "﻿é", "=1+1", "$x_{", "\\input{x}", "<script>alert(1)</script>", "\n\r\n", "None", "nan", "%s%n", "{}",
)  # fmt: skip
_SPECS = (
    PLUGIN, f"{PLUGIN}:tau=1", "ntxent:tau=0.1..0.2/1000000000", "ntxent:tau=nan", "ntxent:tau=1e-300", "ntxent:tau=",
    "ntxent:" + "tau=" * 200, "ntxent" + ":" * 200, "." * 60_000, "a.b" * 20_000, "ntxent:tau=0.1,tau=0.2",
    "vsepp:dim=100000000,words=100000000", "vsepp:dim=-1", "scenes:train=1000000000000", "scenes:size=1000000000",
    "cocos:eps=1e400", "precomp:root=/nowhere", 'precomp:root="unclosed', "os:system", "__class__", "(" * 10_000,
    "cocos:eps=" + "9" * 5000, "ntxent:tau=True", "smoothap:tau=[[[[", "siglip:bias={}",
)  # fmt: skip
_NUMBERS = (
    "0", "-1", "1", "2", "-0.0", "1.5", "255", "65536", "2147483648", "-9223372036854775809", "1000000000000000000",
    "99999999999", "1e308", "1e-320",
)  # fmt: skip
_JSON = (
    "null", "true", "false", "[]", "{}", "[[]]", "[null]", '{"a": 1}', "NaN", "Infinity", "-Infinity", "1e999",
    "9" * 5000, "-" + "9" * 5000, "[" * DEPTH + "]" * DEPTH, '{"a":' * DEPTH + "1" + "}" * DEPTH, "[" * DEPTH,
    "[" + "0," * 50_000 + "0]", "00", "'x'", "undefined", "",
)  # fmt: skip
_TOML = (
    "true", "[]", "{}", "[[]]", "nan", "-inf", "1e999", "9" * 5000, "1979-05-27T07:32:00Z", "07:32:00",
    "0xFFFFFFFFFFFFFF",
    "[" * DEPTH + "]" * DEPTH, "{a=" * 3000 + "1" + "}" * 3000, "[" * 3000 + "]" * 3000, "a." * 5000 + "b",
    "'", '"""', "",
)  # fmt: skip


def draw_text(rng: Generator) -> str:
    """Return an odd name or an odd spec."""
    pool = _SPECS if rng.random() < 0.4 else _TEXTS
    return pool[rng.integers(len(pool))]


def draw_json(rng: Generator) -> str:
    """Return a JSON literal of another type or size, or text that is no JSON."""
    return _draw(rng, _JSON, _NUMBERS)


def draw_toml(rng: Generator) -> str:
    """Return a TOML literal of another type or size, or text that is no TOML."""
    return _draw(rng, _TOML, _NUMBERS)


def draw_object(rng: Generator) -> Any:
    """Return a plain Python object of any kind, deep ones included."""
    if rng.random() < 0.3:
        return draw_text(rng)
    if rng.random() < 0.1:
        return _nest(2_000)
    if rng.random() < 0.1:
        return (b"\xff\x00", (), set(), 3 + 4j, float("nan"), 10**30, range(3))[rng.integers(6)]
    while True:
        try:
            return json.loads(_draw(rng, _JSON, _NUMBERS))
        except (ValueError, RecursionError):
            continue


def _draw(rng: Generator, words: tuple[str, ...], numbers: tuple[str, ...]) -> str:
    choice = rng.random()
    if choice < 0.35:
        return json.dumps(draw_text(rng))
    pool = numbers if choice < 0.6 else words
    return pool[rng.integers(len(pool))]


def _nest(depth: int) -> list[Any]:
    inner: list[Any] = []
    for _ in range(depth):
        inner = [inner]
    return inner
