"""A training's log, whatever its trainer writes: which reader reads it?"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path

from lossscope.errors import InputError
from lossscope.io.files import require_file
from lossscope.io.reading import show_path
from lossscope.io.tensorboard_events import is_event_file
from lossscope.io.text_files import read_utf8

from .base import TrainingLog
from .csv_log import read_csv_log, read_parquet_log
from .open_clip_log import is_open_clip_log, read_open_clip_log
from .run_log import read_run_log
from .tensorboard_log import read_tensorboard_log
from .trainer_state import read_json_lines_log, read_trainer_state

Reader = Callable[[Path, Mapping[str, str] | None], TrainingLog]
_TEXTS = (".csv", ".tsv", ".txt", ".log", ".jsonl")
_KINDS = (
    "a table (.csv, .tsv, .parquet), trainer_state.json, JSON lines (.jsonl), events.out.tfevents.*, out.log of "
    "open_clip, or a run folder"
)
_STATE = "trainer_state.json"
_CHECKPOINT = re.compile(r"checkpoint-(\d+)")
_OF_FOLDERS = (_STATE, "metrics.csv", "out.log")  # logs that trainers write into a folder


def read_log(path: Path | str, columns: Mapping[str, str] | None = None) -> TrainingLog:
    """Read the log of a training.

    Args:
        path: a file or a folder; which kind it is follows from names and, of texts, from what they say.
        columns: name of the field -> name in the file, where the usual names are not found: {"loss": "my/loss"}.

    Raises:
        InputError: nothing there, a kind that is not known, damage, no loss, or a column that does not exist.
    """
    path = Path(path)
    if path.is_dir():
        return _read_folder(path, columns)
    return _reader_of(require_file(path))(path, columns)


def _read_folder(folder: Path, columns: Mapping[str, str] | None) -> TrainingLog:
    if (folder / "trajectory.csv").is_file():
        if columns:
            raise InputError(f"{show_path(folder)} is a run folder, whose columns are known; leave --column out")
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
    """Return what reads a file. Raises InputError for a kind that is not known."""
    suffix = file.suffix.lower()
    if is_event_file(file):
        return read_tensorboard_log
    if suffix == ".parquet":
        return read_parquet_log
    if suffix == ".json":
        return read_trainer_state
    if suffix in _TEXTS:
        return _reader_of_text(read_utf8(file))
    raise InputError(f"a log must be {_KINDS}; got {show_path(file)}. Give it one of these names")


def _reader_of_text(text: str) -> Reader:
    if is_open_clip_log(text):
        return read_open_clip_log
    return read_json_lines_log if text.removeprefix("\ufeff").lstrip().startswith("{") else read_csv_log
