"""`lossscope doctor`: what is wrong with a training, with proof, and what to do?"""

from __future__ import annotations

import contextlib
import json
import shutil
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from lossscope.core.choices import OUTPUT, SOURCE, Choice
from lossscope.doctor.examination.options import Options
from lossscope.visible_text import show_text

from ._app import Work, command
from ._errors import FOUND
from ._options import FailOn, resolve_device, usage
from ._output import fold, notice
from ._progress import progress
from ._running import is_verbose
from ._sources import OF_TRAIN

if TYPE_CHECKING:
    from lossscope.doctor.examination.checks import Examination
    from lossscope.doctor.examination.examine import Diagnosis
    from lossscope.doctor.types import Cure, Evidence, Finding

_COLOURS = {"error": "red", "warning": "yellow", "note": "blue"}
_INDENT = 9
_SCREEN = 40  # lines of a pipe, and of terminals that have fewer


@command(
    work=Work(imports="lossscope.doctor.examination.examine", verbose=True),
    first=("log", "objective", "batch_size", "against", "audit", "data", "split", "fail_on", "format", "out"),
)
def doctor(
    targets: Annotated[
        tuple[str, ...],
        Choice(
            None,
            "Checkpoint, run folder, dump, any source of cocos, or text data (file or spec).",
            metavar="[SOURCE]...",
            argument=True,
        ),
    ] = (),
    log: Annotated[
        Path | None,
        Choice(SOURCE, "Training log of any trainer: CSV, TensorBoard events, trainer_state.json, or a folder."),
    ] = None,
    options: Options = Options(source=OF_TRAIN),  # noqa: B008 - never changed
    fail_on: FailOn = None,
    format: Annotated[Literal["table", "json", "markdown"], Choice(OUTPUT, "Format of the result.")] = "table",
    out: Annotated[Path | None, Choice(OUTPUT, "Folder for a page with pictures that prove the findings.")] = None,
) -> None:
    """Is my training broken? Find the problem, its proof, and a fix.

    **Examples**

    `lossscope doctor checkpoints/tiny.pt`

    `lossscope doctor runs/scenes-ntxent-seed0 --out sick`

    `lossscope doctor embeddings.npz --objective ntxent:tau=0.05 --batch-size 256`

    `lossscope doctor --log train.csv --batch-size 128 --column loss=train/contrastive`

    `lossscope doctor train.jsonl --fail-on error`

    `lossscope doctor embeddings.npz dump.npz --same-items`

    The likeliest cause comes first; the problems that it explains stand under it. Modality gap, cone and a pinned
    scale are notes, as good models have them. docs/doctor.md lists every finding, its thresholds and its error rate.
    """
    from lossscope.doctor.examination.examine import examine_sources

    if not targets and log is None:
        raise usage("doctor needs a SOURCE or --log, e.g. lossscope doctor checkpoints/tiny.pt")
    with contextlib.ExitStack() as held:
        if out is not None:
            from lossscope.report.page import page_folder

            held.enter_context(page_folder(out))  # from the beginning: a folder in use is refused before the work
        with progress() as report:
            source = replace(options.source, device=resolve_device(options.source.device), progress=report)
            result = examine_sources(targets, replace(options, source=source), log)
        _print(result, format)
        if out is not None:
            from lossscope.doctor.examination.page import write

            notice(f"Wrote {write(result, out)}.")
    if fail_on and result.reaches(fail_on):
        raise typer.Exit(FOUND)


def _print(result: Diagnosis, format: str) -> None:
    for examination in result.examinations:
        for text in examination.notices:
            notice(f"Note: {text}.")
    if format == "json":
        typer.echo(json.dumps(result.document(), indent=1))
    else:
        lines = map(show_text, _markdown(result)) if format == "markdown" else _lines(result, is_verbose())
        typer.echo("\n".join(lines))


def _lines(result: Diagnosis, verbose: bool) -> list[str]:
    """Return at most one screen: a line for each finding, in full as far as it lasts, first findings first."""
    if verbose:
        return [
            line
            for examination in result.examinations
            for line in (
                *_summary(examination),
                *(line for found in examination.findings for line in _full(found)),
                *_every(examination),
            )
        ]
    height = max(shutil.get_terminal_size((80, _SCREEN)).lines if sys.stdout.isatty() else _SCREEN, _SCREEN) - 2
    blocks = {
        (source, rank): _full(finding)
        for source, examination in enumerate(result.examinations)
        for rank, finding in enumerate(examination.findings)
    }
    summaries = [
        _summary(examination) if len(result.examinations) == 1 else _short(examination)
        for examination in result.examinations
    ]
    used = _height([line for lines in summaries for line in lines] + [block[0] for block in blocks.values()])
    shown = {key: block[:1] for key, block in blocks.items()}
    for key in sorted(blocks, key=lambda key: (key[1], key[0])):  # the first finding of every source, then the second
        more = _height(blocks[key][1:])
        if used + more <= height:
            shown[key], used = blocks[key], used + more
    lines = [
        line
        for source, summary in enumerate(summaries)
        for line in (*summary, *(line for key, block in shown.items() if key[0] == source for line in block))
    ]
    return _cut(lines, height)


def _height(lines: Sequence[str]) -> int:
    return sum(line.count("\n") + 1 for line in lines)


def _cut(lines: list[str], height: int) -> list[str]:
    """Return the lines that a screen has place for, and how many it has not."""
    if _height(lines) <= height:
        return lines
    kept = 0
    while _height(lines[: kept + 1]) < height:
        kept += 1
    return [*lines[:kept], f"... and {len(lines) - kept} more lines: -v or --format json has them."]


def _summary(examination: Examination) -> list[str]:
    """Return what is, then the verdict."""
    from lossscope.doctor.examination.wording import verdict_of
    from lossscope.doctor.parts.state import state_line

    state = state_line(examination.state)
    return [
        fold(f"{examination.heading}: {state or 'lossscope could not read its state'}."),
        fold(verdict_of(examination)),
    ]


def _short(examination: Examination) -> list[str]:
    """Return the beginning of what is, and the verdict, in few lines: of several sources."""
    from lossscope.doctor.examination.wording import verdict_of
    from lossscope.doctor.parts.state import state_line

    first = state_line(examination.state).partition(";")[0]
    verdict = verdict_of(examination).partition(";")[0].rstrip(".")
    return [fold(f"{examination.heading}: {f'{first}; ' if first else ''}{verdict}.")]


def _full(finding: Finding) -> list[str]:
    mark = typer.style(f"{finding.severity:<7}", fg=_COLOURS[finding.severity], bold=finding.severity == "error")
    lines = [mark + fold(f"{'':<7}  {finding.id}: {finding.title}", _INDENT)[7:], _indented(finding.why)]
    lines += [_indented(f"{evidence.statistic}: {_evidence(evidence)}") for evidence in finding.evidence[:3]]
    if finding.cure is not None:
        lines.append(_indented(f"undone: {_cure(finding.cure)}"))
    if finding.explains:
        lines.append(_indented(f"explains: {', '.join(finding.explains)}"))
    if finding.examples:
        lines.append(_indented(f"such as: {finding.examples[0]}"))
    for advice in finding.advice[:2]:
        lines.append(_indented(f"do: {advice.text}{f' `{advice.command}`' if advice.command else ''}"))
    return lines


def _indented(text: str) -> str:
    return fold(f"{'':<{_INDENT}}{text}", _INDENT + 2)


def _evidence(evidence: Evidence) -> str:
    bounds = evidence.low, evidence.high
    interval = "" if None in bounds else f" ({bounds[0]:.3g} to {bounds[1]:.3g})"
    threshold = "" if evidence.threshold is None else f"; threshold {evidence.threshold:.3g}"
    low, high = evidence.healthy
    healthy = "" if low is None and high is None else f"; healthy {_range(low, high)}"
    return f"{evidence.value:.4g}{interval}{threshold}{healthy}"


def _cure(cure: Cure) -> str:
    return f"{cure.what}, {cure.statistic} goes from {cure.before:.3g} to {cure.after:.3g}"


def _range(low: float | None, high: float | None) -> str:
    if low is None:
        return f"up to {high:.3g}"
    if high is None:
        return f"from {low:.3g}"
    return f"{low:.3g}" if low == high else f"{low:.3g} to {high:.3g}"


def _every(examination: Examination) -> list[str]:
    """Return every number that was compared with a threshold, and why other checks did not run."""
    lines = [fold(f"  {id}: {value:.4g}", 4) for id, value in sorted(examination.signals.items())]
    return [*lines, *(fold(f"  {missed.id}: not checked, {missed.reason}", 4) for missed in examination.not_checked)]


def _markdown(result: Diagnosis) -> list[str]:
    lines = []
    for examination in result.examinations:
        lines += [f"# {examination.source}", "", *_summary(examination), ""]
        for finding in examination.findings:
            lines += [f"## {finding.severity}: {finding.id}", "", f"**{finding.title}.** {finding.why}", ""]
            lines += [f"- {evidence.statistic}: {_evidence(evidence)}" for evidence in finding.evidence]
            lines += [f"- undone: {_cure(finding.cure)}"] if finding.cure is not None else []
            lines += [f"- explains: {', '.join(finding.explains)}"] if finding.explains else []
            lines += ["", *(_advice(advice.text, advice.command) for advice in finding.advice)]
            lines += ["", f"Source: {finding.reference}.", ""]
    return lines


def _advice(text: str, command: str | None) -> str:
    return f"1. {text}" + (f" `{command}`" if command else "")
