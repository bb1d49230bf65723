"""`lossscope probe NAME`, made of what the file of each probe declares, and `lossscope probe`, several in one sweep."""

from __future__ import annotations

import inspect
from dataclasses import replace
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer.main import get_command_from_info

from lossscope.core.choices import Choice
from lossscope.declarations import Declaration, OptionField, declaration, declarations

from ._app import app, command, name_of
from ._curves import require_ending, write_curves
from ._processes import writes_results
from ._spec_options import Command
from ._sweep import SWEEP_WORK, SweepArguments, print_summary, run_sweep

if TYPE_CHECKING:
    import pandas as pd

_PANEL = "Probe"
_FIRST = (
    "objective",
    "show",
    "batch_size",
    "data",
    "split",
    "out",
    "format",
)  # options that --help shows of each probe


class _ProbeCommand(Command):
    """`probe`, whose first word may name a probe: that is another command, with options of its own."""

    def make_context(self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any) -> Any:
        """Parse the command line, as the probe's where its name comes first; `./recall` is a file of that name."""
        made = probe_command(args[0]) if args else None
        if made is None:
            return super().make_context(info_name, args, parent, **extra)
        return made.make_context(f"{info_name} {args[0]}", args[1:], parent, **extra)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help, with the names of the probes."""
        text = self.help
        self.help = f"{text}\n\n**Names**\n\n{_names()}"
        try:
            super().format_help(ctx, formatter)
        finally:
            self.help = text


@command("probe", work=SWEEP_WORK, first=("probes", *_FIRST), cls=_ProbeCommand)
def probe(
    options: SweepArguments,
    probes: Annotated[
        tuple[str, ...],
        Choice(
            None,
            "Probe: all, cheap, or NAME[:key=value,...]; repeat for several.",
            words=("all", "cheap"),
            names="probes",
        ),
    ] = ("cheap",),
) -> None:
    """Measure similarity, hubness, recall, ...: several in one sweep.

    **Examples**

    `lossscope probe similarity ckpt.pt`

    `lossscope probe ckpt.pt --probes all --format markdown`

    `lossscope probe embeddings.npz --objective triplet --probes similarity --probes tangent --out frame/`

    The first word may name a probe; `lossscope probe NAME --help` shows its options. Any other word is a source;
    write `./recall` for a file with the name of a probe. Without a name the command runs the probes that cost little.
    `all` and `cheap` skip the probes that do not apply to the source, with a note on stderr.
    """
    from lossscope.engine.selection import Selection

    swept = run_sweep(options, "probe", Selection.of(probes))
    print_summary(options, swept, {"name": "probe", "probes": list(dict.fromkeys(swept.summary["probe"]))})


@cache
def probe_command(name: str) -> Any:
    """Return the command of a probe; None where `name` is none."""
    if (registered := register_probe(name)) is None:
        return None
    return get_command_from_info(registered, pretty_exceptions_short=True, rich_markup_mode=app.rich_markup_mode)


def register_probe(name: str) -> Any:
    """Return the command of a probe as it is registered, hidden: `lossscope recall` of before works still.

    Args:
        name: of the probe, with dashes; None is returned where it is none.
    """
    item = declaration("probes", name.replace("-", "_"))
    if item is None:
        return None
    if find_spec(f".{item.name}", __package__) is not None:
        import_module(f".{item.name}", __package__)  # as of cocos
    registered = {name_of(known): known for known in app.registered_commands}
    if name not in registered:
        _register(item)
        return app.registered_commands[-1]
    return registered[name]


def _names() -> str:
    """Return the name and the question of each probe, as a list."""
    return "\n".join(f"- `{item.name.replace('_', '-')}`: {item.question}" for item in declarations("probes"))


def _register(item: Declaration) -> None:
    """Make the command of one probe: its options are the fields of its class."""

    def run(options: SweepArguments, **fields: Any) -> None:
        from lossscope.engine.selection import Selection
        from lossscope.spec import Spec, format_value

        file: Path | None = fields.get("curve")
        require_ending(file)
        fields |= {"curve": file is not None} if has_curves else {}
        typed = {name: getattr(options, name) for name in shared}
        fields |= {name: None if value is None else str(value) for name, value in typed.items()}
        values = {name: "none" if value is None else format_value(value) for name, value in fields.items()}
        if "audit" in shared and options.show is None:  # it is of the probe alone
            options = replace(options, audit=None)
        spec = str(Spec(item.name, values))
        swept = run_sweep(options, item.name, Selection.of([spec]))
        if file is not None and writes_results():
            _write_curves(swept.batches, spec, file)
        print_summary(options, swept, {"name": item.name, **fields})

    shared = [field.name for field in item.fields if field.name in vars(SweepArguments)]  # such as audit
    fields = [field for field in item.fields if field.name not in shared]
    has_curves = any(field.name == "curve" for field in fields)
    run.__name__, run.__doc__ = item.name, _help(item)
    options = inspect.Parameter("options", inspect.Parameter.KEYWORD_ONLY, annotation=SweepArguments)
    run.__signature__ = inspect.Signature([*map(_option, fields), options])  # type: ignore[attr-defined]
    first = (*(field.name for field in fields), *shared, *_FIRST)
    name = item.name.replace("_", "-")
    command(name, work=SWEEP_WORK, hidden=True, first=first)(run)


def _write_curves(batches: pd.DataFrame, spec: str, file: Path) -> None:
    """Write the curves of a probe, as the picture of its name draws them."""
    from lossscope.engine.probe_curves import probe_curves
    from lossscope.registry import build

    probe = build("probes", spec)
    curves = probe_curves(batches, probe)
    picture: Any = import_module(f"lossscope.plots.{type(probe).__module__.rpartition('.')[2]}")
    write_curves(curves, file, getattr(picture, "draw_many", picture.draw), picture.alt(curves))


def _option(field: OptionField) -> inspect.Parameter:
    if field.name == "curve":
        return _curve_option(field)
    default: Any = field.default
    kind: Any = type(default) if isinstance(default, bool | int | float | str) else str | None
    help = f"{field.help[:1].upper()}{field.help[1:]}." if field.help else " or ".join(field.choices)
    annotation: Any = Annotated[kind, Choice(_PANEL, help, words=field.choices)]
    default = inspect.Parameter.empty if default is ... else default
    return inspect.Parameter(field.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def _curve_option(field: OptionField) -> inspect.Parameter:
    """Return the option of the file that gets the curves, in place of the switch of the probe."""
    help = f"{field.help[:1].upper()}{field.help[1:]}; into a picture (.pdf, .png, .svg) or .csv."
    annotation = Annotated[Path | None, Choice(_PANEL, help)]
    return inspect.Parameter(field.name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation)


def _help(item: Declaration) -> str:
    name = item.name.replace("_", "-")
    formula, _, rest = item.text.partition("\n")
    lines = [item.question, "**Examples**", f"`lossscope probe {name} ckpt.pt`"]
    if "gradients" not in str(item.constants.get("reads", "")):  # a dump has no layers
        lines += [f"`lossscope probe {name} embeddings.npz --batch-size all --format json`"]
    if any(field.name == "curve" for field in item.fields):
        lines += [f"`lossscope probe {name} ckpt.pt --curve {name}.pdf`"]
    lines += [f"`{formula}`", rest.strip()]
    return "\n\n".join(line for line in lines if line)
