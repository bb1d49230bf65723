"""`lossscope analyse`: what does a loss teach? Each analysis is a command in a file of its name."""

from __future__ import annotations

import typer

from ._app import app

analyse = typer.Typer(
    name="analyse",
    help="What does a loss teach? Its next step, its neighbours among losses, its parts.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.add_typer(analyse, name="analyse")
