"""What becomes of each option in a family's files: done, refused, or without effect; any other one is refused too."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from lossscope.errors import InputError
from lossscope.io.json_files import shorten


@dataclass(frozen=True)
class Refusal:
    """An option that is not done here: a file is refused unless it has one of the values that leave S as it is."""

    unless: tuple[Any, ...]  # values that are fine; () refuses every one
    why: str  # what the option does in the original, as `the branch is not built here`


@dataclass(frozen=True)
class OptionTable:
    """The options of one family's files. Names may be patterns (`experts.*_dim`); parts of nested ones end in dots.

    An option in none of the three lists is refused: what nobody has looked at could change the numbers.
    """

    done: Mapping[str, str] = field(default_factory=dict)  # name -> what follows from it here
    refused: Mapping[str, Refusal] = field(default_factory=dict)  # name -> the values that are fine, and why
    without_effect: Mapping[str, str] = field(default_factory=dict)  # name -> why S does not depend on it
    deciding: tuple[str, ...] = ()  # those that leave no trace in the tensors: without one, its default is assumed

    def require_known(self, options: Mapping[str, Any], accepted: Collection[str], path: Path) -> None:
        """Raise InputError for the first option that is refused, or that no list of the table has.

        Args:
            options: of the file, as plain values.
            accepted: names that no list has, and that the user takes to be without effect (--accept-option).
            path: of the file, for messages.
        """
        pairs = list(flatten(options))
        needless = sorted(set(accepted) - {name for name, _ in pairs if not self._knows(name)})
        if needless:
            raise InputError(f"--accept-option is for unknown options of {path}; got {needless[0]!r}")
        for name, value in pairs:
            refusal = next((r for pattern, r in self.refused.items() if fnmatchcase(name, pattern)), None)
            if refusal is not None:
                _require_one_of(name, value, refusal, path)
            elif not self._knows(name) and name not in accepted:
                raise InputError(
                    f"options of {path} must have a known effect; got {name}={shorten(value)}, which the authors' "
                    f"files do not have. If it leaves S as it is, pass --accept-option {name}"
                )

    def _knows(self, name: str) -> bool:
        return any(_matches(name, patterns) for patterns in (self.refused, self.done, self.without_effect))


def flatten(options: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield name and value of every option, those inside others as `outer.inner`.

    >>> list(flatten({"a": 1, "b": {"c": [2, 3]}, "d": [{"e": 4}]}))
    [('a', 1), ('b.c', [2, 3]), ('d.e', 4)]
    """
    for key, value in options.items():
        name = f"{prefix}{key}"
        parts = value if isinstance(value, list) and value and isinstance(value[0], Mapping) else [value]
        for part in parts:
            if isinstance(part, Mapping) and part:
                yield from flatten(part, f"{name}.")
            else:
                yield name, part


def _matches(name: str, patterns: Collection[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def _require_one_of(name: str, value: Any, refusal: Refusal, path: Path) -> None:
    if any(type(value) is type(fine) and value == fine for fine in refusal.unless):
        return
    fine = " or ".join(map(repr, refusal.unless))
    needed = f"be {fine}" if fine else "not be there"
    raise InputError(f"option {name} of {path} must {needed}; got {shorten(value)}. {refusal.why}")
