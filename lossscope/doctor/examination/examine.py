"""Examine sources and logs: `lossscope.doctor("ckpt.pt")`, `lossscope.doctor(log="train.csv", batch_size=256)`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
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


@dataclass(frozen=True)
class Diagnosis:
    """What was found in several sources."""

    examinations: tuple[Examination, ...]

    @property
    def findings(self) -> tuple[Finding, ...]:
        """All findings, those of the first source first."""
        return tuple(one for examination in self.examinations for one in examination.findings)

    @property
    def ids(self) -> tuple[str, ...]:
        """Ids of the findings."""
        return tuple(one.id for one in self.findings)

    def reaches(self, severity: str) -> bool:
        """Return whether a finding is at least that severe: `error` or `warning`."""
        return any(one.reaches(severity) for one in self.examinations)

    def document(self) -> dict[str, Any]:
        """Return the JSON document, `lossscope.doctor/1`."""
        return document_of(self.examinations)

    def __repr__(self) -> str:
        """Return a line for each finding."""
        lines = [f"{one.severity}: {one.id}: {one.title}" for one in self.findings]
        return "\n".join(lines) or "nothing found"


def examine_run(path: Path, name: str, options: Options) -> Diagnosis:
    """Examine a run folder under a name, whatever its path: its files say the same wherever it stands.

    Args:
        path: of the run folder.
        name: of the run.
        options: how its checkpoint and data are read.
    """
    patient = open_patient(path, options)
    patient.name, patient.run = name, Path(name)
    return Diagnosis((run_checks(patient),))


def examine(
    *sources: Any,
    objective: str | None = None,
    data: str | None = None,
    log: Path | str | None = None,
    batch_size: int | None = None,
    against: str | Sequence[str] = (),
    columns: Mapping[str, str] | None = None,
    trust_code: bool = False,
    **options: Any,
) -> Diagnosis:
    """Say what is wrong with trainings, with proof, and what to do.

    Args:
        sources: paths of checkpoints, run folders, dumps, text data and other sources; embeddings (first, second), or
            arrays by name. With none of them the log is examined alone.
        objective: spec of what they were trained with, where they do not say it.
        data: spec of the data that a model reads, in place of the one that it names.
        log: of the training: CSV, TensorBoard events, trainer_state.json, or a folder of them.
        batch_size: pairs of a batch; None: that of the training, else 128.
        against: training data, or dumps of it, that may not share an item with a source.
        columns: name of the field -> column of the log, {"loss": "train/contrastive"}.
        trust_code: import Python files that a source names.
        options: further fields of `examination.options.Options`, as split="test" or sides="user/item".

    Raises:
        InputError: there is nothing to examine, a source cannot be read, or an option that there is none of.
    """
    if not sources and log is None:
        raise InputError("doctor must be given a source, or a log; got neither")
    if batch_size is not None and (isinstance(batch_size, bool) or not isinstance(batch_size, int) or batch_size < 1):
        raise InputError(f"batch_size must be a whole number of at least 1; got {batch_size!r}")
    known = [item.name for item in fields(Options)]
    unknown = [name for name in options if name not in known]
    if unknown:
        raise InputError(f"options of doctor must be of {', '.join(known)}; got {unknown[0]!r}")
    against = (against,) if isinstance(against, str) else tuple(against)
    with trust([objective, data, *against, *(one for one in sources if isinstance(one, str))], every=trust_code):
        chosen = Options(
            objective, data, batch_size=batch_size, against=against, columns=columns or {}, trust_code=trust_code,
            **options,
        )  # fmt: skip
        if objective is not None:
            build(
                "objectives", objective
            )  # so that a typing error is one, and no reason why something is not looked for
        targets: list[tuple[Any, Path | str | None]] = [(one, log if len(sources) == 1 else None) for one in sources]
        if len(sources) != 1 and log is not None:
            targets.append((None, log))
        return Diagnosis(tuple(run_checks(open_patient(target, chosen, own)) for target, own in targets))
