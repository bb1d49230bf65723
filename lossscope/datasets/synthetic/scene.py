"""What a scene is, and how one is drawn by lot from a seed: in integers, the same on any machine."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

T = TypeVar("T")

SHAPES = ("circle", "square", "triangle", "cross", "ring", "diamond")
COLOURS = ("red", "green", "blue", "yellow", "orange", "purple", "pink", "cyan")
SIZES = ("small", "large")
BACKGROUNDS = ("black", "white", "grey", "brown")
PLACES = (
    *("top left", "top", "top right"),
    *("left", "centre", "right"),
    *("bottom left", "bottom", "bottom right"),
)  # row-major, 3 x 3
FEWEST, MOST = 2, 4
JITTER = 9  # steps of each jitter
MILLION = 1_000_000
_SCENE_WORDS = 32  # 1 + 2 + 4 places + 4 things x 6, rounded up


@dataclass(frozen=True)
class Thing:
    """One object. jitter: steps 0..8 of its place down, its place to the right, and its brightness."""

    shape: str
    colour: str
    size: str
    place: str
    jitter: tuple[int, int, int] = (4, 4, 4)


@dataclass(frozen=True)
class Scene:
    """Two to four things in different places on a background of one colour, its brightness step 0..8."""

    things: tuple[Thing, ...]
    background: str
    shade: int = 4


class Dice:
    """Throws made from given 64-bit words, one word each, by integer arithmetic alone.

    >>> Dice([0, 2**64 - 1]).below(6), Dice([2**64 - 1]).below(6)
    (0, 5)
    """

    def __init__(self, words: Iterable[int]) -> None:
        self._words = iter(words)

    def below(self, n: int) -> int:
        """A whole number in 0..n-1: the word's upper half scaled to n."""
        return ((next(self._words) >> 32) * n) >> 32

    def pick(self, options: Sequence[T]) -> T:
        """One of `options`."""
        return options[self.below(len(options))]

    def chance(self, millionths: int) -> bool:
        """True in `millionths` of a million throws."""
        return self.below(MILLION) < millionths

    def some(self, items: Sequence[T], count: int) -> list[T]:
        """`count` different `items`, in a random order."""
        left = list(items)
        return [left.pop(self.below(len(left))) for _ in range(count)]


def lots(seed: int, stream: int, row: int, blocks: int, block_words: int) -> tuple[list[int], list[list[int]]]:
    """Words of one image, as (words of its scene, words of each of its `blocks` captions).

    Philox counts, so (seed, stream, row) is an address: no two splits or rows share a word. Only its raw
    words are used: those are fixed for good, unlike numpy's distributions. All arguments are in 0..2^64-1.
    """
    key = np.array([seed, stream], dtype=np.uint64)
    counter = np.array([0, row, 0, 0], dtype=np.uint64)
    generator = np.random.Philox(key=key, counter=counter)
    words: list[int] = generator.random_raw(_SCENE_WORDS + blocks * block_words).tolist()
    starts = range(_SCENE_WORDS, len(words), block_words)
    return words[:_SCENE_WORDS], [words[start : start + block_words] for start in starts]


def draw_scene(dice: Dice) -> Scene:
    """A scene by lot: number of things, background, places, then each thing."""
    count = FEWEST + dice.below(MOST - FEWEST + 1)
    background, shade = dice.pick(BACKGROUNDS), dice.below(JITTER)
    places = dice.some(PLACES, count)
    return Scene(tuple(_thing(dice, place) for place in places), background, shade)


def _thing(dice: Dice, place: str) -> Thing:
    shape, colour, size = dice.pick(SHAPES), dice.pick(COLOURS), dice.pick(SIZES)
    return Thing(shape, colour, size, place, (dice.below(JITTER), dice.below(JITTER), dice.below(JITTER)))
