"""Which probes and objectives? Select them by name, by group, or from the source's training; drop unusable probes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from lossscope.core.embedded import SplitEmbeddings
from lossscope.errors import InputError
from lossscope.probes.base import Probe
from lossscope.registry import build, expand, load, names, spec_of

from .sweep import Sweep, require_probes_work

GROUPS = ("all", "cheap")
USUAL_OBJECTIVES = ("triplet", "triplet-sh", "ntxent")  # of the COCOS paper, for sources that name no objective


@dataclass(frozen=True)
class Selection:
    """Specs of probes."""

    required: tuple[str, ...]  # must work on the source
    optional: tuple[str, ...] = ()  # left out if they do not work on the source

    @classmethod
    def of(cls, words: Sequence[str]) -> Selection:
        """Read specs, whose probes are required, and `all` and `cheap`, whose probes are optional.

        Raises SpecError for any other word.
        """
        required = tuple(dict.fromkeys(spec_of(build("probes", word)) for word in words if word not in GROUPS))
        classes = {name: load("probes", name) for name in names("probes")} if set(words) & set(GROUPS) else {}
        group = [name for name, probe in classes.items() if "all" in words or probe.cheap]
        optional = (spec_of(build("probes", name)) for name in group)
        return cls(required, tuple(spec for spec in optional if spec not in required))

    @property
    def needs_objective(self) -> bool:
        """Whether a probe depends on an objective."""
        probes: list[Probe] = [build("probes", spec) for spec in (*self.required, *self.optional)]
        return any(probe.needs_objective for probe in probes)

    def fit(self, sweep: Sweep, embedded: SplitEmbeddings) -> tuple[Sweep, list[str]]:
        """Return the sweep with every probe that works on the source, and the reasons for leaving out the others.

        Raises InputError if objectives and required probes do not fit each other, or if no probe is left.
        """
        sweep = sweep if sweep.probes == self.required else replace(sweep, probes=self.required)
        plan = sweep.plan
        kept, reasons = list(self.required), []
        for spec in self.optional:
            probe, name = build("probes", spec), spec.partition(":")[0]
            if sweep.is_sample and probe.axis != "query":
                reasons.append(f"{name} is left out: it has no number of a single query, which a sample needs")
                continue
            try:
                require_probes_work(plan.with_probes((probe,)), embedded)
                kept.append(spec)
            except InputError as error:
                reasons.append(f"{name} is left out: {error}")
        if not kept:
            raise InputError(f"at least one probe must work on {embedded.name}; {'; '.join(reasons)}")
        return sweep if not self.optional else replace(sweep, probes=tuple(kept)), reasons


def objective_specs(given: Sequence[str] | None, trained_with: str | None) -> tuple[str, ...]:
    """Return canonical specs: as given, ranges expanded; else as the source was trained; else USUAL_OBJECTIVES.

    A stored spec may name a Python file: call `require_trusted` first.
    """
    specs = given or ([trained_with] if trained_with else USUAL_OBJECTIVES)
    expanded = (objective for spec in specs for objective in expand("objectives", spec))
    return tuple(dict.fromkeys(spec_of(build("objectives", spec)) for spec in expanded))
