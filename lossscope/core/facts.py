"""What is known of a subject, in parts: each is computed once, when it is first needed, or missing for a reason."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

T = TypeVar("T")
NO_REASON = "the source has nothing of the kind"


class Missing(Exception):
    """A part is missing.

    Args:
        reason: why, as part of a sentence: `it has no log`.
        need: what would have it, in a few words: `a training log`; empty where nothing would.
    """

    def __init__(self, reason: str, need: str = "") -> None:
        super().__init__(reason)
        self.reason, self.need = reason, need


class TooLittle(Missing):
    """A part is there, and cannot be judged: `it has 7 pairs; 16 are needed`, or its numbers leave their type."""


@dataclass(eq=False)
class Facts:
    """Parts of a subject by their class: `facts.part(Items)`.

    A part is one of those that are given; else the reason why it is missing is; else its own `of(facts, *needed)`
    computes it from parts of the classes that it `needs`, or raises Missing. Where one of these is missing, it is
    missing for the same reason. A class without `of` says in `absent` why it is missing where it is not given, and any
    class in `need` what would have it.
    """

    given: dict[type[Any], Any] = field(default_factory=dict, kw_only=True)  # class -> part, or what reads it
    missing: dict[type[Any], str] = field(default_factory=dict, kw_only=True)  # class -> why there is none
    _known: dict[type[Any], Any] = field(default_factory=dict, init=False, repr=False)  # class -> part, or why not

    def part(self, kind: type[T]) -> T:
        """Return a part. Raises Missing where there is none."""
        if kind not in self._known:
            try:
                self._known[kind] = self._compute(kind)
            except Missing as error:
                self._known[kind] = type(error)(error.reason, error.need)  # without the frames that raised it
        known: T | Missing = self._known[kind]
        if isinstance(known, Missing):
            raise type(known)(known.reason, known.need)
        return known

    def has(self, kind: type[Any]) -> bool:
        """Return whether there is such a part."""
        try:
            self.part(kind)
        except Missing:
            return False
        return True

    def known(self, kind: type[T]) -> T | None:
        """Return a part that was needed already; None for any other."""
        part = self._known.get(kind)
        return part if isinstance(part, kind) else None

    def _compute(self, kind: type[Any]) -> Any:
        if kind in self.given:
            given = self.given[kind]
            return given if isinstance(given, kind) else given()
        if kind in self.missing:
            raise Missing(self.missing[kind], getattr(kind, "need", ""))
        needed = [self.part(need) for need in getattr(kind, "needs", ())]
        compute: Callable[..., Any] | None = getattr(kind, "of", None)
        if compute is None:
            raise Missing(getattr(kind, "absent", NO_REASON), getattr(kind, "need", ""))
        return compute(self, *needed)
