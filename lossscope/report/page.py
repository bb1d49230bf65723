"""How do pictures and tables become one page that opens anywhere?

HTML in one file, a LaTeX folder, CSV, PNG.
"""

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
_WIDEST = 1100  # pixels of a picture on the page, half as many again as are shown
_PIXELS = 110  # to an inch
_T = TypeVar("_T")
_MAIN = r"""\documentclass{article}
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
    """A figure, what it is called, what it shows, and what it shows in words for those who can not see it."""

    name: str
    caption: str
    alt: str
    figure: object


Item = Picture | Table | SliderChart | HeatmapChart


@dataclass(frozen=True)
class Section:
    """A heading, a paragraph or more (parted by empty lines), and pictures, tables and what moves, in order.

    What moves is on the page only; a picture beside it shows the same in print and to those without scripts.
    more: what is folded away on the page until it is asked for; in LaTeX and in print it follows the items.
    """

    title: str
    text: str
    items: tuple[Item, ...] = ()
    more: tuple[Item, ...] = ()

    @property
    def everything(self) -> tuple[Item, ...]:
        """What is shown at once, and what is folded away."""
        return (*self.items, *self.more)

    @property
    def paragraphs(self) -> list[str]:
        """The text, cut at empty lines."""
        return [part.strip() for part in re.split(r"\n\s*\n", self.text) if part.strip()]


def write_page(out: Path, title: str, lead: str, sections: Sequence[Section], provenance: Mapping[str, str]) -> Path:
    """Write `out/index.html` (self-contained), `latex/`, `csv/`, `figures/`, `index.json`; returns the page.

    `lead` is the summary under the title, `provenance` what a reader needs to believe the numbers (versions,
    seeds, commands). Every file is written whole or not at all. Raises InputError when two items have one
    name.
    """
    out = Path(out)
    _check(sections)
    made: list[Path] = []
    for picture in _items(sections, Picture):
        figure = cast("Any", picture.figure)
        figure.draw_without_rendering()
        figure.set_layout_engine("none")  # laid out once, not for each file
        made.append(style.save(figure, out / "figures" / f"{picture.name}.png", alt=picture.alt))
        made.append(style.save(figure, out / "latex" / f"{picture.name}.pdf", alt=picture.alt))
    for table in _items(sections, Table):
        made.append(_text(out / "csv" / f"{table.name}.csv", table.to_csv()))
        made.append(_text(out / "latex" / f"{table.name}.tex", table.to_latex()))
    made.append(_text(out / "latex" / "main.tex", _latex(title, lead, sections, provenance)))
    made.append(_text(out / "index.html", _html(out, title, lead, sections, provenance)))
    before = _listed(out)
    _text(out / "index.json", _listing(out, title, sections, provenance, made))
    for name in before - {path.relative_to(out).as_posix() for path in made}:
        (out / name).unlink(missing_ok=True)  # of an earlier report in this folder
    return out / "index.html"


def _check(sections: Sequence[Section]) -> None:
    names = [item.name for section in sections for item in section.everything]
    for name in names:
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]*", name) or name == "main":
            raise InputError(
                f"name of a picture or table must be letters, digits, - and _, and not main; got {name!r}. Rename it"
            )
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise InputError(f"names in a report must differ; got {', '.join(twice)} twice. Rename one of them")


def _items(sections: Sequence[Section], kind: type[_T]) -> Iterator[_T]:
    return (item for section in sections for item in section.everything if isinstance(item, kind))


def _html(out: Path, title: str, lead: str, sections: Sequence[Section], provenance: Mapping[str, str]) -> str:
    home = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    shots = {picture.name: _embedded(out, picture) for picture in _items(sections, Picture)}
    tables = {table.name: table.to_html() for table in _items(sections, Table)}
    dials = {dial.name: dial.content() for dial in _items(sections, SliderChart)}
    fields = {field.name: field.content() for field in _items(sections, HeatmapChart)}
    told: dict[str, Any] = {"title": title, "lead": lead, "sections": sections, "provenance": provenance}
    # a figure of the screen style is 6.4 inches wide, about two thirds of the page
    widths = {p.name: round(_PIXELS * cast("Any", p.figure).get_figwidth()) for p in _items(sections, Picture)}
    told |= {"shots": shots, "widths": widths, "tables": tables, "dials": dials, "fields": fields}
    # plotly is five megabytes, a third of that compressed, which browsers undo
    packed = base64.b64encode(gzip.compress(library().encode(), 9, mtime=0)).decode() if dials or fields else ""
    return home.get_template("page.html.jinja").render(**told, library=packed)


def _embedded(out: Path, picture: Picture) -> str:
    """The picture as a data address: its PNG as WebP, of half the size; vectors are in latex/."""
    drawn = io.BytesIO()
    with Image.open(out / "figures" / f"{picture.name}.png") as image:
        image.thumbnail((_WIDEST, 4 * _WIDEST))
        image.convert("RGB").save(drawn, "webp", quality=75, method=4)
    return f"data:image/webp;base64,{base64.b64encode(drawn.getvalue()).decode()}"


def _latex(title: str, lead: str, sections: Sequence[Section], provenance: Mapping[str, str]) -> str:
    parts = [formats.latex_text(lead)]
    for section in sections:
        parts.append(rf"\section{{{formats.latex_text(section.title)}}}")
        parts += [formats.latex_text(paragraph) + "\n" for paragraph in section.paragraphs]
        for item in section.everything:
            if isinstance(item, Table | Picture):
                parts.append(rf"\input{{{item.name}}}" if isinstance(item, Table) else _figure(item))
        parts.append(r"\clearpage")
    rows = tuple((key, value) for key, value in provenance.items())
    parts.append(r"\section*{Provenance}" + "\n" + r"\begin{description}")
    parts += [rf"\item[{{{formats.latex_text(key)}}}] {formats.latex_text(value)}" for key, value in rows]
    parts.append(r"\item[] \end{description}" if not rows else r"\end{description}")
    return _MAIN % (formats.latex_text(title), "\n".join(parts))


def _figure(picture: Picture) -> str:
    return (
        "\\begin{figure}[htbp]\n\\centering\n"
        r"\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}"
        rf"{{\includegraphics{{{picture.name}.pdf}}}}"
        "\n"
        rf"\caption{{{formats.latex_text(picture.caption)}}}\label{{fig:{picture.name}}}"
        "\n\\end{figure}"
    )


def _listing(
    out: Path, title: str, sections: Sequence[Section], provenance: Mapping[str, str], made: Sequence[Path]
) -> str:
    listed = [{"path": path.relative_to(out).as_posix(), "sha256": files.fingerprint(path)} for path in sorted(made)]
    parts = [{"title": section.title, "items": [item.name for item in section.everything]} for section in sections]
    content = {
        "schema": SCHEMA,
        "title": title,
        "sections": parts,
        "provenance": dict(provenance),
        "files": listed,
    }
    return json.dumps(content, indent=2, ensure_ascii=False) + "\n"


def _listed(out: Path) -> set[str]:
    """The files that the index of an earlier report names; nothing outside the folder is ever one."""
    try:
        found = json.loads((out / "index.json").read_text(encoding="utf-8"))
        names = {str(one["path"]) for one in found["files"]} if found["schema"] == SCHEMA else set()
    except (OSError, ValueError, KeyError, TypeError):
        return set()
    return {name for name in names if (out / name).resolve().is_relative_to(out.resolve())}


def _text(path: Path, text: str) -> Path:
    files.write_text(path, text)
    return path
