"""Is a caption true of an image? Decided exactly, from what the caption states and the objects of the scene."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..base import Split
from .captions import Claim, Mention
from .scene import BACKGROUNDS, COLOURS, MOST, PLACES, SHAPES, SIZES, Scene, SceneObject

_Bits = npt.NDArray[np.uint32]
_Flags = npt.NDArray[np.bool_]
_ANY = 1  # the bit that every object has
_BIT = {word: 2 << row for row, word in enumerate((*SHAPES, *COLOURS, *SIZES, *PLACES, *BACKGROUNDS))}
_CHUNK = 1 << 21  # (caption, image) pairs at a time


@dataclass(frozen=True)
class SceneSplit(Split):
    """A split with the scenes of its images and the claims of its captions."""

    scenes: tuple[Scene, ...]  # N
    claims: tuple[Claim, ...]  # M

    def is_true(self, caption_row: int, image_row: int) -> bool:
        """Whether the caption is true of the image."""
        return is_true(self.claims[caption_row], self.scenes[image_row])

    def truth(self) -> _Flags:
        """Return (M, N) bool: `is_true` of every caption and image."""
        return truth(self.claims, self.scenes)


def is_true(claim: Claim, scene: Scene) -> bool:
    """Whether the mentions fit different objects of the scene, on the background if stated."""
    if claim.background not in (None, scene.background):
        return False
    assignments = itertools.permutations(scene.objects, len(claim.mentions))
    return any(all(map(_fits, claim.mentions, objects)) for objects in assignments)


def truth(claims: Sequence[Claim], scenes: Sequence[Scene]) -> _Flags:
    """Return `is_true` for all claims x scenes, (M, N) bool.

    Each word is a bit: a mention fits an object when the object has all its bits. Claims and scenes are padded to four
    with empty mentions and empty objects, so that an assignment is a permutation.
    """
    stated = np.array([_row(claim.mentions, claim.background) for claim in claims], dtype=np.uint32)
    present = np.array([_row(scene.objects, scene.background) for scene in scenes], dtype=np.uint32)
    step = max(1, _CHUNK // max(1, len(scenes)))
    result = np.zeros((len(claims), len(scenes)), dtype=np.bool_)
    for start in range(0, len(claims) if len(scenes) else 0, step):
        result[start : start + step] = _assignable(stated[start : start + step], present)
    return result


def _assignable(stated: _Bits, present: _Bits) -> _Flags:
    """Return (m, n) bool of rows of bits (m, 5) and (n, 5): whether some permutation fits all mentions."""
    fits = [[_has_bits(stated[:, m], present[:, t]) for t in range(MOST)] for m in range(MOST)]
    result = np.zeros((len(stated), len(present)), dtype=np.bool_)
    for order in itertools.permutations(range(MOST)):
        result |= np.logical_and.reduce([fits[m][t] for m, t in enumerate(order)])
    result &= _has_bits(stated[:, MOST], present[:, MOST])
    return result


def _has_bits(stated: _Bits, present: _Bits) -> _Flags:
    fits: _Flags = (stated[:, None] & ~present[None, :]) == 0
    return fits


def _row(items: Sequence[Mention | SceneObject], background: str | None) -> list[int]:
    """Return the bits of four mentions or objects, and of the background."""
    bits = [_ANY | _bits(item.shape, item.colour, item.size, item.position) for item in items]
    return [*bits, *[0] * (MOST - len(bits)), _bits(background)]


def _bits(*words: str | None) -> int:
    return sum(_BIT[word] for word in words if word is not None)


def _fits(mention: Mention, item: SceneObject) -> bool:
    pairs = ((getattr(mention, key), getattr(item, key)) for key in ("shape", "colour", "size", "position"))
    return all(stated is None or stated == actual for stated, actual in pairs)
