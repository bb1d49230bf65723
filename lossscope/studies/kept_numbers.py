"""The numbers of a checkpoint in all ways of counting, in a file for each batch size; a file grows by what it lacks."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from lossscope.errors import InputError
from lossscope.io.decode import decode
from lossscope.io.files import write_text
from lossscope.io.json_files import read_json

SCHEMA = "lossscope.kept_numbers/1"
RECALL = "recall"  # stands for the spec of a probe, of numbers of retrieval


@dataclass(frozen=True)
class KeptNumber:
    """A statistic of a checkpoint."""

    probe: str  # spec, or RECALL
    direction: str
    statistic: str
    mean: float | None  # None: not defined
    n: int  # batches, or queries of retrieval


@dataclass(frozen=True)
class KeptNumbers:
    """The content of a file, and of which checkpoint it is."""

    checkpoint: str  # SHA-256
    split: str
    batch_size: int | None = None  # None: numbers of retrieval
    plugins: dict[str, str] = field(default_factory=dict)  # Python file of the objective -> SHA-256
    numbers: tuple[KeptNumber, ...] = ()
    refused: dict[str, str] = field(default_factory=dict)  # spec of a probe -> why it has no numbers
    schema: str = SCHEMA

    @cached_property
    def _numbers(self) -> Mapping[tuple[str, str, str], KeptNumber]:
        return {(number.probe, number.direction, number.statistic): number for number in self.numbers}

    def number(self, probe: str, direction: str, statistic: str) -> KeptNumber | None:
        """Return a number; None where the probe does not give it."""
        return self._numbers.get((probe, direction, statistic))

    def lacks(self, probes: Sequence[str]) -> tuple[str, ...]:
        """Return the specs that have neither numbers nor a reason."""
        known = {number.probe for number in self.numbers} | self.refused.keys()
        return tuple(probe for probe in dict.fromkeys(probes) if probe not in known)

    def joined(self, numbers: Sequence[KeptNumber], refused: Mapping[str, str]) -> KeptNumbers:
        """Return these numbers and further ones."""
        return replace(self, numbers=(*self.numbers, *numbers), refused={**self.refused, **refused})

    def write(self, file: Path) -> None:
        """Write the file at once, or not at all."""
        write_text(file, json.dumps(asdict(self), allow_nan=False) + "\n")

    @classmethod
    def read(cls, file: Path, empty: KeptNumbers) -> KeptNumbers:
        """Return the numbers of a file, or `empty` where there is none, or it is of another checkpoint or version.

        Args:
            file: as `write` writes it.
            empty: says which checkpoint, split, batch size and Python files the numbers must be of.

        Raises:
            InputError: the file is damaged.
        """
        if not file.is_file():
            return empty
        document: dict[str, Any] = read_json(file)
        if document.get("schema") != SCHEMA:
            return empty
        try:
            kept = decode(cls, document, str(file))
        except InputError as error:
            raise InputError(f"{error}. Remove the file, and the same command computes it again") from error
        return kept if replace(kept, numbers=(), refused={}) == empty else empty
