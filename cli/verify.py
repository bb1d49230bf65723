"""`lossscope verify`: is this checkpoint whole, and what is it?"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Literal

import typer

from ._options import Debug, TrustCode
from .app import command


@command()
def verify(
    checkpoints: Annotated[list[Path], typer.Argument(help="Checkpoint files.", show_default=False)],
    format: Annotated[Literal["table", "json"], typer.Option(help="Lines, or one JSON document.")] = "table",
    trust_code: TrustCode = False,
    debug: Debug = False,
) -> None:
    """Read a checkpoint as the other commands would: format, keys, specs, weights, vocabulary.

    **Examples**

    `lossscope verify runs/scenes-ntxent-seed0/best.pt`

    Exit code 1 when anything is wrong; nothing in the file is ever run.
    """
    from lossscope.sources.checkpoints.checkpoint import verify as verify_checkpoint

    described = []
    for path in checkpoints:
        facts = verify_checkpoint(path, trust_code)
        described.append({"checkpoint": str(path), **facts})
        if format == "table":
            typer.echo(f"{path}: good")
            for name, value in facts.items():
                typer.echo(f"  {name:<17} {value}")
    if format == "json":
        typer.echo(json.dumps(described, indent=1))
