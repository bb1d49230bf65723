"""Which probes: by name, all there are, or the cheap ones; and which of them can look at a source."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from lossscope.core.embedded import SplitEmbeddings
from lossscope.errors import InputError
from lossscope.probes.base import Probe
from lossscope.registry import build, load, names, spec_of

from .plan import Sweep

GROUPS = ("all", "cheap")


@dataclass(frozen=True)
class Selection:
    """named: specs that must be able to look. offered: specs that look where they can."""

    named: tuple[str, ...]
    offered: tuple[str, ...] = ()

    @classmethod
    def of(cls, words: Sequence[str]) -> Selection:
        """Specs are named, `all` and `cheap` are offered. Raises SpecError for what is neither."""
        named = tuple(dict.fromkeys(spec_of(build("probes", word)) for word in words if word not in GROUPS))
        known = {name: load("probes", name) for name in names("probes")} if set(words) & set(GROUPS) else {}
        group = [name for name, probe in known.items() if "all" in words or probe.cheap]
        offered = (spec_of(build("probes", name)) for name in group)
        return cls(named, tuple(spec for spec in offered if spec not in named))

    @property
    def needs_objective(self) -> bool:
        """Whether any of them looks at an objective."""
        probes: list[Probe] = [build("probes", spec) for spec in (*self.named, *self.offered)]
        return any(probe.needs_objective for probe in probes)

    def fitting(self, sweep: Sweep, embedded: SplitEmbeddings) -> tuple[Sweep, list[str]]:
        """The sweep with all that can look at the source and its objectives, and why others of those offered can not.

        Raises InputError for objectives, or named probes, that can not be swept; or when nothing is left.
        """
        replace(sweep, probes=self.named).plans()
        kept, left = list(self.named), []
        for spec in self.offered:
            try:
                replace(sweep, probes=(spec,)).tried(embedded)
                kept.append(spec)
            except InputError as error:
                left.append(f"{spec.partition(':')[0]} is left out: {error}")
        if not kept:
            raise InputError(f"one probe at least must be able to look at {embedded.name}; {'; '.join(left)}")
        return replace(sweep, probes=tuple(kept)), left
