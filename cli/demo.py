"""`lossscope demo`: the main job on the embedded data set."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .app import Debug, Quiet, Seed, command


@command()
def demo(
    out: Annotated[Path, typer.Option(help="Folder to write; a demo that was stopped goes on.")] = Path(
        "demo"
    ),
    quick: Annotated[bool, typer.Option("--quick", help="Smaller, in under a minute.")] = False,
    seed: Seed = 0,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Train one model with four losses, count which samples carry the gradient, and write a report."""
    raise NotImplementedError
