"""The command line, a thin skin: each command is one file, each body a few calls of plain functions."""

from __future__ import annotations

from ._start import no_garbage  # before anything else is imported

# isort: split
with no_garbage():
    from . import (
        audit,
        check,
        cite,
        cocos,
        compare,
        convert,
        data,
        data_generate,
        data_lint,
        demo,
        diagram,
        diff,
        doctor,
        evaluate,
        listing,
        mine,
        plot,
        probe,
        report,
        study,
        study_power,
        table,
        train,
        trajectory,
        verify,
    )
    from .app import app, main

    probe.register_probes()

__all__ = [
    "app",
    "audit",
    "check",
    "cite",
    "cocos",
    "compare",
    "convert",
    "data",
    "data_generate",
    "data_lint",
    "demo",
    "diagram",
    "diff",
    "doctor",
    "evaluate",
    "listing",
    "main",
    "mine",
    "plot",
    "probe",
    "report",
    "study",
    "study_power",
    "table",
    "train",
    "trajectory",
    "verify",
]
