"""What makes a command of a function: the fields of dataclasses that state its options, as typer reads them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

import typer

from lossscope.core.choices import RUNNING, Choice, choice_of, literal_words, option_of
from lossscope.declarations import DRAWN, declarations
from lossscope.errors import InputError

from ._running import is_typed

_SPECS = ("objectives", "encoders", "datasets", "probes", "masks", "signals")  # registries whose entries take options
_VALUES = {bool: "", int: "NUMBER", float: "NUMBER", Path: "PATH", str: "TEXT"}
"""Type of a value -> what stands for it in --help."""


@dataclass(frozen=True)
class Typed:
    """Marks a parameter `choices: Annotated[dict, Typed(Recipe)]`: the fields of a dataclass that were typed, alone."""

    options: type[Any]


class Only:
    """Marks a parameter `request: Annotated[Request, Only("data", "split")]`: these fields of its options alone.

    Args:
        names: of the fields.
        panel: heading under which --help lists them; None: their own.
    """

    def __init__(self, *names: str, panel: str | None = None) -> None:
        self.names, self.panel = names, panel


@dataclass(frozen=True)
class _Option:
    """One option, which is a parameter of a command."""

    name: str
    type_hint: Any
    choice: Choice
    default: Any  # MISSING where it must be typed

    @property
    def word(self) -> str:
        """What is typed, as the name of a parameter: `mask` of the field `masks`, `no_cache` of `cache`."""
        if self.choice.argument or not self.choice.flags:
            return self.name
        return option_of(self.name, self.choice).strip(" -/").replace("-", "_")

    @property
    def _is_required(self) -> bool:
        return self.default is MISSING

    @property
    def _is_negated(self) -> bool:
        """Whether to type it says no: `cache` by `--no-cache`."""
        return self.choice.flags.startswith(" /")

    def parameters(self) -> Iterator[inspect.Parameter]:
        """Yield the parameter that typer reads."""
        choice, default = self.choice, self._typer_default()
        shown = True if choice.shown == default else not self._is_required and not self._is_negated and choice.shown
        settings: dict[str, Any] = {
            "help": choice.help, "rich_help_panel": choice.panel, "show_default": shown, "metavar": self._metavar(),
            "autocompletion": self._completion(), "min": choice.low, "max": choice.high,
        }  # fmt: skip
        flags = choice.flags.removeprefix(" /").split(",") if choice.flags else []
        described = typer.Argument(**settings) if choice.argument else typer.Option(*flags, **settings)
        annotation: Any = Annotated[self._typer_type(), described]
        yield inspect.Parameter(self.word, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)

    def _metavar(self) -> str | None:
        """Return what stands for the value in --help: SOURCE of the argument `sources`, NUMBER, nothing of a flag.

        None: the words that may be typed.
        """
        choice = self.choice
        if choice.metavar:
            return choice.metavar
        if choice.argument:
            return self.word.upper().removesuffix("S") if _is_tuple(self.type_hint) else self.word.upper()
        if literal_words(self.type_hint):
            return None
        if choice.names in _SPECS:
            return "SPEC"
        typed = self._typer_type()
        return next((word for kind, word in _VALUES.items() if kind in (typed, *_parts(typed))), None)

    def value(self, given: Mapping[str, Any]) -> Any:
        """Return the value of what was typed, or the default. Raises OptionError for a text that cannot be read."""
        typed, choice = given[self.word], self.choice
        if choice.read is not None:
            if typed is None or typed == []:
                return self.default
            return choice.read(tuple(typed) if choice.many else typed)
        if self._is_negated:
            return not typed
        return tuple(typed or ()) if _is_tuple(self.type_hint) else typed

    def _typer_type(self) -> Any:
        """Return the type of what is typed: a text where it is read, a list where it may be repeated."""
        if self.choice.read is not None:
            return list[str] | None if self.choice.many else str | None
        if _is_tuple(self.type_hint):
            item = get_args(self.type_hint)[0]
            several: Any = list[str] if item is Any else list[item]  # type: ignore[valid-type]
            return several if self._is_required or self.default else several | None
        words = self.choice.words
        if words and literal_words(self.type_hint):
            narrowed: Any = Literal.__getitem__(words)
            return narrowed | None if type(None) in get_args(self.type_hint) else narrowed
        return self.type_hint

    def _typer_default(self) -> Any:
        """Return the default as typer takes it: of what is read the text that --help shows, if it is read as that."""
        choice = self.choice
        if self._is_required:
            return inspect.Parameter.empty
        if choice.read is not None:
            return choice.shown if isinstance(choice.shown, str) and self._reads_default(choice.shown) else None
        if self._is_negated:
            return False
        return (list(self.default) or None) if _is_tuple(self.type_hint) else self.default

    def _reads_default(self, text: str) -> bool:
        try:
            return self.choice.read is not None and self.choice.read(text) == self.default
        except InputError:
            return False

    def _completion(self) -> Callable[[str], list[str]] | None:
        choice = self.choice
        if not (choice.names or choice.completes or choice.words):
            return None

        def complete(incomplete: str) -> list[str]:
            return [word for word in _words_of(choice) if word.startswith(incomplete)]

        return complete


@dataclass(frozen=True)
class _Group:
    """A dataclass of options, whose fields are parameters of a command; fields without a choice have their defaults."""

    options: type[Any]
    members: Mapping[str, _Option | _Group]
    default: Any  # an instance, or MISSING

    def parameters(self) -> Iterator[inspect.Parameter]:
        """Yield the parameters of all fields."""
        for member in self.members.values():
            yield from member.parameters()

    def value(self, given: Mapping[str, Any]) -> Any:
        """Return the dataclass. Raises OptionError for values that it refuses."""
        values = {name: member.value(given) for name, member in self.members.items()}
        return self.options(**values) if self.default is MISSING else replace(self.default, **values)


@dataclass(frozen=True)
class _TypedAlone:
    """The fields of a dataclass that were typed."""

    group: _Group

    def parameters(self) -> Iterator[inspect.Parameter]:
        """Yield the parameters of all fields."""
        return self.group.parameters()

    def value(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return name -> value of the fields that were typed."""
        members = self.group.members.items()
        options = ((name, member) for name, member in members if isinstance(member, _Option))
        return {name: option.value(given) for name, option in options if is_typed(option.word)}


class Form:
    """The options of a function that is a command, which are found when they are first asked for.

    A parameter annotated with a dataclass of options stands for all its fields; its default, an instance, for their
    defaults. Any other parameter is `Annotated` with a `Choice`, or a mapping of what was `Typed`.
    """

    def __init__(self, function: Callable[..., Any], more: Mapping[str, Any]) -> None:
        self._function, self._more = function, more

    @cached_property
    def _members(self) -> dict[str, _Option | _Group | _TypedAlone]:
        hints = get_type_hints(self._function, include_extras=True)
        members = {}
        for name, parameter in inspect.signature(self._function).parameters.items():
            default = MISSING if parameter.default is inspect.Parameter.empty else parameter.default
            annotation = parameter.annotation
            hint = hints.get(name, annotation) if isinstance(annotation, str) else annotation
            members[name] = _member(name, hint, default)
        return members

    @cached_property
    def parameters(self) -> list[inspect.Parameter]:
        """Return the parameters that typer reads: arguments first, what says how the command runs last."""
        members = [*self._members.values(), *(_member(name, hint, False) for name, hint in self._more.items())]
        return sorted((parameter for member in members for parameter in member.parameters()), key=_rank)

    def arguments(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments of the function. Raises OptionError for options that cannot be, or do not fit."""
        return {name: member.value(given) for name, member in self._members.items()}


def _rank(parameter: inspect.Parameter) -> int:
    """Return where a parameter stands in --help: 0 an argument, 1 an option, 2 an option of the panel Running."""
    described = get_args(parameter.annotation)[1]
    if isinstance(described, typer.models.ArgumentInfo):
        return 0
    return 2 if described.rich_help_panel == RUNNING else 1


def _member(name: str, hint: Any, default: Any) -> _Option | _Group | _TypedAlone:
    found = choice_of(hint)
    if found is not None:
        return _Option(name, *found, default)
    options, *marks = get_args(hint) if get_origin(hint) is Annotated else (hint,)
    if marks and isinstance(marks[0], Typed):
        return _TypedAlone(_group(marks[0].options, MISSING))
    group = _group(options, default)
    return _only(group, marks[0]) if marks and isinstance(marks[0], Only) else group


def _group(options: Any, default: Any) -> _Group:
    """Return the fields of a dataclass that are options, or dataclasses of options."""
    hints = _hints(options)
    members: dict[str, Any] = {}
    for field in fields(options):
        hint = hints[field.name]
        if default is not MISSING:
            value = getattr(default, field.name)
        else:
            factory: Any = field.default_factory
            value = field.default if factory is MISSING else factory()
        if choice_of(hint) is not None or _is_form(hint):
            members[field.name] = _member(field.name, hint, value)
    return _Group(options, members, default)


def _only(group: _Group, only: Only) -> _Group:
    """Return the group with some of its options alone."""
    members = {}
    for name in only.names:
        member = group.members[name]
        assert isinstance(member, _Option)
        panel = member.choice.panel if only.panel is None or member.choice.panel == RUNNING else only.panel
        members[name] = replace(member, choice=replace(member.choice, panel=panel))
    return replace(group, members=members)


@cache
def _hints(options: Any) -> dict[str, Any]:
    return get_type_hints(options, include_extras=True)


def _is_form(hint: Any) -> bool:
    """Whether a field is a dataclass of options."""
    options: Any = get_args(hint)[0] if get_origin(hint) is Annotated else hint
    if not is_dataclass(options):
        return False
    group: Any = options
    return any(choice_of(field) is not None for field in _hints(group).values())


def _parts(type_hint: Any) -> Iterator[Any]:
    """Yield the types within a type: of `list[float] | None` list[float], float and None."""
    for part in get_args(type_hint):
        yield part
        yield from _parts(part)


def _is_tuple(type_hint: Any) -> bool:
    return get_origin(type_hint) is tuple


def _words_of(choice: Choice) -> Iterator[str]:
    """Yield the words that a shell completes. The file names of a registry give its names: no file is imported."""
    yield from choice.words
    if choice.completes is not None:
        yield from choice.completes()
    if choice.names in DRAWN:
        yield from (item.name for item in declarations(choice.names))
    elif choice.names:
        from lossscope.registry import names

        yield from names(choice.names)
