"""A command: its --help shows what matters first, and its error for an unknown option names the spec that has it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from typing import Any

from typer.core import TyperCommand

from lossscope.declarations import declarations

from ._help import breakable_choices, show_first
from ._running import remember

_MEANT = {
    **dict.fromkeys(("loss", "losses", "criterion", "objectives"), "objective"),
    **dict.fromkeys(("dataset", "datasets"), "data"),
    **dict.fromkeys(("output", "outdir", "output-dir", "save"), "out"),
    **dict.fromkeys(("batch", "bs", "batchsize"), "batch-size"),
    **dict.fromkeys(("learning-rate", "learning_rate"), "lr"),
    **dict.fromkeys(("epsilon", "threshold"), "eps"),
    **dict.fromkeys(("temperature", "temp"), "tau"),
}
"""What other tools call an option -> what it is called here."""
_KINDS = ("objective", "encoder", "data")
_REGISTRIES = {"objective": "objectives", "encoder": "encoders", "data": "datasets"}


class Command(TyperCommand):
    """A command that knows which options were typed.

    Args:
        first: names of the options that --help shows, in this order; () shows all but those of the panel Running.
        settings: of typer's command.
    """

    def __init__(self, *, first: tuple[str, ...] = (), **settings: Any) -> None:
        super().__init__(**settings)
        self.first = first
        self._whole = False  # whether the help that is written has all options

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help: the options that matter first, or all of them."""
        with breakable_choices(self.params, ctx), nullcontext() if self._whole else show_first(self):
            super().format_help(ctx, formatter)

    def print_all(self, ctx: Any) -> None:
        """Print the help with all options."""
        self._whole = True
        try:
            ctx.get_help()  # typer's rich help prints itself
        finally:
            self._whole = False

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the command line. Raises a usage error."""
        try:
            rest = super().parse_args(ctx, args)
        except Exception as error:
            option = getattr(error, "option_name", None)  # of a usage error for an unknown option
            known = {name for parameter in self.params for name in parameter.opts}
            hint = describe_option(option, known) if isinstance(option, str) else None
            if hint is None:
                raise
            raise type(error)(option, message=f"No such option: {hint}", ctx=ctx) from error  # type: ignore[call-arg]
        remember(ctx)
        return rest


def describe_option(option: str, known: set[str]) -> str | None:
    """Return the option that is meant, or where a field of an objective, encoder or data set is written; None: neither.

    Args:
        option: as typed, `--tau`.
        known: options of the command.
    """
    meant = _MEANT.get(option.lstrip("-"))
    if f"--{meant}" in known:
        return f"{option}. Write --{meant}"
    field = (meant or option.lstrip("-")).replace("-", "_")
    for kind in _KINDS:
        having = list(_having(kind, field)) if f"--{kind}" in known else []
        if having:
            others = f" (also {', '.join(name for name, _ in having[1:6])})" if len(having) > 1 else ""
            name, value = having[0]
            return f"{option}. It is part of a spec: --{kind} {name}:{field}={value}{others}"
    return None


def _having(kind: str, field: str) -> Iterator[tuple[str, Any]]:
    """Yield the entries with this field and their default; for objectives those that most people mean first."""
    first = ("ntxent", "triplet", "triplet_sh", "unified")
    entries = declarations(_REGISTRIES[kind])
    ranks = {name: rank for rank, name in enumerate(first)}
    for item in sorted(entries, key=lambda entry: (ranks.get(entry.name, len(first)), entry.name)):
        for having in item.fields:
            if having.name == field:
                yield item.name, "..." if having.default is ... else having.default
