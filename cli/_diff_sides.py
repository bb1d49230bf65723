"""The two sides of `lossscope diff`: what was typed -> sources, objectives and sweeps of A and of B."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from lossscope.core.choices import Choice
from lossscope.errors import InputError

from ._options import Unit, usage
from ._output import notice
from ._running import is_typed
from ._sources import load_source, objectives_for
from ._sweep import SweepArguments, trained_choices, untyped

if TYPE_CHECKING:
    from lossscope.core.embedded import SplitEmbeddings
    from lossscope.core.types import Progress
    from lossscope.engine.paired_sweep import PairedSweep

# options of sweeps that diff has not, and why
_NOT_HERE = {
    "interval_groups": "its intervals are of queries, paired",
    "queries": "it reads all queries of both sides",
    "precision_of": "it reads all queries of both sides",
    "out": "it writes no frame; --format csv has the rows, --page a page",
    "per_query": "it writes no frame; --top lists single queries",
    "dims": "it compares whole embeddings",
    "guide": "it reads no third source",
}
_NOT_OF_EPOCHS = {
    "out": "it writes no frame; --format csv has the rows",
    "per_query": "it writes no frame",
    "dims": "it counts with whole embeddings",
    "guide": "it reads no other source",
    "top": "it lists no single queries",
    "show": "it lists no single queries",
    "audit": "it lists no single queries",
    "by": "it lists no single queries",
}


_B = "The other side, of one source"


@dataclass(frozen=True)
class OtherCondition:
    """How B is another than A, as typed; None: like A."""

    b_objective: Annotated[
        tuple[str, ...], Choice(_B, "Objective of B; give one for each of A.", names="objectives")
    ] = ()
    b_eps: Annotated[float | None, Choice(_B, "Threshold of B.")] = None
    b_mode: Annotated[
        Literal["eval", "train"] | None,
        Choice(_B, "Mode of B's model: train uses dropout and the statistics of each batch."),
    ] = None
    b_epoch: Annotated[int | None, Choice(_B, "Epoch of B, from the same run.", low=0)] = None

    @property
    def is_any(self) -> bool:
        """Whether anything is other."""
        return bool(self.b_objective) or any(
            condition is not None for condition in (self.b_eps, self.b_mode, self.b_epoch)
        )


@dataclass(frozen=True)
class Compared:
    """What is compared of both sides."""

    probes: Annotated[
        tuple[str, ...], Choice(None, "Probe, as NAME[:key=value,...]; repeat for several.", names="probes")
    ] = (
        "cocos",
        "similarity",
    )
    eps: Annotated[float | None, Choice(None, "Threshold of A, and of B without --b-eps.", shown="0.01")] = None
    unit: Unit = None
    epoch: Annotated[int | None, Choice(None, "Epoch of A, if A is a run folder.", shown="the best", low=0)] = None
    epochs: Annotated[
        bool, Choice(None, "Show the counts of every epoch of a run folder, with intervals.", flags="--epochs")
    ] = False

    def specs(self, other: OtherCondition | None = None) -> tuple[str, ...]:
        """Return the specs of the probes of A, or of B. Raises a usage error for a threshold that none has."""
        probes = self.probes if self.unit is None else probes_with(self.probes, "unit", self.unit, "--unit")
        if other is None or other.b_eps is None:
            return probes_with_eps(probes, self.eps, "--eps")
        return probes_with_eps(probes, other.b_eps, "--b-eps")


def require_sides(options: SweepArguments, other: OtherCondition) -> None:
    """Raise a usage error unless there are two sides: two sources, or one under another condition."""
    _refuse_typed(_NOT_HERE, "diff")
    if len(options.sources) > 2:
        raise usage(f"diff compares A with B; got {len(options.sources)} sources")
    if len(options.sources) == 1 and not other.is_any:
        raise usage(
            "diff needs B: a second source, or another condition of A, as --b-objective, --b-eps, --b-mode or --b-epoch"
        )
    if len(options.sources) == 2 and other.b_epoch is not None:
        raise usage("--b-epoch is for a single run folder; leave B out, or name the checkpoint of its epoch")


def require_epochs_alone(options: SweepArguments, compared: Compared, other: OtherCondition, page: Path | None) -> None:
    """Raise a usage error for options that --epochs has not."""
    if len(options.sources) != 1 or other.is_any or compared.epoch is not None or page is not None:
        raise usage("--epochs is for a single run folder; leave B, --epoch and --page out")
    _refuse_typed(_NOT_OF_EPOCHS, "diff --epochs")


def _refuse_typed(reasons: Mapping[str, str], what: str) -> None:
    for name, reason in reasons.items():
        if is_typed(name):
            raise usage(f"--{name.replace('_', '-')} is not of {what}: {reason}")


def source_paths(options: SweepArguments, epoch: int | None, other: OtherCondition) -> tuple[Path, Path]:
    """Return the paths of A and B. Raises InputError for an epoch that has no checkpoint."""
    a, b = options.sources[0], options.sources[-1]
    of_b = other.b_epoch if other.b_epoch is not None else epoch if a == b else None
    return epoch_path(a, epoch), epoch_path(b, of_b)


def epoch_path(run: Path, epoch: int | None) -> Path:
    """Return the checkpoint of an epoch of a run folder; None: what was named itself."""
    from lossscope.io.run_folder import Run, list_checkpoints

    if epoch is None:
        return run
    path = Run(run).epoch(epoch)
    if not path.is_file():
        known = ", ".join(str(number) for number, _ in list_checkpoints(run))
        raise InputError(f"{run} must be a run folder with a checkpoint of epoch {epoch}; it has {known or 'none'}")
    return path


def load_side(path: Path, options: SweepArguments, report: Progress | None, mode: str | None) -> SplitEmbeddings:
    """Return the split of one side."""
    request = options.source_request
    if mode == "train":
        size = options.sweep.batch_size or 256
        request = replace(request, mode="train", mode_seed=options.sweep.seed, batch_size=size)
    return load_source(path, request, report)


def probes_with_eps(probes: Sequence[str], eps: float | None, option: str) -> tuple[str, ...]:
    """Return specs of probes with a threshold. Raises a usage error where none has one."""
    if eps is None:
        from lossscope.registry import build, spec_of

        return tuple(spec_of(build("probes", probe)) for probe in probes)
    if not 0 <= eps < float("inf"):
        raise usage(f"{option} must be a finite number >= 0; got {eps:g}")
    return probes_with(probes, "eps", repr(eps), option)


def probes_with(probes: Sequence[str], field: str, value: str, option: str) -> tuple[str, ...]:
    """Return specs of probes, those that have the field with this value. Raises a usage error where none has it."""
    from lossscope.registry import build, spec_of
    from lossscope.spec import Spec

    built = [build("probes", probe) for probe in probes]
    if not any(hasattr(probe, field) for probe in built):
        raise usage(f"{option} is for probes that count, such as cocos; got {', '.join(probes)}")
    specs = [Spec.parse(spec_of(probe)) for probe in built]
    for probe, spec in zip(built, specs, strict=True):
        if hasattr(probe, field):
            spec.values[field] = value
    return tuple(map(str, specs))


def require_column(by: str, objectives: Sequence[str], probes: Sequence[str]) -> None:
    """Raise a usage error for --by, where probes show beforehand that no query has such a number."""
    from lossscope.engine.changed_queries import known_columns

    known = known_columns(tuple(objectives or ("triplet",)), tuple(probes))
    if known is not None and by not in known:
        raise usage(f"--by must be one of {', '.join(known) or 'no numbers of these probes'}; got {by!r}")


def paired_sweep(
    options: SweepArguments,
    compared: Compared,
    other: OtherCondition,
    a: SplitEmbeddings,
    b: SplitEmbeddings,
    per_query: bool,
) -> PairedSweep:
    """Return the sweeps of both sides, whose batches are made in one way: as A was trained, unless typed."""
    from lossscope.engine.options import trained_options
    from lossscope.engine.paired_sweep import PairedSweep

    trained = trained_choices(a, options.sweep, silent=True)
    if untyped(trained_options(a.recipe, a.name)) != untyped(trained_options(b.recipe, b.name)):
        notice(f"Note: both sides take the training batches of {a.name}; {b.name} trained with others.")
    typed = options.sweep.objectives
    of_a = objectives_for(typed, a.objective or b.objective, options.sources[0])
    if other.b_objective:
        of_b = objectives_for(other.b_objective, None, options.sources[-1])
    elif not typed and b.objective is not None:
        of_b = objectives_for((), b.objective, options.sources[-1])
    else:
        of_b = of_a
    first, second = (
        replace(options.sweep_of(objectives, probes=probes, **trained), per_query=per_query)
        for objectives, probes in ((of_a, compared.specs()), (of_b, compared.specs(other)))
    )
    return PairedSweep(first, second)


def paired_record(sweeps: PairedSweep, a: SplitEmbeddings, b: SplitEmbeddings, data: str | None) -> dict[str, Any]:
    """Return what was measured, as frames record it: the options of the sweep, those of B, and both fingerprints."""
    from lossscope.io.plugin_fingerprints import plugin_fingerprints, plugins_entry

    first, second = sweeps.first.record(), sweeps.second.record()
    plugins = (*sweeps.first.objectives, *sweeps.second.objectives, *sweeps.first.probes)
    return {
        **first,
        "b_objectives": second["objectives"],
        "b_probes": second["probes"],
        "origin": a.fingerprint,
        "b_origin": b.fingerprint,
        "data": data,
        **plugins_entry(plugin_fingerprints(plugins)),
    }


def in_words(record: Mapping[str, Any]) -> dict[str, str]:
    """Return a record as a page shows it: lists joined with commas, without what is None or empty."""
    joined = {
        name: ", ".join(map(str, value)) if isinstance(value, list | tuple) else "" if value is None else str(value)
        for name, value in record.items()
    }
    return {name.replace("_", " "): text for name, text in joined.items() if text}
