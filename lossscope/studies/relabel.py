"""Name the systems of a report as the user asks: RUN=NAME, or NAME in order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from lossscope.errors import InputError
from lossscope.report.results import RunRecord

System = tuple[str, str, str]  # data, encoder, objective_label


def relabel(records: Sequence[RunRecord], labels: Sequence[str]) -> list[RunRecord]:
    """Return the records with the given names as objective_label; a run's name holds for all seeds of its system.

    Args:
        records: of the runs.
        labels: `RUN=NAME` for some runs, or a `NAME` for each system, in order.

    Raises:
        InputError: an unknown run, two names for a system, a name for two systems, or a number of names other than
            that of systems.
    """
    if not labels:
        return list(records)
    names = _by_run(records, labels) or _in_order(records, labels)
    renamed = [
        replace(record, objective_label=names.get(_system(record), record.objective_label)) for record in records
    ]
    _require_distinct(records, renamed)
    return renamed


def _system(record: RunRecord) -> System:
    return record.data, record.encoder, record.objective_label


def _by_run(records: Sequence[RunRecord], labels: Sequence[str]) -> dict[System, str]:
    """Return the names of systems; empty if no label begins with `RUN=`."""
    systems = {record.run: _system(record) for record in records}
    pairs = [
        (run.rstrip("/").rpartition("/")[2], name) for run, equals, name in (x.partition("=") for x in labels) if equals
    ]
    if not any(run in systems for run, _ in pairs):
        return {}
    unknown = [label for label in labels if label.partition("=")[0].rstrip("/").rpartition("/")[2] not in systems]
    if unknown:
        raise InputError(f"label must be RUN=NAME, with one of {', '.join(systems)}; got {unknown[0]!r}")
    names: dict[System, str] = {}
    for run, name in pairs:
        if names.setdefault(systems[run], name) != name:
            raise InputError(f"seeds of one system must have one label; got {names[systems[run]]!r} and {name!r}")
    return names


def _in_order(records: Sequence[RunRecord], labels: Sequence[str]) -> dict[System, str]:
    systems = list(dict.fromkeys(map(_system, records)))
    if len(labels) != len(systems):
        listed = ", ".join(dict.fromkeys(record.run for record in records))
        raise InputError(
            f"labels must be RUN=NAME, with one of {listed}, or a NAME for each of {len(systems)} systems; "
            f"got {len(labels)}: {', '.join(labels)}"
        )
    return dict(zip(systems, labels, strict=True))


def _require_distinct(records: Sequence[RunRecord], renamed: Sequence[RunRecord]) -> None:
    before: dict[System, System] = {}
    for old, new in zip(records, renamed, strict=True):
        if before.setdefault(_system(new), _system(old)) != _system(old):
            raise InputError(f"labels of systems must differ; got {new.objective_label!r} for two of them")
