"""Reports without their pictures, which take three quarters of the time: for tests of what stands around them."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from matplotlib.figure import Figure

from lossscope.io.files import write_atomically
from lossscope.report import html


@contextmanager
def blank_pictures() -> Iterator[None]:
    """Let reports write a blank picture in place of each, and pack the script of their charts once.

    tests/studies/test_report.py, tests/report and tests/plots have tests of the pictures.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("lossscope.report.page.style", SimpleNamespace(save=_save_blank))
        patch.setattr(html, "stacked", lambda figure, image, width: None)
        patch.setattr(html, "_packed_library", cache(html._packed_library))
        patch.setattr(Figure, "draw_without_rendering", lambda figure: None)
        yield


def _save_blank(figure: Any, path: Path, alt: str) -> Path:
    with write_atomically(path) as part:
        part.write_bytes(_blank(path.suffix.lstrip(".")))
    return path


@cache
def _blank(kind: str) -> bytes:
    file = io.BytesIO()
    Figure(figsize=(0.1, 0.1)).savefig(file, format=kind)
    return file.getvalue()
