"""Pictures and tables -> one page that opens anywhere: HTML in one file, beside it LaTeX, CSV and PNG."""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import pandas as pd

from lossscope.errors import InputError
from lossscope.io import files
from lossscope.io.folder_lock import has_content, lock_folder
from lossscope.io.json_files import read_json
from lossscope.io.parquet_tables import write_parquet
from lossscope.plots import style
from lossscope.tables.base import Table
from lossscope.visible_text import show_text

from .html import html
from .latex import README, latex
from .sections import Answer, Picture, Section, items_of, require_names

SCHEMA = "lossscope.report/1"
_FOLDERS = ("figures", "latex", "csv", "numbers")


@contextlib.contextmanager
def page_folder(out: Path, option: str = "--out") -> Iterator[None]:
    """Hold the folder of a page from the beginning of the work that its numbers take.

    Args:
        out: the folder.
        option: of the command that names it.

    Raises:
        InputError: it holds other files, cannot be written, or another command writes it.
    """
    require_page_folder(out, option)
    with lock_folder(out, *_FOLDERS):
        yield


def require_page_folder(out: Path, option: str = "--out") -> None:
    """Raise InputError when nothing can be written to the folder, before any work is done for it.

    Args:
        out: folder of a page.
        option: of the command that names it.
    """
    existing = out if out.exists() else next(parent for parent in out.absolute().parents if parent.exists())
    other = f"Choose another {option}"
    if out.is_dir() and has_content(out) and not (out / "index.json").is_file():
        raise InputError(f"{out} must be new, empty, or an earlier report; it holds other files. {other}")
    if out.exists() and not out.is_dir():
        raise InputError(f"{out} must be a folder; it is a file. {other}")
    try:
        with tempfile.NamedTemporaryFile(dir=existing):
            pass
    except OSError as error:
        what = os.strerror(error.errno) if error.errno else error
        raise InputError(f"{out} must be a writable folder; {what}. {other}") from error


def write_page(
    out: Path,
    title: str,
    lead: str,
    sections: Sequence[Section],
    provenance: Mapping[str, str],
    answer: Answer | None = None,
    numbers: Mapping[str, pd.DataFrame] | None = None,
) -> Path:
    """Write `out/index.html` (self-contained), `latex/`, `csv/`, `figures/`, `numbers/` and `index.json`.

    Returns the page.

    Every file is written completely or not at all; files of an earlier report in the folder are removed.

    Args:
        out: folder to write.
        title: of the page.
        lead: what was run, under the title.
        sections: of the page, in order.
        provenance: what a reader needs to believe the numbers: versions, seeds, commands.
        answer: what stands before the sections; None: nothing.
        numbers: name -> rows that tables are made of, for `numbers/` beside those of the pictures.

    Raises:
        InputError: two items or sections have one name, or a name cannot be that of a file.
    """
    out, answer, title, lead = Path(out), answer or Answer(), show_text(title), show_text(lead)
    provenance = {show_text(key): show_text(value) for key, value in provenance.items()}
    require_names(sections, numbers or ())
    with lock_folder(out, *_FOLDERS), style.use({}):
        return _write(out, title, lead, sections, provenance, answer, numbers or {})


def _write(
    out: Path,
    title: str,
    lead: str,
    sections: Sequence[Section],
    provenance: Mapping[str, str],
    answer: Answer,
    numbers: Mapping[str, pd.DataFrame],
) -> Path:
    """Write all files into a folder that is locked, index.json last."""
    if not (out / "index.json").is_file():  # from now on it is the folder of a report, also if this one is killed
        _write_text(out / "index.json", json.dumps({"schema": SCHEMA, "title": title, "plots": {}, "files": []}) + "\n")
    written: list[Path] = []
    for picture in items_of(sections, Picture):
        figure = cast("Any", picture.figure)
        figure.draw_without_rendering()
        figure.set_layout_engine("none")  # laid out once, not for each file
        written.append(style.save(figure, out / "figures" / f"{picture.name}.png", alt=picture.alt))
        written.append(style.save(figure, out / "latex" / f"{picture.name}.pdf", alt=picture.alt))
    drawn = {item.name: item.numbers for item in items_of(sections, Picture) if item.numbers is not None}
    written += [_write_numbers(out, name, frame) for name, frame in {**numbers, **drawn}.items()]
    for table in items_of(sections, Table):
        written.append(_write_text(out / "csv" / f"{table.name}.csv", table.to_csv()))
        written.append(_write_text(out / "latex" / f"{table.name}.tex", table.to_latex()))
    written.append(_write_text(out / "latex" / "main.tex", latex(title, lead, answer, sections, provenance)))
    written.append(_write_text(out / "latex" / "README.md", README))
    page = html(out / "figures", title, lead, answer, sections, provenance)
    written.append(_write_text(out / "index.html", page))
    earlier = _files_of_index(out)
    _write_text(out / "index.json", _index(out, title, answer, sections, provenance, written))
    for name in earlier - {path.relative_to(out).as_posix() for path in written}:
        (out / name).unlink(missing_ok=True)
    return out / "index.html"


def _index(
    out: Path,
    title: str,
    answer: Answer,
    sections: Sequence[Section],
    provenance: Mapping[str, str],
    written: Sequence[Path],
) -> str:
    """Return index.json: findings, sections, provenance and all files with their sums."""
    listed = [{"path": path.relative_to(out).as_posix(), "sha256": files.fingerprint(path)} for path in sorted(written)]
    plots = {picture.name: picture.plot for picture in items_of(sections, Picture) if picture.numbers is not None}
    parts = [{"title": section.title, "items": [item.name for item in section.all_items]} for section in sections]
    content = {
        "schema": SCHEMA,
        "title": title,
        "findings": [{"text": finding.text, "warning": finding.warning} for finding in answer.findings],
        "sections": parts,
        "plots": plots,
        "provenance": dict(provenance),
        "files": listed,
    }
    return json.dumps(content, indent=2, ensure_ascii=False) + "\n"


def _files_of_index(out: Path) -> set[str]:
    """Return the files that the index of an earlier report names, without any outside the folder."""
    try:
        index = read_json(out / "index.json")
        names = {str(file["path"]) for file in index["files"]} if index["schema"] == SCHEMA else set()
    except (OSError, ValueError, KeyError, TypeError):
        return set()
    return {name for name in names if _is_file_within(out, name)}


def _is_file_within(out: Path, name: str) -> bool:
    """Return whether a name leads to a file of the folder; False for one that no file can have."""
    try:
        return (out / name).is_file() and (out / name).resolve().is_relative_to(out.resolve())
    except (OSError, ValueError):
        return False


def _write_numbers(out: Path, name: str, frame: pd.DataFrame) -> Path:
    """Write rows as `lossscope render` reads them."""
    path = out / "numbers" / f"{name}.parquet"
    write_parquet(path, frame)
    return path


def _write_text(path: Path, text: str) -> Path:
    files.write_text(path, text)
    return path
