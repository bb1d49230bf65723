"""`lossscope verify`: is this file or folder whole, and what is it?"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from lossscope.core.choices import Choice
from lossscope.core.request import Request

from ._app import command
from ._form import Only
from ._options import LinesOrJson
from ._output import fold
from ._sources import OF_TRAIN


@command()
def verify(
    checkpoints: Annotated[
        tuple[Path, ...],
        Choice(
            None,
            "Checkpoint files, dumps, and folders of runs, studies, frames, candidates or features.",
            argument=True,
        ),
    ],
    format: LinesOrJson = "table",
    request: Annotated[Request, Only("trust_code")] = OF_TRAIN,
) -> None:
    """Read a file or folder whole, and verify its checksums.

    **Examples**

    `lossscope verify checkpoints/tiny.pt`

    `lossscope verify runs/scenes-ntxent-seed0`

    `lossscope verify embeddings.npz`

    `lossscope verify runs/bleeker2022-small`

    The command reads every checkpoint, table and evaluated frame of a run, and every run of a study. The exit code is
    1 when anything is wrong. The command never runs code of a file.
    """
    from lossscope.studies.verify import verify as verify_path

    described = []
    for path, facts in (part for checkpoint in checkpoints for part in verify_path(checkpoint, request.trust_code)):
        described.append({"checkpoint" if "encoder" in facts else "path": str(path), **facts})
        if format == "table":
            typer.echo(fold(f"{path}: good"))
            for name, value in facts.items():
                typer.echo(fold(f"  {name:<17} {value}", indent=20))
    if format == "json":
        typer.echo(json.dumps(described, indent=1))
