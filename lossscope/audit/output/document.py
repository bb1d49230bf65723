"""An audit as plain values: what `--format json` prints and audit.json holds."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from ..estimate.rates import Estimate
from ..steps.result import AuditResult
from ..steps.worth import Worth
from .worth_text import verdict

SCHEMA = "lossscope.audit/1"
UNCALIBRATED = "uncalibrated here"
UNSURE = " (?)"  # after a number that depends on probabilities whose weights are of other things


def status(result: AuditResult) -> str:
    """Return what the probabilities were fitted on, and whether that is the user's kind of data."""
    calibration = result.calibration
    if result.is_calibrated:
        return f"calibrated on {calibration.labels} labels of {calibration.origin}"
    others = ", which are other things than these" if result.is_of_other_things else ""
    return f"{UNCALIBRATED}: weights of {calibration.origin}{others}"


def document(result: AuditResult) -> dict[str, Any]:
    """Return the audit; NaN and what is not known are None."""
    relations = result.material.relations
    facts: dict[str, Any] = {
        "schema": SCHEMA,
        "name": result.name,
        "sides": relations.sides.text,
        "items": [relations.first, relations.second],
        "calibration": {
            "is_calibrated": result.is_calibrated, "is_of_other_things": result.is_of_other_things,
            "status": status(result), "labels": result.calibration.labels,
            "origin": result.calibration.origin, "intercept": float(result.calibration.weights[0]),
            "weights": {n: float(b) for n, b in zip(result.signals, result.calibration.weights[1:], strict=True)},
        },
        "batch_size": result.batch_size,
        "rate": _estimate(result.rate),
        "queries_with_one_in_batch": result.per_query,
        "weight_shares": [{**asdict(one), "share": _estimate(one.share)} for one in result.weights],
        "not_weighed": list(result.not_weighed),
        "threshold": result.threshold,
        "listed_from": result.least,
        "thresholds": [
            {"threshold": one.threshold, "hidden": one.hidden, "precision": _estimate(one.precision),
             "recall": _estimate(one.recall)}
            for one in result.accuracy
        ],
        "suspects": len(result.suspects.probability),
        "examined": result.examined,
        "pairs": result.pairs,
        "signals": list(result.signals),
        "copies": {"signals": list(result.copy_names), "pairs": int(result.suspects.copy.sum())},
        "unknown_signals": dict(result.unknown),
        "worth": None if result.worth is None else _worth(result, result.worth),
        "quality": None if result.quality is None else asdict(result.quality),
    }  # fmt: skip
    return {key: _plain(value) for key, value in facts.items()}


def _worth(result: AuditResult, worth: Worth) -> dict[str, Any]:
    """Return floors, the trial with what it says, and why either is missing."""
    trial = worth.trial
    return {
        "floors": [asdict(floor) for floor in worth.floors],
        "trial": None if trial is None else {**asdict(trial), "verdict": verdict(trial, result.is_calibrated)},
        "reasons": list(worth.reasons),
    }


def _estimate(estimate: Estimate) -> dict[str, float | None]:
    return {"value": estimate.value, "low": estimate.low, "high": estimate.high}


def _plain(value: Any) -> Any:
    """Return a value with None for numbers that are not finite."""
    if isinstance(value, Mapping):
        return {key: _plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
