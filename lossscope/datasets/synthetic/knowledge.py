"""A small world of made-up people, each with one value for each of eight relations; drawn from a seed with integers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product

from .scene import RandomGenerator

_FIRST = ("al", "bre", "cor", "dor", "fen", "hal", "jo", "mar"), ("da", "lin", "na", "mo", "sa", "rik", "vi", "ton")
_LAST = (
    ("bar", "cas", "del", "fur", "gan", "hol", "kem", "lor", "mas", "nor", "pel", "tor"),
    ("berg", "dan", "feld", "ker", "min", "sen", "tal", "wick"),
)
_TOWN = ("ash", "brim", "car", "dun", "elm", "glen", "kes", "lan"), ("bury", "caster", "ford", "ham", "mouth", "ton")

FIRST_NAMES = tuple(f"{a}{b}" for a, b in product(*_FIRST))  # 64
LAST_NAMES = tuple(f"{a}{b}" for a, b in product(*_LAST))  # 96
TOWNS = tuple(f"{a}{b}" for a, b in product(*_TOWN))  # 48
RELATIONS: Mapping[str, tuple[str, ...]] = {
    "birthplace": TOWNS,
    "home": TOWNS,
    "year": tuple(str(year) for year in range(1880, 1920)),
    "job": tuple(
        "baker barber brewer butcher carpenter cook dentist driver farmer fisher gardener judge lawyer mason miller "
        "nurse painter pilot plumber potter sailor smith tailor weaver".split()
    ),
    "instrument": tuple("banjo cello clarinet drum fiddle flute guitar harp lute piano trumpet viola".split()),
    "subject": tuple(
        "algebra botany chemistry geology geometry grammar history law logic medicine music zoology".split()
    ),
    "language": tuple("czech danish dutch french german greek latin polish russian spanish swedish turkish".split()),
    "pet": tuple("beaver canary cat dog donkey ferret goat horse parrot rabbit snake turtle".split()),
}
"""Relation -> the values that it may have."""
RELATION_NAMES = tuple(RELATIONS)
MOST_PEOPLE = len(FIRST_NAMES) * len(LAST_NAMES)  # 6,144


@dataclass(frozen=True)
class Person:
    """Somebody with one value for each relation; no two people have the same first and last name."""

    first: str
    last: str
    values: tuple[str, ...]  # in the order of RELATION_NAMES

    @property
    def pronoun(self) -> str:
        """`she` or `he`, by the first name."""
        return ("she", "he")[FIRST_NAMES.index(self.first) % 2]

    @property
    def name(self) -> str:
        """First and last name with capital letters."""
        return f"{self.first.capitalize()} {self.last.capitalize()}"


def draw_person(number: int, rng: RandomGenerator) -> Person:
    """Return the person whose names have this number, 0..MOST_PEOPLE-1; one random word for each relation."""
    first, last = divmod(number, len(LAST_NAMES))
    values = tuple(rng.choice(options) for options in RELATIONS.values())
    return Person(FIRST_NAMES[first], LAST_NAMES[last], values)
