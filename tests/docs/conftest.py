"""Put docs/ on the path, so that tests import the scripts that generate pages, and these the module they share."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "docs"))
