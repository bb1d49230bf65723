"""Write captions of scenes: what a caption states (its claim) is drawn first, then expressed in words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from .scene import MILLION, RandomGenerator, Scene, SceneObject

CAPTION_WORDS = 48  # random words that one caption may use: 3 order, 21 claim, at most 19 wording

_SYNONYMS: Mapping[str, tuple[str, ...]] = {
    "circle": ("circle", "disc"),
    "square": ("square", "box"),
    "cross": ("cross", "plus sign"),
    "ring": ("ring", "hoop"),
    "diamond": ("diamond", "rhombus"),
    "thing": ("shape", "thing", "object"),
    "small": ("small", "little", "tiny"),
    "large": ("large", "big"),
    "purple": ("purple", "violet"),
    "cyan": ("cyan", "turquoise"),
    "grey": ("grey", "gray"),
    "top left": ("at the top left", "in the upper left corner"),
    "top": ("at the top", "at the upper edge"),
    "top right": ("at the top right", "in the upper right corner"),
    "left": ("on the left", "at the left edge"),
    "centre": ("in the centre", "in the middle"),
    "right": ("on the right", "at the right edge"),
    "bottom left": ("at the bottom left", "in the lower left corner"),
    "bottom": ("at the bottom", "at the lower edge"),
    "bottom right": ("at the bottom right", "in the lower right corner"),
}
_BACKGROUND_PHRASES = ("on a {} background", "against a {} backdrop", "in front of a {} wall")


@dataclass(frozen=True)
class Mention:
    """What a caption states of one object; None where it states nothing."""

    shape: str | None = None
    colour: str | None = None
    size: str | None = None
    position: str | None = None


@dataclass(frozen=True)
class Claim:
    """The meaning of a caption: there is a different object for each mention, on this background if stated."""

    mentions: tuple[Mention, ...]
    background: str | None = None


def write_caption(scene: Scene, rng: RandomGenerator, ambiguity: float) -> tuple[Claim, str]:
    """Draw a claim that is true of the scene, and write a caption that states it.

    Each piece (an object but the first, a size, a place, the shape or the colour, the background) is left out with
    probability `ambiguity`. With the same random words more ambiguity only ever leaves out more.

    Args:
        scene: what the caption describes.
        rng: with CAPTION_WORDS words.
        ambiguity: 0..1.
    """
    claim = _draw_claim(scene, rng, round(ambiguity * MILLION))
    return claim, _write(claim, rng)


def _draw_claim(scene: Scene, rng: RandomGenerator, omit: int) -> Claim:
    """Draw a claim; each piece is left out with probability `omit` / 1,000,000."""
    objects = rng.sample(scene.objects, len(scene.objects))
    mentions = [(not rng.chance(omit), _draw_mention(item, rng, omit)) for item in objects]
    background = None if rng.chance(omit) else scene.background
    return Claim(tuple(mention for row, (kept, mention) in enumerate(mentions) if kept or row == 0), background)


def _draw_mention(item: SceneObject, rng: RandomGenerator, omit: int) -> Mention:
    """Draw what is stated of an object: always one of shape (three times in four) and colour, the rest by chance."""
    keeps_shape = rng.below(4) > 0
    omits_other, omits_size, omits_place = rng.chance(omit), rng.chance(omit), rng.chance(omit)
    return Mention(
        shape=item.shape if keeps_shape or not omits_other else None,
        colour=None if keeps_shape and omits_other else item.colour,
        size=None if omits_size else item.size,
        position=None if omits_place else item.position,
    )


def _write(claim: Claim, rng: RandomGenerator) -> str:
    form = rng.below(4)
    phrases = [_phrase(mention, rng, " is " if form == 3 else " ") for mention in claim.mentions]
    objects = _join_phrases(phrases)
    background = _background_phrase(claim.background, rng)
    if form == 0:
        return f"{objects}, {background}" if background else objects
    if form == 1:
        return f"there is {objects} {background}".rstrip()
    if form == 2:
        return f"{background} there is {objects}" if background else f"a picture of {objects}"
    return f"{objects}, {background}" if background else f"here {objects}"


def _phrase(mention: Mention, rng: RandomGenerator, link: str) -> str:
    words = [mention.size, mention.colour, mention.shape or "thing"]
    noun = _with_article(" ".join(_synonym(word, rng) for word in words if word))
    if mention.position:
        return f"{noun}{link}{_synonym(mention.position, rng)}"
    return f"{noun} is seen" if link == " is " else noun


def _background_phrase(background: str | None, rng: RandomGenerator) -> str:
    return rng.choice(_BACKGROUND_PHRASES).format(_synonym(background, rng)) if background else ""


def _synonym(word: str, rng: RandomGenerator) -> str:
    return rng.choice(_SYNONYMS.get(word, (word,)))


def _with_article(noun: str) -> str:
    return f"an {noun}" if noun[0] in "aeiou" else f"a {noun}"


def _join_phrases(phrases: list[str]) -> str:
    return " and ".join(filter(None, (", ".join(phrases[:-1]), phrases[-1])))
