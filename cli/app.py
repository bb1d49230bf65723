"""How every command starts and ends: options that mean the same everywhere, messages, exit codes."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

from lossscope.errors import InputError, Interrupted

from . import _processes
from ._errors import FAILED as FAILED
from ._errors import explain, is_memory

app = typer.Typer(
    name="lossscope",
    help="See what a contrastive or metric-learning loss really does.\n\n"
    "Start with `lossscope demo`, or look at a checkpoint: `lossscope cocos checkpoints/tiny.pt --eps 0.01`.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

F = TypeVar("F", bound=Callable[..., Any])


def _names(kind: str) -> Callable[[str], list[str]]:
    """Shell completion of names, from the file names alone."""

    def complete(incomplete: str) -> list[str]:
        from lossscope.registry import names

        return [name for name in names(kind) if name.startswith(incomplete)]

    return complete


def _version(wanted: bool) -> None:
    if wanted:
        from lossscope import __version__

        typer.echo(__version__)
        raise typer.Exit


Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress and no notices.")]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="Say more on stderr.")]
Seed = Annotated[int, typer.Option(help="Seed of batches and of initial weights.", min=0)]
Device = Annotated[str, typer.Option(help="auto, cpu, cuda or cuda:INDEX.")]
Format = Annotated[str, typer.Option("--format", help="table, json, csv, markdown or latex.")]
Objectives = Annotated[
    list[str] | None,
    typer.Option("--objective", help="Objective spec; repeat for several.", autocompletion=_names("objectives")),
]
ObjectiveSpec = Annotated[
    str | None, typer.Option("--objective", help="Objective spec.", autocompletion=_names("objectives"))
]
ProbeSpecs = Annotated[
    list[str] | None,
    typer.Option("--probe", help="Probe of batches, to probes.csv; repeat.", autocompletion=_names("probes")),
]
EncoderSpec = Annotated[str | None, typer.Option("--encoder", help="Encoder spec.", autocompletion=_names("encoders"))]
DataSpec = Annotated[str | None, typer.Option("--data", help="Data set spec.", autocompletion=_names("datasets"))]
Sources = Annotated[
    list[Path],
    typer.Argument(
        help="Checkpoint, run folder, original file, Hugging Face folder, embedding or similarity dump.",
        show_default=False,
    ),
]
VocabularyFile = Annotated[
    Path | None,
    typer.Option("--vocabulary", help="Words (.json, .pkl) or tokeniser folder of a foreign model, if not beside it."),
]
EncoderOptions = Annotated[
    list[str] | None,
    typer.Option("--encoder-option", help="KEY=VALUE to change in the encoder's spec, e.g. score=itm; repeat."),
]
CaptionImage = Annotated[
    Path | None,
    typer.Option(help="Image row of each caption (.npy, or one a line), for a dump that does not hold it."),
]
TrustCode = Annotated[bool, typer.Option("--trust-code", help="Import Python files that a checkpoint names.")]


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Options of lossscope itself."""


def command(
    name: str | None = None,
    group: typer.Typer = app,
    processes: bool = False,
    panel: str | None = None,
    hidden: bool = False,
) -> Callable[[F], F]:
    """Register a command; its errors become a message and an exit code, without a traceback unless --debug.

    processes: whether torchrun may start many of it; the work is then within their group. panel: heading under
    which --help lists it. hidden: whether --help leaves it out.
    """

    def register(function: F) -> F:
        @functools.wraps(function)
        @_processes.ending()
        def run(*args: Any, **kwargs: Any) -> Any:
            try:
                with _processes.member(processes, kwargs) as given:
                    return function(*args, **given)
            except BrokenPipeError:
                raise  # the reader of the output has gone, which click ends quietly
            except (InputError, Interrupted, KeyboardInterrupt, MemoryError, OSError) as error:
                if kwargs.get("debug"):
                    raise
                raise typer.Exit(explain(error)) from error
            except RuntimeError as error:
                if kwargs.get("debug") or not is_memory(error):
                    raise
                raise typer.Exit(explain(error)) from error

        return group.command(name, rich_help_panel=panel, hidden=hidden)(run)  # type: ignore[return-value]

    return register


def usage(message: str) -> typer.BadParameter:
    """An error of the command line itself: exit code 2."""
    return typer.BadParameter(message)


def device_of(text: str) -> str:
    """`auto` -> the device there is; of many processes each has its own GPU. Raises InputError for one that is not."""
    import re

    import torch

    if _processes.many() and text.startswith("cuda:"):
        raise usage(f"--device must be auto, cpu or cuda where torchrun starts many processes; got {text!r}")
    if text == "auto":
        text = "cuda" if torch.cuda.is_available() else "cpu"
    if _processes.many() and text == "cuda":
        from lossscope.core.distributed import local_rank

        text = f"cuda:{local_rank()}"
    if not re.fullmatch(r"cpu|cuda(:\d+)?", text):
        raise usage(f"--device must be auto, cpu, cuda or cuda:INDEX; got {text!r}")
    if text.startswith("cuda"):
        index = int(text.partition(":")[2] or 0)
        if index >= torch.cuda.device_count():
            raise InputError(
                f"--device must be one that is there; {text} is not ({torch.cuda.device_count()} GPUs found)"
            )
    return text


def batch_size_of(text: str) -> int | None:
    """`all` -> None, a number -> itself."""
    if text == "all":
        return None
    if not text.isdecimal() or int(text) < 2:
        raise usage(f"--batch-size must be a number of at least 2, or all; got {text!r}")
    return int(text)


def chosen(value: str, known: tuple[str, ...], option: str) -> str:
    """The value, which must be one of `known`. Raises a usage error otherwise."""
    if value not in known:
        raise usage(f"{option} must be one of {', '.join(known)}; got {value!r}")
    return value


def main() -> None:
    """The console script."""
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="replace")
    app()
