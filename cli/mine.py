"""`lossscope mine`: the hardest candidates of the whole training split, for objectives with offline negatives."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from ._app import command
from ._options import DataSpec, Debug, Device, NoCache, Quiet, SplitName, TrustCode, VocabularyFile
from ._output import print_path
from ._progress import progress
from ._sources import load_source


@command(keeps=True)
def mine(
    source: Annotated[Path, typer.Argument(help="Checkpoint, run folder or dump.", show_default=False)],
    out: Annotated[Path, typer.Option(help="Folder to write; the same command resumes it.", show_default=False)],
    top: Annotated[int, typer.Option(help="Candidates kept of each item.", min=1)] = 300,
    data: DataSpec = None,
    split: SplitName = "train",
    device: Device = "auto",
    no_cache: NoCache = False,
    vocabulary: VocabularyFile = None,
    trust_code: TrustCode = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Mine hard candidates under a model: for every image its hardest captions, for every caption its hardest images.

    **Examples**

    `lossscope mine runs/scenes-triplet-sh-seed0 --out candidates`

    `lossscope train --data scenes --encoder vsepp --objective aoq --init BEST.pt --offline candidates`

    Candidates of the item's own image are left out. To refresh the lists, mine a later checkpoint into a new folder.
    """
    from lossscope.training.offline_candidates import mine_candidates

    request: dict[str, Any] = {"data": data, "split": split, "cache": not no_cache, "vocabulary": vocabulary}
    with progress(quiet) as report:
        embedded = load_source(source, report, quiet, device, trust_code=trust_code, **request)
        mine_candidates(embedded, out, top, report)
    print_path(out)
