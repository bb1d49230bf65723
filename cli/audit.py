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

from ._app import Work, command
from ._options import resolve_device, usage
from ._output import fold, message, notice, print_path
from ._progress import progress
from ._sources import OF_TRAIN

if TYPE_CHECKING:
    from lossscope.audit.estimate.kappa import Agreement
    from lossscope.audit.estimate.rates import Estimate
    from lossscope.audit.steps.result import AuditResult

_ONE_KIND = "both give one answer alone"
_SHOWN = 3  # pairs that are printed where data are ranked only


@command(work=Work(keeps=True), first=("data", "split", "objective", "labels", "threshold", "top", "out", "format"))
def audit(
    out: Annotated[Path, Choice(OUTPUT, "Folder for suspects, mask, sheet and pages.")],
    targets: Annotated[
        tuple[str, ...],
        Choice(
            None,
            "Checkpoints, run folders or dumps of the same split, or a file of rows; without any, texts of --data.",
            metavar="[SOURCE|FILE]...",
            argument=True,
        ),
    ] = (),
    options: AuditOptions = AuditOptions(source=OF_TRAIN),  # noqa: B008 - never changed
    pairs: Annotated[
        Path | None,
        Choice(None, "CSV of pairs (columns image,caption, or the names of the sides) to score into OUT/scores.csv."),
    ] = None,
    shown: Annotated[int, Choice(OUTPUT, "Number of suspects on the page.", low=1, high=2000)] = 200,
    label: Annotated[bool, Choice(OUTPUT, "Open the sheet to label in the browser.")] = False,
    format: Annotated[Literal["table", "json"], Choice(OUTPUT, "Format of the result.", flags="--format")] = "table",
) -> None:
    """Are my negatives wrong? Find those that are positives.

    **Examples**

    `lossscope audit train.jsonl --out audit`

    `lossscope audit checkpoints/tiny.pt --out audit`

    `lossscope audit --data scenes:ambiguity=0.4 --out audit`

    `lossscope audit runs/scenes-ntxent-seed0 runs/scenes-triplet-seed0 --objective ntxent --out audit`

    `lossscope audit --data scenes:ambiguity=0.4 --out audit --label`

    `lossscope audit --data scenes:ambiguity=0.4 --labels audit/sheet.csv --out audited`

    `lossscope audit runs/scenes-ntxent-seed0 --labels audit/sheet.csv --worth --out audited`

    `lossscope train --data scenes:ambiguity=0.4 --encoder vsepp --objective ntxent --mask audit/mask.npz`

    OUT/index.html shows the strongest suspects. OUT/sheet.html has the pairs to label, with keys, and counts the rate
    as you answer. The first line names the state: `calibrated` by labels of your pairs, `transferred` from people's
    judgements of photos and captions, or `ranked only`. A ranked audit orders the pairs; it gives no probability,
    rate or mask until you label pairs.
    """
    if not targets and options.source.data is None:
        raise usage("audit needs a SOURCE, or a file with texts: lossscope audit train.jsonl --out audit")
    if pairs is not None and label:
        raise usage("--label opens the sheet of an audit; --pairs writes scores alone")
    if pairs is not None and format == "json":
        raise usage("--format json is for an audit's result; --pairs writes its scores to OUT/scores.csv")
    if pairs is not None and options.worth:
        raise usage("--worth is for an audit's mask; --pairs writes scores alone. Leave one of them out")
    from lossscope.audit.steps.inputs import with_rows

    sources, options = with_rows(targets, options)
    with progress() as report:
        source = replace(options.source, device=resolve_device(options.source.device), progress=report)
        options = replace(options, source=source)
        if pairs is not None:
            status, left_out, path = _score(sources, pairs, options, out)
        else:
            result, path = _audit(sources, options, out, shown)
    if pairs is not None:
        notice(f"Note: {status}.")
        for text in left_out:
            message(f"Warning: {text}.")
        print_path(path)
        return
    for text in result.notices:
        notice(f"Note: {text}.")
    sheet = out / "sheet.html"
    if label:
        _open(sheet)
    if format == "json":
        from lossscope.audit.output.document import document

        typer.echo(json.dumps(document(result), indent=1, ensure_ascii=False, allow_nan=False))
        return
    typer.echo("\n".join(_lines(result, out)))
    print_path(path)
    if label:
        print_path(sheet)


def _open(page: Path) -> None:
    """Open a page in the browser; say so where there is none."""
    import webbrowser

    try:
        is_open = webbrowser.open(page.resolve().as_uri())
    except (webbrowser.Error, OSError):
        is_open = False
    if not is_open:
        notice(f"Note: lossscope could not open a browser. Open {page} yourself.")


def _audit(sources: list[Path], options: Any, out: Path, shown: int) -> tuple[AuditResult, Path]:
    from lossscope.audit.output.folder import write_audit
    from lossscope.audit.steps.run import audit as run
    from lossscope.io.folder_lock import lock_folder

    with lock_folder(out):  # from the beginning, so that a folder in use is refused before the work
        result = run(sources, options)
        return result, write_audit(result, out, shown)


def _score(sources: list[Path], pairs: Path, options: Any, out: Path) -> tuple[str, tuple[str, ...], Path]:
    """Write OUT/scores.csv; return what the scores are, which labels could not be read, and its path."""
    from lossscope.audit.output.document import status
    from lossscope.audit.steps.score_pairs import score_pairs
    from lossscope.io.csv_tables import format_csv
    from lossscope.io.files import write_text
    from lossscope.io.folder_lock import lock_folder

    path = out / "scores.csv"
    with lock_folder(out):
        table, scorer = score_pairs(sources, pairs, options)
        write_text(path, format_csv(table, table.columns[:2]))
    left_out = () if scorer.labels is None else scorer.labels.unreadable
    return status(scorer.state, scorer.calibration, scorer.transfer), left_out, path


def _lines(result: AuditResult, out: Path) -> list[str]:
    """Return what is printed: the state, what it allows to say, and what to do next."""
    from lossscope.audit.output.document import status
    from lossscope.core.sides import plural

    relations = result.material.relations
    sides = relations.sides
    items = f"{relations.first:,} {plural(sides.first)}"
    items += "" if sides.second is None else f" and {relations.second:,} {plural(sides.second)}"
    state = status(result.state, result.calibration, result.transfer)
    left_out = () if result.labels is None else result.labels.unreadable
    lines = [
        fold(f"{state[0].upper()}{state[1:]}."), *(fold(f"Warning: {text}.") for text in left_out), "",
        f"{result.name}: {items}",
    ]  # fmt: skip
    if result.rates_disagree:
        lines.insert(
            1,
            fold(
                "Warning: the rate of the model and the counted rate have no value in common. Trust the counted "
                "rate; probabilities, mask and shares below rest on the model."
            ),
        )
    if result.rate is None:
        return [*lines, *_ranked_lines(result, out)]
    return [*lines, *_rate_lines(result), *_mask_lines(result, out)]


def _ranked_lines(result: AuditResult, out: Path) -> list[str]:
    """Return how many pairs are in order, the first of them, and what makes probabilities of it."""
    from lossscope.audit.output.pages import first_different, reasons_of
    from lossscope.audit.output.tables import text_of
    from lossscope.io.json_files import shorten

    copies = int(result.suspects.copy.sum())
    lines = [
        f"The first {len(result.suspects.pairs):,} of {result.examined:,} pairs that were looked at ({result.pairs:,} "
        "in all) are listed in order."
    ]
    if copies:
        lines.append(f"{copies:,} of them are copies, which match: --mask same-text leaves out those of texts.")
    different = first_different(result, len(result.suspects.pairs))
    shown = different.take((different.copy == 0).nonzero()[0][:_SHOWN])
    for index, (query, candidate) in enumerate(zip(shown.pairs.left.tolist(), shown.pairs.right.tolist(), strict=True)):
        because = " and ".join(reason for reason, _ in reasons_of(result, shown, index)[:2])
        first, second = text_of(result, 0, query), text_of(result, 1, candidate)
        lines.append(f"  {shorten(first)} and {shorten(second)}: {because}")
    lines += [
        "",
        f"No rate, no probability and no mask: {len(result.sheet.pairs)} labels make them.",
        f"Label {out / 'sheet.html'}, then give --labels labels.csv.",
    ]
    return [fold(line, 2) for line in lines]


def _rate_lines(result: AuditResult) -> list[str]:
    """Return how many negatives are false, and how much weight is on them."""
    assert result.rate is not None
    lines = ["", f"false negatives among the negatives of a batch   {_percent(result.rate)}"]
    if result.counted is not None:
        labels = f"counted from {result.counted.answers} labels, no model:"
        lines.append(f"{labels:<49}{_percent(result.counted.rate)}")
    lines.append(f"queries with one in a batch of {result.batch_size:<6}            {result.per_query:.1%}")
    for share in result.weights:
        epoch = "" if share.epoch is None else f", epoch {share.epoch}"
        source = f", {share.source}" if len({other.source for other in result.weights}) > 1 else ""
        lines.append(f"gradient weight on them, {share.objective}{source}{epoch}   {_percent(share.share)}")
    return [*lines, *(f"not weighed: {reason}" for reason in result.not_weighed)]


def _mask_lines(result: AuditResult, out: Path) -> list[str]:
    """Return what thresholds leave out, how many suspects there are, and how to train without them."""
    from lossscope.audit.estimate.design import RARE
    from lossscope.audit.output.worth_text import worth_lines

    assert result.rate is not None
    assert result.least is not None
    lines = ["", f"{'leave out from':<16}{'of negatives':<15}{'precision':<29}recall"]
    for row in result.accuracy:
        chosen = " *" if row.threshold == result.threshold else ""
        precision, recall = _percent(row.precision), _percent(row.recall)
        lines.append(f"p >= {row.threshold:<11g}{f'{row.hidden:.3%}':<15}{precision:<29}{recall}{chosen}")
    lines += ["* is --threshold.", ""]
    if result.worth is not None:
        lines += [*worth_lines(result, result.worth), ""]
    copies = int(result.suspects.copy.sum())
    text = f"{len(result.suspects.pairs):,} suspects of {result.examined:,} pairs that were looked at"
    lines.append(text + (f", {copies:,} of them copies" if copies else "") + f" ({result.pairs:,} in all).")
    if result.quality is not None:
        q = result.quality
        lines.append(
            f"Predicted for queries not fitted on, {q.n} labels ({q.positive} yes): AUC {q.auc:.3f}, AP "
            f"{q.average_precision:.3f}, calibration error {q.calibration_error:.3f}."
        )
    lines += map(_agreement, () if result.labels is None else result.labels.agreements)
    if result.state == "transferred":
        lines.append(
            f"Label {out / 'sheet.html'}, then give --labels labels.csv: the probabilities become those of your data."
        )
    threshold = max(result.threshold, result.least)
    chosen = "" if threshold == HIDDEN_FROM else f":threshold={threshold:g}"
    lines.append(f"Train without them: --mask {out / 'mask.npz'}{chosen}")
    if result.rate.value < RARE:
        lines.append(
            "Few negatives are false here. In trials with so few, a mask changed less than the seed did, and half of "
            "what it left out were hard true negatives: compare with a training without a mask."
        )
    return lines


def _agreement(agreement: Agreement) -> str:
    first, second = agreement.files
    kappa = agreement.kappa
    text = f"{first} and {second} answer {agreement.alike} of {agreement.pairs} pairs alike"
    if kappa.value != kappa.value:
        return (
            f"{text}; Cohen's kappa is not defined, as {'no pair is in both' if agreement.pairs == 0 else _ONE_KIND}."
        )
    if kappa.low is None or kappa.high is None:
        return f"{text}: Cohen's kappa {kappa.value:.2f}."
    return f"{text}: Cohen's kappa {kappa.value:.2f} ({kappa.low:.2f} to {kappa.high:.2f})."


def _percent(estimate: Estimate) -> str:
    if estimate.value != estimate.value:
        return "–"
    digits = 3 if abs(estimate.value) < 0.01 else 1
    value = f"{estimate.value:.{digits}%}"
    if estimate.low is None or estimate.high is None:
        return value
    return f"{value} ({estimate.low:.{digits}%} to {estimate.high:.{digits}%})"
