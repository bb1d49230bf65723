"""`lossscope study`: a grid of trainings and probes from one TOML file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from . import _output
from .app import Debug, Device, Format, Quiet, Verbose, app, chosen, command, device_of, usage

if TYPE_CHECKING:
    from lossscope.studies.study import RunStatus, Study
    from lossscope.tables.base import Table

study = typer.Typer(
    name="study",
    help="A grid of trainings and probes from one TOML file: run it, look where it is, print its tables.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.add_typer(study)

File = Annotated[Path, typer.Argument(help="TOML file of the study, or the folder of one.", show_default=False)]
Out = Annotated[Path | None, typer.Option(help="Folder of the study; default runs/NAME.")]


@command(group=study)
def run(
    file: File,
    out: Out = None,
    launcher: Annotated[
        str, typer.Option(help="local:jobs=2, torchrun:processes=2, or slurm:minutes=120,partition=gpu.")
    ] = "local",
    data: Annotated[
        list[str] | None, typer.Option(help="NAME=SPEC: where a data entry's files are on this machine; repeat.")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would run and what it costs, then stop.")
    ] = False,
    retry: Annotated[bool, typer.Option("--retry-failed", help="Run cells again that failed.")] = False,
    device: Device = "auto",
    quiet: Quiet = False,
    verbose: Verbose = False,
    debug: Debug = False,
) -> None:
    """Train and examine every cell of the grid; the same command goes on where it was stopped.

    **Examples**

    `lossscope study run studies/bleeker2022-small.toml`

    `lossscope study run studies/bleeker2022-small.toml --dry-run`

    `lossscope study run studies/bleeker2022-vsepp.toml --data "Flickr30k=karpathy:root=DIR,name=flickr30k,size=256"`

    `lossscope study run studies/bleeker2022-vsepp.toml --launcher slurm:partition=gpu,minutes=600`

    A cell that fails does not stop the others; `lossscope study status` says why it did.
    """
    from lossscope.registry import build
    from lossscope.studies.worker import prepare

    started = build("launchers", launcher)
    place = device_of(device)
    work = _begun(file, out, data or [])
    with _output.progress(quiet, verbose) as bar:
        prepare(work, place, bar)
        if dry_run:
            _costs(work, started.at_once, place, bar)
            return
        states = work.run(started, place, retry, lambda line: _output.notice(line, quiet), bar)
    failed = [state for state in states if state.status == "failed"]
    for state in failed:
        _output.notice(f"Failed: {state.cell.key}: {state.reason}")
    typer.echo(work.path)
    if failed:
        _output.notice(f"{len(failed)} of {len(states)} cells failed; --retry-failed runs them again.")
        raise typer.Exit(1)


@command(group=study)
def status(file: File, out: Out = None, format: Format = "table", debug: Debug = False) -> None:
    """Which cells are done, under way, waiting, or failed and why.

    **Examples**

    `lossscope study status studies/bleeker2022-small.toml`

    `lossscope study status runs/bleeker2022-small --format json`
    """
    import json

    chosen(format, ("table", "json", "csv"), "--format")
    states = _opened(file, out).states()
    rows = [_row(state) for state in states]
    if format == "json":
        typer.echo(json.dumps({"schema": "lossscope.status/2", "cells": rows}, indent=1))
        return
    import pandas as pd

    if format == "csv":
        typer.echo(pd.DataFrame(rows).to_csv(index=False, lineterminator="\n").rstrip("\n"))
        return
    typer.echo(_status_table(states).to_text().rstrip("\n"))


@command(group=study)
def table(
    file: File,
    out: Out = None,
    format: Format = "table",
    debug: Debug = False,
) -> None:
    """The study's tables: those of its paper, the published values beside ours, or retrieval and counts.

    **Examples**

    `lossscope study table studies/bleeker2022-small.toml`

    `lossscope study table runs/bleeker2022-small --format latex`
    """
    from lossscope.report.results import read_results
    from lossscope.studies.report import tables

    chosen(format, _output.FORMATS, "--format")
    results = read_results([_opened(file, out).path])
    _output.results(results.rows, lambda: tables(results), {"name": "study table"}, format)


@command("cell", group=study, processes=True, hidden=True)
def one(
    folder: Annotated[Path, typer.Argument(help="Folder of the study.")],
    key: Annotated[str, typer.Argument(help="Key of the cell.")],
    device: Device = "cpu",
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Train and examine one cell of a study; launchers start this."""
    from lossscope.studies.worker import work

    with _output.progress(quiet, True) as bar:
        work(folder, key, device_of(device), bar)


def _begun(file: Path, out: Path | None, data: list[str]) -> Study:
    from lossscope.studies.study import Study
    from lossscope.studies.study_file import read_study_file

    if file.is_dir():
        if data or out:
            raise usage("a folder states its data; give --data and --out with the TOML file")
        return Study.opened(file)
    pairs = [text.partition("=") for text in data]
    if not all(equals and spec for _, equals, spec in pairs):
        raise usage(f"--data must be NAME=SPEC; got {data}")
    grid = read_study_file(file, {name: spec for name, _, spec in pairs})
    return Study.begun(out or Path("runs") / grid.name, grid)


def _opened(file: Path, out: Path | None) -> Study:
    from lossscope.studies.study import Study
    from lossscope.studies.study_file import read_study_file

    if file.is_dir():
        return Study.opened(file)
    return Study.opened(out or Path("runs") / read_study_file(file).name)


def _row(state: RunStatus) -> dict[str, Any]:
    cell = state.cell
    who = {
        "cell": cell.key,
        "data": cell.data,
        "encoder": cell.encoder,
        "objective_label": cell.objective_label,
        "seed": cell.seed,
    }
    return {**who, "status": state.status, "rsum": state.rsum, "seconds": state.seconds, "reason": state.reason}


def _status_table(states: list[RunStatus]) -> Table:
    from lossscope.tables.base import Table
    from lossscope.tables.cells import Cell

    numbers = {name: sum(state.status == name for state in states) for name in ("done", "running", "waiting", "failed")}
    told = ", ".join(f"{number} {name}" for name, number in numbers.items() if number)
    spent = sum(state.seconds or 0.0 for state in states)
    rows = tuple(
        (
            Cell(text=state.cell.key), Cell(text=state.status), Cell(mean=state.rsum),
            Cell(mean=state.seconds, digits=0), Cell(text=state.reason[:100]),
        )
        for state in states
    )  # fmt: skip
    columns = tuple(("", name) for name in ("cell", "status", "rsum", "seconds", "reason"))
    return Table("status", f"{len(states)} cells: {told}. {spent / 60:.1f} minutes of work so far.", columns, rows)


def _costs(work: Study, places: int, device: str, bar: _output.Progress | None) -> None:
    """The table of `--dry-run`."""
    from lossscope.studies.cost import estimate
    from lossscope.tables.base import Table
    from lossscope.tables.cells import Cell

    costs = estimate(work, device, bar)
    whole = sum(cost.seconds * cost.cells for cost in costs)
    size = sum(cost.megabytes * cost.cells for cost in costs)
    rows = tuple(
        (
            Cell(text=cost.data), Cell(text=cost.encoder), Cell(text=cost.objective_label),
            Cell(mean=cost.cells, digits=0),
            Cell(mean=cost.steps or None, digits=0), Cell(mean=cost.seconds, digits=0),
            Cell(text="cells that are done" if cost.measured else "a few steps"),
        )
        for cost in costs
    )  # fmt: skip
    columns = tuple(
        ("", name) for name in ("data", "encoder", "objective_label", "cells left", "steps", "s a cell", "from")
    )
    caption = (
        f"{sum(cost.cells for cost in costs)} cells left of {len(work.grid.cells)}: about {whole / 60:.0f} minutes of "
        f"work, {whole / 60 / places:.0f} with {places} at once, {size:.0f} MB of checkpoints. Estimated while nothing "
        "else ran; cells side by side slow each other down."
    )
    typer.echo(Table("cost", caption, columns, rows).to_text().rstrip("\n"))
