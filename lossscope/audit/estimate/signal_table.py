"""Every signal of pairs as columns, in standard deviations of random pairs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from lossscope.core.types import Rows

from ..base import Signal
from ..parts.material import Material
from ..types import Floats, NotKnown, PairRows
from .calibration import Doubles

_CHUNK = 1 << 18  # pairs whose signals are computed at a time
_LIMIT = 8.0  # standard deviations, beyond which a signal says no more


@dataclass(frozen=True, eq=False)
class SignalTable:
    """The signals that what is known allows, and what they are in random pairs."""

    material: Material
    signals: tuple[Signal, ...]  # that are weighed, k
    copies: tuple[Signal, ...]  # whose pairs match, whatever else is known
    unknown: Mapping[str, str]  # name of a signal that cannot be had -> why
    mean: Doubles = field(default_factory=lambda: np.zeros(0))  # (k,) of random pairs
    sd: Doubles = field(default_factory=lambda: np.zeros(0))

    @classmethod
    def of(cls, material: Material, signals: Sequence[Signal], random_pairs: PairRows) -> SignalTable:
        """Find out which signals there are, and measure them on random pairs.

        Args:
            material: what is known.
            signals: that are wanted.
            random_pairs: of items that are not known to match.
        """
        weighed, copies, unknown, columns = [], [], {}, []
        for signal in signals:
            try:
                column = signal.values(material, random_pairs)
            except NotKnown as error:
                unknown[signal.name()] = error.reason
                continue
            if signal.group == "copies":
                copies.append(signal)
                continue
            weighed.append(signal)
            columns.append(column.astype(np.float64))
        table = np.stack(columns, 1) if columns else np.zeros((len(random_pairs), 0))
        with np.errstate(invalid="ignore"):
            mean, sd = np.nanmean(table, 0) if len(table) else table.sum(0), np.nanstd(table, 0)
        sd = np.where(sd > 0, sd, 1)
        return cls(material, tuple(weighed), tuple(copies), unknown, np.nan_to_num(mean), sd)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the signals that are weighed."""
        return tuple(signal.name() for signal in self.signals)

    def raw(self, pairs: PairRows) -> Floats:
        """Return the signals of pairs as they are, (n, k); NaN where a pair has none."""
        table = np.empty((len(pairs), len(self.signals)), np.float32)
        for start in range(0, len(pairs), _CHUNK):
            part = pairs.part(start, start + _CHUNK)
            for place, signal in enumerate(self.signals):
                table[start : start + _CHUNK, place] = signal.values(self.material, part)
        return table

    def standardised(self, raw: Floats) -> Doubles:
        """Return signals (n, k) in standard deviations above the mean of random pairs; 0 where there is none."""
        Z: Doubles = np.clip((raw.astype(np.float64) - self.mean) / self.sd, -_LIMIT, _LIMIT)
        return np.nan_to_num(Z)

    def is_copy(self, pairs: PairRows) -> Rows:
        """Return (n,) 1 where a signal of copies says so, else 0."""
        copy = np.zeros(len(pairs), np.int64)
        for signal in self.copies:
            for start in range(0, len(pairs), _CHUNK):
                copy[start : start + _CHUNK] |= signal.values(self.material, pairs.part(start, start + _CHUNK)) > 0
        return copy
