"""`lossscope audit`: which negatives are really positives?"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from lossscope.audit.steps.options import AuditOptions
from lossscope.core.choices import OUTPUT, Choice
from lossscope.core.types import HIDDEN_FROM

from ._app import command
from ._options import resolve_device, usage
from ._output import notice, print_path
from ._progress import progress
from ._sources import OF_TRAIN

if TYPE_CHECKING:
    from lossscope.audit.estimate.rates import Estimate
    from lossscope.audit.steps.result import AuditResult

RARE = 0.001  # share of false negatives below which masks gained nothing (docs/audit.md)


@command(keeps=True)
def audit(
    out: Annotated[Path, Choice(OUTPUT, "Folder for suspects, mask, sheet and pages.")],
    sources: Annotated[
        tuple[Path, ...],
        Choice(
            None,
            "Checkpoints, run folders or dumps of the same split; none: texts of --data alone.",
            metavar="[SOURCE]...",
            argument=True,
        ),
    ] = (),
    options: AuditOptions = AuditOptions(source=OF_TRAIN),  # noqa: B008 - never changed
    pairs: Annotated[
        Path | None,
        Choice(None, "CSV of pairs (columns image,caption, or the names of the sides) to score into OUT/scores.csv."),
    ] = None,
    shown: Annotated[int, Choice(OUTPUT, "Suspects on the page.", low=1, high=2000)] = 200,
    format: Annotated[Literal["table", "json"], Choice(OUTPUT, "Of the result.", flags="--format")] = "table",
) -> None:
    """Which negatives are really positives: how many, which, and how much of the gradient pushes them away?

    **Examples**

    `lossscope audit checkpoints/tiny.pt --out audit`

    `lossscope audit --data scenes:ambiguity=0.4 --out audit`

    `lossscope audit runs/scenes-ntxent-seed0 runs/scenes-triplet-seed0 --objective ntxent --out audit`

    `lossscope audit --data scenes:ambiguity=0.4 --labels audit/sheet.csv --out audited`

    `lossscope audit runs/scenes-ntxent-seed0 --labels audit/sheet.csv --worth --out audited`

    `lossscope train --data scenes:ambiguity=0.4 --encoder vsepp --objective ntxent --mask audit/mask.npz`

    OUT/index.html shows the strongest suspects; OUT/sheet.html has the pairs to label, with keys. Without labels the
    weights of the signals are those of human judgements of photos and captions; a hundred labels make them yours.
    """
    if not sources and options.source.data is None:
        raise usage("audit needs a SOURCE, or data with texts: lossscope audit --data scenes --out audit")
    if pairs is not None and format == "json":
        raise usage("--format json is of an audit's result; scores of --pairs are written to OUT/scores.csv")
    if pairs is not None and options.worth:
        raise usage("--worth is of an audit's mask; --pairs writes scores alone. Leave one of them out")
    with progress() as report:
        source = replace(options.source, device=resolve_device(options.source.device), progress=report)
        options = replace(options, source=source)
        if pairs is not None:
            status, path = _score(list(sources), pairs, options, out)
        else:
            result, path = _audit(list(sources), options, out, shown)
    if pairs is not None:
        notice(f"Note: {status}.")
        print_path(path)
        return
    for text in result.notices:
        notice(f"Note: {text}.")
    if format == "json":
        from lossscope.audit.output.document import document

        typer.echo(json.dumps(document(result), indent=1, ensure_ascii=False, allow_nan=False))
        return
    typer.echo("\n".join(_lines(result, out)))
    print_path(path)


def _audit(sources: list[Path], options: Any, out: Path, shown: int) -> tuple[AuditResult, Path]:
    from lossscope.audit.output.folder import write_audit
    from lossscope.audit.steps.run import audit as run
    from lossscope.io.folder_lock import lock_folder

    with lock_folder(out):  # from the beginning, so that a folder in use is refused before the work
        result = run(sources, options)
        return result, write_audit(result, out, shown)


def _score(sources: list[Path], pairs: Path, options: Any, out: Path) -> tuple[str, Path]:
    """Write OUT/scores.csv; return what the probabilities were fitted on, and its path."""
    from lossscope.audit.output.document import UNCALIBRATED
    from lossscope.audit.steps.score_pairs import score_pairs
    from lossscope.io.csv_tables import format_csv
    from lossscope.io.files import write_text
    from lossscope.io.folder_lock import lock_folder

    path = out / "scores.csv"
    with lock_folder(out):
        table, calibration, relations = score_pairs(sources, pairs, options)
        write_text(path, format_csv(table))
    if calibration.labels:
        return f"probabilities are calibrated on {calibration.labels} labels of {calibration.origin}", path
    other = "" if relations.sides.is_image_text else ", which are other things than these"
    return f"probabilities are {UNCALIBRATED}: the weights are of {calibration.origin}{other}", path


def _lines(result: AuditResult, out: Path) -> list[str]:
    """What is printed: the rate, the weight on false negatives, what the threshold leaves out, what to do."""
    from lossscope.audit.output.document import UNSURE, status
    from lossscope.audit.output.worth_text import worth_lines
    from lossscope.core.sides import plural

    relations = result.material.relations
    sides = relations.sides
    items = f"{relations.first:,} {plural(sides.first)}"
    items += "" if sides.second is None else f" and {relations.second:,} {plural(sides.second)}"
    mark = UNSURE if result.is_of_other_things else ""

    def percent(estimate: Estimate) -> str:
        return f"{_percent(estimate)}{mark}"

    lines = [f"{result.name}: {items}", f"Probabilities are {status(result)}.", ""]
    lines.append(f"false negatives among the negatives of a batch   {percent(result.rate)}")
    lines.append(f"queries with one in a batch of {result.batch_size:<6}            {result.per_query:.1%}{mark}")
    for one in result.weights:
        epoch = "" if one.epoch is None else f", epoch {one.epoch}"
        source = f", {one.source}" if len({other.source for other in result.weights}) > 1 else ""
        lines.append(f"gradient weight on them, {one.objective}{source}{epoch}   {percent(one.share)}")
    lines += [f"not weighed: {reason}" for reason in result.not_weighed]
    lines += ["", f"{'leave out from':<16}{'of negatives':<15}{'precision':<29}recall"]
    for row in result.accuracy:
        chosen = " *" if row.threshold == result.threshold else ""
        hidden = f"{row.hidden:.3%}{mark}"
        lines.append(f"p >= {row.threshold:<11g}{hidden:<15}{percent(row.precision):<29}{percent(row.recall)}{chosen}")
    lines.append(
        "* is --threshold." + (f" {mark.strip()} rests on weights of other things: label pairs." if mark else "")
    )
    lines.append("")
    if result.worth is not None:
        lines += [*worth_lines(result, result.worth, mark), ""]
    copies = int(result.suspects.copy.sum())
    text = f"{len(result.suspects.probability):,}{mark} suspects of {result.examined:,} pairs that were looked at"
    lines.append(text + (f", {copies:,} of them copies" if copies else "") + f" ({result.pairs:,} in all).")
    if result.quality is not None:
        q = result.quality
        lines.append(
            f"Predicted for queries not fitted on, {q.n} labels ({q.positive} yes): AUC {q.auc:.3f}, AP "
            f"{q.average_precision:.3f}, calibration error {q.calibration_error:.3f}."
        )
    if not result.is_calibrated:
        lines.append(
            f"Label {out / 'sheet.html'}, then give --labels labels.csv: the probabilities become those of your data."
        )
    threshold = max(result.threshold, result.least)
    chosen = "" if threshold == HIDDEN_FROM else f":threshold={threshold:g}"
    lines.append(f"Train without them: --mask {out / 'mask.npz'}{chosen}")
    if not result.is_of_other_things and result.rate.value < RARE:
        lines.append(
            "Few negatives are false here. In trials with so few, a mask changed less than the seed did, and half of "
            "what it left out were hard true negatives: compare with a training without a mask."
        )
    return lines


def _percent(estimate: Estimate) -> str:
    if estimate.value != estimate.value:
        return "–"
    digits = 3 if abs(estimate.value) < 0.01 else 1
    value = f"{estimate.value:.{digits}%}"
    if estimate.low is None or estimate.high is None:
        return value
    return f"{value} ({estimate.low:.{digits}%} to {estimate.high:.{digits}%})"
