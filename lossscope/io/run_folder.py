"""A run folder: config.toml, checkpoints/, best.pt, metrics.csv, trajectory.csv, events.jsonl."""

from __future__ import annotations

import contextlib
import csv
import datetime
import io
import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from lossscope.errors import InputError

from .decode import read_toml
from .files import write_text
from .frames import require_columns

_SIMILARITIES = tuple(f"{side}_{q}" for side in ("pos", "neg") for q in ("mean", "q10", "q50", "q90"))
_EPOCH = re.compile(r"epoch-(\d+)\.pt")


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
        """One row per epoch, row 0 before training: loss, retrieval, similarities on the validation split."""
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
    def probe_schedule(self) -> Path:
        """Which probes run on which steps; absent when none do."""
        return self.path / "probes.toml"

    def epoch(self, number: int) -> Path:
        """Return the path of the weights after an epoch."""
        return self.path / "checkpoints" / f"epoch-{number:02d}.pt"

    def start(self) -> None:
        """Make the folder. Raises InputError when it holds files already."""
        self.require_new()
        if self.writes:
            (self.path / "checkpoints").mkdir(parents=True, exist_ok=True)

    def require_new(self) -> None:
        """Raise InputError when the folder holds files already; make nothing."""
        if self.writes and self.path.exists() and (not self.path.is_dir() or any(self.path.iterdir())):
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
        incomplete = path.is_file() and not path.read_bytes().endswith(b"\n")  # killed while a line was written
        with open(path, "a", encoding="utf-8") as file:
            file.write(("\n" if incomplete else "") + json.dumps({"time": now, "event": what, **details}) + "\n")

    def events(self) -> list[dict[str, Any]]:
        """Return all events, in order; a line that was cut off by a kill is left out."""
        path, events = self.path / "events.jsonl", []
        for line in path.read_text(encoding="utf-8").splitlines() if path.is_file() else ():
            with contextlib.suppress(ValueError):
                events.append(dict(json.loads(line)))
        return events

    def append(self, path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
        """Append rows to one of the tables; the first rows bring the header."""
        rows = list(rows)
        if rows and self.writes:
            new = not path.exists()
            with open(path, "a", encoding="utf-8", newline="") as file:
                file.write(_csv(rows, header=new))

    def truncate(self, epoch: int, step: int) -> None:
        """Drop rows later than `step` of `epoch` from the tables.

        An incomplete last row, cut off by a kill, is dropped too.
        """

        def is_before(row: Mapping[str, str]) -> bool:
            return (int(row["epoch"]), int(row["step"])) <= (epoch, step)

        self._filter(self.trajectory, is_before)
        self._filter(self.probes, is_before)
        self._filter(self.metrics, lambda row: int(row["epoch"]) < epoch)

    def _filter(self, path: Path, keep: Callable[[Mapping[str, str]], bool]) -> None:
        """Write a table again with the rows to keep."""
        if not self.writes or not path.exists():
            return
        text = path.read_text(encoding="utf-8")
        complete_lines = text[: text.rfind("\n") + 1]
        reader = csv.DictReader(io.StringIO(complete_lines))
        names = list(reader.fieldnames or ())
        if not names:  # killed while the header was written: the next row brings it again
            path.unlink()
            return
        rows = [row for row in reader if keep(row)]
        write_text(path, _csv(rows, header=True, names=names))

    def epochs(self, label: str | None = None) -> pd.DataFrame:
        """Read metrics.csv, with a column run: per epoch the mean loss of its steps, and retrieval on validation.

        Args:
            label: value of the column run; the name of the folder where None.

        Raises:
            InputError: the folder has no metrics.csv, or it is damaged.
        """
        if not self.metrics.is_file():
            raise InputError(f"{self.path} must be a run folder with metrics.csv; it has none")
        return _read_table(self.metrics, "epoch").assign(run=label or self.path.name)

    def curves(self, label: str | None = None) -> pd.DataFrame:
        """Return loss, rsum and similarities against epochs: run, epoch, split, loss, rsum, pos_*, neg_*, warmup.

        `train` rows are steps, as running medians over 9 steps of an epoch, so that the last short batch of a summed
        loss is no spike; `val` rows are epochs and have no loss: none is computed on the validation split. `warmup` is
        the objective that an epoch of the warm-up trained with, None in every other.

        Args:
            label: value of the column run; the name of the folder where None.

        Raises:
            InputError: the folder has no metrics.csv, or it is damaged.
        """
        names = ["run", "epoch", "split", "loss", "rsum", *_SIMILARITIES, "warmup"]
        val = self.epochs(label).assign(split="val", loss=float("nan"), warmup=None)
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
        of_epochs = steps.groupby("epoch")["objective"].last()
        later = of_epochs[of_epochs.index > config["warmup"]]
        own = str(later.iloc[0]) if len(later) else str(config["objective"]).partition(":")[0]
        first = of_epochs[of_epochs.index <= config["warmup"]]
        return {int(epoch): str(name) for epoch, name in first.items() if name != own}


def epoch_checkpoints(run: Path | str) -> list[tuple[int, Path]]:
    """Return (epoch, path) of the checkpoints of a run folder, in order. Raises InputError for fewer than two."""
    checkpoints = sorted(
        (int(match[1]), path)
        for path in (Path(run) / "checkpoints").glob("epoch-*.pt")
        if (match := _EPOCH.fullmatch(path.name))
    )
    if len(checkpoints) < 2:
        raise InputError(
            f"{run} must be a run folder with two checkpoints/epoch-NN.pt or more; it has {len(checkpoints)}. Train "
            "for more epochs, or leave --path out"
        )
    return checkpoints


def _read_table(path: Path, *required: str) -> pd.DataFrame:
    """Read a CSV table. Raises InputError when it is damaged or lacks a required column."""
    try:
        table = pd.read_csv(path)
    except ValueError as error:  # pandas' parser errors are ValueErrors
        raise InputError(f"{path} must be a whole CSV table; {error}") from error
    require_columns(table, required, str(path))
    return table


def _csv(rows: list[Any], header: bool, names: list[str] | None = None) -> str:
    """Write rows as CSV text."""
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, names or list(rows[0]), lineterminator="\n")
    if header:
        writer.writeheader()
    writer.writerows(rows)
    return buffer.getvalue()
