"""A run folder: config.toml, checkpoints/, best.pt, metrics.csv, trajectory.csv, events.jsonl."""

from __future__ import annotations

import contextlib
import csv
import datetime
import io
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from lossscope.errors import InputError

from .files import write_text

_FOLLOWED = tuple(f"{side}_{q}" for side in ("pos", "neg") for q in ("mean", "q10", "q50", "q90"))


@dataclass(frozen=True)
class Run:
    """Paths of a run, and how its tables grow and are cut back to a checkpoint.

    writes: False in those of a job's processes that leave the writing to the first: then nothing here changes a file.
    """

    path: Path
    writes: bool = True

    @property
    def config(self) -> Path:
        return self.path / "config.toml"

    @property
    def last(self) -> Path:
        """State to continue from: written after every epoch, at intervals within one, and on interruption."""
        return self.path / "checkpoints" / "last.pt"

    @property
    def best(self) -> Path:
        """Weights of the best epoch on the validation split, by the recipe's `select`."""
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
        """One row per step that was looked at: what `--probe` found in its batch."""
        return self.path / "probes.csv"

    @property
    def probing(self) -> Path:
        """Which probes look at which steps; not there when none do."""
        return self.path / "probes.toml"

    def epoch(self, number: int) -> Path:
        """Weights after an epoch."""
        return self.path / "checkpoints" / f"epoch-{number:02d}.pt"

    def start(self) -> None:
        """Make the folder. Raises InputError when it already holds something."""
        self.require_new()
        if self.writes:
            (self.path / "checkpoints").mkdir(parents=True, exist_ok=True)

    def require_new(self) -> None:
        """Raise InputError when the folder already holds something; nothing is made."""
        if self.writes and self.path.exists() and (not self.path.is_dir() or any(self.path.iterdir())):
            raise InputError(
                f"run folder {self.path} must be new or empty; it is not. Continue it with --resume {self.path}, or "
                "choose another --out"
            )

    def event(self, what: str, **details: Any) -> None:
        """Append a line to events.jsonl: what happened when (UTC)."""
        if not self.writes:
            return
        now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
        path = self.path / "events.jsonl"
        torn = path.is_file() and not path.read_bytes().endswith(b"\n")  # killed while a line was written
        with open(path, "a", encoding="utf-8") as file:
            file.write(("\n" if torn else "") + json.dumps({"time": now, "event": what, **details}) + "\n")

    def events(self) -> list[dict[str, Any]]:
        """What happened, in order; a line that a kill has cut is left out."""
        path, found = self.path / "events.jsonl", []
        for line in path.read_text(encoding="utf-8").splitlines() if path.is_file() else ():
            with contextlib.suppress(ValueError):
                found.append(dict(json.loads(line)))
        return found

    def append(self, path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
        """Add rows to one of the tables; the header comes with the first."""
        rows = list(rows)
        if rows and self.writes:
            new = not path.exists()
            with open(path, "a", encoding="utf-8", newline="") as file:
                file.write(_csv(rows, header=new))

    def cut(self, epoch: int, step: int) -> list[dict[str, Any]]:
        """Drop what is later than `step` of epoch `epoch` from the tables; the rows left of that epoch.

        A row cut off in the middle by a kill goes too.
        """

        def before(row: Mapping[str, str]) -> bool:
            return (int(row["epoch"]), int(row["step"])) <= (epoch, step)

        kept = self._keep(self.trajectory, before)
        self._keep(self.probes, before)
        self._keep(self.metrics, lambda row: int(row["epoch"]) < epoch)
        return [row for row in kept if int(row["epoch"]) == epoch]

    def _keep(self, path: Path, wanted: Any) -> list[dict[str, Any]]:
        if not self.writes or not path.exists():
            return []
        text = path.read_text(encoding="utf-8")
        whole = text[: text.rfind("\n") + 1]
        reader = csv.DictReader(io.StringIO(whole))
        names = list(reader.fieldnames or ())
        if not names:  # killed while the header was written: the next row brings it again
            path.unlink()
            return []
        rows = [row for row in reader if wanted(row)]
        write_text(path, _csv(rows, header=True, names=names))
        return rows

    def epochs(self, label: str | None = None) -> pd.DataFrame:
        """metrics.csv with a column run: per epoch the mean loss of its steps, and retrieval on the validation split.

        Raises InputError when the folder has no metrics.csv, or it is damaged.
        """
        if not self.metrics.is_file():
            raise InputError(f"{self.path} must be a run folder with metrics.csv; it has none")
        return _table(self.metrics, "epoch").assign(run=label or self.path.name)

    def curves(self, label: str | None = None) -> pd.DataFrame:
        """Loss, rsum and similarities against epochs: columns run, epoch, split, loss, rsum, pos_*, neg_*.

        `train` rows are steps, as running medians over 9 steps of an epoch, so that the last short batch of a summed
        loss is no spike; `val` rows are epochs and have no loss: none is computed on the validation split.
        Raises InputError when the folder has no metrics.csv, or it is damaged.
        """
        names = ["run", "epoch", "split", "loss", "rsum", *_FOLLOWED]
        val = self.epochs(label).assign(split="val", loss=float("nan"))
        if not self.trajectory.is_file():
            return val.reindex(columns=names)
        steps = _table(self.trajectory, "epoch", "step")
        epoch = steps["epoch"]
        part = steps["step"] / steps.groupby("epoch")["step"].transform("max")
        followed = steps.reindex(columns=["loss", *_FOLLOWED]).astype(float).groupby(epoch)
        smooth = followed.rolling(9, center=True, min_periods=1).median().reset_index(level=0, drop=True).sort_index()
        train = smooth.assign(epoch=epoch - 1 + part, split="train", run=val["run"].iloc[0])
        parts = [f.reindex(columns=names).dropna(axis=1, how="all") for f in (train, val)]
        return pd.concat(parts, ignore_index=True).reindex(columns=names)


def _table(path: Path, *needed: str) -> pd.DataFrame:
    try:
        found = pd.read_csv(path)
    except ValueError as error:  # pandas' parser errors are ValueErrors
        raise InputError(f"{path} must be a whole CSV table; {error}") from error
    missing = [name for name in needed if name not in found]
    if missing:
        raise InputError(f"{path} must have the columns {', '.join(needed)}; missing {', '.join(missing)}")
    return found


def _csv(rows: list[Any], header: bool, names: list[str] | None = None) -> str:
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, names or list(rows[0]), lineterminator="\n")
    if header:
        writer.writeheader()
    writer.writerows(rows)
    return buffer.getvalue()


_EPOCH = re.compile(r"epoch-(\d+)\.pt")


def epoch_checkpoints(run: Path | str) -> list[tuple[int, Path]]:
    """The checkpoints of a run folder, (epoch, path) in order.

    Raises InputError when the folder keeps fewer than two.
    """
    found = sorted(
        (int(match[1]), path)
        for path in (Path(run) / "checkpoints").glob("epoch-*.pt")
        if (match := _EPOCH.fullmatch(path.name))
    )
    if len(found) < 2:
        raise InputError(
            f"{run} must be a run folder with two checkpoints/epoch-NN.pt or more; it has {len(found)}. Train for more "
            "epochs, or leave --path out"
        )
    return found
