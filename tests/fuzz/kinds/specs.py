"""Specs as users type them: an objective, a probe, an encoder, data, a range."""

from __future__ import annotations

from pathlib import Path

from lossscope.engine.selection import objective_specs
from lossscope.registry import build, expand, spec_of

LINES = {
    "objectives": "unified:gamma=60", "probes": "cocos:eps=0.01,curve=true", "encoders": "vsepp:dim=16,words=8",
    "datasets": "scenes:train=6,val=2,test=2,size=16", "ranges": "ntxent:tau=0.02..0.2/4 log",
}  # fmt: skip
FILES = {"specs.txt": "text"}
CHECKSUMMED = ()
NAMES_FILES = False  # they are typed


def make(folder: Path) -> None:
    """Write one a line."""
    text = "\n".join(f"{kind} {spec}" for kind, spec in LINES.items()) + "\n"
    (folder / "specs.txt").write_text(text, encoding="utf-8")


def read(folder: Path) -> object:
    """Build each, in the order of the lines; an unknown kind is no spec."""
    lines = (folder / "specs.txt").read_bytes().decode("utf-8", "surrogateescape").split("\n")
    built: list[object] = []
    for kind, _, spec in (line.partition(" ") for line in lines):
        if kind == "ranges":
            built.append((expand("objectives", spec), objective_specs([spec], None)))
        elif kind in LINES:
            built.append(spec_of(build(kind, spec)))
    return built
