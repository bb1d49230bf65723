"""What commands that sweep a source share: their options, stated once, and the work."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from . import _output, _processes, _sources
from .app import (
    CaptionImage,
    DataSpec,
    Debug,
    Device,
    EncoderOptions,
    Format,
    Objectives,
    Quiet,
    Seed,
    Sources,
    TrustCode,
    Verbose,
    VocabularyFile,
    batch_size_of,
    chosen,
    usage,
)

if TYPE_CHECKING:
    import pandas as pd

    from lossscope.engine.selection import Selection


@dataclass(frozen=True)
class Asked:
    """The options of every sweep, as they are typed."""

    sources: Sources
    objective: Objectives = None
    data: DataSpec = None
    split: Annotated[str, typer.Option(help="Split of the checkpoint's data.")] = "train"
    batch_size: Annotated[str, typer.Option(help="Pairs or images of a batch, or `all`.")] = "128"
    sampling: Annotated[
        str | None, typer.Option(help="pairs or images; default: images for objectives with many positives.")
    ] = None
    captions: Annotated[str, typer.Option(help="all, or the first of each image.")] = "all"
    keep_last: Annotated[bool, typer.Option("--keep-last/--drop-last", help="The last, shorter batch.")] = True
    shuffle: Annotated[bool, typer.Option("--shuffle/--no-shuffle", help="Or file order.")] = True
    same_image: Annotated[str, typer.Option(help="Another caption of the same image: keep as negative, or mask.")] = (
        "keep"
    )
    precision: Annotated[
        str, typer.Option(help="Of tiles of large batches: float32, or bf16 with what it leaves undecided made again.")
    ] = "float32"
    per_query: Annotated[bool, typer.Option("--per-query", help="Keep a row per query in the --out frame.")] = False
    seed: Seed = 0
    device: Device = "auto"
    format: Format = "table"
    out: Annotated[Path | None, typer.Option(help="Frame folder to write; the same command goes on with it.")] = None
    no_cache: Annotated[bool, typer.Option("--no-cache", help="Do not keep embeddings.")] = False
    vocabulary: VocabularyFile = None
    caption_image: CaptionImage = None
    encoder_option: EncoderOptions = None
    trust_code: TrustCode = False
    quiet: Quiet = False
    verbose: Verbose = False
    debug: Debug = False

    def sweep(self, probes: Sequence[str]) -> dict[str, Any]:
        """Fields of a Sweep, all but its objectives. Raises a usage error for words that are none of those known."""
        chosen(self.same_image, ("keep", "mask"), "--same-image")
        chosen(self.captions, ("all", "first"), "--captions")
        chosen(self.precision, ("float32", "bf16"), "--precision")
        if self.sampling is not None:
            chosen(self.sampling, ("pairs", "images"), "--sampling")
        if self.per_query and self.out is None:
            raise usage("--per-query needs --out, the frame that keeps the rows")
        chosen(self.format, _output.FORMATS, "--format")
        return {
            "probes": tuple(probes), "sampling": self.sampling, "batch_size": batch_size_of(self.batch_size),
            "seed": self.seed, "shuffle": self.shuffle, "drop_last": not self.keep_last, "captions": self.captions,
            "same_image": self.same_image, "per_query": self.per_query, "precision": self.precision,
        }  # fmt: skip

    def request(self) -> dict[str, Any]:
        """Fields of a Request to a source."""
        return {
            "data": self.data, "split": self.split, "cache": not self.no_cache, "trust_code": self.trust_code,
            "vocabulary": self.vocabulary, "caption_image": self.caption_image,
            "encoder": tuple(self.encoder_option or ()),
        }  # fmt: skip


Own = Sequence[inspect.Parameter]
_ACROSS = 10  # statistics of one probe that stand side by side


def sweeping(function: Callable[..., None], own: Own | None = None) -> Callable[..., None]:
    """function(asked, **own) as a command with the options of every sweep beside its own, which come first."""
    own = _own(function) if own is None else own
    sources, *shared = _shared()

    @functools.wraps(function)
    def run(**given: Any) -> None:
        asked = Asked(**{field.name: given.pop(field.name) for field in fields(Asked)})
        return function(asked, **given)

    parameters = [sources, *own, *shared]
    del run.__wrapped__
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return run


def swept(asked: Asked, name: str, selection: Selection) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Summary rows and rows of batches of every source, which of many processes the first one has all of.

    name: the command, for its frames.
    """
    import pandas as pd

    from lossscope.core.distributed import process_group
    from lossscope.engine.plan import Sweep
    from lossscope.io.frames import join

    shared = asked.sweep(selection.named)
    if asked.objective:  # refuse what can not work before anything is encoded
        Sweep(objectives=_objectives(asked, None, asked.sources[0], True), **shared).plans()
    found = []
    with _output.progress(asked.quiet, asked.verbose) as bar:
        for place, source in enumerate(asked.sources):
            embedded = _sources.embedded(source, bar, asked.quiet, asked.device, **asked.request())
            specs = _objectives(asked, embedded.objective, source, asked.quiet or not selection.needs_objective)
            sweep, left = selection.fitting(Sweep(objectives=specs, **shared), embedded)
            for told in left:
                _output.notice(f"Note: {told}.", asked.quiet)
            if sweep.precision == "bf16" and not sweep.in_tiles(embedded):
                _output.notice(
                    "Note: --precision bf16 is for large batches, looked at in tiles; these are looked at in float32.",
                    asked.quiet,
                )
            folder = asked.out
            if folder is not None and len(asked.sources) > 1:
                folder = folder / f"{place:02d}-{source.stem}"
            frame = _sources.frame(folder, name, source, sweep, embedded) if _processes.speaks() else None
            found.append(sweep.run(embedded, frame, bar, process_group()))
    return join(summary for summary, _ in found), pd.concat([rows for _, rows in found], ignore_index=True)


def presented(asked: Asked, rows: pd.DataFrame, command: Mapping[str, Any]) -> None:
    """The summary in the format that was asked for."""
    from lossscope.tables import probes, statistics

    def tables() -> Any:
        one = rows["probe"].nunique() == 1 and rows["statistic"].nunique() <= _ACROSS
        return statistics.build(rows, str(rows["probe"].iloc[0])) if one else probes.build(rows)

    told = {"name": command["name"], "sources": [str(source) for source in asked.sources], "split": asked.split}
    _output.results(rows, tables, {**told, **command}, asked.format)


def _objectives(asked: Asked, own: str | None, source: Path, quiet: bool) -> tuple[str, ...]:
    return _sources.objectives(asked.objective, own, source, asked.trust_code, quiet)


@functools.cache
def _shared() -> tuple[inspect.Parameter, ...]:
    """The fields of Asked as parameters."""
    hints, found = get_type_hints(Asked, include_extras=True), []
    for field in fields(Asked):
        default = inspect.Parameter.empty if field.default is MISSING else field.default
        kind = inspect.Parameter.KEYWORD_ONLY
        found.append(inspect.Parameter(field.name, kind, default=default, annotation=hints[field.name]))
    return tuple(found)


def _own(function: Callable[..., None]) -> list[inspect.Parameter]:
    hints = get_type_hints(function, include_extras=True)
    found = inspect.signature(function).parameters.values()
    keyword = inspect.Parameter.KEYWORD_ONLY
    return [p.replace(kind=keyword, annotation=hints[p.name]) for p in found if p.name != "asked"]
