"""A run folder: config.toml, checkpoints/, best.pt, metrics.csv, trajectory.csv, events.jsonl."""

from __future__ import annotations

import contextlib
import datetime
import json
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from lossscope.errors import InputError

from .column_types import ColumnType
from .csv_tables import read_csv
from .decode import read_toml
from .folder_lock import has_content, lock_folder
from .frames import require_columns
from .json_files import expect, member, parse_json
from .run_tables import RunTable
from .scores import score_column
from .temporary_files import sync_folder
from .text_files import require_text_file
from .write_errors import explain_write_errors

_SIMILARITIES = tuple(f"{side}_{q}" for side in ("pos", "neg") for q in ("mean", "q10", "q50", "q90"))
_TYPES: dict[str, ColumnType] = {
    **dict.fromkeys(("epoch", "step", "loss", "val_loss", "rsum", *_SIMILARITIES), "number"),
    "objective": "text",
}
_OF_WARMUP: tuple[tuple[str, type[Any]], ...] = (("warmup", int), ("objective", str))  # keys of config.toml
_EPOCH = re.compile(r"epoch-(\d+)")


def epoch_of(path: Path) -> int | None:
    """Return the epoch of a checkpoint epoch-NN, of any format; None of another file.

    >>> epoch_of(Path("run/checkpoints/epoch-07.pt")), epoch_of(Path("run/best.pt"))
    (7, None)
    """
    match = _EPOCH.fullmatch(path.stem)
    return int(match[1]) if match else None


@dataclass(frozen=True)
class Run:
    """Paths of a run; its tables grow row by row, and are cut back to a checkpoint when training resumes."""

    path: Path  # the folder
    writes: bool = True  # False: no method changes a file; for every process of a job but the first

    @property
    def config(self) -> Path:
        """The recipe."""
        return self.path / "config.toml"

    @property
    def last(self) -> Path:
        """State to resume from: written after every epoch, at intervals within one, and on interruption."""
        return self.path / "checkpoints" / "last.pt"

    @property
    def best(self) -> Path:
        """Weights of the best epoch on the validation split, by the recipe's `select_by`."""
        return self.path / "best.pt"

    @property
    def metrics(self) -> Path:
        """One row per epoch, row 0 before training: losses, retrieval, similarities on the validation split."""
        return self.path / "metrics.csv"

    @property
    def trajectory(self) -> Path:
        """One row per step: loss, gradient norm, positive and hardest-negative similarity in the batch."""
        return self.path / "trajectory.csv"

    @property
    def probes(self) -> Path:
        """One row per step on which probes ran: the statistics of `--probe` in its batch."""
        return self.path / "probes.csv"

    @property
    def labels(self) -> Path:
        """Soft label of each training caption in the latest epoch, as --info takes it; absent where there is none."""
        return self.path / "labels.npz"

    @property
    def probe_schedule(self) -> Path:
        """Which probes run on which steps; absent when none do."""
        return self.path / "probes.toml"

    def epoch(self, number: int) -> Path:
        """Return the path of the weights after an epoch."""
        return self.path / "checkpoints" / f"epoch-{number:02d}.pt"

    def lock(self) -> contextlib.AbstractContextManager[None]:
        """Hold the lock of the folder, in the process that writes. Raises InputError when another one writes it."""
        return lock_folder(self.path, "checkpoints") if self.writes else contextlib.nullcontext()

    def start(self) -> None:
        """Make the folder. Raises InputError when it holds files already."""
        self.require_new()
        if self.writes:
            self.probe_schedule.unlink(missing_ok=True)
            (self.path / "checkpoints").mkdir(parents=True, exist_ok=True)

    def require_new(self) -> None:
        """Raise InputError when the folder holds files already; make nothing.

        What a start leaves that was killed before config.toml was written, from which nothing resumes, is no file.
        """
        begun = (self.probe_schedule.name, "checkpoints")
        if self.writes and (has_content(self.path, *begun) or has_content(self.path / "checkpoints")):
            raise InputError(
                f"run folder {self.path} must be new or empty; it is not. Resume it with --resume {self.path}, or "
                "choose another --out"
            )

    def event(self, what: str, **details: Any) -> None:
        """Append a line to events.jsonl: the time (UTC), the event and its details."""
        if not self.writes:
            return
        now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
        path = self.path / "events.jsonl"
        incomplete = path.is_file() and not _ends_in_line(path)  # killed while a line was written
        with explain_write_errors(path), open(path, "a", encoding="utf-8") as file:
            file.write(("\n" if incomplete else "") + json.dumps({"time": now, "event": what, **details}) + "\n")

    def events(self) -> list[dict[str, Any]]:
        """Return all events, in order; a line that was cut off by a kill is left out."""
        path, events = self.path / "events.jsonl", []
        text = require_text_file(path).read_bytes().decode("utf-8", "replace") if path.is_file() else ""
        for line in text.splitlines():
            with contextlib.suppress(InputError):
                events.append(expect(parse_json(line, str(path)), dict, str(path)))
        return events

    def append(self, path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
        """Append rows to one of the tables; the first rows bring the header. Raises WriteError."""
        if self.writes:
            RunTable(path).append(rows)

    def sync(self) -> None:
        """Wait until the rows of all tables are on the disk; before a checkpoint that counts on them is written."""
        if self.writes:
            for table in self._tables:
                table.sync()
            sync_folder(self.path)

    def truncate(self, epoch: int, step: int) -> None:
        """Drop rows later than `step` of `epoch` from the tables. Raises InputError for a damaged one.

        An incomplete last row, cut off by a kill, is dropped too.
        """
        if self.writes:
            trajectory, probes, metrics = self._tables
            trajectory.keep(lambda key: key <= (epoch, step))
            probes.keep(lambda key: key <= (epoch, step))
            metrics.keep(lambda key: key < (epoch,))

    def require_rows(self, epochs: int, step: int, steps: int, probe_every: int | None) -> None:
        """Raise InputError unless the tables have a row for every step and epoch that the checkpoint counts on.

        Args:
            epochs: finished, of the checkpoint.
            step: of the epoch under way.
            steps: of an epoch.
            probe_every: steps from a row of probes.csv to the next; None: there are none.
        """
        trajectory, probes, metrics = self._tables
        ends = [steps] * epochs + [step]
        metrics.require(((epoch,) for epoch in range(epochs + 1)), self.last)
        trajectory.require(((e, s) for e, end in enumerate(ends, 1) for s in range(1, end + 1)), self.last)
        if probe_every is not None:
            due = ((e, s) for e, end in enumerate(ends, 1) for s in range(1, end + 1, probe_every))
            probes.require(due, self.last)

    @property
    def _tables(self) -> tuple[RunTable, RunTable, RunTable]:
        return RunTable(self.trajectory), RunTable(self.probes), RunTable(self.metrics, ("epoch",))

    def epochs(self, label: str | None = None) -> pd.DataFrame:
        """Read metrics.csv, with a column run: per epoch the mean loss of its steps, and retrieval on validation.

        Args:
            label: value of the column run; the name of the folder where None.

        Raises:
            InputError: the folder has no metrics.csv, or it is damaged.
        """
        if not self.metrics.is_file():
            raise InputError(f"{self.path} must be a run folder with metrics.csv; it has none")
        rows = _read_table(self.metrics, "epoch")
        if rows.empty:
            raise InputError(f"{self.metrics} must have a row for each epoch; it has none. Train for an epoch")
        twice = rows["epoch"][rows["epoch"].duplicated()]
        if len(twice):
            raise InputError(f"{self.metrics} must have one row for each epoch; it has two for {twice.iloc[0]:g}")
        return rows.assign(run=label or self.path.name)

    def curves(self, label: str | None = None) -> pd.DataFrame:
        """Return loss, rsum and similarities against epochs: run, epoch, split, loss, rsum, pos_*, neg_*, warmup.

        Of other sides than images and captions nDCG@10 of the first direction takes the place of rsum.

        `train` rows are steps, as running medians over 9 steps of an epoch, so that the last short batch of a summed
        loss is no spike. `val` rows are epochs; their loss is that of the run's own objective on the validation split,
        in the warm-up too, NaN in runs of earlier versions. `warmup` is the objective that an epoch of the warm-up
        trained with, None in every other.

        Args:
            label: value of the column run; the name of the folder where None.

        Raises:
            InputError: the folder has no metrics.csv, or it is damaged.
        """
        epochs = self.epochs(label)
        column, score = score_column(epochs.columns)
        names = ["run", "epoch", "split", "loss", score.name, *_SIMILARITIES, "warmup"]
        loss = epochs["val_loss"] if "val_loss" in epochs else float("nan")
        val = epochs.assign(split="val", loss=loss, warmup=None).rename(columns={column: score.name})
        if not self.trajectory.is_file():
            return val.reindex(columns=names)
        steps = _read_table(self.trajectory, "epoch", "step")
        warmup = self._warmup(steps)
        epoch = steps["epoch"]
        fraction = steps["step"] / steps.groupby("epoch")["step"].transform("max")
        by_epoch = steps.reindex(columns=["loss", *_SIMILARITIES]).astype(float).groupby(epoch)
        smooth = by_epoch.rolling(9, center=True, min_periods=1).median().reset_index(level=0, drop=True).sort_index()
        train = smooth.assign(epoch=epoch - 1 + fraction, split="train", run=val["run"].iloc[0])
        named = [rows.assign(warmup=of.map(warmup)) for rows, of in ((train, epoch), (val, val["epoch"]))]
        parts = [rows.reindex(columns=names).dropna(axis=1, how="all") for rows in named]
        curves = pd.concat(parts, ignore_index=True).reindex(columns=names)
        return curves.assign(warmup=curves["warmup"].astype(object).where(curves["warmup"].notna(), None))

    def _warmup(self, steps: pd.DataFrame) -> dict[int, str]:
        """Return epoch -> its objective, of the first epochs that trained with another than the run's own."""
        config = read_toml(self.config) if self.config.is_file() else {}
        if "objective" not in steps or not config.get("warmup"):
            return {}
        epochs, own_spec = (member(config, key, kind, str(self.config)) for key, kind in _OF_WARMUP)
        of_epochs = steps.groupby("epoch")["objective"].last()
        later = of_epochs[of_epochs.index > epochs]
        main = str(later.iloc[0]) if len(later) else str(own_spec).partition(":")[0]
        first = of_epochs[of_epochs.index <= epochs]
        return {int(epoch): str(name) for epoch, name in first.items() if name != main}


def list_checkpoints(run: Path | str) -> list[tuple[int, Path]]:
    """Return (epoch, path) of the checkpoints of a run folder, in the order of epochs."""
    return sorted(
        (epoch, path)
        for path in (Path(run) / "checkpoints").glob("epoch-*.pt")
        if (epoch := epoch_of(path)) is not None
    )


def epoch_checkpoints(run: Path | str) -> list[tuple[int, Path]]:
    """Return (epoch, path) of the checkpoints of a run folder, in order. Raises InputError for fewer than two."""
    checkpoints = list_checkpoints(run)
    if len(checkpoints) < 2:
        raise InputError(
            f"{run} must be a run folder with two checkpoints/epoch-NN.pt or more; it has {len(checkpoints)}. Train "
            "for more epochs, or leave --path out"
        )
    return checkpoints


def _read_table(path: Path, *required: str) -> pd.DataFrame:
    """Read a CSV table. Raises InputError when it is damaged or lacks a required column."""
    table = read_csv(path, _TYPES, growing=True)
    require_columns(table, required, str(path))
    keys = table[list(required)]
    if bool((keys.isna() | (keys % 1 != 0)).any(axis=None)):
        raise InputError(f"{' and '.join(required)} of {path} must be whole numbers in every row; they are not")
    return table


def _ends_in_line(path: Path) -> bool:
    """Return whether a file is empty or ends with the end of a line."""
    with open(path, "rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(size - 1, 0))
        return file.read(1) in (b"", b"\n")
