"""`lossscope probe`, several probes in one sweep, and a command for each of them, made of what its file declares."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Annotated, Any

import typer

from . import _sweep
from ._declared import Declared, Field, declared
from ._sweep import Asked
from .app import app, command

_TOLD = {"eps": "Threshold: what is strictly above it counts", "convention": "corrected, released or text"}


def probe_names(incomplete: str) -> list[str]:
    """Shell completion, from the file names alone."""
    from lossscope.registry import names

    return [name for name in ("all", "cheap", *names("probes")) if name.startswith(incomplete)]


@command("probe", processes=True)
@_sweep.sweeping
def probe(
    asked: Asked,
    probes: Annotated[
        list[str] | None,
        typer.Option(help="all, cheap, or NAME[:key=value,...]; repeat. Default cheap.", autocompletion=probe_names),
    ] = None,
) -> None:
    """Look at a source with several probes in one sweep: those that cost little, all, or those named.

    **Examples**

    `lossscope probe ckpt.pt`

    `lossscope probe ckpt.pt --probes all --format markdown`

    `lossscope probe embeddings.npz --objective triplet --probes similarity --probes tangent --out frame/`

    Of `all` and `cheap` those that can not look at the source are left out, and named on stderr. What each of them
    asks is said by `lossscope list probes`.
    """
    from lossscope.engine.selection import Selection

    selection = Selection.of(probes or ["cheap"])
    rows, _ = _sweep.swept(asked, "probe", selection)
    _sweep.presented(asked, rows, {"name": "probe", "probes": list(dict.fromkeys(rows["probe"]))})


def register_all() -> None:
    """A command for each probe that has none yet."""
    for item in declared("probes"):
        if item.name.replace("_", "-") not in _taken():
            register(item)


def register(item: Declared) -> None:
    """The command of one probe: its options are the fields of its class."""

    def run(asked: Asked, **given: Any) -> None:
        from lossscope.engine.selection import Selection
        from lossscope.spec import Spec, written

        spec = Spec(item.name, {name: "none" if value is None else written(value) for name, value in given.items()})
        rows, _ = _sweep.swept(asked, item.name, Selection.of([str(spec)]))
        _sweep.presented(asked, rows, {"name": item.name, **given})

    run.__name__, run.__doc__ = item.name, _help(item)
    command(item.name.replace("_", "-"), processes=True, panel="Probes, one by one")(
        _sweep.sweeping(run, [_option(field) for field in item.fields])
    )


def _option(field: Field) -> inspect.Parameter:
    usual: Any = field.default
    kind: Any = type(usual) if isinstance(usual, bool | int | float | str) else str | None
    told = field.told or _TOLD.get(field.name) or " or ".join(field.choices)
    annotation = Annotated[kind, typer.Option(help=f"{told}." if told else None, autocompletion=_words(field.choices))]
    default = inspect.Parameter.empty if usual is ... else usual
    return inspect.Parameter(field.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def _words(choices: tuple[str, ...]) -> Callable[[str], list[str]]:
    def complete(incomplete: str) -> list[str]:
        return [word for word in choices if word.startswith(incomplete)]

    return complete


def _help(item: Declared) -> str:
    name = item.name.replace("_", "-")
    value, _, rest = item.told.partition("\n")
    lines = [item.what, "**Examples**", f"`lossscope {name} ckpt.pt`"]
    lines += [f"`lossscope {name} embeddings.npz --batch-size all --format json`", f"`{value}`", rest.strip()]
    return "\n\n".join(line for line in lines if line)


def _taken() -> set[str]:
    """Names of the commands that are there."""
    return {str(one.name or getattr(one.callback, "__name__", "")) for one in app.registered_commands}
