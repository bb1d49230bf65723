"""Examine sources and logs: `lossscope.doctor("ckpt.pt")`, `lossscope.doctor(log="train.csv", batch_size=256)`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lossscope.errors import InputError
from lossscope.io.trusted_code import trust
from lossscope.registry import build

from ..types import Finding
from .checks import Examination, run_checks
from .document import document_of
from .open_source import open_patient
from .options import Options
from .same_items import compare_patients


@dataclass(frozen=True)
class Diagnosis:
    """The examinations of several sources."""

    examinations: tuple[Examination, ...]

    @property
    def findings(self) -> tuple[Finding, ...]:
        """All findings, those of the first source first."""
        return tuple(finding for examination in self.examinations for finding in examination.findings)

    @property
    def ids(self) -> tuple[str, ...]:
        """Ids of the findings."""
        return tuple(finding.id for finding in self.findings)

    def reaches(self, severity: str) -> bool:
        """Return whether a finding is at least that severe: `error` or `warning`."""
        return any(examination.reaches(severity) for examination in self.examinations)

    def document(self) -> dict[str, Any]:
        """Return the JSON document, `lossscope.doctor/1`."""
        return document_of(self.examinations)

    def __repr__(self) -> str:
        """Return a line for each finding."""
        lines = [f"{finding.severity}: {finding.id}: {finding.title}" for finding in self.findings]
        return "\n".join(lines) or "nothing found"


def examine_run(path: Path, name: str, options: Options) -> Diagnosis:
    """Examine a run folder under a name, so that its files say the same at any path.

    Args:
        path: of the run folder.
        name: of the run.
        options: how its checkpoint and data are read.
    """
    patient = open_patient(path, options)
    patient.name, patient.run = name, Path(name)
    return Diagnosis((run_checks(patient),))


def examine(*sources: Any, log: Path | str | None = None, **options: Any) -> Diagnosis:
    """Return what is wrong with trainings, with proof and advice.

    Args:
        sources: paths of checkpoints, run folders, dumps, text data and other sources; embeddings (first, second), or
            arrays by name. Without a source only the log is examined.
        log: of the training: CSV, TensorBoard events, trainer_state.json, or a folder of them.
        options: fields of `examination.options.Options`, as objective="ntxent:tau=0.05", batch_size=256, split="test",
            against="train.jsonl", columns={"loss": "train/contrastive"}, sides="user/item", trust_code=True, or
            same_items=True for two encodings of the same items.

    Raises:
        InputError: nothing to examine, a source that cannot be read, or an unknown option.
    """
    size = options.get("batch_size")
    if size is not None and (isinstance(size, bool) or not isinstance(size, int) or size < 1):
        raise InputError(f"batch_size must be a whole number of at least 1; got {size!r}")
    against = options.get("against", ())
    against = (against,) if isinstance(against, str) else tuple(against)
    columns = options.get("columns") or {}
    return examine_sources(sources, Options.of(**{**options, "against": against, "columns": columns}), log)


def examine_sources(sources: Sequence[Any], options: Options, log: Path | str | None = None) -> Diagnosis:
    """Return what is wrong with trainings, see `examine`."""
    if not sources and log is None:
        raise InputError("doctor must be given a source, or a log; got neither")
    typed = [
        options.objective,
        options.source.data,
        *options.against,
        *(source for source in sources if isinstance(source, str)),
    ]
    with trust(typed, any_file=options.source.trust_code):
        if options.objective is not None:  # a mistyped objective is an error, not a reason to skip checks
            build("objectives", options.objective)
        targets: list[tuple[Any, Path | str | None]] = [
            (source, log if len(sources) == 1 else None) for source in sources
        ]
        if len(sources) != 1 and log is not None:
            targets.append((None, log))
        if not options.same_items:
            return Diagnosis(tuple(run_checks(open_patient(target, options, of_it)) for target, of_it in targets))
        patients = [open_patient(target, options, of_it) for target, of_it in targets]
        compare_patients(patients[: len(sources)])
        return Diagnosis(tuple(map(run_checks, patients)))
