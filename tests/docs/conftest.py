"""Put docs/ and this folder on the path: tests import the scripts that generate pages, and what they share."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[2] / "docs"), str(Path(__file__).parent)]
