"""Pictures and tables -> one page that opens anywhere: HTML in one file, beside it LaTeX, CSV and PNG."""

from __future__ import annotations

import base64
import gzip
import io
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar, cast

import jinja2
from PIL import Image

from lossscope.errors import InputError
from lossscope.io import files
from lossscope.plots import style
from lossscope.tables import formats
from lossscope.tables.base import Table

from .interactive import HeatmapChart, SliderChart, library

SCHEMA = "lossscope.report/1"
_MAX_WIDTH = 1100  # pixels of a picture in the page, one and a half times as many as are shown
_PIXELS = 110  # per inch
_T = TypeVar("_T")
_MAIN_TEX = r"""\documentclass{article}
\usepackage[T1]{fontenc}
\usepackage[utf8]{inputenc}
\usepackage[margin=2.5cm]{geometry}
\usepackage{booktabs}
\usepackage{graphicx}
\title{%s}
\date{}
\begin{document}
\maketitle
%s
\end{document}
"""


@dataclass(frozen=True)
class Picture:
    """A figure with its texts."""

    name: str  # of its files
    caption: str
    alt: str  # description for readers who cannot see it
    figure: object  # of matplotlib


Item = Picture | Table | SliderChart | HeatmapChart


@dataclass(frozen=True)
class Section:
    """A heading, text, and pictures, tables and charts in order.

    Charts are on the page only; a picture beside each shows the same in print and without scripts.
    """

    title: str
    text: str  # paragraphs separated by empty lines
    items: tuple[Item, ...] = ()
    more: tuple[Item, ...] = ()  # folded away on the page; in LaTeX and in print they follow the items

    @property
    def all_items(self) -> tuple[Item, ...]:
        """The items shown at once, and those folded away."""
        return (*self.items, *self.more)

    @property
    def paragraphs(self) -> list[str]:
        """The paragraphs of the text."""
        return [part.strip() for part in re.split(r"\n\s*\n", self.text) if part.strip()]


def write_page(out: Path, title: str, lead: str, sections: Sequence[Section], provenance: Mapping[str, str]) -> Path:
    """Write `out/index.html` (self-contained), `latex/`, `csv/`, `figures/` and `index.json`; return the page.

    Every file is written completely or not at all; files of an earlier report in the folder are removed.

    Args:
        out: folder to write.
        title: of the page.
        lead: summary under the title.
        sections: of the page, in order.
        provenance: what a reader needs to believe the numbers: versions, seeds, commands.

    Raises:
        InputError: two items have one name, or a name cannot be that of a file.
    """
    out = Path(out)
    _require_names(sections)
    written: list[Path] = []
    for picture in _items(sections, Picture):
        figure = cast("Any", picture.figure)
        figure.draw_without_rendering()
        figure.set_layout_engine("none")  # laid out once, not for each file
        written.append(style.save(figure, out / "figures" / f"{picture.name}.png", alt=picture.alt))
        written.append(style.save(figure, out / "latex" / f"{picture.name}.pdf", alt=picture.alt))
    for table in _items(sections, Table):
        written.append(_write_text(out / "csv" / f"{table.name}.csv", table.to_csv()))
        written.append(_write_text(out / "latex" / f"{table.name}.tex", table.to_latex()))
    written.append(_write_text(out / "latex" / "main.tex", _latex(title, lead, sections, provenance)))
    written.append(_write_text(out / "index.html", _html(out, title, lead, sections, provenance)))
    earlier = _files_of_index(out)
    _write_text(out / "index.json", _index(out, title, sections, provenance, written))
    for name in earlier - {path.relative_to(out).as_posix() for path in written}:
        (out / name).unlink(missing_ok=True)
    return out / "index.html"


def _require_names(sections: Sequence[Section]) -> None:
    """Raise InputError unless all names differ and can be those of files."""
    names = [item.name for section in sections for item in section.all_items]
    for name in names:
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]*", name) or name == "main":
            raise InputError(
                f"name of a picture or table must be letters, digits, - and _, and not main; got {name!r}. Rename it"
            )
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise InputError(f"names in a report must differ; got {', '.join(twice)} twice. Rename one of them")


def _items(sections: Sequence[Section], kind: type[_T]) -> Iterator[_T]:
    """Yield the items of one type."""
    return (item for section in sections for item in section.all_items if isinstance(item, kind))


def _html(out: Path, title: str, lead: str, sections: Sequence[Section], provenance: Mapping[str, str]) -> str:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    images = {picture.name: _image_address(out, picture) for picture in _items(sections, Picture)}
    tables = {table.name: table.to_html() for table in _items(sections, Table)}
    sliders = {chart.name: chart.content() for chart in _items(sections, SliderChart)}
    heatmaps = {chart.name: chart.content() for chart in _items(sections, HeatmapChart)}
    values: dict[str, Any] = {"title": title, "lead": lead, "sections": sections, "provenance": provenance}
    # a figure of the screen style is 6.4 inches wide, about two thirds of the page
    widths = {p.name: round(_PIXELS * cast("Any", p.figure).get_figwidth()) for p in _items(sections, Picture)}
    values |= {"images": images, "widths": widths, "tables": tables, "sliders": sliders, "heatmaps": heatmaps}
    # plotly is five megabytes, compressed a third of that; browsers decompress it
    packed = base64.b64encode(gzip.compress(library().encode(), 9, mtime=0)).decode() if sliders or heatmaps else ""
    return environment.get_template("page.html.jinja").render(**values, library=packed)


def _image_address(out: Path, picture: Picture) -> str:
    """Return the picture as a data address: its PNG as WebP, of half the size; vectors are in latex/."""
    buffer = io.BytesIO()
    with Image.open(out / "figures" / f"{picture.name}.png") as image:
        image.thumbnail((_MAX_WIDTH, 4 * _MAX_WIDTH))
        image.convert("RGB").save(buffer, "webp", quality=75, method=4)
    return f"data:image/webp;base64,{base64.b64encode(buffer.getvalue()).decode()}"


def _latex(title: str, lead: str, sections: Sequence[Section], provenance: Mapping[str, str]) -> str:
    """Return main.tex."""
    parts = [formats.latex_text(lead)]
    for section in sections:
        parts.append(rf"\section{{{formats.latex_text(section.title)}}}")
        parts += [formats.latex_text(paragraph) + "\n" for paragraph in section.paragraphs]
        for item in section.all_items:
            if isinstance(item, Table | Picture):
                parts.append(rf"\input{{{item.name}}}" if isinstance(item, Table) else _figure(item))
        parts.append(r"\clearpage")
    rows = tuple(provenance.items())
    parts.append(r"\section*{Provenance}" + "\n" + r"\begin{description}")
    parts += [rf"\item[{{{formats.latex_text(key)}}}] {formats.latex_text(value)}" for key, value in rows]
    parts.append(r"\item[] \end{description}" if not rows else r"\end{description}")
    return _MAIN_TEX % (formats.latex_text(title), "\n".join(parts))


def _figure(picture: Picture) -> str:
    return (
        "\\begin{figure}[htbp]\n\\centering\n"
        r"\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}"
        rf"{{\includegraphics{{{picture.name}.pdf}}}}"
        "\n"
        rf"\caption{{{formats.latex_text(picture.caption)}}}\label{{fig:{picture.name}}}"
        "\n\\end{figure}"
    )


def _index(
    out: Path, title: str, sections: Sequence[Section], provenance: Mapping[str, str], written: Sequence[Path]
) -> str:
    """Return index.json: sections, provenance and all files with their sums."""
    listed = [{"path": path.relative_to(out).as_posix(), "sha256": files.fingerprint(path)} for path in sorted(written)]
    parts = [{"title": section.title, "items": [item.name for item in section.all_items]} for section in sections]
    content = {
        "schema": SCHEMA,
        "title": title,
        "sections": parts,
        "provenance": dict(provenance),
        "files": listed,
    }
    return json.dumps(content, indent=2, ensure_ascii=False) + "\n"


def _files_of_index(out: Path) -> set[str]:
    """Return the files that the index of an earlier report names, without any outside the folder."""
    try:
        index = json.loads((out / "index.json").read_text(encoding="utf-8"))
        names = {str(file["path"]) for file in index["files"]} if index["schema"] == SCHEMA else set()
    except (OSError, ValueError, KeyError, TypeError):
        return set()
    return {name for name in names if (out / name).resolve().is_relative_to(out.resolve())}


def _write_text(path: Path, text: str) -> Path:
    files.write_text(path, text)
    return path
