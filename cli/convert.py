"""`lossscope convert`: an original checkpoint as one of ours."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from . import _output
from .app import DataSpec, Debug, Quiet, VocabularyFile, command, usage


@command()
def convert(
    foreign: Annotated[Path, typer.Argument(help="Original file, or Hugging Face folder.", show_default=False)],
    out: Annotated[Path, typer.Argument(help="Checkpoint to write: .pt, or .safetensors.", show_default=False)],
    vocabulary: VocabularyFile = None,
    data: DataSpec = None,
    old_pickle: Annotated[
        bool, typer.Option("--old-pickle", help="Read with our restricted unpickler: files of Python 2 torch refuses.")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Write over a file that is there.")] = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Open a checkpoint of the papers' authors, or a Hugging Face folder, and write it as a lossscope checkpoint.

    **Examples**

    `lossscope convert model_best.pth.tar scan.pt --vocabulary f30k_precomp_vocab.json --data precomp:root=f30k_precomp`

    `lossscope convert clip-vit-large-patch14-336 clip.safetensors`

    Every tensor must find its place, or nothing is written. Objects in the file other than data are never made.
    """
    from lossscope.registry import build, spec_of
    from lossscope.sources.checkpoints.conversion import describe, open_released

    if out.suffix not in (".pt", ".safetensors"):
        raise usage(f"OUT must end in .pt or .safetensors; got {out}")
    if out.exists() and not force:
        raise usage(f"OUT must be a new file; {out} is there. Choose another, or pass --force")
    stated = "" if data is None else spec_of(build("datasets", data))
    checkpoint, notices = open_released(foreign, vocabulary, stated, old_pickle)
    checkpoint.save(out)
    for notice in notices:
        _output.notice(f"Note: {notice}.", quiet)
    for name, value in describe(checkpoint).items():
        _output.notice(f"{name:<11} {value}", quiet)
    typer.echo(out)
