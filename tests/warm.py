"""Do once, in the process that warm ones are forked from, what each of them would repeat. Imported last.

The tree of commands is built, and all that was imported is no garbage.
"""

from __future__ import annotations

import typer.main
import typer.testing
from lossscope_cli import app

from tests.command_line import tree
from tests.farm import collect_seldom

tree(app)
typer.main.get_command = typer.testing._get_command = tree
collect_seldom()
