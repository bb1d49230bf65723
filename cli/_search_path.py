"""Modules come from where they are installed: `python -m` puts the current folder first, where anything may lie."""

from __future__ import annotations

import os
import sys

if not sys.flags.safe_path and sys.argv[:1] == ["-m"] and sys.path[:1] == [os.getcwd()]:
    del sys.path[0]
