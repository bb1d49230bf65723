"""The command line, a thin skin: each command is one file, each body a few calls of plain functions."""

from __future__ import annotations

from . import (
    check,
    cocos,
    compare,
    convert,
    data,
    demo,
    diagram,
    evaluate,
    generated,
    listing,
    probing,
    rank,
    report,
    study,
    train,
    trajectory,
    verify,
)
from .app import app, main

probing.register_all()

__all__ = [
    "app",
    "check",
    "cocos",
    "compare",
    "convert",
    "data",
    "demo",
    "diagram",
    "evaluate",
    "generated",
    "listing",
    "main",
    "probing",
    "rank",
    "report",
    "study",
    "train",
    "trajectory",
    "verify",
]
