"""The signals of pairs as columns, in standard deviations of random pairs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from lossscope.core.facts import Missing
from lossscope.core.types import Progress, Rows

from ..base import Signal
from ..parts.material import Material
from ..types import Floats, PairRows
from .calibration import Doubles

_CHUNK = 1 << 18  # pairs whose signals are computed at a time
_LIMIT = 8.0  # standard deviations; above it a signal grows as its logarithm


@dataclass(frozen=True, eq=False)
class SignalTable:
    """The signals that the data allow, and their values in random pairs."""

    material: Material
    signals: tuple[Signal, ...]  # k, with weights
    copies: tuple[Signal, ...]  # whose pairs match, whatever the other signals say
    unknown: Mapping[str, str]  # name of a signal that the data do not allow -> why
    mean: Doubles = field(default_factory=lambda: np.zeros(0))  # (k,) of random pairs
    sd: Doubles = field(default_factory=lambda: np.zeros(0))
    of_random: Floats = field(default_factory=lambda: np.zeros((0, 0), np.float32))  # (n, k) of the random pairs
    copy_of_random: Rows = field(default_factory=lambda: np.zeros(0, np.int64))  # (n,) likewise, as `is_copy`

    @classmethod
    def of(
        cls, material: Material, signals: Sequence[Signal], random_pairs: PairRows, progress: Progress | None = None
    ) -> SignalTable:
        """Find the signals that the data allow, and measure them on random pairs.

        Args:
            material: what the audit knows.
            signals: to measure.
            random_pairs: pairs that are no known matches.
            progress: called with (label, done, of).
        """
        known, unknown = dict(enumerate(signals)), {}
        columns: dict[int, list[Floats]] = {index: [] for index in known}
        starts = range(0, max(len(random_pairs), 1), _CHUNK)
        for number, start in enumerate(starts):  # pairs outside, so that signals share cached values of pairs
            measure = measure_of(material, random_pairs.part(start, start + _CHUNK))
            for index, signal in list(known.items()):
                if progress:
                    progress("measuring signals", number * len(signals) + index, len(starts) * len(signals))
                try:
                    columns[index].append(measure(signal))
                except Missing as error:
                    del known[index]
                    unknown[signal.name()] = error.reason
        if progress:
            progress("measuring signals", len(starts) * len(signals), len(starts) * len(signals))
        weighed = {index: kept for index, kept in known.items() if kept.group != "copies"}
        copies = {index: kept for index, kept in known.items() if kept.group == "copies"}
        copy = np.zeros(len(random_pairs), np.int64)
        for index in copies:
            copy |= np.concatenate(columns[index]) > 0
        table = np.zeros((len(random_pairs), len(weighed)), np.float32)
        for column, index in enumerate(weighed):
            table[:, column] = np.concatenate(columns[index])
        mean, sd = _moments(table)
        return cls(material, tuple(weighed.values()), tuple(copies.values()), unknown, mean, sd, table, copy)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the signals with weights."""
        return tuple(signal.name() for signal in self.signals)

    def raw(self, pairs: PairRows, progress: Progress | None = None) -> Floats:
        """Return the raw signals of pairs, (n, k); NaN where a pair has no value."""
        table = np.empty((len(pairs), len(self.signals)), np.float32)
        for start in range(0, len(pairs), _CHUNK):
            measure = measure_of(self.material, pairs.part(start, start + _CHUNK))
            for column, signal in enumerate(self.signals):
                table[start : start + _CHUNK, column] = measure(signal)
            if progress:
                progress("signals of pairs", min(start + _CHUNK, len(pairs)), len(pairs))
        return table

    def standardise(self, raw: Floats) -> Doubles:
        """Return signals (n, k) in standard deviations above the mean of random pairs; 0 for NaN.

        If hardly any random pair has a signal, such as a name in common, matches are hundreds of deviations away. Their
        logarithm keeps them in order, and keeps one signal from deciding alone.
        """
        Z: Doubles = np.nan_to_num((raw.astype(np.float64) - self.mean) / self.sd)
        size = np.abs(Z)
        return np.where(size <= _LIMIT, Z, np.sign(Z) * _LIMIT * (1 + np.log(np.maximum(size, _LIMIT) / _LIMIT)))

    def is_copy(self, pairs: PairRows) -> Rows:
        """Return (n,) 1 where a signal of copies says so, else 0."""
        copy = np.zeros(len(pairs), np.int64)
        for start in range(0, len(pairs), _CHUNK):
            measure = measure_of(self.material, pairs.part(start, start + _CHUNK))
            for signal in self.copies:
                copy[start : start + _CHUNK] |= measure(signal) > 0
        return copy


def measure_of(material: Material, pairs: PairRows) -> Callable[[Signal], Floats]:
    """Return a function from a signal to its values of pairs (n,); of one set the mean of (a, b) and (b, a)."""
    if not material.relations.one_set:
        return lambda signal: signal.values(material, pairs)
    order = np.lexsort((pairs.left, pairs.right))  # by query: signals read its vector once for all of its pairs
    turned = PairRows(pairs.right[order], pairs.left[order])

    def of_both(signal: Signal) -> Floats:
        forwards, backwards = signal.values(material, pairs), np.empty(len(pairs), np.float32)
        backwards[order] = signal.values(material, turned)
        mean = np.where(
            np.isnan(forwards), backwards, np.where(np.isnan(backwards), forwards, (forwards + backwards) / 2)
        )
        return np.asarray(mean, np.float32)

    return of_both


def _moments(table: Floats) -> tuple[Doubles, Doubles]:
    """Return mean and standard deviation of each column, without NaN; a deviation of 1 for a constant column."""
    present = np.isfinite(table)
    number = np.maximum(present.sum(0), 1)
    mean = np.where(present, table, 0).sum(0, dtype=np.float64) / number
    sd = np.sqrt((np.where(present, table - mean, 0) ** 2).sum(0) / number)
    return mean, np.where(sd > 0, sd, 1.0)
