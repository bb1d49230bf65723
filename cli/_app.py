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
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any

import typer
from typer.core import TyperGroup
from typer.models import CommandInfo

from lossscope.errors import InputError, Interrupted, OptionError

from ._bus_errors import explain_bus_errors
from ._errors import explain, is_memory
from ._form import Form
from ._options import Debug, Quiet, Verbose, resolve_device, usage
from ._output import require_outputs
from ._processes import is_one_of_many, with_rank, writes_results
from ._running import silent, until_its_end
from ._sources import with_existing_sources
from ._spec_options import Command
from ._start import no_garbage
from ._trust import trust_typed


class _Root(TyperGroup):
    """lossscope itself, whose few options do not stand before its commands."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help: the commands alone; the last line names the options."""
        params: list[Any] = self.params
        options = [parameter for parameter in params if not parameter.hidden]
        for parameter in options:
            parameter.hidden = True
        help_option, self.add_help_option = self.add_help_option, False
        try:
            super().format_help(ctx, formatter)
        finally:
            self.add_help_option = help_option
            for parameter in options:
                parameter.hidden = False


app = typer.Typer(
    name="lossscope",
    cls=_Root,
    help="See what a contrastive or metric-learning loss really does: which samples teach the model, and how much.\n\n"
    "Try `lossscope doctor tiny`: `tiny` is a trained model that comes with the package.",
    epilog="`lossscope COMMAND --help` shows examples and the main options, `--help-all` every option. "
    "`lossscope --version` prints the version, `--install-completion` makes the shell complete words.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

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


@dataclass(frozen=True)
class Work:
    """How a command runs."""

    processes: bool = False  # torchrun may start many of it, which then share the work
    keeps: bool = False  # what was finished is kept when it is interrupted, with --out where that is an option
    imports: str | None = None  # module that its body needs, with all that takes long to import, as torch does
    verbose: bool = False  # it has --verbose


def command(
    name: str | None = None,
    group: typer.Typer = app,
    work: Work = Work(),
    hidden: bool = False,
    first: tuple[str, ...] = (),
    cls: type[Command] = Command,
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register a function as a command with --quiet and --debug; see `Form` for its parameters.

    Its errors become a message and an exit code, without a traceback unless --debug.

    Args:
        name: of the command; None: that of the function.
        group: of commands.
        work: how it runs.
        hidden: whether --help leaves it out; `_commands.HEADINGS` says where the others stand.
        first: names of the options that --help shows, in this order; see `Command`.
        cls: of the command.
    """

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        form = Form(function, {"quiet": Quiet, **({"verbose": Verbose} if work.verbose else {}), "debug": Debug})

        @end_process()
        def run(**given: Any) -> Any:
            from lossscope.io.file_states import watch_mapped_files

            try:
                with (
                    until_its_end(),
                    watch_mapped_files(),
                    trust_typed(given),
                    join_job(work.processes, with_existing_sources(given)) as ready,
                ):
                    arguments = form.arguments(ready)
                    require_outputs(ready)
                    _import(work.imports)
                    explain_bus_errors()
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
                raise typer.Exit(explain(error, _kept(work.keeps, given))) from error
            except RuntimeError as error:
                if given.get("debug") or not is_memory(error):
                    raise
                raise typer.Exit(explain(error)) from error

        made: Any = partial(cls, first=first)  # typer calls it as it would call the class
        listed = group.command(name, cls=made, hidden=hidden)
        return listed(_Callback(function, form, run))

    return register


def _print_all_options(ctx: typer.Context, wanted: bool) -> None:
    """Print the help with all options, and exit."""
    if wanted and not ctx.resilient_parsing:
        command: Any = ctx.command
        command.print_all(ctx)
        raise typer.Exit


_HELP_ALL: Any = Annotated[
    bool,
    typer.Option(
        "--help-all",
        callback=_print_all_options,
        is_eager=True,
        expose_value=False,
        metavar="",
        help="Show all options and exit.",
    ),
]


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
            return inspect.Signature(self._parameters())
        if name == "__annotations__":
            return {parameter.name: parameter.annotation for parameter in self._parameters()}
        raise AttributeError(name)

    def _parameters(self) -> list[inspect.Parameter]:
        keyword: Any = inspect.Parameter.KEYWORD_ONLY
        return [*self._form.parameters, inspect.Parameter("help_all", keyword, default=False, annotation=_HELP_ALL)]


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
        return "Interrupted; no result is kept without --out DIR, which the same command would resume."
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
