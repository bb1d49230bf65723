"""`lossscope list`: what exists, with its options and its source."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from lossscope.core.choices import Choice
from lossscope.declarations import Declaration, declarations

from ._app import command
from ._options import LinesOrJson, require_choice
from ._output import fold

KINDS = {
    "objectives": "losses and stated gradients: --objective",
    "encoders": "models that are trained and opened here: --encoder",
    "datasets": "images or videos and captions, queries and documents: --data",
    "probes": "measures of a batch: --probes, and a command each",
    "sources": "inputs to probe: checkpoints, folders, dumps",
    "tables": "lossscope render NAME",
    "pictures": "lossscope render NAME",
    "chapters": "parts of the page of lossscope report",
    "features": "features of pictures: lossscope data features --backbone",
    "masks": "rules that leave out negatives which are probably relevant: --mask",
    "launchers": "ways to start the runs of a study: --launcher",
    "findings": "problems that lossscope doctor finds",
    "trainers": "losses of libraries as steps: lossscope check --trainer",
    "signals": "evidence of lossscope audit: --signal",
    "presets": "recipes of papers: lossscope train --preset",
}


@command("list")
def listing(
    kind: Annotated[str | None, Choice(None, ", ".join(KINDS), shown=False, words=tuple(KINDS), argument=True)] = None,
    format: LinesOrJson = "table",
) -> None:
    """List what exists: objectives, encoders, data sets, probes, ...

    **Examples**

    `lossscope list`

    `lossscope list objectives`

    `lossscope list datasets`

    `lossscope list presets`
    """
    if kind is None:
        items = [{"name": name, "what": what, "options": "", "source": ""} for name, what in KINDS.items()]
    elif require_choice(kind, tuple(KINDS), "KIND") == "presets":
        items = _presets()
    else:
        items = [_described(item) for item in declarations(kind)]
    if format == "json":
        typer.echo(json.dumps(items, indent=1))
        return
    for item in items:
        options = f":{item['options']}" if item["options"] else ""
        typer.secho(fold(f"{item['name']}{options}"), bold=True)
        typer.echo(fold(f"    {item['what']}"))
        if item.get("caveat"):
            typer.echo(fold(f"    Beside published numbers: {item['caveat']}."))
        if item["source"]:
            typer.echo(fold(f"    Source: {item['source']}"))


def _described(item: Declaration) -> dict[str, str]:
    caveat = {"caveat": str(item.constants["caveat"])} if "caveat" in item.constants else {}
    return {"name": item.name, "what": item.question, "options": item.options, "source": item.source, **caveat}


def _presets() -> list[dict[str, str]]:
    from lossscope.training.recipe_files import presets

    return [{"name": name, "what": what, "options": "", "source": ""} for name, what in presets().items()]
