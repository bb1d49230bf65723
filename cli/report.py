"""`lossscope report`: studies and runs as one page, a LaTeX folder, CSV and pictures."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from lossscope.core.choices import Choice
from lossscope.core.request import Request
from lossscope.studies.report_options import ReportOptions

from ._app import Work, command
from ._form import Only
from ._options import resolve_device
from ._output import notice, print_path
from ._progress import progress
from ._sources import OF_TRAIN


@command(work=Work(verbose=True), first=("out", "title", "test", "split", "label", "published"))
def report(
    paths: Annotated[tuple[Path, ...], Choice(None, "Folders of studies or runs.", argument=True)],
    options: ReportOptions,
    out: Annotated[Path, Choice(None, "Folder to write.", flags="--out,-o")] = Path("report"),
    request: Annotated[Request, Only("device", "trust_code")] = OF_TRAIN,
) -> None:
    """Write a page of studies or runs, with LaTeX, CSV and pictures.

    **Examples**

    `lossscope report runs/bleeker2022-small --out report`

    `lossscope report runs/scenes-triplet-seed0 runs/scenes-ntxent-seed0 --label Triplet --label "NT-Xent, tau = 0.1"`

    `lossscope report runs/bleeker2022-small --columns R@1,rsum,C_q --no-published`

    Runs of a study were evaluated when they were trained; run folders that were not, or have another best checkpoint
    since, are evaluated first.
    """
    from lossscope.studies.report import report as write_report

    with progress() as bar:
        page = write_report(paths, out, options, resolve_device(request.device), bar, request.trust_code)
    notice("Open the page in a browser:")
    print_path(page)
