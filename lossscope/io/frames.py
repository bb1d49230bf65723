"""Where results live: a folder of parts with a manifest, and the summary rows that tables and commands show."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from lossscope.errors import InputError

from .files import write_atomically, write_text

SCHEMA = "lossscope.frame/3"
SUMMARY_SCHEMA = "lossscope.summary/1"
SUMMARY = (
    "source", "objective", "direction", "probe", "statistic", "mean", "std", "n", "n_defined", "unit", "convention",
    "eps", "batch_size", "sampling", "seed",
)  # fmt: skip
KEYS = ("source", "objective", "direction", "probe", "convention", "eps", "batch_size", "sampling", "seed")


@dataclass(frozen=True)
class Frame:
    """A folder: `manifest.json` and `part-NNNNN.parquet`, each written whole, one after every few batches.

    A part is wide: one row per (batch, objective, direction, probe), columns are statistics; `statistics` names those
    that the row has. Parts of single
    queries, when asked for, are `query-NNNNN.parquet`.
    """

    path: Path

    @classmethod
    def open(cls, path: Path | str, command: Mapping[str, Any]) -> Frame:
        """Start a frame, or go on with one that the same command began.

        Raises InputError when the folder holds something else, or the frame of another command.
        """
        frame = cls(Path(path))
        if frame.path.exists() and not frame.path.is_dir():
            raise InputError(f"{frame.path} must be a folder for the frame; it is a file. Choose another --out")
        if frame.path.is_dir() and any(frame.path.iterdir()):
            if not frame._manifest.is_file():
                raise InputError(f"{frame.path} must be empty or a frame; it holds other files. Choose another --out")
            if frame.manifest()["command"] != json.loads(json.dumps(command)):
                raise InputError(f"{frame.path} holds the frame of another command; choose another --out or remove it")
            return frame
        frame._write({"schema": SCHEMA, "command": dict(command), "parts": [], "done": False})
        return frame

    @property
    def _manifest(self) -> Path:
        return self.path / "manifest.json"

    def manifest(self) -> dict[str, Any]:
        """What the frame says of itself. Raises InputError when it is no frame or of a newer schema."""
        try:
            found = json.loads(self._manifest.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise InputError(f"{self.path} must be a frame folder with a readable manifest.json; {error}") from error
        if not isinstance(found, dict) or found.get("schema") != SCHEMA:
            schema = found.get("schema") if isinstance(found, dict) else None
            raise InputError(
                f"{self.path} must have the schema {SCHEMA}; got {schema!r}. Where another version made it, choose "
                "another --out or remove it"
            )
        if not isinstance(found.get("command"), dict) or not isinstance(found.get("parts"), list):
            raise InputError(f"manifest.json of {self.path} must name the command and its parts; it does not")
        return found

    def append(self, rows: pd.DataFrame, key: str, queries: pd.DataFrame | None = None) -> None:
        """Add one part; `key` names the work it finishes, so that a killed sweep goes on after it."""
        manifest = self.manifest()
        number = len(manifest["parts"])
        self._part(f"part-{number:05d}.parquet", rows)
        if queries is not None:
            self._part(f"query-{number:05d}.parquet", queries)
        manifest["parts"].append({"key": key, "rows": len(rows)})
        self._write(manifest)

    def finish(self, **more: Any) -> None:
        """Mark the frame complete, with what else the manifest should say."""
        self._write({**self.manifest(), **more, "done": True})

    def keys(self) -> set[str]:
        """Work that is finished."""
        return {part["key"] for part in self.manifest()["parts"]}

    def read(self, kind: str = "part") -> pd.DataFrame:
        """All rows of the finished parts (`part`), or of single queries (`query`).

        Raises InputError for a part that is missing or damaged.
        """
        numbers = range(len(self.manifest()["parts"]))
        files = [self.path / f"{kind}-{number:05d}.parquet" for number in numbers]
        frames = [_read_part(file) for file in files if kind == "part" or file.is_file()]
        return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame()

    def _part(self, name: str, rows: pd.DataFrame) -> None:
        with write_atomically(self.path / name) as part:
            rows.to_parquet(part, index=False)

    def _write(self, manifest: Mapping[str, Any]) -> None:
        write_text(self._manifest, json.dumps(manifest, indent=1) + "\n")


def _read_part(file: Path) -> pd.DataFrame:
    try:
        return pd.read_parquet(file)
    except (OSError, ValueError) as error:  # pyarrow's errors are ValueErrors
        advice = "remove the folder and run the command again"
        raise InputError(f"{file} must be a whole part of the frame; {error}: {advice}") from error


def summarise(rows: pd.DataFrame, units: Mapping[str, str]) -> pd.DataFrame:
    """Wide rows of batches -> summary rows: mean and population std over batches, n batches, n_defined of them.

    A batch in which a statistic is undefined (NaN, or beyond all numbers) is left out of its mean; a statistic that an
    objective does not have is absent. Columns: SUMMARY.
    """
    names = [name for name in units if name in rows]
    values = rows[names].to_numpy(dtype=float).T
    told, of_rows = reported_statistics(rows)
    keyed, found = rows[list(KEYS)], []
    which = keyed.groupby(list(KEYS), dropna=False, sort=False, observed=True).ngroup().to_numpy()
    firsts = keyed.iloc[np.unique(which, return_index=True)[1]]
    for number, keys in enumerate(firsts.itertuples(index=False)):
        places = np.flatnonzero(which == number)
        there = frozenset[str]().union(*(told[one] for one in np.unique(of_rows[places])))
        for own in (place for place, name in enumerate(names) if name in there):
            some = values[own, places]
            defined = some[np.isfinite(some)]
            found.append({
                **dict(zip(KEYS, keys, strict=True)),
                "statistic": names[own],
                "unit": units[names[own]],
                "mean": float(defined.mean()) if len(defined) else math.nan,
                "std": float(defined.std()) if len(defined) else math.nan,
                "n": len(some),
                "n_defined": len(defined),
            })  # fmt: skip
    return pd.DataFrame(found, columns=list(SUMMARY))


def reported_statistics(rows: pd.DataFrame) -> tuple[list[frozenset[str]], npt.NDArray[np.int64]]:
    """The different sets of statistics that rows tell, and the place of each row's own among them.

    `statistics` names those that a row has, by spaces; a statistic that it has may still be undefined (NaN).
    """
    places, found = pd.factorize(rows["statistics"])
    return [frozenset(str(names).split()) for names in found], places


def summary_document(rows: pd.DataFrame, command: Mapping[str, Any], schema: str = SUMMARY_SCHEMA) -> str:
    """The JSON document of a command: schema, command, rows; NaN is written as null."""
    records = [{key: _plain(value) for key, value in row.items()} for row in rows.to_dict("records")]
    return json.dumps({"schema": schema, "command": dict(command), "rows": records}, indent=1)


def join(frames: Iterable[pd.DataFrame]) -> pd.DataFrame:
    """Summary rows of several sources or probes, one after the other."""
    some = [frame for frame in frames if len(frame)]
    if not some:
        return pd.DataFrame(columns=list(SUMMARY))
    records: list[Any] = [record for frame in some for record in frame.to_dict("records")]
    return pd.DataFrame(records, columns=list(SUMMARY))


def _plain(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if value is pd.NA or value is None:
        return None
    return value.item() if hasattr(value, "item") else value
