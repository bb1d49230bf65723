"""Write a page on which a person answers which pairs match, and downloads the answers as labels.csv."""

from __future__ import annotations

import base64
import hashlib
import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import jinja2
import numpy as np
import numpy.typing as npt
import pandas as pd
from markupsafe import Markup
from PIL import Image

from lossscope.core.sides import Sides, plural
from lossscope.errors import InputError
from lossscope.io.csv_tables import format_csv
from lossscope.io.files import fingerprint_of, write_text
from lossscope.visible_text import show_text

from ..estimate import design as estimate
from ..estimate.pair_file import DesignRow, answer_column, design_columns, pair_columns

ANSWERS = ("yes", "no", "unsure")
Labelled = Mapping[tuple[str, str], str]
"""Ids of query and candidate -> answer."""
_Value = TypeVar("_Value")
_MAX_SIDE = 512  # pixels of a picture in the page
_LOSSLESS_SIDE = 128  # pixels: in pictures up to this size a viewer sees each pixel


@dataclass(frozen=True)
class PageItem:
    """An item of a side, as the page shows it."""

    id: str
    texts: tuple[str, ...] = ()  # its text; of a picture the texts of its positives
    picture: npt.NDArray[np.uint8] | None = None  # (3, H, W) pixels


@dataclass(frozen=True)
class PagePair:
    """A query and a candidate that probably match, and why."""

    query: PageItem
    candidate: PageItem  # with the picture of its item, if it has any
    probability: float  # that they match
    reasons: tuple[tuple[str, float], ...]  # sentence and its part of the log-odds, the strongest first
    design: DesignRow | None = None  # its stratum; None: the pair was not drawn for the counted rate

    @property
    def ids(self) -> tuple[str, str]:
        """The ids of query and candidate, which name the pair in labels.csv."""
        return self.query.id, self.candidate.id


@dataclass(frozen=True)
class PageDesign:
    """The strata of earlier answers, from which the page chooses its next question."""

    drawn: Mapping[tuple[str, str], DesignRow]  # ids of labelled pairs -> their stratum
    strata: tuple[estimate.Stratum, ...] = ()  # with the answers of `drawn`; none: the page asks in the order of pairs
    precision: float = 4.0  # factor that the interval may span when answers are enough
    size: int = 0  # pairs of the sheet


def write_page(
    path: Path,
    pairs: Sequence[PagePair],
    title: str,
    sides: Sides,
    facts: Sequence[tuple[str, str]],
    labelled: Labelled | None = None,
    design: PageDesign | None = None,
) -> Path:
    """Write the page, one file that needs no network; return its path.

    The browser keeps the answers under a fingerprint of the pairs, whatever their order. labels.csv, which the page
    downloads, also has the answers of `labelled` to pairs that the page does not show, so that no label is lost.

    Args:
        path: file to write.
        pairs: in the order of the page.
        title: of the page.
        sides: of queries and candidates; their names are columns of labels.csv.
        facts: lines at the top, a name and its value each.
        labelled: ids of query and candidate -> yes, no or unsure, as answered before.
        design: of pairs drawn by strata, which decide the order of questions; None: the page asks in the given order.

    Raises:
        InputError: a pair occurs twice, or an answer is not yes, no or unsure.
    """
    path, labelled = Path(path), dict(labelled or {})
    _require_pairs(pairs, labelled)
    environment = _environment()
    style, script = (Markup(environment.get_template(f"page.{part}.jinja").render()) for part in ("css", "js"))
    page = environment.get_template("page.html.jinja").render(
        title=title,
        question=_question(sides),
        facts=facts,
        others=len(_not_shown(pairs, sides, labelled)),
        counts=design is not None and bool(design.strata),
        data=_data(pairs, sides, labelled, design),
        style=style,
        script=script,
        style_hash=_source_hash(style),
        script_hash=_source_hash(script),
    )
    write_text(path, page)
    return path


def _require_pairs(pairs: Sequence[PagePair], labelled: Labelled) -> None:
    seen: set[tuple[str, str]] = set()
    for pair in pairs:
        if pair.ids in seen:
            raise InputError(f"pairs of a page must occur once; got {pair.ids} twice")
        seen.add(pair.ids)
    for ids, answer in labelled.items():
        if answer not in ANSWERS:
            raise InputError(f"answers must be {', '.join(ANSWERS)}; got {answer!r} for {ids}")


def _question(sides: Sides) -> str:
    """Return the question about a pair.

    >>> _question(Sides()), _question(Sides("product", None))
    ('Does this caption match this image?', 'Do these two products match?')
    """
    if sides.second is None:
        return f"Do these two {plural(sides.first)} match?"
    return f"Does this {sides.second} match this {sides.first}?"


def _data(pairs: Sequence[PagePair], sides: Sides, labelled: Labelled, design: PageDesign | None) -> dict[str, Any]:
    """Return the data of the page's script: each pair with its row of labels.csv, and each picture once."""
    pictures = _Pictures()
    keys = [fingerprint_of(_fingerprint(pair.query), _fingerprint(pair.candidate))[:16] for pair in pairs]
    has_strata = design is not None and bool(design.strata or design.drawn)
    columns = (*pair_columns(sides), answer_column(sides), *(design_columns(sides) if has_strata else ()))
    drawn = {} if design is None else {**(_turn(design.drawn) if sides.second is None else {}), **design.drawn}
    no_cells = ("", "") if has_strata else ()

    def cells(row: DesignRow | None) -> tuple[str, ...]:
        return no_cells if row is None else row.cells

    not_shown = _not_shown(pairs, sides, labelled)
    others = [_csv_row(columns, (*ids, labelled[ids], *cells(drawn.get(ids)))) for ids in not_shown]
    given = {**_turn(labelled), **labelled} if sides.second is None else labelled
    return {
        "storage": f"lossscope.labels/{fingerprint_of(sides.text, *sorted(keys))[:16]}",
        "header": format_csv(pd.DataFrame(columns=list(columns))),
        "others": [f"{row}\n" for row in others],
        "otherAnswers": [labelled[ids] for ids in not_shown],
        "design": None if design is None or not design.strata else _design(design),
        "noStratum": ",".join(["", *no_cells]),
        "query": _names(sides, 0),
        "candidate": _names(sides, 1),
        "pairs": [
            {
                "key": key,
                "row": _csv_row(columns[:2], pair.ids),
                "stratum": None if pair.design is None else pair.design.stratum - 1,
                "cells": ",".join(["", *cells(drawn.get(pair.ids, pair.design))]),
                "query": _item(pair.query, pictures),
                "candidate": _item(pair.candidate, pictures),
                "probability": _finite(pair.probability),
                "reasons": [[show_text(sentence), _finite(share)] for sentence, share in pair.reasons],
                "given": given.get(pair.ids),
            }
            for key, pair in zip(keys, pairs, strict=True)
        ],
        "pictures": pictures.addresses,
    }


def _design(design: PageDesign) -> dict[str, Any]:
    """Return the data with which the script counts as `lossscope.audit.estimate.design` does."""
    return {
        "strata": [asdict(stratum) for stratum in design.strata],
        "copies": estimate.share_of_copies(design.strata),
        "precision": design.precision,
        "rare": estimate.RARE,
        "size": design.size,
        "first": estimate.FIRST_ROUND,
        "model": {
            "lowest": estimate.LOWEST, "step": estimate.STEP, "number": estimate.NUMBER,
            "top": estimate.LOWEST_AT_TOP, "falls": estimate.FALLS, "draws": estimate.DRAWS,
        },
    }  # fmt: skip


def _not_shown(pairs: Sequence[PagePair], sides: Sides, labelled: Labelled) -> list[tuple[str, str]]:
    """Return the ids of labelled pairs that are not on the page; of one set (b, a) is (a, b)."""
    shown = dict.fromkeys(pair.ids for pair in pairs)
    both = _turn(shown) | shown if sides.second is None else shown
    return [ids for ids in labelled if ids not in both]


def _turn(pairs: Mapping[tuple[str, str], _Value]) -> dict[tuple[str, str], _Value]:
    return {(b, a): value for (a, b), value in pairs.items()}


def _names(sides: Sides, side: int) -> dict[str, str]:
    """Return the headings of an item of a side, of its texts beside a picture, and of its picture beside a text."""
    if sides.second is None:
        return {"name": sides.first, "texts": "Its texts", "picture": "Its picture"}
    if side == 0:
        return {"name": sides.first, "texts": f"Its own {plural(sides.second)}", "picture": ""}
    return {"name": sides.second, "texts": "Its text", "picture": f"The {sides.first} that it belongs to"}


def _csv_row(columns: Sequence[str], values: Sequence[str]) -> str:
    """Return values as a row of labels.csv, formulas escaped, without the end of the line."""
    header = format_csv(pd.DataFrame(columns=list(columns)))
    row = pd.DataFrame([values], columns=list(columns), dtype=object)  # ids may hold characters that `str` refuses
    return format_csv(row, columns[:2]).removeprefix(header).removesuffix("\n")


def _item(item: PageItem, pictures: _Pictures) -> dict[str, Any]:
    texts = [show_text(text, "\n\t") for text in item.texts]
    number = None if item.picture is None else pictures.place(item.picture)
    return {"id": show_text(item.id), "texts": texts, "picture": number}


def _fingerprint(item: PageItem) -> str:
    return fingerprint_of(item.id, *item.texts, b"" if item.picture is None else item.picture.tobytes())


def _finite(number: float) -> float | None:
    """Return the number if it is finite, else None, as JSON has no NaN."""
    return round(float(number), 6) if math.isfinite(number) else None


@dataclass
class _Pictures:
    """Data URLs of pictures, each once."""

    addresses: list[str] = field(default_factory=list)
    _numbers: dict[str, int] = field(default_factory=dict)  # fingerprint -> index of the data URL

    def place(self, pixels: npt.NDArray[np.uint8]) -> int:
        """Return the index of a picture's data URL; add a new picture."""
        key = fingerprint_of(str(pixels.shape), pixels.tobytes())
        if key not in self._numbers:
            self._numbers[key] = len(self.addresses)
            self.addresses.append(_address(pixels))
        return self._numbers[key]


def _address(pixels: npt.NDArray[np.uint8]) -> str:
    """Return (3, H, W) pixels as a data URL: PNG, or WebP for large pictures, which is several times smaller."""
    image = Image.fromarray(np.ascontiguousarray(pixels.transpose(1, 2, 0)))
    kind = "png" if max(image.size) <= _LOSSLESS_SIDE else "webp"
    image.thumbnail((_MAX_SIDE, _MAX_SIDE))
    buffer = io.BytesIO()
    image.save(buffer, kind, **({"quality": 85} if kind == "webp" else {"optimize": True}))
    return f"data:image/{kind};base64,{base64.b64encode(buffer.getvalue()).decode()}"


def _source_hash(text: str) -> str:
    """Return the source hash with which a content security policy allows this script or style alone."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def _environment() -> jinja2.Environment:
    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        finalize=lambda value: show_text(value, "\n") if type(value) is str else value,
        trim_blocks=True,
        lstrip_blocks=True,
    )
