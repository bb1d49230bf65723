"""Is a caption true of an image? Decided exactly, from what the caption states and what the scene holds."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..base import Split
from .captions import Claim, Mention
from .scene import BACKGROUNDS, COLOURS, MOST, PLACES, SHAPES, SIZES, Scene, Thing

_Bits = npt.NDArray[np.uint32]
_Flags = npt.NDArray[np.bool_]
_ANY = 1  # the bit every thing has
_BIT = {word: 2 << row for row, word in enumerate((*SHAPES, *COLOURS, *SIZES, *PLACES, *BACKGROUNDS))}
_CHUNK = 1 << 21  # caption x image cells at a time


@dataclass(frozen=True)
class SceneSplit(Split):
    """A split that knows its meaning. scenes: N, one per image. claims: M, one per caption."""

    scenes: tuple[Scene, ...]
    claims: tuple[Claim, ...]

    def is_true(self, caption_row: int, image_row: int) -> bool:
        """Whether the caption is true of the image."""
        return is_true(self.claims[caption_row], self.scenes[image_row])

    def truth(self) -> _Flags:
        """(M, N) bool: `is_true` of every caption and image."""
        return truth(self.claims, self.scenes)


def is_true(claim: Claim, scene: Scene) -> bool:
    """Whether each mention can be given a thing of its own that it fits, on the background if stated."""
    if claim.background not in (None, scene.background):
        return False
    choices = itertools.permutations(scene.things, len(claim.mentions))
    return any(all(map(_fits, claim.mentions, things)) for things in choices)


def truth(claims: Sequence[Claim], scenes: Sequence[Scene]) -> _Flags:
    """`is_true` for all claims x scenes, (M, N) bool.

    Each word is a bit: a mention fits a thing when the thing has all its bits. Claims and scenes are filled
    up to four with mentions of nothing and things that are not there, so that an assignment is a permutation.
    """
    wanted = np.array([_row(claim.mentions, claim.background) for claim in claims], dtype=np.uint32)
    there = np.array([_row(scene.things, scene.background) for scene in scenes], dtype=np.uint32)
    step = max(1, _CHUNK // max(1, len(scenes)))
    result = np.zeros((len(claims), len(scenes)), dtype=np.bool_)
    for start in range(0, len(claims) if len(scenes) else 0, step):
        result[start : start + step] = _assignable(wanted[start : start + step], there)
    return result


def _assignable(wanted: _Bits, there: _Bits) -> _Flags:
    fits = [[_has(wanted[:, m], there[:, t]) for t in range(MOST)] for m in range(MOST)]
    found = np.zeros((len(wanted), len(there)), dtype=np.bool_)
    for order in itertools.permutations(range(MOST)):
        found |= np.logical_and.reduce([fits[m][t] for m, t in enumerate(order)])
    found &= _has(wanted[:, MOST], there[:, MOST])
    return found


def _has(wanted: _Bits, there: _Bits) -> _Flags:
    fits: _Flags = (wanted[:, None] & ~there[None, :]) == 0
    return fits


def _row(parts: Sequence[Mention | Thing], background: str | None) -> list[int]:
    bits = [_ANY | _bits(part.shape, part.colour, part.size, part.place) for part in parts]
    return [*bits, *[0] * (MOST - len(bits)), _bits(background)]


def _bits(*words: str | None) -> int:
    return sum(_BIT[word] for word in words if word is not None)


def _fits(mention: Mention, thing: Thing) -> bool:
    pairs = ((getattr(mention, key), getattr(thing, key)) for key in ("shape", "colour", "size", "place"))
    return all(told is None or told == is_ for told, is_ in pairs)
