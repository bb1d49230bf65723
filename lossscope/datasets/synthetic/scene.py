"""What a scene is, and how a random scene is drawn from a seed: with integers, the same on any machine."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from lossscope.core.shuffles import random_words

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
JITTER = 9  # number of steps of each jitter
MILLION = 1_000_000
_SCENE_WORDS = 32  # random words of a scene: 1 + 2 + 4 places + 4 objects x 6, rounded up


@dataclass(frozen=True)
class SceneObject:
    """One object of a scene."""

    shape: str  # one of SHAPES
    colour: str  # one of COLOURS
    size: str  # one of SIZES
    position: str  # one of PLACES
    jitter: tuple[int, int, int] = (4, 4, 4)  # steps 0..8 of a shift down, a shift to the right, and brightness


@dataclass(frozen=True)
class Scene:
    """Two to four objects in different places on a background of one colour."""

    objects: tuple[SceneObject, ...]
    background: str  # one of BACKGROUNDS
    shade: int = 4  # brightness step 0..8 of the background

    @property
    def fingerprint_text(self) -> str:
        """The scene as text, in the fixed form that fingerprints of splits are made from."""
        objects = ", ".join(
            f"Thing(shape={item.shape!r}, colour={item.colour!r}, size={item.size!r}, place={item.position!r}, "
            f"jitter={item.jitter!r})"
            for item in self.objects
        )
        return f"Scene(things=({objects}), background={self.background!r}, shade={self.shade!r})"


class RandomGenerator:
    """A random generator that uses one given 64-bit word per draw, by integer arithmetic alone.

    >>> RandomGenerator([0, 2**64 - 1]).below(6), RandomGenerator([2**64 - 1]).below(6)
    (0, 5)
    """

    def __init__(self, words: Iterable[int]) -> None:
        self._words = iter(words)

    def below(self, n: int) -> int:
        """Draw a whole number in 0..n-1: the upper half of the word, scaled to n."""
        return ((next(self._words) >> 32) * n) >> 32

    def choice(self, options: Sequence[T]) -> T:
        """Draw one of `options`."""
        return options[self.below(len(options))]

    def chance(self, millionths: int) -> bool:
        """Return True with a probability of `millionths` / 1,000,000."""
        return self.below(MILLION) < millionths

    def sample(self, items: Sequence[T], count: int) -> list[T]:
        """Draw `count` different `items`, in random order."""
        left = list(items)
        return [left.pop(self.below(len(left))) for _ in range(count)]


def scene_words(seed: int, stream: int, row: int, blocks: int, block_words: int) -> tuple[list[int], list[list[int]]]:
    """Return the random words of one image: (words of its scene, words of each of its `blocks` captions).

    Philox is counter-based, so (seed, stream, row) is an address: no two splits or rows share a word. Only its raw
    words are used, which never change, unlike numpy's distributions. All arguments are in 0..2^64-1.
    """
    words: list[int] = random_words(_SCENE_WORDS + blocks * block_words, seed, stream, row).tolist()
    starts = range(_SCENE_WORDS, len(words), block_words)
    return words[:_SCENE_WORDS], [words[start : start + block_words] for start in starts]


def draw_scene(rng: RandomGenerator) -> Scene:
    """Draw a scene: number of objects, background, places, then each object."""
    count = FEWEST + rng.below(MOST - FEWEST + 1)
    background, shade = rng.choice(BACKGROUNDS), rng.below(JITTER)
    positions = rng.sample(PLACES, count)
    return Scene(tuple(_draw_object(rng, position) for position in positions), background, shade)


def _draw_object(rng: RandomGenerator, position: str) -> SceneObject:
    shape, colour, size = rng.choice(SHAPES), rng.choice(COLOURS), rng.choice(SIZES)
    return SceneObject(shape, colour, size, position, (rng.below(JITTER), rng.below(JITTER), rng.below(JITTER)))
