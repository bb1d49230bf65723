"""`lossscope study`: a grid of trainings and probes from one TOML file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from lossscope.core.choices import Choice
from lossscope.core.request import Device, Request

from ._app import Work, app, command
from ._form import Only
from ._options import Format, resolve_device, usage
from ._output import fold, message, notice, print_csv, print_path, print_results, print_tables
from ._progress import progress
from ._sources import OF_TRAIN

if TYPE_CHECKING:
    from lossscope.core.types import Progress
    from lossscope.studies.cost import Cost
    from lossscope.studies.study import RunStatus, Study
    from lossscope.tables.base import Table

study = typer.Typer(
    name="study",
    help="Run a grid of trainings from a TOML file, and print its tables.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.add_typer(study, name="study")


def _shipped_studies() -> list[str]:
    from lossscope.io.shipped import shipped_files

    return list(shipped_files("studies"))


StudyFile = Annotated[
    Path,
    Choice(
        None,
        "TOML file or folder of a study, or the name of a study that comes with lossscope.",
        argument=True,
        completes=_shipped_studies,
    ),
]
Out = Annotated[Path | None, Choice(None, "Folder of the study.", shown="runs/NAME")]


@command(group=study, work=Work(keeps=True, verbose=True))
def run(
    file: StudyFile,
    out: Out = None,
    launcher: Annotated[
        str,
        Choice(None, "local:jobs=2, torchrun:processes=2, or slurm:minutes=120,partition=gpu.", names="launchers"),
    ] = "local",
    data: Annotated[tuple[str, ...], Choice(None, "Files of a data entry on this machine, as NAME=SPEC; repeat.")] = (),
    dry_run: Annotated[
        bool, Choice(None, "Print what would run and what it costs, then stop.", flags="--dry-run")
    ] = False,
    retry: Annotated[bool, Choice(None, "Run the failed runs again.", flags="--retry-failed")] = False,
    request: Annotated[Request, Only("trust_code", "device")] = OF_TRAIN,
) -> None:
    """Train and evaluate every run of the grid; the same command resumes a stopped study.

    **Examples**

    `lossscope study run studies/bleeker2022-small.toml`

    `lossscope study run studies/bleeker2022-small.toml --dry-run`

    `lossscope study run studies/bleeker2022-vsepp.toml --data "Flickr30k=karpathy:root=DIR,name=flickr30k,size=256"`

    `lossscope study run studies/bleeker2022-vsepp.toml --launcher slurm:partition=gpu,minutes=600`

    A failed run does not stop the others; `lossscope study status` shows its error.
    """
    from lossscope.registry import build
    from lossscope.studies.worker import prepare
    from lossscope.training.components import warmup_warning

    starter = build("launchers", launcher)
    target = resolve_device(request.device)
    work = _begin(file, out, data)
    with work.trusted() as warning, progress() as bar:
        if warning is not None:
            message(f"Warning: {warning}.")
        for run in work.grid.runs:
            if not run.members and (text := warmup_warning(run.recipe)) is not None:
                message(f"Warning: {run.key}: {text}.")
        if dry_run:
            _print_costs(work, starter.at_once, target, bar)
            return
        prepare(work, target, bar)
        statuses = work.run(starter, target, retry, notice, bar)
    failed = [state for state in statuses if state.status == "failed"]
    for state in failed:
        message(f"Failed: {state.run.key}: {state.reason}")
    print_path(work.path)
    if failed:
        message(f"{len(failed)} of {len(statuses)} runs failed; --retry-failed runs them again.")
    stopped = [state for state in statuses if state.status not in ("done", "failed")]
    for state in stopped:
        message(f"Stopped: {state.run.key}: {state.reason}")
    if stopped:
        command = "the same command with --retry-failed" if failed else "the same command"
        message(f"{len(stopped)} of {len(statuses)} runs stopped early; {command} resumes them.")
    if failed or stopped:
        raise typer.Exit(1)


@command(group=study)
def status(
    file: StudyFile,
    out: Out = None,
    format: Annotated[Literal["table", "json", "csv"], Choice(None, "Format of the list of runs.")] = "table",
) -> None:
    """List the runs: done, running, waiting, or failed, with the reason.

    **Examples**

    `lossscope study status studies/bleeker2022-small.toml`

    `lossscope study status runs/bleeker2022-small --format json`
    """
    import json

    from lossscope.errors import InputError

    work = open_study(file, out)
    statuses = work.statuses()
    alarms: dict[str, list[str] | None] = {}
    damaged = set()
    for state in statuses:
        try:
            alarms[state.run.key] = _alarms(work, state)
        except InputError as error:  # of one run, and the others are shown
            message(f"Warning: {state.run.key}: {error}.")
            alarms[state.run.key] = None
            damaged.add(state.run.key)
    rows = [_row(state) | {"findings": alarms[state.run.key]} for state in statuses]
    if format == "json":
        typer.echo(json.dumps({"schema": "lossscope.status/2", "runs": rows}, indent=1))
        return
    import pandas as pd

    if format == "csv":
        cells = ["unreadable" if key in damaged else _cell(found) for key, found in alarms.items()]
        print_csv(pd.DataFrame(rows).assign(findings=cells))
        return
    _print_ill(alarms, [_recall(work, status) for status in statuses if alarms[status.run.key] is not None])
    print_tables([_status_table(statuses)], "table")


def _alarms(work: Study, state: RunStatus) -> list[str] | None:
    """Return what the doctor found in a run, `error:no-learning`, notes left out; None where it was not examined."""
    from lossscope.io.evaluation_folder import read_findings, unexplained

    document = read_findings(work.folder(state.run) / "run")
    if document is None:
        return None
    alarms = [
        f"{finding['severity']}:{finding['id']}" for finding in document["findings"] if finding["severity"] != "note"
    ]
    return [*alarms, "warning:cannot-explain"] if unexplained(document) else alarms


def _recall(work: Study, status: RunStatus) -> float | None:
    """Return the lower recall@1 of both directions that the doctor stated of a run that it has examined."""
    from lossscope.io.evaluation_folder import examined_recall, read_findings

    return examined_recall(read_findings(work.folder(status.run) / "run") or {})


def _cell(alarms: list[str] | None) -> str:
    """Return the errors and warnings of a run as a cell of a CSV file, which is never empty."""
    return "not examined" if alarms is None else " ".join(alarms) or "no problem found"


def _print_ill(alarms: Mapping[str, list[str] | None], recalls: Sequence[float | None]) -> None:
    """Print which runs are ill, of what, above the table."""
    examined = {run: found for run, found in alarms.items() if found is not None}
    if not examined:
        return
    ill: dict[str, list[str]] = {}
    for run, alarms_of_run in examined.items():
        for what in alarms_of_run:
            ill.setdefault(what, []).append(run)
    number = f"{len(examined)} examined run{'s' if len(examined) > 1 else ''}"
    if not ill:
        from lossscope.report.chapters.doctor import recall_range

        typer.echo(fold(f"Doctor: no problem found in {number} ({recall_range(recalls)})."))
    for what, runs in sorted(ill.items()):
        severity, _, id = what.partition(":")
        typer.echo(fold(f"Doctor: {severity} {id} in {len(runs)} of {number}: {', '.join(runs)}."))


@command(group=study)
def table(
    file: StudyFile,
    out: Out = None,
    literature: Annotated[
        bool, Choice(None, "Also show the rows that the paper prints and no run measures.", flags="--literature")
    ] = False,
    format: Format = "table",
) -> None:
    """Print the study's tables: those of its paper, the published values beside ours, or retrieval.

    **Examples**

    `lossscope study table studies/bleeker2022-small.toml`

    `lossscope study table runs/bleeker2022-small --format latex`

    `lossscope study table studies/bleeker2022-small.toml --literature`
    """
    from dataclasses import replace

    from lossscope.report.build import paper_tables
    from lossscope.studies.report import read_runs

    results = replace(read_runs([open_study(file, out).path]), all_printed=literature)
    print_results(results.rows, lambda: paper_tables(results), {"name": "study table"}, format)


@command(group=study, work=Work(processes=True), hidden=True)
def worker(
    folder: Annotated[Path, Choice(None, "Folder of the study.", argument=True)],
    key: Annotated[str, Choice(None, "Key of the run.", argument=True)],
    trusted_file: Annotated[tuple[Path, ...], Choice(None, "Python file that the worker may import; repeat.")] = (),
    device: Device = "cpu",
) -> None:
    """Train and evaluate one run of a study; launchers start this."""
    from lossscope.io.trusted_code import TrustedCode, trust
    from lossscope.studies.worker import work

    files = TrustedCode(frozenset(file.resolve() for file in trusted_file))
    with trust(more=files), progress(lines=True) as bar:
        work(folder, key, resolve_device(device), bar)


def _begin(file: Path, out: Path | None, data: Sequence[str]) -> Study:
    from lossscope.io.remembered_trust import remembered_trust
    from lossscope.io.shipped import find_shipped
    from lossscope.io.trusted_code import trust
    from lossscope.studies.study import Study
    from lossscope.studies.study_file import read_study_file, read_study_name

    file = find_shipped("studies", file)
    if file.is_dir():
        if data or out:
            raise usage("a folder states its data; give --data and --out with the TOML file")
        return Study.open(file)
    pairs = [text.partition("=") for text in data]
    if not all(equals and spec for _, equals, spec in pairs):
        raise usage(f"--data must be NAME=SPEC; got {list(data)}")
    folder = out or Path("runs") / read_study_name(file)
    with trust(more=remembered_trust(folder)):
        return Study.begin(folder, read_study_file(file, {name: spec for name, _, spec in pairs}))


def open_study(file: Path, out: Path | None) -> Study:
    """Open the study of a TOML file, of a folder, or of a name that comes with lossscope."""
    from lossscope.io.shipped import find_shipped
    from lossscope.studies.study import Study
    from lossscope.studies.study_file import read_study_name

    file = find_shipped("studies", file)
    if file.is_dir():
        return Study.open(file)
    return Study.open(out or Path("runs") / read_study_name(file))


def _row(status: RunStatus) -> dict[str, Any]:
    run = status.run
    return {
        "run": run.key, "data": run.data, "encoder": run.encoder, "objective_label": run.objective_label,
        "seed": run.seed, "status": status.status, status.score: status.rsum, "seconds": status.seconds,
        "reason": status.reason,
    }  # fmt: skip


def _status_table(statuses: list[RunStatus]) -> Table:
    from lossscope.io.scores import score_of
    from lossscope.tables.base import Table
    from lossscope.tables.cells import Cell

    words = ("done", "running", "waiting", "failed")
    numbers = {word: sum(state.status == word for state in statuses) for word in words}
    summary = ", ".join(f"{number} {word}" for word, number in numbers.items() if number)
    spent = sum(state.seconds or 0.0 for state in statuses)
    rows = tuple(
        (
            Cell(text=state.run.key), Cell(text=state.status),
            Cell(mean=state.rsum, digits=score_of([state.score]).digits),
            Cell(mean=state.seconds, digits=0), Cell(text=state.reason[:100]),
        )
        for state in statuses
    )  # fmt: skip
    scores = sorted({state.score for state in statuses if state.rsum is not None} or {"rsum"})
    columns = tuple(("", name) for name in ("run", "status", " or ".join(scores), "seconds", "reason"))
    return Table("status", f"{len(statuses)} runs: {summary}. {spent / 60:.1f} minutes of work so far.", columns, rows)


def _print_costs(work: Study, workers: int, device: str, bar: Progress | None) -> None:
    """Print the table of `--dry-run`."""
    from lossscope.studies.cost import estimate
    from lossscope.tables.base import Table
    from lossscope.tables.cells import Cell

    costs = estimate(work, device, bar)
    whole = sum((cost.seconds or 0.0) * cost.runs for cost in costs)
    size = sum(cost.megabytes * cost.runs for cost in costs)
    rows = tuple(
        (
            Cell(text=cost.data), Cell(text=cost.encoder), Cell(text=cost.objective_label),
            Cell(mean=cost.runs, digits=0), Cell(mean=cost.steps or None, digits=0), Cell(mean=cost.seconds, digits=0),
            Cell(text="runs that are done" if cost.measured else "stated sizes" if cost.reason else "a few steps"),
        )
        for cost in costs
    )  # fmt: skip
    columns = tuple(("", name) for name in ("data", "encoder", "objective", "runs left", "steps", "s a run", "from"))
    caption = (
        f"{_left(costs, work)}: about {whole / 60:.0f} minutes of "
        f"work, {whole / 60 / workers:.0f} with {workers} at once, {size:.0f} MB of checkpoints. Estimated while "
        "nothing else ran; runs side by side slow each other down."
    )
    if any(cost.reason for cost in costs):
        caption = f"{_left(costs, work)}: {_cost_of_steps(costs)}"
    print_tables([Table("cost", caption, columns, rows)], "table")


def _left(costs: Sequence[Cost], work: Study) -> str:
    """Return `22 runs left of 22, and 8 ensembles, which train nothing`."""
    ensembles = sum(bool(run.members) for run in work.grid.runs)
    left = f"{sum(cost.runs for cost in costs)} runs left of {len(work.grid.runs) - ensembles}"
    return f"{left}, and {ensembles} ensembles, which train nothing" if ensembles else left


def _cost_of_steps(costs: Sequence[Cost]) -> str:
    """Return the caption of costs that could not all be timed; say why on stderr."""
    for reason in dict.fromkeys(cost.reason for cost in costs if cost.reason):
        message(f"Not timed: {reason}")
    steps = sum(cost.steps * cost.runs for cost in costs if cost.reason)
    return (
        f"{steps:,} steps of trainings that could not be timed "
        f"on this machine, {steps / 3600:,.0f} hours for every second that a step takes. Steps are those of the sizes "
        "that the study states."
    )
