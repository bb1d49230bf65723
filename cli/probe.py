"""`lossscope probe`, several probes in one sweep, and a command for each probe, made of what its file declares."""

from __future__ import annotations

import inspect
from dataclasses import replace
from typing import Annotated, Any

from lossscope.core.choices import Choice
from lossscope.declarations import Declaration, OptionField, declarations

from ._app import app, command, name_of
from ._sweep import SWEEP, SweepArguments, print_summary, run_sweep

_PANEL = "Probe"


@command("probe", processes=True, keeps=True, imports=SWEEP, verbose=True)
def probe(
    options: SweepArguments,
    probes: Annotated[
        tuple[str, ...],
        Choice(
            None, "all, cheap, or NAME[:key=value,...]; repeat for several.", words=("all", "cheap"), names="probes"
        ),
    ] = ("cheap",),
) -> None:
    """Run several probes on a source in one sweep: those that cost little, all, or those named.

    **Examples**

    `lossscope probe ckpt.pt`

    `lossscope probe ckpt.pt --probes all --format markdown`

    `lossscope probe embeddings.npz --objective triplet --probes similarity --probes tangent --out frame/`

    Of `all` and `cheap` those that cannot work on the source are left out, and named on stderr. `lossscope list probes`
    says what each of them reports.
    """
    from lossscope.engine.selection import Selection

    swept = run_sweep(options, "probe", Selection.of(probes))
    print_summary(options, swept, {"name": "probe", "probes": list(dict.fromkeys(swept.summary["probe"]))})


def register_probe(name: str) -> None:
    """Make the command of a probe; nothing where that has one, or is none.

    Args:
        name: of the command.
    """
    known = {name_of(one) for one in app.registered_commands}
    for item in declarations("probes"):
        if item.name.replace("_", "-") == name and name not in known:
            _register(item)


def _register(item: Declaration) -> None:
    """Make the command of one probe: its options are the fields of its class."""

    def run(options: SweepArguments, **fields: Any) -> None:
        from lossscope.engine.selection import Selection
        from lossscope.spec import Spec, format_value

        typed = {name: getattr(options, name) for name in shared}
        fields |= {name: None if value is None else str(value) for name, value in typed.items()}
        values = {name: "none" if value is None else format_value(value) for name, value in fields.items()}
        if "audit" in shared and options.show is None:  # it is of the probe alone
            options = replace(options, audit=None)
        swept = run_sweep(options, item.name, Selection.of([str(Spec(item.name, values))]))
        print_summary(options, swept, {"name": item.name, **fields})

    shared = [field.name for field in item.fields if field.name in vars(SweepArguments)]  # such as audit
    own = [field for field in item.fields if field.name not in shared]
    run.__name__, run.__doc__ = item.name, _help(item)
    options = inspect.Parameter("options", inspect.Parameter.KEYWORD_ONLY, annotation=SweepArguments)
    run.__signature__ = inspect.Signature([*map(_option, own), options])  # type: ignore[attr-defined]
    name = item.name.replace("_", "-")
    command(name, processes=True, panel="Probes, one by one", keeps=True, imports=SWEEP, verbose=True)(run)


def _option(field: OptionField) -> inspect.Parameter:
    default: Any = field.default
    kind: Any = type(default) if isinstance(default, bool | int | float | str) else str | None
    help = f"{field.help[:1].upper()}{field.help[1:]}." if field.help else " or ".join(field.choices)
    annotation: Any = Annotated[kind, Choice(_PANEL, help, words=field.choices)]
    default = inspect.Parameter.empty if default is ... else default
    return inspect.Parameter(field.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def _help(item: Declaration) -> str:
    name = item.name.replace("_", "-")
    formula, _, rest = item.text.partition("\n")
    lines = [item.question, "**Examples**", f"`lossscope {name} ckpt.pt`"]
    if "gradients" not in str(item.constants.get("reads", "")):  # a dump has no layers
        lines += [f"`lossscope {name} embeddings.npz --batch-size all --format json`"]
    lines += [f"`{formula}`", rest.strip()]
    return "\n\n".join(line for line in lines if line)
