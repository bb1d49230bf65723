"""`lossscope rank`: the hardest candidates of the whole training split, for objectives with offline negatives."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from . import _output, _sources
from .app import DataSpec, Debug, Device, Quiet, TrustCode, VocabularyFile, command


@command()
def rank(
    source: Annotated[Path, typer.Argument(help="Checkpoint, run folder or dump.", show_default=False)],
    out: Annotated[Path, typer.Option(help="Folder to write; the same command goes on with it.", show_default=False)],
    top: Annotated[int, typer.Option(help="Candidates kept of each item.", min=1)] = 300,
    data: DataSpec = None,
    split: Annotated[str, typer.Option(help="Split of the checkpoint's data.")] = "train",
    device: Device = "auto",
    no_cache: Annotated[bool, typer.Option("--no-cache", help="Do not keep embeddings.")] = False,
    vocabulary: VocabularyFile = None,
    trust_code: TrustCode = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Rank the training split under a model: for every image its hardest captions, for every caption its images.

    **Examples**

    `lossscope rank runs/scenes-triplet-sh-seed0 --out ranked`

    `lossscope train --data scenes --encoder vsepp --objective aoq --init BEST.pt --offline ranked`

    Candidates of the item's own image are left out. To refresh the lists, rank a later checkpoint into a new folder.
    """
    from lossscope.training.offline_candidates import mine_candidates as write

    with _output.progress(quiet) as bar:
        asked: dict[str, Any] = {"data": data, "split": split, "cache": not no_cache, "vocabulary": vocabulary}
        embedded = _sources.embedded(source, bar, quiet, device, trust_code=trust_code, **asked)
        write(embedded, out, top, bar)
    typer.echo(out)
