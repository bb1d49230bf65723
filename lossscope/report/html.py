"""Sections -> index.html: the template filled with pictures, charts and tables; needs no network."""

from __future__ import annotations

import base64
import gzip
import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import jinja2
from markupsafe import Markup
from PIL import Image

from lossscope.tables import formats
from lossscope.visible_text import show_text

from .bars import BarChart
from .html_tables import PageTable, page_table
from .interactive import HeatmapChart, SliderChart, library
from .notes import Notes
from .sections import Answer, Picture, Section, items_of
from .stacked import stacked

_MAX_WIDTH = 1100  # pixels of a picture in the page, one and a half times as many as are shown
_NARROW = 720  # pixels of a picture for narrow screens, twice as many as are shown
_PIXELS = 110  # per inch


def html(
    figures: Path, title: str, lead: str, answer: Answer, sections: Sequence[Section], provenance: Mapping[str, str]
) -> str:
    """Return the page.

    Args:
        figures: folder with the PNG of every picture.
        title: of the page.
        lead: what was run, under the title.
        answer: findings and the main figure.
        sections: chapters, in order.
        provenance: rows of the last table.
    """
    notes = Notes()
    tables: dict[str, PageTable] = {}
    for section in sections:
        notes.start(section.key)
        of_section = {
            table.name: page_table(table.to_html(), notes, " ".join(table.meaning)) for table in section.tables
        }
        tables |= _distinct_titles(of_section)
    pictures = list(items_of(sections, Picture))
    sliders = {chart.name: chart.content() for chart in items_of(sections, SliderChart)}
    heatmaps = {chart.name: chart.content() for chart in items_of(sections, HeatmapChart)}
    values: dict[str, Any] = {"title": title, "lead": lead, "sections": sections, "provenance": provenance}
    values |= {"answer": answer, "notes": notes, "tables": tables, "sliders": sliders, "heatmaps": heatmaps}
    values |= {"images": {picture.name: _image(figures, picture) for picture in pictures}}
    values |= {"bars": {chart.name: chart for chart in items_of(sections, BarChart)}}
    values |= {"pictures": {picture.name: picture for picture in pictures}}
    # a figure of the screen style is 6.4 inches wide, about two thirds of the page
    values |= {"widths": {p.name: round(_PIXELS * cast("Any", p.figure).get_figwidth()) for p in pictures}}
    values |= {"with_published": {name for name, table in tables.items() if table.published}}
    values |= {"keys": {section.title: section.key for section in sections}}
    return _environment().get_template("page.html.jinja").render(
        **values, library=_packed_library() if sliders or heatmaps else ""
    )  # fmt: skip


def _distinct_titles(tables: Mapping[str, PageTable]) -> dict[str, PageTable]:
    """Return the tables of a chapter, with the part of the name that differs where titles are equal: `..., i2t`."""
    titles = [table.title for table in tables.values()]
    named = {name: re.split(r"[-_]", name)[-1] if re.search(r"[-_]", name) else "" for name in tables}
    return {
        name: replace(table, title=f"{table.title}, {named[name]}")
        if titles.count(table.title) > 1 and named[name]
        else table
        for name, table in tables.items()
    }


def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        finalize=_unbroken,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["with_code"] = lambda text: Markup(formats.html_text(show_text(text, "\n")))
    environment.filters["first_sentence"] = lambda text: re.split(r"(?<=[.!?])\s+(?=[A-Z])", text, maxsplit=1)[0]
    return environment


def _unbroken(value: Any) -> Any:
    """Return a text of the page, with control characters as \\xNN and no line's end between a number and its %."""
    if not isinstance(value, str):
        return value
    shown = value if isinstance(value, Markup) else show_text(value, "\n")
    return type(value)(re.sub(r"(?<=\d) %", "\N{NO-BREAK SPACE}%", shown))


def _packed_library() -> str:
    """Return plotly, which is five megabytes, compressed to a third of that; browsers decompress it."""
    return base64.b64encode(gzip.compress(library().encode(), 9, mtime=0)).decode()


def _image(figures: Path, picture: Picture) -> tuple[str, str]:
    """Return the picture as a data address, and with its panels one below another; empty where it has one.

    It is its PNG as WebP, of half the size; vectors are in latex/.
    """
    with Image.open(figures / f"{picture.name}.png") as file:
        image = file.convert("RGB")
    column = stacked(picture.figure, image, _NARROW)
    narrow = _address(column) if column else ""
    image.thumbnail((_MAX_WIDTH, 8 * _MAX_WIDTH))
    return _address(image), narrow


def _address(image: Image.Image) -> str:
    buffer = io.BytesIO()
    image.save(buffer, "webp", quality=75, method=4)
    return f"data:image/webp;base64,{base64.b64encode(buffer.getvalue()).decode()}"
