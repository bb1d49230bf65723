"""Is an option stated once: does its field make the option, default, range and value in every command?"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
import typer
from lossscope_cli import app
from lossscope_cli._form import Form, Only, Typed
from typer.testing import CliRunner

from lossscope.core.choices import Choice, choices_of, option_of, require_choices
from lossscope.core.request import Request
from lossscope.engine.options import SweepOptions
from lossscope.errors import OptionError
from tests.command_line import tree
from tests.each import each


def _pairs(typed: tuple[str, ...]) -> dict[str, str]:
    return dict(text.split("=") for text in typed)


@dataclass(frozen=True)
class Inner:
    """Options within options."""

    way: Annotated[Literal["near", "far", "old"], Choice("Ways", "Which way.", words=("near", "far"))] = "near"


@dataclass(frozen=True)
class Toy:
    """An option of each kind."""

    paths: Annotated[tuple[Path, ...], Choice(None, "Places.", argument=True)]
    width: Annotated[int, Choice(None, "Width.", low=1, high=9)] = 3
    many: Annotated[tuple[float, ...], Choice(None, "Numbers.", flags="--number")] = (0.5,)
    size: Annotated[int | None, Choice(None, "Size.", shown="7", read=lambda t: None if t == "all" else int(t))] = 7
    kept: Annotated[bool, Choice(None, "Keep nothing.", flags=" /--no-keep")] = True
    pairs: Annotated[Mapping[str, str], Choice(None, "Pairs.", flags="--pair", read=_pairs, many=True)] = field(
        default_factory=dict
    )
    inner: Inner = Inner()
    unseen: int = 5  # no option

    def __post_init__(self) -> None:
        require_choices(self)


USUAL = Toy((Path("a"),))


def parse(words: str, function: Any) -> dict[str, Any]:
    """Return what a function is called with."""
    form, called = Form(function, {}), list[dict[str, Any]]()

    class Run:
        __name__, __doc__ = "run", "Run."
        __signature__: Any = None

        def __call__(self, **given: Any) -> None:
            called.append(form.arguments(given))

    run = Run()
    run.__signature__ = inspect.Signature(form.parameters)
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in form.parameters}
    alone = typer.Typer()
    alone.command()(run)
    result = CliRunner().invoke(alone, words.split())
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == 0, result.output
    return called[0]


@each("words, changes", [
    ("", {}),
    ("--width 4", {"width": 4}),
    ("--number 1 --number 2", {"many": (1.0, 2.0)}),
    ("--size 9", {"size": 9}),
    ("--size all", {"size": None}),
    ("--no-keep", {"kept": False}),
    ("--pair a=b --pair c=d", {"pairs": {"a": "b", "c": "d"}}),
    ("--way far", {"inner": Inner("far")}),
])  # fmt: skip
def test_a_field_is_an_option_and_its_value(words: str, changes: dict[str, Any]) -> None:
    def run(toy: Toy) -> None: ...

    assert parse(f"a {words}", run) == {"toy": replace(USUAL, **changes)}


def test_the_defaults_of_a_command_are_those_of_its_instance_and_only_some_fields_are_its_options() -> None:
    def run(toy: Annotated[Inner, Only("way", panel="Others")] = Inner("far"), width: Annotated[
        int, Choice(None, "Width.")] = 2) -> None: ...  # fmt: skip

    assert parse("", run) == {"toy": Inner("far"), "width": 2}
    (way, _) = Form(run, {}).parameters
    assert way.annotation.__metadata__[0].rich_help_panel == "Others"


def test_what_was_typed_alone_is_a_mapping() -> None:
    def run(choices: Annotated[dict[str, Any], Typed(Inner)]) -> None: ...

    assert parse("", run) == {"choices": {}}


def test_a_value_out_of_range_is_refused_from_python_in_the_words_that_are_typed() -> None:
    with pytest.raises(OptionError, match="--width must be from 1 to 9; got 0"):
        replace(USUAL, width=0)


@each("options, word", [
    ({"mined": 0}, "--mined must be at least 1; got 0"),
    ({"captions": "second"}, "--captions must be one of all, first; got 'second'"),
    ({"negatives": "mine"}, "--negatives must be one of batch, own, none; got 'mine'"),
    ({"seed": -1}, "--seed must be at least 0; got -1"),
])  # fmt: skip
def test_options_of_a_sweep_are_refused_from_python(options: dict[str, Any], word: str) -> None:
    with pytest.raises(OptionError, match=word):
        SweepOptions(("triplet",), **options)


SWEEPING = ("cocos", "probe", "diff", "similarity", "weight-mass")


@each("command", SWEEPING, "options", [SweepOptions, Request])
def test_every_option_of_a_sweep_is_one_of_every_command_that_sweeps(command: str, options: Any) -> None:
    whole: Any = tree(app)
    helps = {option: parameter.help for parameter in whole.commands[command].params for option in parameter.opts}
    for name, (_, choice) in choices_of(options).items():
        assert helps[option_of(name, choice)] == choice.help
