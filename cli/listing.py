"""`lossscope list`: what exists."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from ._declared import Declared, declared, declared_tables
from .app import Debug, Format, chosen, command

KINDS = ("objectives", "encoders", "datasets", "probes", "sources", "tables", "features", "presets")


@command("list")
def listing(
    kind: Annotated[str, typer.Argument(help=", ".join(KINDS), autocompletion=lambda: list(KINDS))],
    format: Format = "table",
    debug: Debug = False,
) -> None:
    """What exists of a kind, with its options and where it comes from.

    **Examples**

    `lossscope list objectives`

    Read from the files themselves without importing them.
    """
    chosen(kind, KINDS, "KIND")
    chosen(format, ("table", "json"), "--format")
    if kind == "presets":
        found = _presets()
    else:
        found = [_described(item) for item in (declared_tables() if kind == "tables" else declared(kind))]
    if format == "json":
        typer.echo(json.dumps(found, indent=1))
        return
    for item in found:
        options = f":{item['options']}" if item["options"] else ""
        typer.secho(f"{item['name']}{options}", bold=True)
        typer.echo(f"    {item['what']}")
        if item["source"]:
            typer.echo(f"    Source: {item['source']}")


def _described(item: Declared) -> dict[str, str]:
    return {"name": item.name, "what": item.what, "options": item.options, "source": item.source}


def _presets() -> list[dict[str, str]]:
    from lossscope.training.recipes import presets

    return [{"name": name, "what": what, "options": "", "source": ""} for name, what in presets().items()]
