"""Write reports without their pictures, which take three quarters of the time: for tests of the text around them."""

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
from lossscope.plots import style
from lossscope.report import html


@contextmanager
def blank_pictures(*kinds: str) -> Iterator[None]:
    """Let reports write a blank picture in place of each, and pack the script of their charts once.

    tests/studies/test_report.py, tests/report and tests/plots have tests of the pictures.

    Args:
        kinds: of files that are blank, `png` and `pdf` unless given; without `png` pictures are drawn.
    """
    kinds = kinds or ("png", "pdf")

    def save(figure: Any, path: Path, alt: str) -> Path:
        if path.suffix[1:] not in kinds:
            return style.save(figure, path, alt)
        with write_atomically(path) as part:
            part.write_bytes(_blank(path.suffix[1:]))
        return path

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("lossscope.report.page.style", SimpleNamespace(save=save, use=style.use))
        patch.setattr(html, "_packed_library", cache(html._packed_library))
        if "png" in kinds:
            patch.setattr(html, "stacked", lambda figure, image, width: None)
            patch.setattr(Figure, "draw_without_rendering", lambda figure: None)
        yield


@cache
def _blank(kind: str) -> bytes:
    file = io.BytesIO()
    Figure(figsize=(0.1, 0.1)).savefig(file, format=kind)
    return file.getvalue()
