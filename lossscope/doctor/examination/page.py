"""A page of findings, each with the numbers and the picture that prove it."""

from __future__ import annotations

from pathlib import Path

from lossscope.declarations import Declaration, declarations
from lossscope.io.versions import versions
from lossscope.plots import style
from lossscope.report.page import write_page
from lossscope.report.sections import Answer, Item, Section
from lossscope.report.sections import Finding as Sentence
from lossscope.tables.base import Table
from lossscope.tables.cells import Cell

from ..parts.state import state_line
from ..types import Finding
from .checks import Examination
from .examine import Diagnosis
from .pictures import draw
from .wording import verdict_of


def write(result: Diagnosis, out: Path) -> Path:
    """Write the page; return its path.

    Args:
        result: of an examination.
        out: a new folder, or the folder of an earlier page.
    """
    with style.screen():
        sections = [*finding_sections(result), _checks(result)]
    names = ", ".join(examination.source for examination in result.examinations)
    lead = (
        f"{states_of(result)} What is wrong, with proof, and what to do: the likeliest cause first, its symptoms under "
        "it."
    )
    provenance = {"lossscope": versions()["lossscope"], "sources": names}
    return write_page(out, f"Doctor: {names}", lead, sections, provenance, Answer(sentences_of(result)))


def finding_sections(result: Diagnosis) -> list[Section]:
    """Return a section for each finding; pictures use the current style."""
    return [
        _section(
            finding,
            examination,
            _title(finding, examination, result),
            f"-{number}" if len(result.examinations) > 1 else "",
        )
        for number, examination in enumerate(result.examinations, start=1)
        for finding in examination.findings
    ]


def sentences_of(result: Diagnosis) -> tuple[Sentence, ...]:
    """Return each finding in a sentence, and the verdict on each source that has none."""
    findings = (
        Sentence(
            f"{finding.severity.capitalize()}{_of(examination, result)}: {finding.title}.",
            _title(finding, examination, result),
        )
        for examination in result.examinations
        for finding in examination.findings
    )
    verdicts = (
        Sentence(f"{examination.source}: {verdict_of(examination)}", "")
        for examination in result.examinations
        if not examination.findings
    )
    return (*findings, *verdicts)


def states_of(result: Diagnosis) -> str:
    """Return a sentence about the state of each source."""
    return " ".join(
        f"{examination.heading}: {state_line(examination.state) or 'lossscope could not read its state'}."
        for examination in result.examinations
    )


def _title(finding: Finding, examination: Examination, result: Diagnosis) -> str:
    return f"{finding.severity.capitalize()}: {finding.id}{_of(examination, result)}"


def _of(examination: Examination, result: Diagnosis) -> str:
    """Return the source of an examination in brackets, where there are several."""
    return f" ({examination.source})" if len(result.examinations) > 1 else ""


def _section(finding: Finding, examination: Examination, title: str, suffix: str) -> Section:
    paragraphs = [f"{finding.title[0].upper()}{finding.title[1:]}. {finding.why}"]
    if finding.cure is not None:
        cure = finding.cure
        paragraphs.append(f"Undone, {cure.what}: {cure.statistic} goes from {cure.before:.3g} to {cure.after:.3g}.")
    if finding.explains:
        paragraphs.append(f"It explains: {', '.join(finding.explains)}.")
    if finding.examples:
        paragraphs.append(f"Such as: {'; '.join(finding.examples)}.")
    for advice in finding.advice:
        paragraphs.append(f"What to do: {advice.text}{f' {advice.command}' if advice.command else ''}")
    paragraphs.append(f"Source: {finding.reference}.")
    picture = draw(finding, examination.patient, suffix) if examination.patient is not None else None
    items: tuple[Item, ...] = (
        (_evidence(finding, suffix),) if picture is None else (picture, _evidence(finding, suffix))
    )
    return Section(title, "\n\n".join(paragraphs), items)


def _evidence(finding: Finding, suffix: str) -> Table:
    rows = tuple(
        (
            Cell(text=evidence.statistic),
            Cell(text=f"{evidence.value:.4g}"),
            Cell(text="" if evidence.threshold is None else f"{evidence.threshold:.4g}"),
            Cell(text=_healthy(evidence.healthy)),
        )
        for evidence in finding.evidence
    )
    columns = (("", "number"), ("", "value"), ("", "threshold"), ("", "healthy"))
    return Table(f"evidence-{finding.id}{suffix}", f"The numbers that prove {finding.id}.", columns, rows)


def _healthy(bounds: tuple[float | None, float | None]) -> str:
    low, high = ("" if bound is None else f"{bound:.3g}" for bound in bounds)
    return f"{low} to {high}".strip() if low or high else ""


def _checks(result: Diagnosis) -> Section:
    """Return every check: its question, the number that it compared, its thresholds, and why it did not run."""
    declared = {item.name.replace("_", "-"): item for item in declarations("findings")}
    rows = [
        _check(examination, id, reason, declared[id])
        for examination in result.examinations
        for id, reason in [
            *((id, "") for id in examination.checked),
            *((missed.id, missed.reason) for missed in examination.not_checked),
        ]
    ]
    columns = tuple(("", name) for name in ("source", "id", "question", "value", "healthy", "thresholds", "state"))
    caption = (
        "Every check: what it asks, the number that it compared, the values at which it finds nothing, and its "
        "thresholds. A check that compares several numbers has no single value; a finding shows all of its numbers."
    )
    number = sum(len(examination.checked) for examination in result.examinations)
    return Section("What was checked", f"{number} checks ran.", more=(Table("checks", caption, columns, tuple(rows)),))


def _check(examination: Examination, id: str, reason: str, declared: Declaration) -> tuple[Cell, ...]:
    value = examination.signals.get(id)
    found = id in {finding.id for finding in (*examination.findings, *examination.folded)}
    values = {field.name: field.default for field in declared.fields}
    thresholds = ", ".join(f"{name.replace('_', ' ')} {threshold}" for name, threshold in values.items())
    side, name = declared.constants.get("healthy") or ("", "")
    state = reason or ("finding" if found else "no finding")
    number = "" if value is None else f"{value:.4g}"
    healthy = f"{side} {values[name]}" if number and name else ""
    texts = (examination.source, id, declared.question, number, healthy, thresholds, state)
    return tuple(Cell(text=text) for text in texts)
