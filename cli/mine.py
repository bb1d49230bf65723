"""`lossscope mine`: the hardest candidates of the whole training split, for objectives with offline negatives."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from lossscope.core.choices import Choice
from lossscope.core.request import Request

from ._app import Work, command
from ._output import print_path
from ._progress import progress
from ._sources import OF_TRAIN, load_source


@command(work=Work(keeps=True), first=("out", "top", "data", "split"))
def mine(
    source: Annotated[Path, Choice(None, "Checkpoint, run folder or dump.", argument=True)],
    out: Annotated[Path, Choice(None, "Folder to write; the same command resumes it.")],
    top: Annotated[int, Choice(None, "Candidates to keep per item.", low=1)] = 300,
    request: Request = OF_TRAIN,
) -> None:
    """Find the hardest candidates of each query under a model.

    **Examples**

    `lossscope mine runs/scenes-triplet-sh-seed0 --out candidates`

    `lossscope train --data scenes --encoder vsepp --objective aoq --init BEST.pt --offline candidates`

    The lists leave out candidates of the item's own image. To refresh the lists, mine a later checkpoint into a new
    folder.
    """
    from lossscope.training.offline_candidates import mine_candidates

    with progress() as report:
        embedded = load_source(source, request, report)
        mine_candidates(embedded, out, top, report)
    print_path(out)
