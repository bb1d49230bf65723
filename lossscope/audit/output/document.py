"""Turn an audit into plain values, which `--format json` prints and audit.json holds."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from ..estimate.calibration import Calibration
from ..estimate.rates import Estimate
from ..estimate.transfer import Transfer
from ..steps.result import AuditResult
from ..steps.worth import Worth
from ..types import State
from .worth_text import verdict

SCHEMA = "lossscope.audit/1"


def status(state: State, calibration: Calibration, transfer: Transfer) -> str:
    """Return the state, the data of the fit, and why these are, or are not, like the user's data."""
    if state == "calibrated":
        return f"calibrated: probabilities are fitted on {calibration.labels} labels of {calibration.origin}"
    if state == "transferred":
        return f"transferred: probabilities are fitted on {calibration.origin}, not on your data; {transfer.reason}"
    return (
        f"ranked only: pairs are in order, and nothing says how many match. Weights are fitted on "
        f"{calibration.origin}, not on your data; {transfer.reason}"
    )


def document(result: AuditResult) -> dict[str, Any]:
    """Return the audit as a document; NaN and unknown values are None."""
    relations = result.material.relations
    facts: dict[str, Any] = {
        "schema": SCHEMA,
        "name": result.name,
        "sides": relations.sides.text,
        "items": [relations.first, relations.second],
        "state": result.state,
        "status": status(result.state, result.calibration, result.transfer),
        "calibration": {
            "labels": result.calibration.labels, "origin": result.calibration.origin,
            "intercept": float(result.calibration.weights[0]) if result.has_probabilities else None,
            "weights": {n: float(b) for n, b in zip(result.signals, result.calibration.weights[1:], strict=True)},
        },
        "transfer": asdict(result.transfer),
        "batch_size": result.batch_size,
        "rate": None if result.rate is None else _estimate(result.rate),
        "counted_rate": None if result.counted is None else {
            **_estimate(result.counted.rate), "answers": result.counted.answers, "yes": result.counted.yes,
            "is_in_order": result.counted.is_in_order, "agrees_with_rate": not result.rates_disagree,
        },
        "queries_with_one_in_batch": result.per_query,
        "weight_shares": [{**asdict(share), "share": _estimate(share.share)} for share in result.weights],
        "not_weighed": list(result.not_weighed),
        "threshold": result.threshold if result.has_probabilities else None,
        "listed_from": result.least,
        "thresholds": [
            {"threshold": accuracy.threshold, "hidden": accuracy.hidden, "precision": _estimate(accuracy.precision),
             "recall": _estimate(accuracy.recall)}
            for accuracy in result.accuracy
        ],
        "suspects": len(result.suspects.pairs),
        "examined": result.examined,
        "pairs": result.pairs,
        "labels_left_out": list(() if result.labels is None else result.labels.unreadable),
        "signals": list(result.signals),
        "copies": {"signals": list(result.copy_names), "pairs": int(result.suspects.copy.sum())},
        "unknown_signals": dict(result.unknown),
        "worth": None if result.worth is None else _worth(result, result.worth),
        "quality": None if result.quality is None else asdict(result.quality),
        "agreements": [
            {"files": list(two.files), "pairs": two.pairs, "alike": two.alike, "kappa": _plain(_estimate(two.kappa))}
            for two in (() if result.labels is None else result.labels.agreements)
        ],
    }  # fmt: skip
    return {key: _plain(value) for key, value in facts.items()}


def _worth(result: AuditResult, worth: Worth) -> dict[str, Any]:
    """Return floors, the trial with its verdict, and the reasons if either is missing."""
    trial = worth.trial
    return {
        "floors": [asdict(floor) for floor in worth.floors],
        "trial": None if trial is None else {**asdict(trial), "verdict": verdict(trial, result.state)},
        "reasons": list(worth.reasons),
    }


def _estimate(estimate: Estimate) -> dict[str, float | None]:
    return {"value": estimate.value, "low": estimate.low, "high": estimate.high}


def _plain(value: Any) -> Any:
    """Return a value with None for numbers that are not finite."""
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
