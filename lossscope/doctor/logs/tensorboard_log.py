"""Read event files of TensorBoard: a file, or a folder of one training."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from lossscope.errors import InputError
from lossscope.io.reading import show_path
from lossscope.io.tensorboard_events import ScalarEvent, is_event_file, read_scalars

from .assemble import assemble_log
from .base import TrainingLog
from .log_table import Cells, LogTable
from .name_parts import parse_name

_STEP = "step"  # column of the number that every event has


def read_tensorboard_log(path: Path, columns: Mapping[str, str] | None = None) -> TrainingLog:
    """Read the scalars of event files, in the order of their names, which begin with the time.

    Args:
        path: an event file, a folder of event files, or a folder with `train` and `validation`, as Keras writes it.
        columns: the user's choice of columns; their names are the tags.

    Raises:
        InputError: no event file, files of several trainings, a damaged one, no loss, or tensorboard is missing.
    """
    events: list[ScalarEvent] = []
    notices: list[str] = []
    for file, split in event_files(path):
        read = read_scalars(file)
        events += [ScalarEvent(split + event.tag, event.step, event.value) for event in read.events]
        notices += [read.notice] if read.notice else []
    if not events:
        raise InputError(f"{show_path(path)} must hold scalars; it has none. Write them with add_scalar")
    return assemble_log(_table(events, show_path(path)), columns, notices=notices)


def event_files(path: Path) -> Sequence[tuple[Path, str]]:
    """Return event files with the prefix of their tags: the name of their folder, where that is a split.

    Raises InputError for a folder without event files, or with several trainings.
    """
    if not path.is_dir():
        return [(path, "")]
    files = [file for file in sorted(path.iterdir()) if is_event_file(file)]
    if files:
        return [(file, "") for file in files]
    folders = sorted({file.parent for file in path.glob("**/*tfevents*") if is_event_file(file)})
    if not folders:
        raise InputError(f"{show_path(path)} must hold files events.out.tfevents.*; it has none. Give another folder")
    if len(folders) > 1 and not _are_splits(folders):
        names = ", ".join(show_path(folder.relative_to(path)) for folder in folders[:5])
        raise InputError(f"{show_path(path)} must hold one training; it has {len(folders)}: {names}. Give one of them")
    prefixes = {folder: f"{folder.name}/" if len(folders) > 1 else "" for folder in folders}
    return [
        (file, prefix)
        for folder, prefix in prefixes.items()
        for file in sorted(folder.iterdir())
        if is_event_file(file)
    ]


def _are_splits(folders: Sequence[Path]) -> bool:
    """Return whether the folders are siblings, each named after a different split."""
    names = [parse_name(f"{folder.name}/loss") for folder in folders]
    is_named = all(parts.split in ("train", "val") and parts.quantity == "loss" for parts in names)
    splits, parents = {parts.split for parts in names}, {folder.parent for folder in folders}
    return is_named and len(splits) == len(names) and len(parents) == 1


def _table(events: Sequence[ScalarEvent], name: str) -> LogTable:
    rows: dict[str, list[int]] = {}
    for row, event in enumerate(events):
        rows.setdefault(event.tag, []).append(row)
    cells = {
        tag: Cells(np.array(of_tag, np.int64), [events[row].value for row in of_tag]) for tag, of_tag in rows.items()
    }
    steps = Cells(np.arange(len(events), dtype=np.int64), [event.step for event in events])
    return LogTable(name, len(events), {**cells, _STEP: steps}, lambda row: f"event {row + 1}")
