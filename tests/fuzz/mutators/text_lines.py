"""Remove, double, move, join or blow up lines of a text, or replace a word by an odd text."""

from __future__ import annotations

from pathlib import Path

from numpy.random import Generator

from ..families import Inapplicable
from ..odd_values import draw_json, draw_text
from ..texts import read_text, write_text

_ACTIONS = ("remove", "double", "move", "join", "blow up", "word", "word", "word", "only")


def mutate(path: Path, rng: Generator) -> str:
    """Edit the lines and return how."""
    lines = read_text(path).splitlines(keepends=True)
    if not lines:
        raise Inapplicable("no lines")
    index, action = int(rng.integers(len(lines))), _ACTIONS[rng.integers(len(_ACTIONS))]
    line = lines[index]
    replaced = {
        "remove": [], "double": [line, line], "move": [], "join": [line.rstrip("\n")],
        "blow up": [line.rstrip("\n") * 10_000 + "\n"], "word": [_with_odd_word(line, rng)], "only": [line],
    }[action]  # fmt: skip
    rest = [] if action == "only" else [*lines[:index], *replaced, *lines[index + 1 :]]
    rest = replaced if action == "only" else [*rest, line] if action == "move" else rest
    write_text(path, "".join(rest))
    return f"{action} line {index + 1} of {len(lines)}"


def _with_odd_word(line: str, rng: Generator) -> str:
    words = line.split(" ")
    words[rng.integers(len(words))] = draw_text(rng) if rng.random() < 0.5 else draw_json(rng)[:200_000]
    return " ".join(words).rstrip("\n") + "\n"
