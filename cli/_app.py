"""How every command starts and ends: registration, messages, exit codes, processes of one job."""

from __future__ import annotations

import contextlib
import importlib
import inspect
import os
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from typing import Annotated, Any

import typer
from typer.models import CommandInfo

from lossscope.errors import InputError, Interrupted, OptionError

from ._errors import explain, is_memory
from ._form import Form
from ._options import Debug, Quiet, Verbose, resolve_device, usage
from ._processes import is_one_of_many, with_rank, writes_results
from ._running import silent, until_its_end
from ._sources import with_existing_sources
from ._spec_options import Command
from ._start import no_garbage
from ._trust import trust_typed

app = typer.Typer(
    name="lossscope",
    help="See what a contrastive or metric-learning loss really does.\n\n"
    "Start with `lossscope demo`, or look at a checkpoint: `lossscope cocos checkpoints/tiny.pt --eps 0.01`.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

HIDDEN = "hidden"  # panel of a command that --help leaves out
_GRACE = 2.0  # seconds in which the process that failed first can tell why, before others say that they lost it


def _version(wanted: bool) -> None:
    if wanted:
        from lossscope import __version__

        typer.echo(__version__)
        raise typer.Exit


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
    keeps: bool = False,
    imports: str | None = None,
    verbose: bool = False,
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register a function as a command with --quiet and --debug; see `Form` for its parameters.

    Its errors become a message and an exit code, without a traceback unless --debug.

    Args:
        name: of the command; None: that of the function.
        group: of commands.
        processes: whether torchrun may start many of it, which then share the work.
        panel: heading under which --help lists it; HIDDEN leaves it out.
        keeps: whether what was finished is kept when it is interrupted, and the same command resumes it; of a command
            with an optional --out where that is given.
        imports: module that its body needs, with all that takes long to import, as torch does.
        verbose: whether it has --verbose.
    """

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        form = Form(function, {"quiet": Quiet, **({"verbose": Verbose} if verbose else {}), "debug": Debug})

        @end_process()
        def run(**given: Any) -> Any:
            try:
                with until_its_end(), trust_typed(given), join_job(processes, with_existing_sources(given)) as ready:
                    arguments = form.arguments(ready)
                    _import(imports)
                    return function(**arguments)
            except BrokenPipeError:
                raise  # the reader of the output has gone, which click ends quietly
            except OptionError as error:
                if given.get("debug"):
                    raise
                raise usage(str(error)) from error
            except (InputError, Interrupted, KeyboardInterrupt, MemoryError, OSError) as error:
                if given.get("debug"):
                    raise
                raise typer.Exit(explain(error, _kept(keeps, given))) from error
            except RuntimeError as error:
                if given.get("debug") or not is_memory(error):
                    raise
                raise typer.Exit(explain(error)) from error

        hidden = panel == HIDDEN
        listed = group.command(name, cls=Command, rich_help_panel=None if hidden else panel, hidden=hidden)
        return listed(_Callback(function, form, run))

    return register


class _Callback:
    """A command as typer reads it, whose options are made when they are asked for: --help of all asks for none."""

    def __init__(self, function: Callable[..., Any], form: Form, run: Callable[..., Any]) -> None:
        self.__name__, self.__doc__, self.__module__ = function.__name__, function.__doc__, function.__module__
        self.__signature__: Any  # read by inspect
        self._form, self._run = form, run

    def __call__(self, **given: Any) -> Any:
        return self._run(**given)

    def __getattr__(self, name: str) -> Any:
        if name == "__signature__":
            return inspect.Signature(self._form.parameters)
        if name == "__annotations__":
            return {parameter.name: parameter.annotation for parameter in self._form.parameters}
        raise AttributeError(name)


def _import(module: str | None) -> None:
    """Import what takes long without looking for garbage meanwhile."""
    if module is not None and module not in sys.modules:
        with no_garbage():
            importlib.import_module(module)


def _kept(keeps: bool, given: dict[str, Any]) -> str:
    """Say what an interrupted command leaves."""
    if not keeps:
        return "Interrupted."
    if given.get("out", True) is None and "sources" in given:
        return "Interrupted; nothing is kept without --out DIR, which the same command would resume."
    return "Interrupted; what was finished is kept."


def name_of(registered: CommandInfo) -> str:
    """Return the word that a command is typed as."""
    return str(registered.name or getattr(registered.callback, "__name__", "")).replace("_", "-")


@contextlib.contextmanager
def end_process() -> Iterator[None]:
    """End one of many processes at once, with the reason when it fails: torchrun then ends the others."""
    if not is_one_of_many():
        yield
        return
    try:
        yield
        _end(0)
    except (typer.BadParameter, BrokenPipeError):
        raise  # click knows what to do
    except typer.Exit as done:
        _end(done.exit_code)
    except Exception as error:
        from lossscope.core.distributed import is_lost_process

        if is_lost_process(str(error)):
            time.sleep(_GRACE)
            typer.echo(with_rank(f"lost another process, whose own message says why ({error})"), err=True)
        else:
            typer.echo(with_rank(traceback.format_exc()), err=True)
        _end(1)


@contextlib.contextmanager
def join_job(able: bool, given: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Give the options of a command, within the group of all processes; those that do not write are silent.

    Args:
        able: whether the command can share its work; a usage error where it cannot and there are many processes.
        given: its options.
    """
    if not is_one_of_many():
        yield given
        return
    from lossscope.core.distributed import join_group

    if not able:
        raise usage("this command runs in one process; leave torchrun out")
    with contextlib.ExitStack() as stack:
        stack.enter_context(join_group(resolve_device(given.get("device", "cpu"))))
        if not writes_results():
            stack.enter_context(silent())
            stack.enter_context(contextlib.redirect_stdout(stack.enter_context(open(os.devnull, "w"))))
        yield given


def _end(code: int) -> None:
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)  # threads of torch's that wait for the others, or outlive them, could hold the process or abort it
