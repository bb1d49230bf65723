"""Build the probes, objectives, batches and parts of a sweep from its options, once."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from itertools import product

import pandas as pd

from lossscope.core.batches import Sampling
from lossscope.core.embedded import SplitEmbeddings
from lossscope.core.masks.base import NegativeMask
from lossscope.core.relations import Relations
from lossscope.core.sides import plural
from lossscope.core.types import SamplingMode
from lossscope.errors import InputError, OptionError
from lossscope.io.frames import reported_statistics
from lossscope.objectives.base import Objective
from lossscope.objectives.counting.units import answer_unit
from lossscope.objectives.custom.as_objective import as_objective
from lossscope.probes.base import Probe, Statistic
from lossscope.registry import build, short_spec, spec_of

from .false_negatives import build_rule
from .options import SweepOptions
from .reducers import REDUCERS
from .run_probes import in_unit
from .workers import ALONE, Workers

_IN_COSINES = (
    "weights are dL/ds itself (unit cosine), as a loss among these has no saturated weight; --unit paper counts in the "
    "papers' units, which differ"
)
_OTHER_NAMES = {"same_image": "same_item"}  # statistic -> its name if the source has no images
_MINED_WORDS = {"batch": "mined", "own": "own mined", "none": "no mined"}
_ONE, _MANY = 2, 4  # items of a class in a batch: for objectives that take one positive, and for others

# entries of S of a part, at most: for batches of pairs with cheap probes and counts that follow from sums, for any
# others, and for sources that run a model on every batch
_CHEAP_ENTRIES, _ENTRIES, _SLOW_ENTRIES = 1 << 24, 1 << 20, 1 << 18


@dataclass(frozen=True)
class Batching:
    """A way of making batches, and the objectives that take them."""

    sampling: Sampling
    objectives: tuple[Objective, ...]


@dataclass(frozen=True)
class SweepPlan:
    """The objects behind the options of a sweep, built once."""

    options: SweepOptions
    probes: tuple[Probe, ...]
    objectives: tuple[Objective, ...]
    masks: tuple[NegativeMask, ...]
    relations: Relations | None = None  # of the source, if known: they decide what a batch is made of
    batchings: tuple[Batching, ...] = field(init=False)
    assumed: tuple[str, ...] = field(init=False)  # assumptions to report, as sentences without a full stop

    def __post_init__(self) -> None:
        if not self.objectives:
            raise InputError("a sweep must have an objective, which also states the content of a batch; got none")
        unit = answer_unit(self.objectives)
        probes = tuple(dict.fromkeys(in_unit(probe, unit) for probe in self.probes))
        assumed = (_IN_COSINES,) if unit == "cosine" and probes != self.probes else ()
        object.__setattr__(self, "assumed", assumed)
        object.__setattr__(self, "probes", probes)
        if self.options.terms:
            from .terms import require_terms

            require_terms(self.options.terms, self.objectives, self.probes)
        if self.options.is_sample:
            _require_sample(self.options, self.objectives, self.probes)
        object.__setattr__(self, "batchings", self._batchings())

    def for_relations(self, relations: Relations) -> SweepPlan:
        """Return the plan for a source; a labelled set has batches of classes.

        Raises InputError for options that do not fit the source. An example is the convention of published counters,
        which needs images and captions.
        """
        self._require_two_sides(relations)
        self._require_enough(relations)
        released = [probe for probe in self.probes if getattr(probe, "convention", None) == "released"]
        if released and not relations.sides.is_image_text:
            raise InputError(
                "convention released repeats counters of images and captions, which have no meaning for "
                f"{relations.sides.text}; take corrected"
            )
        plan = copy(self)  # shares the objects, and does not validate the options again
        for name in vars(self).keys() - {f.name for f in fields(self)}:  # cached results that depend on the relations
            del vars(plan)[name]
        object.__setattr__(plan, "relations", relations)
        object.__setattr__(plan, "batchings", plan._batchings())
        return plan

    @classmethod
    def of(cls, options: SweepOptions) -> SweepPlan:
        """Build the probes and objectives of the specs.

        Raises SpecError for an invalid spec, InputError for an objective that does not fit the options.
        """
        probes = tuple(build("probes", spec) for spec in options.probes)
        masks = tuple(build_rule(spec) for spec in options.masks)
        if options.guide is not None and not any(mask.needs == "guide" for mask in masks):
            raise OptionError("--guide needs a rule that reads it; add --mask gist")
        return cls(options, probes, tuple(as_objective(objective) for objective in options.objectives), masks)

    def _require_enough(self, relations: Relations) -> None:
        """Raise InputError if no query has both a positive and a negative under the labels."""
        if relations.one_set and relations.shared_classes < (1 if relations.number_of_classes > 1 else 2):
            name = plural(relations.sides.first)
            raise InputError(
                f"labels must have a class of 2 {name} or more, and another class; got {relations.number_of_classes} "
                f"classes, {relations.shared_classes} of them with 2 {name} or more"
            )

    def _require_two_sides(self, relations: Relations) -> None:
        """Raise InputError if a probe compares two sides and the items are one set."""
        if not (relations.one_set or self.options.sampling == "views"):
            return
        for probe in self.probes:
            if getattr(probe, "compares_sides", False):
                raise InputError(
                    f"{short_spec(probe)} compares two sides; the items here are one set. Leave it out, or take "
                    "--sampling pairs where the source has two sides"
                )

    def with_probes(self, probes: tuple[Probe, ...]) -> SweepPlan:
        """Return the plan of the same objectives with other probes."""
        options = replace(self.options, probes=tuple(spec_of(probe) for probe in probes))
        return replace(self, options=options, probes=probes)

    def with_batches_of_two(self) -> SweepPlan:
        """Return the plan for batches of two pairs or images in file order, which are enough to test a probe."""
        classes = self.options.sampling == "classes" or (self.relations is not None and self.relations.one_set)
        size = 2 * (self.options.per_class or _MANY) if classes else 2
        options = replace(
            self.options, batch_size=size, shuffle=False, drop_last=False, per_query=False, masks=(),
            interval=None, interval_groups=None,
            queries=None, precision_of=None,
        )  # fmt: skip
        return replace(self, options=options, masks=())

    def workers(self, embedded: SplitEmbeddings, jobs: int) -> Workers:
        """Return the threads that share the work; one thread for foreign classes, for a model, and on a GPU."""
        parts = (*self.objectives, *self.probes, *self.masks)
        ours = all(type(part).__module__.startswith("lossscope.") for part in parts)
        has_state = any(
            ".custom." in type(objective).__module__ or objective.network() is not None for objective in self.objectives
        )
        has_model = embedded.pair_scorer is not None or any("gradients" in probe.reads for probe in self.probes)
        on_cpu = embedded.device.type == "cpu"
        return Workers(jobs) if ours and on_cpu and not has_state and not has_model else ALONE

    def parts(self, batching: Batching, embedded: SplitEmbeddings) -> dict[str, tuple[int, int]]:
        """Return the key of every part of a frame -> its first batch and its number of batches."""
        total, size = batching.sampling.count(embedded.relations), self._part_size(batching, embedded)
        sizes = [(start, min(size, total - start)) for start in range(0, total, size)]
        sampling = batching.sampling
        mode = f"classes{sampling.per_class}" if sampling.mode == "classes" else sampling.mode
        return {f"{mode}-{start}-{number}": (start, number) for start, number in sizes}

    def sampling_label(self, batching: Batching) -> str:
        """Return the column `sampling` of rows: the mode, and every choice that differs from the default."""
        options, mode = self.options, batching.sampling.mode
        in_groups = mode == "classes" and options.batch_size is not None
        label = f"{mode} of {batching.sampling.per_class}" if in_groups else mode
        has_mined = self.relations is not None and self.relations.negatives is not None
        if has_mined and mode not in ("views", "classes"):
            label += f", {_MINED_WORDS[options.negatives]} negatives"
            label += "" if options.mined is None else f", {options.mined} mined"
        label += f", terms {'+'.join(options.terms)}" if options.terms else ""
        return label + (f", mask {'+'.join(short_spec(rule) for rule in self.masks)}" if self.masks else "")

    def batch_size_of(self, batching: Batching) -> int | None:
        """Return the batch size that rows state; batches of classes are smaller if the source has too few classes."""
        size, relations = self.options.batch_size, self.relations
        if batching.sampling.mode != "classes" or size is None or relations is None:
            return size
        return min(size, relations.shared_classes * batching.sampling.per_class)

    @property
    def needs_matrix(self) -> bool:
        """Whether rules, further candidates or negatives of single queries need the whole matrix of a batch."""
        return bool(self.masks or self.options.terms) or self.options.negatives == "own"

    @cached_property
    def units(self) -> dict[str, str]:
        """Unit of every statistic, in an order that keeps the order of each objective as far as possible."""
        units: dict[str, str] = {}
        order: list[str] = []
        for objective in self.objectives:
            position = 0
            for statistic in (entry for probe in self.probes for entry in probe.statistics(objective)):
                if statistic.reducer == "curve":
                    continue
                name = self.name_of(statistic.name)
                if name not in units:
                    order.insert(position, name)
                    units[name] = statistic.unit
                position = order.index(name) + 1
        return {name: units[name] for name in order}

    def name_of(self, statistic: str) -> str:
        """Return the name of a statistic under the source's sides: `same_item` unless they are images and texts."""
        is_image_text = self.relations is None or self.relations.sides.is_image_text
        return statistic if is_image_text else _OTHER_NAMES.get(statistic, statistic)

    @cached_property
    def statistics(self) -> tuple[Statistic, ...]:
        """Every statistic of every probe under every objective."""
        pairs = product(self.objectives, self.probes)
        return tuple(statistic for objective, probe in pairs for statistic in probe.statistics(objective))

    @cached_property
    def totals(self) -> frozenset[str]:
        """Statistics of a whole batch, not means over its queries."""
        return frozenset(of.name for of in self.statistics if REDUCERS[of.reducer].is_total)

    @cached_property
    def within_one(self) -> frozenset[str]:
        """Statistics that lie between 0 and 1 for any data."""
        return frozenset(self.name_of(of.name) for of in self.statistics if of.within_one)

    def units_of(self, rows: pd.DataFrame) -> dict[str, str]:
        """Return the units of all statistics in rows of batches; only the rows name the layers of a model."""
        reported = frozenset[str]().union(*reported_statistics(rows)[0])
        names = (name for name in rows if name in reported - self.units.keys())
        layers = [name for name in names if pd.api.types.is_numeric_dtype(rows[name])]
        return {**self.units, **dict.fromkeys(layers, "norm")}

    def _batchings(self) -> tuple[Batching, ...]:
        """Return the ways of batching that the objectives need. Raises InputError for an objective that fits none."""
        by_mode: dict[tuple[SamplingMode, int], list[Objective]] = {}
        needs_objective = any(probe.needs_objective for probe in self.probes)
        for objective in self.objectives:
            mode = self.options.sampling or self._natural_mode(objective)
            usual = _MANY if objective.traits.positives == "many" else _ONE
            per_class = self.options.per_class or usual if mode == "classes" else _MANY
            objectives = by_mode.setdefault((mode, per_class), [])
            if not needs_objective:  # objectives only say how batches are made, where no option does
                continue
            if mode in ("images", "groups") and objective.traits.positives == "one":
                raise InputError(
                    f"--sampling {mode} gives each query several positives, which {spec_of(objective)} does not take; "
                    f"use --sampling pairs, or leave it out{_choice_of_positive(objective)}"
                )
            if (
                mode == "classes"
                and objective.traits.positives == "one"
                and (self.options.batch_size is None or per_class > 2)
            ):
                size = "--batch-size all" if self.options.batch_size is None else f"--per-class {per_class}"
                raise InputError(
                    f"{size} gives each item several positives, which {spec_of(objective)} does not take; its batches "
                    f"are of 2 items of a class{_choice_of_positive(objective)}"
                )
            for probe in self.probes:
                probe.check(objective)
            objectives.append(objective)
        return tuple(Batching(self._sampling_of(*key), tuple(members)) for key, members in by_mode.items())

    def _natural_mode(self, objective: Objective) -> SamplingMode:
        """Return how to make batches if no option says it."""
        if self.relations is not None and self.relations.one_set:
            return "classes"
        if objective.traits.positives == "one":
            return "pairs"
        return "images" if self.relations is None or self.relations.sides.is_image_text else "groups"

    def _sampling_of(self, mode: SamplingMode, per_class: int) -> Sampling:
        options = self.options
        return Sampling(
            mode, options.batch_size, options.seed, options.shuffle, options.drop_last, options.captions,
            negatives=options.negatives, mined=options.mined, per_class=per_class,
        )  # fmt: skip

    def _part_size(self, batching: Batching, embedded: SplitEmbeddings) -> int:
        """Return the batches of a part; slow batches make small parts, so that a killed sweep loses little."""
        if self.options.batch_size is None:
            return 1
        from_sums = all(objective.counting_rule is not None for objective in self.objectives)
        cheap = (
            batching.sampling.mode not in ("images", "groups")
            and not self.needs_matrix
            and from_sums
            and all(probe.cheap for probe in self.probes)
        )
        slow = embedded.pair_scorer is not None or any("gradients" in probe.reads for probe in self.probes)
        entries = _SLOW_ENTRIES if slow else _CHEAP_ENTRIES if cheap else _ENTRIES
        return max(min(self.options.part, entries // self.options.batch_size**2), 1)


def _require_sample(options: SweepOptions, objectives: Sequence[Objective], probes: Sequence[Probe]) -> None:
    """Raise InputError for options, objectives and probes that need all queries, or more than a query's row of S."""
    wrong = {
        "--batch-size all": options.batch_size is not None,
        "no --mask": bool(options.masks),
        "no --terms": bool(options.terms),
        "--negatives batch or none": options.negatives == "own",
        "engine auto": options.engine != "auto",
    }
    if any(wrong.values()):
        needed = " and ".join(name for name, is_wrong in wrong.items() if is_wrong)
        raise InputError(f"a sample of queries meets all candidates, so it needs {needed}")
    from .sampled.requirements import require_probes_of_queries

    require_probes_of_queries(objectives, probes, "--queries")


def _choice_of_positive(objective: Objective) -> str:
    """Return how an objective of one positive takes several, for a message; empty where it cannot."""
    if not hasattr(objective, "positive"):
        return ""
    return f", or write {spec_of(objective)},positive=hardest, random or all"
