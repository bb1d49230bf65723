"""`lossscope cache`: which vectors are kept, where, and how large are they?"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Literal

from lossscope.core.choices import Choice

from ._app import command
from ._output import fold, print_csv, print_text

if TYPE_CHECKING:
    from pathlib import Path

    from lossscope.io.cached_models import CachedModel

SCHEMA = "lossscope.cache/1"


@command()
def cache(
    empty: Annotated[bool, Choice(None, "Remove all kept vectors.", flags="--empty")] = False,
    format: Annotated[
        Literal["table", "json", "csv"], Choice(None, "Format: lines, a JSON document, or CSV.")
    ] = "table",
) -> None:
    """Show which vectors lossscope keeps of which models, or remove them.

    **Examples**

    `lossscope cache`

    `lossscope cache --format json`

    `lossscope cache --empty`

    Text models keep a vector of every text, checkpoints and released models those of whole splits. Commands read them
    in place of encoding again; `--no-cache` of a command neither reads nor keeps any. `LOSSSCOPE_CACHE` names the
    folder. `LOSSSCOPE_CACHE_SIZE`, such as `500MB`, is the limit of all; the least recently used vectors go first.
    """
    from lossscope.io.cached_models import cached_models, empty_cache
    from lossscope.io.vector_cache import cache_folder, cache_limit

    folder, limit = cache_folder(), cache_limit()
    freed = sum(entry.size for entry in empty_cache(folder)) if empty else None
    models = cached_models(folder)
    if format == "table":
        print_text("\n".join(map(fold, _lines(models, folder, limit, freed))))
        return
    rows = [
        {
            "name": model.name, "kind": model.kind, "rows": model.rows, "width": model.width, "bytes": model.size,
            "last_used": _time(model.used),
        }
        for model in models
    ]  # fmt: skip
    if format == "csv":
        import pandas as pd

        print_csv(pd.DataFrame(rows, columns=["name", "kind", "rows", "width", "bytes", "last_used"]))
        return
    facts = {"folder": str(folder), "bytes": sum(model.size for model in models), "limit": limit, "freed": freed}
    print_text(json.dumps({"schema": SCHEMA, "models": rows, **facts}, indent=1))


def _lines(models: Sequence[CachedModel], folder: Path, limit: int, freed: int | None) -> list[str]:
    lines = [] if freed is None else [f"Removed {_size(freed)}."]
    lines.append(f"Vectors in {folder}: {_size(sum(model.size for model in models))} of at most {_size(limit)}.")
    for model in models:
        lines.append(model.name or f"({model.kind})")
        lines.append(
            f"    {model.kind}: {model.rows:,} vectors of {model.width} numbers, {_size(model.size)}, "
            f"last used {_time(model.used)[:16]} UTC"
        )
    return lines


def _size(size: int) -> str:
    """Return a number of bytes as people read it.

    >>> [_size(n) for n in (0, 999, 3_270_676, 999_999, 10**10)]
    ['0 B', '999 B', '3.3 MB', '1,000.0 kB', '10.0 GB']
    """
    for unit, bytes_of in (("TB", 10**12), ("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if size >= bytes_of:
            return f"{size / bytes_of:,.1f} {unit}"
    return f"{size} B"


def _time(seconds: float) -> str:
    """Return a time in UTC, `2026-01-31 23:59:59+00:00`."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(sep=" ", timespec="seconds")
