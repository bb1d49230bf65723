"""Imported last by the process that warm ones are forked from: what each of them would do again is done once.

The tree of commands is built, and Python does not look for garbage among all that was imported, and seldom among the
rest.
"""

from __future__ import annotations

import gc

import typer.main
import typer.testing
from lossscope_cli import app

from tests.command_line import tree
from tests.farm import GARBAGE

tree(app)
typer.main.get_command = typer.testing._get_command = tree
gc.freeze()
gc.set_threshold(GARBAGE)
