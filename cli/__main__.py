"""`python -m lossscope_cli`."""

from __future__ import annotations

from . import main

main()
