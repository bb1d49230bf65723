"""Commands that open sources: embeddings, notices, objectives, frames."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lossscope.core.request import Request

from ._options import resolve_device
from ._output import message, notice
from ._running import is_typed

if TYPE_CHECKING:
    from lossscope.core.embedded import SplitEmbeddings
    from lossscope.core.types import Progress
    from lossscope.engine.sweep import Sweep
    from lossscope.io.frames import Frame


_OPTIONS = ("sources", "overlay", "checkpoints")  # whose values are paths of sources
OF_TRAIN, OF_TEST = Request(device="auto"), Request(usual_split="test", device="auto")
"""How commands open sources, unless options say otherwise."""


def with_existing_sources(given: dict[str, Any]) -> dict[str, Any]:
    """Return options whose sources are all there, before anything slow is imported; shipped ones by their names.

    Raises InputError naming the first that is not.
    """
    from lossscope.io.shipped import require_source

    named = {name: given[name] for name in _OPTIONS if given.get(name)}
    return {**given, **{name: [require_source(path) for path in paths] for name, paths in named.items()}}


def load_source(source: Path, request: Request, progress: Progress | None) -> SplitEmbeddings:
    """Return the source's embeddings on the device; what the user should know of them goes to stderr.

    Of many processes the first one reads and caches what the others then read; without a cache each one reads it.

    Args:
        source: path of the source.
        request: how it is read; its device as typed.
        progress: called with (label, done, of).
    """
    import torch

    from lossscope.core.distributed import process_group
    from lossscope.sources.base import read_source

    request = replace(request, device=resolve_device(request.device), progress=progress)
    processes = process_group()
    if request.cache and not processes.main:
        processes.barrier()
    embedded = read_source(source, request)
    if request.cache and processes.main:
        processes.barrier()
    for text in (*embedded.warnings, *_unused_options(embedded, source)):
        message(f"Warning: {text}.")
    for text in embedded.notices:
        notice(f"Note: {text}.")
    return embedded.to(torch.device(request.device))


def _unused_options(embedded: SplitEmbeddings, source: Path) -> list[str]:
    """Return a warning for options that were typed and are of another kind of source, as --split is not of a dump."""
    relations = embedded.relations
    reasons = {
        ("data", "split"): "is of one split already" if embedded.split is None else "",
        ("negatives", "mined"): "has no mined negatives" if relations.negatives is None else "",
        ("score",): "" if _is_scored_as_asked(embedded) else "is scored as its model, or its file, says",
        ("per_class",): "" if relations.one_set else "is no labelled set",
    }
    warnings = []
    for names, reason in reasons.items():
        typed = [f"--{name.replace('_', '-')}" for name in names if is_typed(name)]
        if typed and reason:
            warnings.append(f"{' and '.join(typed)} {'is' if len(typed) == 1 else 'are'} not used: {source} {reason}")
    return warnings


def join_splits(splits: Iterable[str | None]) -> str | None:
    """Return the splits of sources, each once, as records state them; None where no source has a split."""
    return ", ".join(dict.fromkeys(filter(None, splits))) or None


def _is_scored_as_asked(embedded: SplitEmbeddings) -> bool:
    """Return whether --score was used: it is of the embeddings of dumps, which are of no split."""
    return embedded.split is None and embedded.similarity is None


def objectives_for(
    given: tuple[str, ...], trained_with: str | None, source: Path, silent: bool = False
) -> tuple[str, ...]:
    """Return canonical objective specs: those typed, or the one the source was trained with, or the usual ones.

    Args:
        given: as typed; ranges are expanded.
        trained_with: spec that the source names, or None.
        source: for the notice.
        silent: no notice where the usual objectives are taken.
    """
    from lossscope.engine.selection import USUAL_OBJECTIVES, objective_specs
    from lossscope.io.reading import naming
    from lossscope.io.trusted_code import require_trusted

    if not given and trained_with is None and not silent:
        text = f"{source} does not say what it was trained with: counting for {', '.join(USUAL_OBJECTIVES)}"
        notice(f"Note: {text}; --objective names others.")
    if given or trained_with is None:
        return objective_specs(given, trained_with)
    with naming(source, "a model of a loss that can be built"):
        require_trusted([trained_with], source)
        return objective_specs(given, trained_with)


def open_frame(
    folder: Path,
    name: str,
    source: Path,
    sweep: Sweep,
    embedded: SplitEmbeddings,
    guide: SplitEmbeddings | None = None,
    data: str | None = None,
) -> Frame:
    """Return the frame folder of this very command, new or to be resumed."""
    from lossscope.io.frames import Frame
    from lossscope.io.plugin_fingerprints import plugin_fingerprints, plugins_entry

    command = {
        "name": name,
        "source": str(source),
        "origin": embedded.fingerprint,
        "split": embedded.split,
        **sweep.record(),
        **({} if guide is None else {"guide_origin": guide.fingerprint}),
        **({} if data is None else {"data": data}),
        **plugins_entry(plugin_fingerprints((*sweep.objectives, *sweep.probes))),
    }
    return Frame.open(folder, command)
