"""Which reader reads the log of a trainer?"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from lossscope.errors import InputError
from lossscope.io.files import require_file
from lossscope.io.json_files import shorten
from lossscope.io.reading import show_path
from lossscope.io.tensorboard_events import is_event_file
from lossscope.io.text_files import read_utf8

from .base import TrainingLog
from .csv_log import delimiter_of, read_csv_log, read_parquet_log
from .open_clip_log import is_open_clip_log, read_open_clip_log
from .printed_log import has_pairs, read_printed_log
from .run_log import read_run_log
from .tensorboard_log import read_tensorboard_log
from .trainer_state import read_json_lines_log, read_trainer_state

Reader = Callable[[Path, Mapping[str, str] | None], TrainingLog]
_TABLES = (".csv", ".tsv")
_TEXTS = (*_TABLES, ".txt", ".log", ".out", ".err", ".jsonl")
_KINDS = (
    "a table (.csv, .tsv, .parquet), trainer_state.json, JSON lines (.jsonl), events.out.tfevents.*, out.log of "
    "open_clip, what a trainer prints (.log, .out, .txt), or a run folder"
)
_LOOKED_AT = 20  # first lines of a text, which show whether it is a table
_STATE = "trainer_state.json"
_NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?|nan|[-+]?inf(inity)?", re.IGNORECASE)
_CHECKPOINT = re.compile(r"checkpoint-(\d+)")
_OF_FOLDERS = (_STATE, "metrics.csv", "out.log")  # logs that trainers write into a folder


def read_log(path: Path | str, columns: Mapping[str, str] | None = None) -> TrainingLog:
    """Read the log of a training.

    Args:
        path: a file or a folder; its name gives its kind, and the first lines that of a text.
        columns: name of the field -> name in the file, where the usual names are not found: {"loss": "my/loss"}.

    Raises:
        InputError: a missing file, an unknown kind, damage, no loss, or a column that does not exist.
    """
    path = Path(path)
    if path.is_dir():
        return _read_folder(path, columns)
    return _reader_of(require_file(path))(path, columns)


def _read_folder(folder: Path, columns: Mapping[str, str] | None) -> TrainingLog:
    if (folder / "trajectory.csv").is_file():
        if columns:
            raise InputError(f"{show_path(folder)} is a run folder, whose columns doctor knows; leave --column out")
        return read_run_log(folder)
    states = [child / _STATE for child in _checkpoints(folder) if (child / _STATE).is_file()]
    files = [folder / name for name in _OF_FOLDERS if (folder / name).is_file()]
    if chosen := [*files[:1], *states[-1:]]:
        return _reader_of(chosen[0])(chosen[0], columns)
    return read_tensorboard_log(folder, columns)


def _checkpoints(folder: Path) -> list[Path]:
    """Return the folders checkpoint-N of a Hugging Face Trainer, in order."""
    numbers = {child: match for child in folder.iterdir() if (match := _CHECKPOINT.fullmatch(child.name))}
    return sorted(numbers, key=lambda child: int(numbers[child][1]))


def _reader_of(file: Path) -> Reader:
    """Return the reader of a file. Raises InputError for an unknown kind."""
    suffix = file.suffix.lower()
    if is_event_file(file):
        return read_tensorboard_log
    if suffix == ".parquet":
        return read_parquet_log
    if suffix == ".json":
        return read_trainer_state
    if suffix in _TEXTS:
        return _reader_of_text(read_utf8(file), file)
    raise InputError(f"a log must be {_KINDS}; got {show_path(file)}. Give it one of these names")


def _reader_of_text(text: str, file: Path) -> Reader:
    """Return the reader of a text. Raises InputError where no line has a number with a name."""
    lines = [line for line in text.splitlines() if line.strip()]
    if is_open_clip_log(text):
        return read_open_clip_log
    if lines and all(line.lstrip().startswith("{") for line in lines[:_LOOKED_AT]) and _begins_as_json(lines[0]):
        return read_json_lines_log
    if is_table(lines):
        return read_csv_log
    if has_pairs(text):
        return read_printed_log
    if file.suffix.lower() in _TABLES:
        return read_csv_log
    first = shorten(lines[0]) if lines else "empty"
    raise InputError(
        f"a log must be {_KINDS}; no line of {show_path(file)} has a number with its name, such as `loss: 4.2`, "
        f"`loss 4.2 (4.3)` or {{'loss': 4.2}}. Its first line is {first}. Print the loss so, or write a table"
    )


def _begins_as_json(line: str) -> bool:
    """Return whether an object begins as JSON, with double quotes, not as a dictionary of Python."""
    return line.lstrip()[1:].lstrip()[:1] != "'"


def is_table(lines: Sequence[str]) -> bool:
    """Return whether lines below a header have a cell that is a number.

    Args:
        lines: of a text, without empty lines.
    """
    if len(lines) < 2:
        return False
    delimiter = delimiter_of(lines[0])
    cells = (cell.strip().strip('"') for line in lines[1:_LOOKED_AT] for cell in line.split(delimiter))
    return any(_NUMBER.fullmatch(cell) for cell in cells)
