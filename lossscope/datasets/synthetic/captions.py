"""Scenes -> captions: what one states (its claim) is chosen first, then put into words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from .scene import MILLION, Dice, Scene, Thing

CAPTION_WORDS = 48  # random words one caption may use: 3 order, 21 claim, at most 19 wording

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
_GROUNDS = ("on a {} background", "against a {} backdrop", "in front of a {} wall")


@dataclass(frozen=True)
class Mention:
    """What a caption states of one thing; None is left open."""

    shape: str | None = None
    colour: str | None = None
    size: str | None = None
    place: str | None = None


@dataclass(frozen=True)
class Claim:
    """The meaning of a caption: these things, each another one, on this background if stated."""

    mentions: tuple[Mention, ...]
    background: str | None = None


def tell(scene: Scene, dice: Dice, ambiguity: float) -> tuple[Claim, str]:
    """A claim that is true of the scene, and a caption that states it; ambiguity in 0..1.

    Each piece (a thing but the first, a size, a place, the shape or the colour, the background) is left out
    with probability `ambiguity`. With the same dice more ambiguity only ever leaves out more.
    """
    claim = _claim(scene, dice, round(ambiguity * MILLION))
    return claim, _words(claim, dice)


def _claim(scene: Scene, dice: Dice, open_: int) -> Claim:
    things = dice.some(scene.things, len(scene.things))
    told = [(not dice.chance(open_), _mention(thing, dice, open_)) for thing in things]
    background = None if dice.chance(open_) else scene.background
    return Claim(tuple(mention for row, (kept, mention) in enumerate(told) if kept or row == 0), background)


def _mention(thing: Thing, dice: Dice, open_: int) -> Mention:
    """Every thing keeps its anchor: the shape, or one time in four the colour."""
    anchored_by_shape = dice.below(4) > 0
    no_anchor, no_size, no_place = dice.chance(open_), dice.chance(open_), dice.chance(open_)
    return Mention(
        shape=thing.shape if anchored_by_shape or not no_anchor else None,
        colour=None if anchored_by_shape and no_anchor else thing.colour,
        size=None if no_size else thing.size,
        place=None if no_place else thing.place,
    )


def _words(claim: Claim, dice: Dice) -> str:
    form = dice.below(4)
    parts = [_phrase(mention, dice, " is " if form == 3 else " ") for mention in claim.mentions]
    listed = _listed(parts)
    ground = _ground(claim.background, dice)
    if form == 0:
        return f"{listed}, {ground}" if ground else listed
    if form == 1:
        return f"there is {listed} {ground}".rstrip()
    if form == 2:
        return f"{ground} there is {listed}" if ground else f"a picture of {listed}"
    return f"{listed}, {ground}" if ground else f"here {listed}"


def _phrase(mention: Mention, dice: Dice, link: str) -> str:
    told = [mention.size, mention.colour, mention.shape or "thing"]
    noun = _article(" ".join(_synonym(word, dice) for word in told if word))
    if mention.place:
        return f"{noun}{link}{_synonym(mention.place, dice)}"
    return f"{noun} is seen" if link == " is " else noun


def _ground(background: str | None, dice: Dice) -> str:
    return dice.pick(_GROUNDS).format(_synonym(background, dice)) if background else ""


def _synonym(word: str, dice: Dice) -> str:
    return dice.pick(_SYNONYMS.get(word, (word,)))


def _article(noun: str) -> str:
    return f"an {noun}" if noun[0] in "aeiou" else f"a {noun}"


def _listed(parts: list[str]) -> str:
    return " and ".join(filter(None, (", ".join(parts[:-1]), parts[-1])))
