"""`lossscope data lint`: what a file of rows says without any model."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lossscope.core.choices import Choice

from ._app import command
from ._errors import FOUND
from ._options import FailOn, LinesOrJson
from ._output import fold
from ._progress import progress
from .data import data

if TYPE_CHECKING:
    from lossscope.datasets.lint.base import Example, Finding
    from lossscope.datasets.lint.suite import LintReport

SCHEMA = "lossscope.lint/1"
COLOURS = {"error": "red", "warning": "yellow"}


@command(group=data)
def lint(
    target: Annotated[
        str,
        Choice(
            None,
            "File, folder, pattern or URL of rows; or a data set of two texts.",
            names="datasets",
            metavar="FILE|SPEC",
            argument=True,
        ),
    ],
    against: Annotated[
        tuple[str, ...],
        Choice(None, "File or data set, such as the training data, that may not share a row; repeat."),
    ] = (),
    columns: Annotated[str, Choice(None, "Names of columns: query=title,positive=body.")] = "",
    max_words: Annotated[int, Choice(None, "Most words of a text; a longer one is a warning.", low=1)] = 512,
    fail_on: FailOn = None,
    format: LinesOrJson = "table",
) -> None:
    """Find copies, positives among negatives, empty texts and leaks in text data, without a model.

    **Examples**

    `lossscope data lint train.jsonl`

    `lossscope data lint test.jsonl --against train.jsonl --format json`

    `lossscope data lint beir:root=scifact,run=bm25.trec --fail-on error`

    Counts are of rows. Two texts are equal if they agree after NFC, casefold and collapsing white space. Errors are
    positive-as-negative, no-positive, empty-text, short-text and split-leak; warnings are duplicates,
    near-duplicates, near-copies, other-positive-as-negative and long-text. A file of any size will do: the command
    reads it once, and the parts with possible near-duplicates again. It needs about 90 bytes of memory per row.
    """
    from lossscope.datasets.lint.suite import lint as run_lint
    from lossscope.datasets.lint.targets import lint_sources

    known = {name: source for other in against for name, source in _named(other, lint_sources(other, columns))}
    with progress() as report:
        result = run_lint(lint_sources(target, columns), known, max_words, report)
    typer.echo(json.dumps(_document(result), indent=1) if format == "json" else "\n".join(_lines(target, result)))
    if fail_on and result.reaches(fail_on):
        raise typer.Exit(FOUND)


def _named(target: str, sources: dict[str, Any]) -> list[tuple[str, Any]]:
    """Return sources under names that those of another target do not have."""
    return [(name if name == target else f"{name} of {target}", source) for name, source in sources.items()]


def _document(result: LintReport) -> dict[str, object]:
    return {
        "schema": SCHEMA,
        "rows": result.rows,
        "queries": result.queries,
        "documents": result.documents,
        "findings": [_finding(finding) for finding in result.findings],
        "checked": list(result.checked),
        "notes": list(result.notes),
    }


def _finding(finding: Finding) -> dict[str, object]:
    examples = [{key: value for key, value in asdict(row).items() if value is not None} for row in finding.examples]
    return {
        "id": finding.id,
        "severity": finding.severity,
        "count": finding.count,
        "share": finding.share,
        "examples": examples,
    }


def _lines(target: str, result: LintReport) -> list[str]:
    """Return the size, each finding with its examples, what was not compared, and which findings are absent."""
    size = f"{result.rows:,} rows with {result.queries:,} different queries and {result.documents:,} positives"
    lines = [fold(f"{target}: {size}")]
    for finding in result.findings:
        mark = typer.style(f"{finding.severity:<7}", fg=COLOURS[finding.severity], bold=finding.severity == "error")
        rows = "1 row" if finding.count == 1 else f"{finding.count:,} rows"
        text = f"{'':<7}  {finding.id}: {rows}, {finding.share:.3%}. {finding.advice[0].upper()}{finding.advice[1:]}."
        lines.append(mark + fold(text, 9)[7:])
        lines += [fold(f"{'':<9}{_place(row)}: {row.text}", 11) for row in finding.examples]
    lines += [fold(f"{'note':<9}{note}.", 9) for note in result.notes]
    absent = [id for id in result.checked if id not in {finding.id for finding in result.findings}]
    return [*lines, *([fold(f"None of: {', '.join(absent)}.")] if absent else [])]


def _place(row: Example) -> str:
    return f"{row.file}, line {row.line}" + (f" ({row.split})" if row.split else "")


data.registered_commands.insert(0, data.registered_commands.pop())  # --help begins with what most users need
