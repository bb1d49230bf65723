"""Open and run models against the authors' numbers. This takes minutes and is left to `make test-all`."""

from __future__ import annotations

from pathlib import Path

import pytest

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests of this folder as thorough."""
    for item in items:
        if item.path.is_relative_to(HERE):
            item.add_marker(pytest.mark.thorough)
