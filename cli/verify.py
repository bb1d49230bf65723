"""`lossscope verify`: is this checkpoint whole, and what is it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from .app import Debug, Format, TrustCode, chosen, command


@command()
def verify(
    checkpoints: Annotated[list[Path], typer.Argument(help="Checkpoint files.", show_default=False)],
    format: Format = "table",
    trust_code: TrustCode = False,
    debug: Debug = False,
) -> None:
    """Read a checkpoint as the other commands would: format, keys, specs, weights, vocabulary.

    **Examples**

    `lossscope verify runs/scenes-ntxent-seed0/best.pt`

    Exit code 1 when anything is wrong; nothing in the file is ever run.
    """
    from lossscope.sources.checkpoints.checkpoint import verify as inspect

    chosen(format, ("table", "json"), "--format")
    told = []
    for path in checkpoints:
        found = inspect(path, trust_code)
        told.append({"checkpoint": str(path), **found})
        if format == "table":
            typer.echo(f"{path}: good")
            for name, value in found.items():
                typer.echo(f"  {name:<17} {value}")
    if format == "json":
        typer.echo(json.dumps(told, indent=1))
