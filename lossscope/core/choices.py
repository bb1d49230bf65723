"""An option, stated once: the field of a dataclass says its type, its default, what --help shows, what it may be."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from functools import cache
from numbers import Integral, Real
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

from lossscope.errors import OptionError

SOURCE, BATCHES, OUTPUT, RUNNING = "Source", "Batches", "Output", "Running"  # headings of --help that commands share
SPLITS = ("train", "val", "test")  # that most data sets have
WHOLE = "all"  # the split of all rows of a single file


@dataclass(frozen=True)
class Choice:
    """What the command line says of a field of options, and which values the field may have.

    A field `masks: Annotated[tuple[str, ...], Choice(BATCHES, "Rule ...", flags="--mask")] = ()` is an option that is
    typed once for each mask.
    """

    panel: str | None  # heading under which --help lists it; None: the first
    help: str
    shown: str | bool = True  # whether --help shows the default, or what it shows in its place
    flags: str = ""  # as typed, where that is not its name: `--mask`, `--yes/--no`, `--out,-o`
    low: float | None = None  # smallest number
    high: float | None = None  # largest number
    words: tuple[str, ...] = ()  # what a shell completes; of a Literal the only ones that may be typed
    names: str = ""  # registry, or kind of files, whose names a shell completes
    read: Callable[[Any], Any] | None = None  # makes the value of the text, or the texts, that were typed
    many: bool = False  # whether `read` takes the texts of a repeated option
    completes: Callable[[], list[str]] | None = None  # returns what a shell completes, where it is neither
    metavar: str | None = None  # what stands for the value in --help
    argument: bool = False  # whether it is typed without a name


@cache
def choices_of(cls: Any) -> Mapping[str, tuple[Any, Choice]]:
    """Return the name of each field of a dataclass that is an option -> its type, and its choice."""
    hints = get_type_hints(cls, include_extras=True)
    described = {field.name: choice_of(hints[field.name]) for field in fields(cls)}
    return {name: pair for name, pair in described.items() if pair is not None}


def choice_of(hint: Any) -> tuple[Any, Choice] | None:
    """Return the type and the choice of `Annotated[type, Choice(...)]`; None for a hint without one."""
    if get_origin(hint) is not Annotated:
        return None
    type_hint, *more = get_args(hint)
    return next(((type_hint, item) for item in more if isinstance(item, Choice)), None)


def option_of(name: str, choice: Choice) -> str:
    """Return the option of a field as it is typed: `--batch-size`."""
    first = choice.flags.strip(" /").split("/")[0].split(",")[0]
    return first or f"--{name.replace('_', '-')}"


def require_choices(options: Any) -> None:
    """Raise OptionError for a field of a dataclass that is no number, out of its range, or none of its words."""
    cls: Any = type(options)
    for name, (type_hint, choice) in choices_of(cls).items():
        value = getattr(options, name)
        if value is None or choice.read is not None:
            continue
        words = literal_words(type_hint)
        if words and value not in words:
            raise OptionError(f"{option_of(name, choice)} must be one of {', '.join(words)}; got {value!r}")
        low, high = choice.low, choice.high
        if low is None and high is None:
            continue
        whole = int in (type_hint, *get_args(type_hint))
        if not issubclass(type(value), Integral if whole else Real):
            raise OptionError(f"{option_of(name, choice)} must be a {'whole ' * whole}number; got {value!r}")
        if (low is not None and not value >= low) or (high is not None and not value <= high):
            limit = f"at least {low}" if high is None else f"from {low} to {high}"
            raise OptionError(f"{option_of(name, choice)} must be {limit}; got {value}")


def literal_words(type_hint: Any) -> tuple[str, ...]:
    """Return the words of a Literal, or of one that may be None; none for any other type."""
    if get_origin(type_hint) is Literal:
        return tuple(map(str, get_args(type_hint)))
    return next((words for part in get_args(type_hint) if (words := literal_words(part))), ())
