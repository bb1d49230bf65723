"""Options that mean the same everywhere, and commands whose options are the fields of a dataclass."""

from __future__ import annotations

import contextlib
import copy
import difflib
import functools
import inspect
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

import typer

from lossscope.declarations import Choice, declarations
from lossscope.errors import InputError

from . import _processes

_KINDS = {"data": "datasets", "encoder": "encoders", "objective": "objectives"}  # option -> names it completes


def complete_names(kind: str, *more: str) -> Callable[[str], list[str]]:
    """Return shell completion of the names of a registry, read from the file names alone."""

    def complete(incomplete: str) -> list[str]:
        from lossscope.registry import names

        return [name for name in (*more, *names(kind)) if name.startswith(incomplete)]

    return complete


def complete_declared(kind: str) -> Callable[[str], list[str]]:
    """Return shell completion of the files of a kind that is no registry: tables, pictures, chapters."""

    def complete(incomplete: str) -> list[str]:
        return [item.name for item in declarations(kind) if item.name.startswith(incomplete)]

    return complete


def complete_words(*words: str) -> Callable[[str], list[str]]:
    """Return shell completion of fixed words."""

    def complete(incomplete: str) -> list[str]:
        return [word for word in words if word.startswith(incomplete)]

    return complete


SOURCE, OUTPUT, RUNNING = "Source", "Output", "Running"  # panels of --help
SPLITS = ("train", "val", "test")  # that most data sets have

Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.", rich_help_panel=RUNNING)]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress and no notices.", rich_help_panel=RUNNING)]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="Say more on stderr.", rich_help_panel=RUNNING)]
Seed = Annotated[int, typer.Option(help="Seed of batches and of initial weights.", min=0)]
Jobs = Annotated[
    int | None,
    typer.Option(
        help="Threads that share the work; numbers are the same with any. LOSSSCOPE_JOBS says it for all commands.",
        show_default="cores",
        min=1,
        rich_help_panel=RUNNING,
    ),
]
Device = Annotated[
    str,
    typer.Option(
        help="auto, cpu, cuda or cuda:INDEX.",
        rich_help_panel=RUNNING,
        autocompletion=complete_words("auto", "cpu", "cuda"),
    ),
]
Format = Annotated[
    Literal["table", "json", "csv", "markdown", "latex"],
    typer.Option("--format", help="Of the result.", rich_help_panel=OUTPUT),
]
SplitName = Annotated[
    str,
    typer.Option(
        "--split",
        help="Split of the checkpoint's data.",
        rich_help_panel=SOURCE,
        autocompletion=complete_words(*SPLITS),
    ),
]
Objectives = Annotated[
    list[str] | None,
    typer.Option(
        "--objective", help="Objective spec; repeat for several.", autocompletion=complete_names("objectives")
    ),
]
DataSpec = Annotated[
    str | None,
    typer.Option("--data", help="Data set spec.", rich_help_panel=SOURCE, autocompletion=complete_names("datasets")),
]
Sources = Annotated[
    list[Path],
    typer.Argument(
        help="Checkpoint, run folder, original file, Hugging Face folder, embedding or similarity dump.",
        show_default=False,
    ),
]
VocabularyFile = Annotated[
    Path | None,
    typer.Option(
        "--vocabulary",
        help="Words (.json, .pkl), byte pairs (.txt.gz) or tokeniser folder of a released model, if not beside it.",
        rich_help_panel=SOURCE,
    ),
]
EncoderOptions = Annotated[
    list[str] | None,
    typer.Option(
        "--encoder-option",
        help="KEY=VALUE of the encoder's spec, as score=itm, or what a released file does not say, as model=ViT-B-32.",
        rich_help_panel=SOURCE,
    ),
]
AcceptOptions = Annotated[
    list[str] | None,
    typer.Option(
        "--accept-option",
        help="Option of a released file, not known here, that leaves the model as it is; repeat.",
        rich_help_panel=SOURCE,
    ),
]
CaptionImage = Annotated[
    Path | None,
    typer.Option(
        help="Image row of each caption (.npy, or one a line), for a dump that does not hold it.",
        rich_help_panel=SOURCE,
    ),
]
SidesOption = Annotated[
    str | None,
    typer.Option(
        "--sides",
        help="What the two sides of a dump are called, as user/item; one name for one labelled set.",
        rich_help_panel=SOURCE,
    ),
]
TrustCode = Annotated[
    bool,
    typer.Option("--trust-code", help="Import Python files that a file names.", rich_help_panel=SOURCE),
]
NoCache = Annotated[bool, typer.Option("--no-cache", help="Do not keep embeddings.", rich_help_panel=SOURCE)]


def usage(message: str) -> typer.BadParameter:
    """Return an error of the command line itself: exit code 2."""
    return typer.BadParameter(message)


@contextlib.contextmanager
def typed_alone() -> Iterator[None]:
    """Make an InputError a usage error, where nothing but what was typed can be its cause."""
    try:
        yield
    except InputError as error:
        raise usage(str(error)) from error


def resolve_device(text: str) -> str:
    """Return the device that is meant: `auto` is the GPU if there is one; of many processes each has its own GPU.

    Raises InputError for a device that is not there.
    """
    import re

    import torch

    many = _processes.is_one_of_many()
    if many and text.startswith("cuda:"):
        raise usage(f"--device must be auto, cpu or cuda where torchrun starts many processes; got {text!r}")
    if text == "auto":
        text = "cuda" if torch.cuda.is_available() else "cpu"
    if many and text == "cuda":
        from lossscope.core.distributed import local_rank

        text = f"cuda:{local_rank()}"
    if not re.fullmatch(r"cpu|cuda(:\d+)?", text):
        raise usage(f"--device must be auto, cpu, cuda or cuda:INDEX; got {text!r}")
    if text.startswith("cuda"):
        index = int(text.partition(":")[2] or 0)
        if index >= torch.cuda.device_count():
            raise InputError(f"--device must be one that is there; {text} is not ({torch.cuda.device_count()} GPUs)")
    return text


def parse_batch_size(text: str) -> int | None:
    """Return a number as itself, and `all` as None."""
    if text == "all":
        return None
    if not text.isdecimal() or int(text) < 2:
        raise usage(f"--batch-size must be a number of at least 2, or all; got {text!r}")
    return int(text)


def parse_interval(text: str) -> float | None:
    """Return `95`, `95%` and `0.95` as 0.95, and `none` as None."""
    if text == "none":
        return None
    try:
        number = float(text.removesuffix("%"))
    except ValueError:
        number = math.nan
    level = number / 100 if text.endswith("%") or number >= 1 else number
    if not 0.5 <= level < 1:
        raise usage(f"--interval must be a level from 50 to below 100 per cent, as 95 or 0.95, or none; got {text!r}")
    return round(level, 12)


def parse_dims(text: str | None) -> tuple[int | None, ...]:
    """Read --dims: widths with commas, `full` as None; without it the full width alone."""
    if text is None:
        return (None,)
    words = [word.strip() for word in text.split(",")]
    known = all(word == "full" or (word.isdecimal() and int(word) >= 1) for word in words)
    widths = tuple(None if word == "full" else int(word) for word in words) if known else ()
    if not known or len(set(widths)) < len(widths):
        raise usage(f"--dims must be different widths with commas, as 64,128,full; got {text!r}")
    return widths


def require_choice(value: str, choices: Sequence[str], option: str) -> str:
    """Return the value, which must be one of `choices`. Raises a usage error otherwise."""
    if value not in choices:
        raise usage(f"{option} must be one of {', '.join(choices)}; got {value!r}")
    return value


def require_declared(kind: str, name: str, what: str) -> str:
    """Return the name of a file of a kind; `-` and `_` are equal. Raises a usage error with the nearest name."""
    names, wanted = [item.name for item in declarations(kind)], name.replace("-", "_").lower()
    if wanted not in names:
        near = difflib.get_close_matches(wanted, names, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise usage(f"{what} must be one of {', '.join(names)}; got {name!r}{hint}")
    return wanted


def with_options(
    cls: Any, own: Sequence[inspect.Parameter] | None = None
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Make function(options, **own) a command: the fields of the dataclass are options beside its own.

    Args:
        cls: a dataclass whose fields are annotated with typer options; arguments come first.
        own: parameters of the function beside `options`, where they are not in its signature.
    """

    def decorate(function: Callable[..., None]) -> Callable[..., None]:
        more = _own_parameters(function) if own is None else own
        shared = option_parameters(cls)
        arguments = [one for one in shared if one.default is inspect.Parameter.empty]
        options = [one for one in shared if one.default is not inspect.Parameter.empty]

        @functools.wraps(function)
        def run(**given: Any) -> None:
            return function(cls(**{field.name: given.pop(field.name) for field in fields(cls)}), **given)

        return _with_signature(run, [*arguments, *more, *options])

    return decorate


def with_choices(cls: Any) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Make function(choices, **own) a command: `choices` are those fields of the dataclass that were typed.

    The dataclass's fields are annotated with `Choice`; its defaults are shown by --help.
    """

    def decorate(function: Callable[..., None]) -> Callable[..., None]:
        context = inspect.Parameter("context", inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context)

        @functools.wraps(function)
        def run(context: typer.Context, **given: Any) -> None:
            values = {field.name: given.pop(field.name) for field in fields(cls)}
            typed = {k: v for k, v in values.items() if context.get_parameter_source(k).name != "DEFAULT"}  # type: ignore[union-attr]
            return function(typed, **given)

        return _with_signature(run, [context, *option_parameters(cls), *_own_parameters(function)])

    return decorate


@functools.cache
def option_parameters(cls: type[Any]) -> list[inspect.Parameter]:
    """Return the fields of a dataclass as keyword parameters that typer reads.

    A field's metadata `panel` is the panel of --help in which an option that commands share stands in this command.
    """
    hints, parameters = get_type_hints(cls, include_extras=True), []
    for field in fields(cls):
        default = inspect.Parameter.empty if field.default is MISSING else field.default
        annotation = _option_of(field.name, hints[field.name])
        if "panel" in field.metadata:
            type_hint, option = get_args(annotation)
            option = copy.copy(option)
            option.rich_help_panel = field.metadata["panel"]
            annotation = Annotated[type_hint, option]
        kind = inspect.Parameter.KEYWORD_ONLY
        parameters.append(inspect.Parameter(field.name, kind, default=default, annotation=annotation))
    return parameters


def _option_of(name: str, hint: Any) -> Any:
    """The hint as it is, or the typer option that a `Choice` in it stands for."""
    described = [one for one in get_args(hint)[1:] if isinstance(one, Choice)] if get_origin(hint) is Annotated else []
    if not described:
        return hint
    (choice,) = described
    options: Mapping[str, Any] = {
        "help": choice.help,
        "rich_help_panel": choice.panel,
        "show_default": choice.shown,
        "autocompletion": complete_names(_KINDS[name]) if name in _KINDS else None,
    }
    flags = [choice.flags] if choice.flags else []
    return Annotated[get_args(hint)[0], typer.Option(*flags, **options)]


def _own_parameters(function: Callable[..., None]) -> list[inspect.Parameter]:
    """The parameters of a function but its first, as keyword parameters."""
    hints = get_type_hints(function, include_extras=True)
    _, *own = inspect.signature(function).parameters.values()
    return [p.replace(kind=inspect.Parameter.KEYWORD_ONLY, annotation=hints[p.name]) for p in own]


def _with_signature(run: Callable[..., None], parameters: Sequence[inspect.Parameter]) -> Callable[..., None]:
    """The function under a signature of its own, which typer reads."""
    del run.__wrapped__  # type: ignore[attr-defined]
    run.__signature__ = inspect.Signature(list(parameters))  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return run
