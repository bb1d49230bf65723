"""`lossscope verify`: is this checkpoint or dump whole, and what is it?"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Literal

import typer

from lossscope.errors import InputError

from ._options import Debug, TrustCode
from ._output import fold
from .app import command


@command()
def verify(
    checkpoints: Annotated[
        list[Path], typer.Argument(help="Checkpoint files, run folders or dumps.", show_default=False)
    ],
    format: Annotated[Literal["table", "json"], typer.Option(help="Lines, or one JSON document.")] = "table",
    trust_code: TrustCode = False,
    debug: Debug = False,
) -> None:
    """Read a checkpoint or dump as the other commands would: format, keys, specs, weights, vocabulary; shapes, pairs.

    **Examples**

    `lossscope verify checkpoints/tiny.pt`

    `lossscope verify runs/scenes-ntxent-seed0`

    `lossscope verify embeddings.npz`

    Of a run folder every checkpoint is read. Exit code 1 when anything is wrong; nothing in the file is ever run.
    """
    from lossscope.sources.checkpoints.checkpoint import verify as verify_checkpoint
    from lossscope.sources.dump import Dump

    described = []
    for path in (file for one in checkpoints for file in _files(one)):
        facts = Dump(path).describe() if Dump.accepts(path) else verify_checkpoint(path, trust_code)
        described.append({"checkpoint": str(path), **facts})
        if format == "table":
            typer.echo(fold(f"{path}: good"))
            for name, value in facts.items():
                typer.echo(fold(f"  {name:<17} {value}", indent=20))
    if format == "json":
        typer.echo(json.dumps(described, indent=1))


def _files(path: Path) -> list[Path]:
    """The checkpoints of a run folder; any other path as it is."""
    from lossscope.sources.dump import Dump

    if not path.is_dir() or Dump.accepts(path):
        return [path]
    files = [*sorted(path.glob("*.pt")), *sorted((path / "checkpoints").glob("*.pt"))]
    if not files:
        raise InputError(f"{path} must be a checkpoint file, a run folder or a dump; it is a folder without .pt files")
    return files
