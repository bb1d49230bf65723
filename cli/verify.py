"""`lossscope verify`: is this checkpoint whole, and what is it?"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Literal

import typer

from lossscope.errors import InputError

from ._options import Debug, TrustCode
from .app import command


@command()
def verify(
    checkpoints: Annotated[list[Path], typer.Argument(help="Checkpoint files, or run folders.", show_default=False)],
    format: Annotated[Literal["table", "json"], typer.Option(help="Lines, or one JSON document.")] = "table",
    trust_code: TrustCode = False,
    debug: Debug = False,
) -> None:
    """Read a checkpoint as the other commands would: format, keys, specs, weights, vocabulary.

    **Examples**

    `lossscope verify checkpoints/tiny.pt`

    `lossscope verify runs/scenes-ntxent-seed0`

    Of a run folder every checkpoint is read. Exit code 1 when anything is wrong; nothing in the file is ever run.
    """
    from lossscope.sources.checkpoints.checkpoint import verify as verify_checkpoint

    described = []
    for path in (file for one in checkpoints for file in _files(one)):
        facts = verify_checkpoint(path, trust_code)
        described.append({"checkpoint": str(path), **facts})
        if format == "table":
            typer.echo(f"{path}: good")
            for name, value in facts.items():
                typer.echo(f"  {name:<17} {value}")
    if format == "json":
        typer.echo(json.dumps(described, indent=1))


def _files(path: Path) -> list[Path]:
    """The checkpoints of a run folder; any other path as it is."""
    if not path.is_dir():
        return [path]
    files = [*sorted(path.glob("*.pt")), *sorted((path / "checkpoints").glob("*.pt"))]
    if not files:
        raise InputError(f"{path} must be a checkpoint file or a run folder; it is a folder without .pt files")
    return files
