"""Commands that sweep a source: their options, and the work."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from lossscope.core.types import MinedNegatives

from . import _processes
from ._options import (
    OUTPUT,
    SOURCE,
    AcceptOptions,
    CaptionImage,
    DataSpec,
    Debug,
    Device,
    EncoderOptions,
    Format,
    Jobs,
    NoCache,
    Objectives,
    Quiet,
    Seed,
    SidesOption,
    Sources,
    SplitName,
    TrustCode,
    Verbose,
    VocabularyFile,
    complete_names,
    parse_batch_size,
    parse_dims,
    parse_interval,
    typed_alone,
    usage,
)
from ._output import notice, print_results
from ._progress import progress
from ._sources import load_source, objectives_for, open_frame
from ._typed import is_typed

if TYPE_CHECKING:
    import pandas as pd

    from lossscope.core.embedded import SplitEmbeddings
    from lossscope.core.types import Progress
    from lossscope.engine.selection import Selection

SWEEP = "lossscope.engine.sweep"  # module that all of them need
_ACROSS = 10  # statistics of one probe that stand side by side
_BATCHES = "Batches"
_SAMPLE = "Samples of huge sets"
_INTERVALS = "Intervals"


@dataclass(frozen=True)
class SweepArguments:
    """The options of every sweep, as they are typed."""

    sources: Sources
    objective: Objectives = None
    data: DataSpec = None
    split: SplitName = "train"
    batch_size: Annotated[str, typer.Option(help="Pairs or images of a batch, or `all`.", rich_help_panel=_BATCHES)] = (
        "128"
    )
    sampling: Annotated[
        Literal["pairs", "images", "groups", "classes", "views"] | None,
        typer.Option(
            help="What a batch is made of: pairs; images, or groups of any two sides, with all their positives; P "
            "classes x K items of a labelled set; both views of pairs, each a query.",
            show_default="what objectives need",
            rich_help_panel=_BATCHES,
        ),
    ] = None
    negatives: Annotated[
        MinedNegatives,
        typer.Option(
            help="Mined negatives are candidates of the whole batch, of their own query alone, or left out.",
            rich_help_panel=_BATCHES,
        ),
    ] = "batch"
    mined: Annotated[
        int | None,
        typer.Option(help="Mined negatives of a query.", min=1, show_default="all", rich_help_panel=_BATCHES),
    ] = None
    per_class: Annotated[
        int | None,
        typer.Option(
            help="K items of a class in a batch of classes.", min=2, show_default="2 or 4", rich_help_panel=_BATCHES
        ),
    ] = None
    mask: Annotated[
        list[str] | None,
        typer.Option(
            help="Rule that leaves out negatives which are probably relevant: same-item, same-text, above:margin=0.1, "
            "percent:share=0.95, gist, or the mask.npz of an audit; repeat for several. none: no rule, also where a "
            "run was trained with one.",
            autocompletion=complete_names("masks"),
            rich_help_panel=_BATCHES,
        ),
    ] = None
    guide: Annotated[
        Path | None,
        typer.Option(help="Source of the same items whose similarities the rule gist reads.", rich_help_panel=_BATCHES),
    ] = None
    terms: Annotated[
        str | None,
        typer.Option(
            help="Further candidates of each query of a softmax loss, with commas: q2q, d2q, d2d, p2p (query and "
            "document, of its positive).",
            rich_help_panel=_BATCHES,
        ),
    ] = None
    dims: Annotated[
        str | None,
        typer.Option(help="First dimensions of embeddings, with commas, as 64,128,full.", rich_help_panel=SOURCE),
    ] = None
    captions: Annotated[
        Literal["all", "first"],
        typer.Option(help="All, or the first of each image.", rich_help_panel=_BATCHES),
    ] = "all"
    keep_last: Annotated[
        bool, typer.Option("--keep-last/--drop-last", help="The last, shorter batch.", rich_help_panel=_BATCHES)
    ] = True
    shuffle: Annotated[
        bool, typer.Option("--shuffle/--no-shuffle", help="Or file order.", rich_help_panel=_BATCHES)
    ] = True
    same_image: Annotated[
        Literal["keep", "mask"],
        typer.Option(
            help="Another caption of the image, another positive of the query: a negative, or left out.",
            rich_help_panel=_BATCHES,
        ),
    ] = "keep"
    queries: Annotated[
        int | None,
        typer.Option(
            help="A random sample of this many queries of each direction, each against all candidates of --batch-size "
            "all, with an interval for all queries.",
            show_default="all",
            min=2,
            rich_help_panel=_SAMPLE,
        ),
    ] = None
    precision_of: Annotated[
        str | None,
        typer.Option(
            help="As many queries as a statistic takes: C_neg=1% is an interval of ± 1 %, after a pilot of 1000.",
            rich_help_panel=_SAMPLE,
        ),
    ] = None
    interval: Annotated[
        str,
        typer.Option(
            help="Level of the intervals of means, in per cent or as a share, over other items like these; none: no "
            "intervals.",
            rich_help_panel=_INTERVALS,
        ),
    ] = "95"
    interval_groups: Annotated[
        int | None,
        typer.Option(
            help="Repeat the sweep without each of so many groups of items, for intervals of what is no mean over "
            "queries: 20 takes 20 times as long.",
            min=10,
            show_default="no such intervals",
            rich_help_panel=_INTERVALS,
        ),
    ] = None
    seed: Seed = field(default=0, metadata={"panel": _BATCHES})
    per_query: Annotated[
        bool, typer.Option("--per-query", help="Keep a row per query in the --out frame.", rich_help_panel=OUTPUT)
    ] = False
    out: Annotated[
        Path | None,
        typer.Option(help="Frame folder to write; the same command resumes it.", rich_help_panel=OUTPUT),
    ] = None
    format: Format = "table"
    device: Device = "auto"
    jobs: Jobs = None
    no_cache: NoCache = False
    vocabulary: VocabularyFile = None
    caption_image: CaptionImage = None
    sides: SidesOption = None
    encoder_option: EncoderOptions = None
    accept_option: AcceptOptions = None
    trust_code: TrustCode = False
    quiet: Quiet = False
    verbose: Verbose = False
    debug: Debug = False

    def sweep_options(self, probes: Sequence[str]) -> dict[str, Any]:
        """Return the fields of a Sweep but its objectives. Raises a usage error for options that do not fit."""
        from lossscope.engine.false_negatives import build_rule
        from lossscope.registry import spec_of

        if self.queries is not None and self.precision_of is not None:
            raise usage("--queries and --precision-of both say how many queries there are; give one")
        if self.precision_of is not None:
            from lossscope.engine.sampled.precision import Precision

            with typed_alone():
                Precision.parse(self.precision_of)
        if self.interval_groups is not None and (parse_interval(self.interval) is None or self._is_sample):
            raise usage("--interval-groups needs --interval and all queries; leave it out, or --queries")
        if self.per_query and self.out is None:
            raise usage("--per-query needs --out, the frame that keeps the rows")
        if self.mined is not None and self.negatives == "none":
            raise usage("--mined needs mined negatives; --negatives none leaves them out")
        if self.sampling in ("views", "classes") and (self.mined is not None or self.negatives != "batch"):
            raise usage(f"--negatives and --mined are of pairs and groups; --sampling {self.sampling} has none")
        given = [] if self.mask == ["none"] else self.mask or []
        if "none" in given:
            raise usage(f"--mask none stands alone; got it beside {', '.join(one for one in given if one != 'none')}")
        masks = tuple(build_rule(spec) for spec in given)
        if self.guide is not None and not any(mask.needs == "guide" for mask in masks):
            raise usage("--guide is read by a rule that needs one; add --mask gist")
        return {
            "probes": tuple(probes), "sampling": self.sampling, "batch_size": parse_batch_size(self._size()),
            "seed": self.seed, "shuffle": self.shuffle, "drop_last": not self.keep_last, "captions": self.captions,
            "same_image": self.same_image, "per_query": self.per_query,
            "negatives": self.negatives, "mined": self.mined, "per_class": self.per_class,
            "masks": tuple(spec_of(mask) for mask in masks),
            "terms": tuple(self.terms.split(",")) if self.terms else (),
            "guide": None if self.guide is None else str(self.guide),
            "queries": self.queries, "precision_of": self.precision_of, "interval": parse_interval(self.interval),
            "interval_groups": self.interval_groups,
        }  # fmt: skip

    @property
    def _is_sample(self) -> bool:
        return self.queries is not None or self.precision_of is not None

    def _size(self) -> str:
        """Return the batch size; `all` where queries are sampled and no other was typed."""
        return "all" if self._is_sample and not is_typed("batch_size") else self.batch_size

    def request(self) -> dict[str, Any]:
        """Return the fields of a Request to a source."""
        return {
            "data": self.data, "split": self.split, "cache": not self.no_cache, "trust_code": self.trust_code,
            "vocabulary": self.vocabulary, "caption_image": self.caption_image, "sides": self.sides,
            "encoder": tuple(self.encoder_option or ()), "accepted_options": tuple(self.accept_option or ()),
            "sharded": self._is_sample,
        }  # fmt: skip


def run_sweep(options: SweepArguments, name: str, selection: Selection) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return summary rows and rows of batches of every source; of many processes the first one has all of them.

    `name` is the command, for its frames.
    """
    import pandas as pd

    from lossscope.core.distributed import process_group
    from lossscope.engine.sweep import Sweep
    from lossscope.io.frames import join

    shared = options.sweep_options(selection.required)
    first: Sweep | None = None
    if options.objective:  # refuse what cannot work before anything is encoded
        first = Sweep(objectives=_objectives(options, None, options.sources[0], True), **shared)
        _ = first.plan
    results: list[Any] = []
    lacking: dict[str, None] = {}
    dims = parse_dims(options.dims)
    with progress(options.quiet, options.verbose) as report:
        guide = _load_guide(options, report)
        for place, source in enumerate(options.sources):
            whole = load_source(source, report, options.quiet, options.device, **options.request())
            silent = options.quiet or not selection.needs_objective
            specs = _objectives(options, whole.objective, source, silent)
            trained = trained_choices(whole, options.quiet)
            for width in dims:
                whole.require_prefix(width)
            for width in dims:
                embedded = whole if width is None else whole.prefix(width)
                sweep = Sweep(objectives=specs, **{**shared, **trained})
                sweep, left_out = selection.fit(first if first == sweep else sweep, embedded)  # whose plan is built
                sweep.require_possible(embedded, guide)
                for reason in left_out:
                    notice(f"Note: {reason}.", options.quiet)
                folder = _frame_folder(options, place, source, dims, width)
                writes = _processes.writes_results()
                frame = open_frame(folder, name, source, sweep, embedded, guide, options.data) if writes else None
                result = sweep.run(embedded, frame, report, process_group(), guide, options.jobs)
                results.append(result)
                if writes and result.without_interval:
                    lacking.setdefault(result.without_interval)
    for text in lacking:
        notice(f"Note: no interval: {text}.", options.quiet)
    summary = join(one.summary for one in results)
    return summary, pd.concat([one.batches for one in results], ignore_index=True)


def trained_choices(embedded: SplitEmbeddings, quiet: bool) -> dict[str, Any]:
    """Return the options of mined negatives and rules that a run was trained with, where none were typed; say which."""
    from lossscope.engine.plan import trained_options

    typed = {"negatives": ("negatives",), "mined": ("mined", "negatives"), "masks": ("mask",)}
    every = trained_options(embedded.recipe)
    own = {name: value for name, value in every.items() if not any(map(is_typed, typed[name]))}
    if own:
        options = ", ".join(f"{name} {'+'.join(v) if isinstance(v, tuple) else v}" for name, v in own.items())
        other = "--negatives batch or --mask none says otherwise"
        notice(f"Note: batches are as {embedded.name} was trained: {options}; {other}.", quiet)
    return own


def _frame_folder(
    options: SweepArguments, place: int, source: Path, dims: Sequence[int | None], width: int | None
) -> Path | None:
    """Return the folder of one frame: that of --out, or one in it where there are several."""
    folder = options.out
    if folder is None:
        return None
    if len(options.sources) > 1:
        folder = folder / f"{place:02d}-{source.stem}"
    return folder if len(dims) == 1 else folder / f"dims-{width or 'full'}"


def _load_guide(options: SweepArguments, report: Progress | None) -> SplitEmbeddings | None:
    """Return the embeddings of --guide, of the split that the sources are of; None without one."""
    if options.guide is None:
        return None
    request = {name: value for name, value in options.request().items() if name not in ("encoder", "accepted_options")}
    return load_source(options.guide, report, True, options.device, **request)


def print_summary(options: SweepArguments, rows: pd.DataFrame, command: Mapping[str, Any]) -> None:
    """Write summary rows in the format that --format names."""

    def tables() -> Any:
        if rows["probe"].nunique() == 1 and rows["statistic"].nunique() <= _ACROSS:
            from lossscope.tables import statistics

            return statistics.build(rows, str(rows["probe"].iloc[0]))
        from lossscope.tables import probes

        return probes.build(rows)

    named = {"name": command["name"], "sources": [str(source) for source in options.sources], "split": options.split}
    print_results(rows, tables, {**named, **command}, options.format)


def _objectives(options: SweepArguments, trained_with: str | None, source: Path, quiet: bool) -> tuple[str, ...]:
    return objectives_for(options.objective, trained_with, source, quiet)
