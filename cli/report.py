"""`lossscope report`: studies and runs as one page, a LaTeX folder, CSV and pictures."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ._app import command
from ._options import SPLITS, Debug, Device, Quiet, TrustCode, Verbose, complete_words, resolve_device
from ._output import notice, print_path
from ._progress import progress


@command()
def report(
    paths: Annotated[list[Path], typer.Argument(help="Folders of studies or runs.", show_default=False)],
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder to write.")] = Path("report"),
    title: Annotated[str | None, typer.Option(help="Title of the page.", show_default="the study's name")] = None,
    split: Annotated[
        str | None,
        typer.Option(
            help="Split of run folders that is counted.", show_default="train", autocompletion=complete_words(*SPLITS)
        ),
    ] = None,
    test: Annotated[
        str | None,
        typer.Option(
            help="Split of run folders that is ranked.", show_default="test", autocompletion=complete_words(*SPLITS)
        ),
    ] = None,
    resamples: Annotated[int, typer.Option(help="Of the tests and intervals.", min=99, max=1_000_000)] = 9999,
    label: Annotated[
        list[str] | None,
        typer.Option(help="RUN=NAME of a system in tables and pictures, or NAME in order; repeat for several."),
    ] = None,
    columns: Annotated[
        str | None, typer.Option(help="Columns that tables show, `R@1,rsum`; CSV files keep all.", show_default="all")
    ] = None,
    published: Annotated[
        bool, typer.Option("--published/--no-published", help="Numbers that papers printed, beside ours.")
    ] = True,
    device: Device = "auto",
    trust_code: TrustCode = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
    debug: Debug = False,
) -> None:
    """One self-contained page that opens from disk, and the same as LaTeX that compiles, CSV and pictures.

    **Examples**

    `lossscope report runs/bleeker2022-small --out report`

    `lossscope report runs/scenes-triplet-seed0 runs/scenes-ntxent-seed0 --label Triplet --label "NT-Xent, tau = 0.1"`

    `lossscope report runs/bleeker2022-small --columns R@1,rsum,C_q --no-published`

    Runs of a study were evaluated when they were trained; run folders that were not, or have another best checkpoint
    since, are evaluated first.
    """
    from lossscope.studies.report import report as write_report
    from lossscope.studies.study_file import ExamineConfig
    from lossscope.tables.choice import Choice

    config = ExamineConfig(split=split or "train", test=test or "test") if split or test else None
    choice = Choice(tuple(name.strip() for name in (columns or "").split(",") if name.strip()), published)
    with progress(quiet, verbose) as bar:
        page = write_report(
            paths, out, title, config, resolve_device(device), bar, trust_code, resamples, tuple(label or ()), choice
        )
    notice("Open the page in a browser:", quiet)
    print_path(page)
