"""`lossscope list`: what exists, with its options and its source."""

from __future__ import annotations

import json
from typing import Annotated, Literal

import typer

from lossscope.declarations import Declaration, declarations

from ._options import Debug, require_choice
from .app import command

KINDS = (
    "objectives", "encoders", "datasets", "probes", "sources", "tables", "pictures", "chapters", "features",
    "launchers", "presets",
)  # fmt: skip


@command("list")
def listing(
    kind: Annotated[str, typer.Argument(help=", ".join(KINDS), autocompletion=lambda: list(KINDS))],
    format: Annotated[Literal["table", "json"], typer.Option(help="Lines, or one JSON document.")] = "table",
    debug: Debug = False,
) -> None:
    """What exists of a kind, with its options and where it comes from.

    **Examples**

    `lossscope list objectives`

    `lossscope list datasets`

    `lossscope list presets`
    """
    require_choice(kind, KINDS, "KIND")
    if kind == "presets":
        items = _presets()
    else:
        items = [_described(item) for item in declarations(kind)]
    if format == "json":
        typer.echo(json.dumps(items, indent=1))
        return
    for item in items:
        options = f":{item['options']}" if item["options"] else ""
        typer.secho(f"{item['name']}{options}", bold=True)
        typer.echo(f"    {item['what']}")
        if item["source"]:
            typer.echo(f"    Source: {item['source']}")


def _described(item: Declaration) -> dict[str, str]:
    return {"name": item.name, "what": item.question, "options": item.options, "source": item.source}


def _presets() -> list[dict[str, str]]:
    from lossscope.training.recipe_files import presets

    return [{"name": name, "what": what, "options": "", "source": ""} for name, what in presets().items()]
