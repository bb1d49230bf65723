"""Commands that sweep sources: what they share, and the work."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from lossscope.core.choices import OUTPUT, SOURCE, Choice
from lossscope.core.request import Request
from lossscope.engine.options import SweepOptions

from . import _processes
from ._app import Work
from ._options import Format, Jobs, Sources, usage
from ._output import notice, print_results
from ._progress import progress
from ._running import is_typed, silent
from ._shown import Audit, Show, all_queries, print_shown
from ._sources import OF_TRAIN, join_splits, load_source, objectives_for, open_frame

if TYPE_CHECKING:
    import pandas as pd

    from lossscope.core.embedded import SplitEmbeddings
    from lossscope.core.types import Progress
    from lossscope.engine.heaviest_negatives import HeaviestNegatives
    from lossscope.engine.selection import Selection
    from lossscope.engine.sweep import Sweep
    from lossscope.objectives.base import Objective

SWEEP_WORK = Work(processes=True, keeps=True, imports="lossscope.engine.sweep", verbose=True)
_ACROSS = 10  # statistics of one probe that stand side by side
_OF_TRAINING = {"negatives": ("negatives",), "mined": ("mined", "negatives"), "masks": ("mask",)}
"""Option that a recipe states -> those that replace it where they are typed."""


def _read_widths(text: str) -> tuple[int | None, ...]:
    """Read --dims: widths with commas, `full` as None."""
    words = [word.strip() for word in text.split(",")]
    known = all(word == "full" or (word.isdecimal() and int(word) >= 1) for word in words)
    widths = tuple(None if word == "full" else int(word) for word in words) if known else ()
    if not known or len(set(widths)) < len(widths):
        raise usage(f"--dims must be different widths with commas, as 64,128,full; got {text!r}")
    return widths


@dataclass(frozen=True)
class SweepArguments:
    """The options of every sweep, as they are typed."""

    sources: Sources
    request: Request = OF_TRAIN
    dims: Annotated[
        tuple[int | None, ...],
        Choice(SOURCE, "Numbers of first dimensions to keep, such as 64,128,full.", shown=False, read=_read_widths),
    ] = (None,)
    sweep: SweepOptions = SweepOptions()  # noqa: RUF009 - never changed
    audit: Audit = None
    show: Show = None
    per_query: Annotated[bool, Choice(OUTPUT, "Keep a row per query in the --out frame.", flags="--per-query")] = False
    out: Annotated[Path | None, Choice(OUTPUT, "Frame folder to write; the same command resumes it.")] = None
    format: Format = "table"
    jobs: Jobs = None

    def options(self, **more: Any) -> SweepOptions:
        """Return the options of the sweep: a sample has one batch, rules have their canonical specs.

        Args:
            more: options that are none of the command line, or in place of those that were typed.
        """
        if self.per_query and self.out is None:
            raise usage("--per-query needs --out, the frame that keeps the rows")
        from lossscope.engine.false_negatives import build_rule
        from lossscope.registry import spec_of

        masks = tuple(spec_of(build_rule(spec)) for spec in self.sweep.masks)
        whole = self.sweep.is_sample and not is_typed("batch_size")
        batch_size = None if whole else self.sweep.batch_size
        resolved = {"masks": masks, "batch_size": batch_size, "per_query": self.per_query}
        return replace(self.sweep, **{**resolved, **more})

    def sweep_of(self, objectives: tuple[str, ...], **options: Any) -> Sweep:
        """Return the sweep under these objectives.

        Args:
            objectives: canonical specs.
            options: of the sweep, in place of those that were typed.
        """
        from lossscope.engine.sweep import Sweep

        return Sweep(**vars(self.options(objectives=objectives, **options)))

    def listing(self) -> HeaviestNegatives | None:
        """Return what lists queries, as far as it is known before sources are read; None without --show.

        Raises a usage error for --audit alone.
        """
        if self.show is None:
            if self.audit is not None:
                raise usage("--audit marks the negatives that --show lists; add --show 10")
            return None
        from lossscope.engine.heaviest_negatives import HeaviestNegatives

        listing = HeaviestNegatives(self.sweep_of(()), self.audit)
        _ = listing.known  # a file that is no audit is refused now
        return listing

    @property
    def source_request(self) -> Request:
        """How sources are read: shards when their rows are needed, where queries are sampled."""
        return replace(self.request, sharded=self.sweep.is_sample)


@dataclass(frozen=True)
class SweptRows:
    """The numbers of all sources; of many processes the first one has all of them."""

    summary: pd.DataFrame  # summary rows
    batches: pd.DataFrame  # rows of batches
    shown: pd.DataFrame  # rows of the queries that --show lists
    split: str | None  # of the sources
    audit_status: str = ""  # what the probabilities of --audit are; empty without one


def run_sweep(arguments: SweepArguments, name: str, selection: Selection) -> SweptRows:
    """Return the numbers of every source.

    `name` is the command, for its frames.
    """
    import pandas as pd

    from lossscope.core.distributed import process_group
    from lossscope.io.frames import join

    typed: Sweep | None = None
    if arguments.sweep.objectives:  # refuse what cannot work before anything is encoded
        objectives = objectives_for(arguments.sweep.objectives, None, arguments.sources[0])
        typed = arguments.sweep_of(objectives, probes=selection.required)
        _ = typed.plan
    else:
        _ = arguments.options()
    listing = arguments.listing()
    splits: list[str | None] = []
    results: list[Any] = []
    shown: list[pd.DataFrame] = []
    lacking: dict[str, None] = {}
    is_alone = typed or len(arguments.sources) == 1 or not selection.needs_objective
    others = () if is_alone else _objectives_of_sources(arguments)
    with progress() as report:
        guide = _load_guide(arguments, report)
        for number, source in enumerate(arguments.sources):
            whole = load_source(source, arguments.source_request, report)
            splits.append(whole.split)
            objectives = objectives_for(
                arguments.sweep.objectives, whole.objective, source, silent=not selection.needs_objective
            )
            trained = trained_choices(whole, arguments.sweep)
            for width in arguments.dims:
                whole.require_prefix(width)
            for width in arguments.dims:
                embedded = whole if width is None else whole.prefix(width)
                sweep = arguments.sweep_of(objectives, probes=selection.required, **trained)
                sweep, left_out = selection.fit(typed if typed == sweep else sweep, embedded)  # whose plan is built
                sweep = sweep.beside(others)
                sweep.require_possible(embedded, guide)
                if listing is not None:
                    listing = replace(listing, sweep=sweep)
                    listing.require_possible(embedded)
                for reason in dict.fromkeys((*left_out, *sweep.plan.assumed)):
                    notice(f"Note: {reason}.")
                folder = _frame_folder(arguments, number, width)
                writes, frame = _processes.writes_results(), None
                if writes and folder is not None:
                    frame = open_frame(folder, name, source, sweep, embedded, guide, arguments.request.data)
                result = sweep.run(embedded, frame, report, process_group(), guide, arguments.jobs)
                results.append(result)
                if writes and result.without_interval:
                    lacking.setdefault(result.without_interval)
                if writes and listing is not None and arguments.show is not None:
                    with all_queries(folder) as on_rows:
                        shown.append(listing.most_and_least(embedded, arguments.show, guide, report, on_rows))
    for text in lacking:
        notice(f"Note: no interval: {text}.")
    summary = join(result.summary for result in results)
    batches = pd.concat([result.batches for result in results], ignore_index=True)
    listed = pd.concat(shown, ignore_index=True) if shown else pd.DataFrame()
    return SweptRows(summary, batches, listed, join_splits(splits), "" if listing is None else listing.status)


def _objectives_of_sources(arguments: SweepArguments) -> tuple[Objective, ...]:
    """Return what all sources were trained with: they are counted in one unit, before the first one is read."""
    from lossscope.registry import build
    from lossscope.sources.base import trained_objective

    request = arguments.source_request
    trained = [(source, trained_objective(source, request)) for source in arguments.sources]
    specs = (spec for source, spec in trained for spec in objectives_for((), spec, source, silent=True))
    return tuple(build("objectives", spec) for spec in specs)


def untyped(trained: Mapping[str, Any]) -> dict[str, Any]:
    """Return those options of a recipe in whose place none was typed."""
    return {name: value for name, value in trained.items() if not any(map(is_typed, _OF_TRAINING[name]))}


def trained_choices(embedded: SplitEmbeddings, options: SweepOptions, silent: bool = False) -> dict[str, Any]:
    """Return the options of mined negatives and rules that a run was trained with, where none were typed; say which.

    Args:
        embedded: of the run.
        options: of the sweep: batches of views and of classes have no mined negatives.
        silent: give no notice.
    """
    from lossscope.engine.options import trained_options

    trained = untyped(trained_options(embedded.recipe, embedded.name))
    if options.sampling in ("views", "classes"):
        trained = {name: value for name, value in trained.items() if name == "masks"}
    if trained and not silent:
        stated = ", ".join(f"{name} {'+'.join(v) if isinstance(v, tuple) else v}" for name, v in trained.items())
        other = "--negatives batch or --mask none says otherwise"
        notice(f"Note: batches are as in the training of {embedded.name}: {stated}; {other}.")
    return trained


def _frame_folder(arguments: SweepArguments, number: int, width: int | None) -> Path | None:
    """Return the folder of one frame: that of --out, or one in it where there are several."""
    folder = arguments.out
    if folder is None:
        return None
    if len(arguments.sources) > 1:
        folder = folder / f"{number:02d}-{arguments.sources[number].stem}"
    return folder if len(arguments.dims) == 1 else folder / f"dims-{width or 'full'}"


def _load_guide(arguments: SweepArguments, report: Progress | None) -> SplitEmbeddings | None:
    """Return the embeddings of --guide, of the split that the sources are of; None without one."""
    if arguments.sweep.guide is None:
        return None
    request = replace(arguments.source_request, encoder=(), accepted_options=())
    with silent():
        return load_source(Path(arguments.sweep.guide), request, report)


def print_summary(arguments: SweepArguments, swept: SweptRows, command: Mapping[str, Any]) -> None:
    """Write summary rows in the format that --format names, and the queries that --show lists."""
    rows = swept.summary

    def tables() -> Any:
        if rows["probe"].nunique() == 1 and rows["statistic"].nunique() <= _ACROSS:
            from lossscope.tables import statistics

            return statistics.build(rows, str(rows["probe"].iloc[0]))
        from lossscope.tables import probes

        return probes.build(rows)

    sources = [str(source) for source in arguments.sources]
    if "unit" in command:  # that the rows are in, where none was typed
        command = {**command, "unit": command["unit"] or ", ".join(rows["weight_unit"].dropna().unique())}
    named = {"name": command["name"], "sources": sources, "split": swept.split}
    more: dict[str, Any] = {}
    if arguments.show is not None:
        from lossscope.engine.heaviest_negatives import document

        more = {"shown": document(swept.shown), **({"audit": swept.audit_status} if swept.audit_status else {})}
    print_results(rows, tables, {**named, **command}, arguments.format, more=more)
    print_shown(swept.shown, arguments.format, swept.audit_status, arguments.out)
