"""`lossscope demo`: the main job on the embedded data set."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from . import _output
from .app import Debug, Device, Quiet, Seed, command, device_of


@command()
def demo(
    out: Annotated[Path, typer.Option(help="Folder to write; a demo that was stopped goes on.")] = Path("demo"),
    quick: Annotated[bool, typer.Option("--quick", help="Smaller, in under a minute.")] = False,
    seed: Seed = 0,
    device: Device = "auto",
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Train one model with four losses, count which samples carry the gradient, and write a report.

    **Examples**

    `lossscope demo`

    `lossscope demo --quick --out /tmp/demo`

    Everything is rendered and trained here, from a seed; nothing is downloaded.
    """
    import time

    from lossscope.studies.demo import Demo
    from lossscope.studies.demo import demo as make

    begun = time.monotonic()
    with _output.progress(quiet) as bar:
        page = make(out, Demo(seed=seed, quick=quick), device_of(device), bar, lambda line: _output.notice(line, quiet))
    _output.notice(f"Done in {time.monotonic() - begun:.0f} s. Open the page in a browser:", quiet)
    typer.echo(page)
