"""What commands have in common when they open sources: overrides, notices, objectives, frames."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import _output
from .app import device_of

if TYPE_CHECKING:
    from lossscope.core.embedded import SplitEmbeddings
    from lossscope.engine.plan import Sweep
    from lossscope.io.frames import Frame


USUAL = ("triplet", "triplet-sh", "ntxent")


def embedded(source: Path, bar: _output.Progress | None, quiet: bool, device: str, **asked: Any) -> SplitEmbeddings:
    """The source's embeddings on the device; what the user should know of them goes to stderr.

    asked: fields of lossscope.sources.base.Request. Of many processes the first one reads and keeps what the others
    then find; with cache=False each reads for itself.
    """
    import torch

    from lossscope.core.distributed import process_group
    from lossscope.sources.base import load

    place, here, kept = device_of(device), process_group(), asked.get("cache", True)
    if kept and not here.main:
        here.barrier()
    found = load(source, device=place, progress=bar, **asked)
    if kept and here.main:
        here.barrier()
    for text in found.notices:
        _output.notice(f"Note: {text}.", quiet)
    return found.to(torch.device(place))


def objectives(
    given: list[str] | None, own: str | None, source: Path, trust_code: bool, quiet: bool = False
) -> tuple[str, ...]:
    """Specs in full: those given, ranges written out, or the one the source was trained with.

    A source that does not say is looked at through the three losses that the field began with.
    """
    from lossscope.registry import build, expand, require_trusted, spec_of

    if not given and own is None:
        told = f"{source} does not say what it was trained with: counting for {', '.join(USUAL)}"
        _output.notice(f"Note: {told}; --objective names others.", quiet)
    if not given and own is not None:
        require_trusted(own, trust_code)
    specs = [one for spec in given or ([own] if own else USUAL) for one in expand("objectives", spec)]
    return tuple(dict.fromkeys(spec_of(build("objectives", spec)) for spec in specs))


def frame(folder: Path | None, name: str, source: Path, sweep: Sweep, found: SplitEmbeddings) -> Frame | None:
    """The frame folder of this very command, new or to be gone on with; None without a folder."""
    from lossscope.io.frames import Frame

    if folder is None:
        return None
    command = {
        "name": name,
        "source": str(source),
        "origin": found.fingerprint,
        "split": found.split,
        **asdict(sweep),
    }
    return Frame.open(folder, command)
