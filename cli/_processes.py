"""A command as one of many processes that torchrun started: who may, who speaks, and how an error ends the job."""

from __future__ import annotations

import contextlib
import os
import sys
import time
import traceback
from collections.abc import Iterator
from typing import Any

import typer

_GRACE = 2.0  # seconds in which the process that failed first can tell why, before others say that they lost it


def many() -> bool:
    """Whether torchrun has started more than one process."""
    return "WORLD_SIZE" in os.environ and _place().size > 1


def speaks() -> bool:
    """Whether this process is the one that writes results; alone it is."""
    return not many() or bool(_place().main)


def named(message: str) -> str:
    """A message with the rank of the process before it; alone as it is."""
    return f"rank {_place().rank}: {message}" if many() else message


@contextlib.contextmanager
def ending() -> Iterator[None]:
    """One of many processes ends at once, and says why when it fails; torchrun then ends the others. Alone: nothing."""
    if not many():
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
            typer.echo(named(f"lost another process, whose own message says why ({error})"), err=True)
        else:
            typer.echo(named(traceback.format_exc()), err=True)
        _end(1)


@contextlib.contextmanager
def member(able: bool, given: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The options of a command, in the group of all processes; those that do not speak get --quiet and no stdout.

    able: whether the command can share its work. Raises a usage error when it can not, and there are many.
    """
    if not many():
        yield given
        return
    from lossscope.core.distributed import join_group

    from .app import device_of, usage

    if not able:
        raise usage("this command runs in one process; leave torchrun out")
    with contextlib.ExitStack() as stack:
        stack.enter_context(join_group(device_of(given.get("device", "cpu"))))
        if not speaks():
            given = {name: True if name == "quiet" else value for name, value in given.items()}
            stack.enter_context(contextlib.redirect_stdout(stack.enter_context(open(os.devnull, "w"))))
        yield given


def _place() -> Any:
    from lossscope.core.distributed import launched_group

    return launched_group()


def _end(code: int) -> None:
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)  # threads of torch's that wait for the others, or outlive them, could hold the process or abort it
