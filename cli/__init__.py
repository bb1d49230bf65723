"""The command line, a thin skin: each command is one file, each body a few calls of plain functions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._start import no_garbage  # before anything else is imported

# isort: split
with no_garbage():
    from ._commands import main, whole_app

if TYPE_CHECKING:
    import typer

    app: typer.Typer

__all__ = ["app", "main"]


def __getattr__(name: str) -> Any:
    """Return `app`, lossscope with all its commands: a command line imports the files of those alone that it needs."""
    if name == "app":
        globals()[name] = whole_app()
        return globals()[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
