"""Result files: a folder of parquet parts with a manifest, and the summary rows that tables and commands show."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from lossscope.errors import InputError

from .batch_groups import COLUMNS as GROUP_COLUMNS
from .batch_groups import BatchGroup
from .column_types import ColumnType, require_types, types_of
from .csv_tables import read_csv
from .folder_lock import has_content, lock_folder
from .json_files import member, shorten
from .manifests import read_manifest, write_manifest
from .parquet_tables import read_parquet, write_parquet
from .reading import naming, show_path
from .versions import own_version

SCHEMA = "lossscope.frame/5"
_SCHEMAS = ("lossscope.frame/4", SCHEMA)  # that are read; the first has no digests of its parts
SUMMARY_SCHEMA = "lossscope.summary/1"
SUMMARY = (
    "source", "objective", "direction", "probe", "statistic", "mean", "std", "low", "high", "level", "method", "n",
    "n_defined", "n_spread", "short_batch", "unit", "weight_unit", "convention", "eps", "batch_size", "sampling",
    "seed",
)  # fmt: skip
INTERVAL = ("low", "high", "level", "method")  # the interval of a mean over data: its ends, its level, how it was made
SIDES = "sides"  # further column of rows that are of other sides than images and captions: `query/document`
MEMBERS = "members"  # further column of rows of an ensemble: the models whose similarities are averaged
EPOCHS = "epochs"  # further column of rows of runs: of the training; 0: the model as it came, nan: unknown
USED = "used"  # further column of rows of a data set of files: `all 350 rows of rows.jsonl`
OPTIONAL = (*INTERVAL, "n_defined", "n_spread", "short_batch", "weight_unit")  # columns that summary rows may lack
_NUMBERS = frozenset({
    "mean", "std", "low", "high", "level", "n", "n_defined", "n_spread", "short_batch", "eps", "batch_size", "seed",
})  # fmt: skip
SUMMARY_TYPES: Mapping[str, ColumnType] = {
    name: "number" if name in _NUMBERS else "text" for name in (*SUMMARY, SIDES, USED, MEMBERS)
}
"""Column of summary rows -> its type; a value may be missing."""
ROW_TYPES: Mapping[str, ColumnType] = {
    **SUMMARY_TYPES, "query_id": "text", "candidate_id": "text", "query_text": "text", "candidate_text": "text",
}  # fmt: skip
"""Column of summary rows, or of rows of queries and candidates -> its type."""
TEXTS = frozenset({name for name, kind in SUMMARY_TYPES.items() if kind == "text"} | {"statistics"})
"""Columns of texts among those of parts and summary rows; all others are numbers."""
_WHOLE = ("n", "n_defined", "n_spread", "short_batch")  # whole numbers, floats where some are missing
KEYS = (
    "source", "objective", "direction", "probe", "weight_unit", "convention", "eps", "batch_size", "sampling", "seed",
)  # fmt: skip


Ends = Callable[[Mapping[Any, Any], str, str, float], Mapping[str, Any]]


@dataclass(frozen=True)
class Frame:
    """A result folder: `manifest.json` and `part-NNNNN.parquet`, each written atomically, a part every few batches.

    A part is wide: one row per (batch, objective, direction, probe) and one column per statistic; its column
    `statistics` names those that the row has. Rows of single queries, where kept, are in `query-NNNNN.parquet`.
    """

    path: Path  # the folder

    @classmethod
    def open(cls, path: Path | str, command: Mapping[str, Any]) -> Frame:
        """Start a frame, or resume the one that the same command started.

        Raises InputError when the folder holds other files, or the frame of another command.
        """
        path = Path(path)
        if path.exists() and not path.is_dir():
            raise InputError(f"{path} must be a folder for the frame; it is a file. Choose another --out")
        with lock_folder(path):
            return cls(path)._begin(command)

    def _begin(self, command: Mapping[str, Any]) -> Frame:
        if has_content(self.path):
            if not self._manifest.is_file():
                raise InputError(f"{self.path} must be empty or a frame; it holds other files. Choose another --out")
            if self.manifest()["command"] != json.loads(json.dumps(command)):
                raise InputError(f"{self.path} holds the frame of another command; choose another --out or remove it")
            return self
        write_manifest(self._manifest, {"schema": SCHEMA, "command": dict(command), "parts": [], "done": False})
        return self

    @property
    def _manifest(self) -> Path:
        return self.path / "manifest.json"

    def manifest(self) -> dict[str, Any]:
        """Read `manifest.json`. Raises InputError when it is damaged, of no frame, or of a frame of another schema."""
        manifest = read_manifest(self._manifest)
        where = str(self._manifest)
        if manifest.get("schema") not in _SCHEMAS:
            raise InputError(
                f"{self.path} must have the schema {SCHEMA}; got {shorten(manifest.get('schema'))}. Where another "
                "version made it, choose another --out or remove it"
            )
        member(manifest, "command", dict, where)
        parts, has_digests = member(manifest, "parts", list, where), manifest["schema"] == SCHEMA
        keys = [_require_part(part, has_digests, where) for part in parts]
        if len(set(keys)) < len(keys):
            raise InputError(f"parts of {where} must have different keys; two have the same. Run it again elsewhere")
        return manifest

    def append(
        self, rows: pd.DataFrame, key: str, queries: pd.DataFrame | None = None, items: pd.DataFrame | None = None
    ) -> None:
        """Add one part.

        Args:
            rows: of the part.
            key: names the work that the part completes, so that a killed sweep resumes after it.
            queries: rows of single queries, where they are kept.
            items: sums over items, from which intervals follow.
        """
        manifest = self.manifest()
        number = len(manifest["parts"])
        digest = write_parquet(self._file("part", number), rows)
        part = {"key": key, "version": own_version(), "rows": len(rows), "part": digest}
        if queries is not None:
            part |= {"queries": len(queries), "query": write_parquet(self._file("query", number), queries)}
        if items is not None:
            part |= {"units": len(items), "items": write_parquet(self._file("items", number), items)}
        manifest["parts"].append(part)
        write_manifest(self._manifest, manifest)

    def finish(self, **more: Any) -> None:
        """Mark the frame complete and add `more` entries to the manifest."""
        write_manifest(self._manifest, {**self.manifest(), **more, "done": True})

    def keys(self) -> set[str]:
        """Return the keys of the parts that are written."""
        return {part["key"] for part in self.manifest()["parts"]}

    def versions(self) -> tuple[str, ...]:
        """Return the versions of lossscope that computed the parts, each once; "" for one that no entry states.

        Manifests of before parts stated it have one version of the whole frame, once that is finished.
        """
        manifest = self.manifest()
        of_frame = manifest.get("version", "")
        return tuple(dict.fromkeys(str(part.get("version", of_frame)) for part in manifest["parts"]))

    def read(self, kind: str = "part") -> pd.DataFrame:
        """Return all rows of the parts, of batches (kind `part`) or of single queries (`query`).

        Raises InputError for a part that is missing, damaged, or not the one that was written.
        """
        parts = self.manifest()["parts"]
        files = [(self._file(kind, number), part) for number, part in enumerate(parts)]
        frames = [_read_part(file, kind, part) for file, part in files if kind == "part" or file.is_file()]
        return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame()

    def has_items(self) -> bool:
        """Return whether every part has sums over items, which those of earlier versions have not."""
        parts = self.manifest()["parts"]
        return bool(parts) and all("items" in part for part in parts)

    def read_items(self) -> Iterator[tuple[str, pd.DataFrame]]:
        """Yield the sums over items of each part, with the name of its file.

        Raises InputError for a part that is missing, damaged, or not the one that was written.
        """
        for number, part in enumerate(self.manifest()["parts"]):
            file = self._file("items", number)
            yield show_path(file), _read_part(file, "items", part)

    def _file(self, kind: str, number: int) -> Path:
        return self.path / f"{kind}-{number:05d}.parquet"


def _read_part(file: Path, kind: str, part: Mapping[str, Any]) -> pd.DataFrame:
    rows = read_parquet(file, advice="Remove the folder and run the command again", sha256=part.get(kind))
    if kind == "part":
        require_columns(rows, (*KEYS, "statistics"), show_path(file))
    require_types(rows, types_of(rows, TEXTS), show_path(file))
    stated = part.get({"part": "rows", "query": "queries", "items": "units"}[kind], len(rows))
    if len(rows) != stated:
        raise InputError(f"{file} must have the {stated} rows that manifest.json states; it has {len(rows)}")
    return rows


def read_rows(path: Path | str, needed: Sequence[str] = ()) -> pd.DataFrame:
    """Read rows of numbers, as `--format csv` prints them and as an evaluation holds them.

    Of several tables in one .csv, the first that has the columns `needed` is read.

    Raises InputError for a file that is neither .csv nor .parquet, is missing, or damaged.
    """
    path = Path(path)
    if path.suffix not in (".csv", ".parquet"):
        raise InputError(f"rows must be in a .csv or .parquet file; got {path.name!r}")
    with naming(path, f"a readable {path.suffix} file"):
        if path.suffix == ".csv":
            return read_csv(path, ROW_TYPES, needed=needed)
        return read_parquet(path, ROW_TYPES)


def in_folds(rows: pd.DataFrame) -> pd.Series[bool]:
    """Return which summary rows of retrieval are means over folds of a split, `5 folds`, not of a whole split."""
    return rows["sampling"].astype(str).str.endswith(" folds")


def require_columns(frame: pd.DataFrame, columns: Sequence[str], what: str) -> None:
    """Raise InputError, naming what is missing, unless the frame has these columns.

    Args:
        frame: any rows.
        columns: names of the columns that are needed.
        what: what the rows are, for the message.
    """
    missing = [column for column in columns if column not in frame.columns]
    if missing:
        raise InputError(
            f"{what} must have the columns {', '.join(columns)}; got {', '.join(map(str, frame.columns)) or 'none'}. "
            f"Add {', '.join(missing)}"
        )


def _require_part(part: object, has_digests: bool, where: str) -> str:
    """Return the key of a part in a manifest. Raises InputError when the entry lacks something, or has a wrong type."""
    key = member(part, "key", str, f"a part of {where}")
    if member(part, "rows", int, f"a part of {where}") < 0:
        raise InputError(f"rows of part {shorten(key)} of {where} must be at least 0")
    if has_digests:
        member(part, "part", str, f"a part of {where}")
    if isinstance(part, dict) and "version" in part:  # which those of earlier versions lack
        member(part, "version", str, f"a part of {where}")
    return key


def summarise(
    rows: pd.DataFrame, units: Mapping[str, str], totals: Collection[str] = (), ends: Ends | None = None
) -> pd.DataFrame:
    """Return summary rows (columns SUMMARY) of wide rows of batches: mean and population std of each statistic.

    n is the number of batches, n_defined of those in the mean, in which the statistic is finite, and n_spread of those
    in the std; `short_batch` says how many items a batch has that is left out of it, see `BatchGroup`. A statistic that
    an objective does not have is absent.

    Args:
        rows: wide rows, as in the parts of a Frame.
        units: statistic -> unit, in the order of the summary rows.
        totals: statistics that are numbers of a whole batch, such as C_B and C_0.
        ends: returns the columns INTERVAL of a row, from its keys, statistic, unit and mean; None: there are none.
    """
    names = [name for name in units if name in rows]
    values = rows[names].to_numpy(dtype=float).T
    statistic_sets, set_of_row = reported_statistics(rows)
    names_of_keys = [*KEYS, *further_columns(rows)]
    key_columns, of_groups, summary = rows[names_of_keys], rows[list(GROUP_COLUMNS)], []
    group_of_row = key_columns.groupby(names_of_keys, dropna=False, sort=False, observed=True).ngroup().to_numpy()
    first_rows = key_columns.iloc[np.unique(group_of_row, return_index=True)[1]]
    for group, keys in enumerate(first_rows.to_dict("records")):
        batches = np.flatnonzero(group_of_row == group)
        averaged = BatchGroup.of(of_groups.iloc[batches])
        reported = frozenset[str]().union(*(statistic_sets[number] for number in np.unique(set_of_row[batches])))
        for column in (column for column, name in enumerate(names) if name in reported):
            of_batches, name = values[column, batches], names[column]
            mean = float((averaged.mean_of_totals if name in totals else averaged.mean)(of_batches))
            row: dict[Any, Any] = {**keys, "statistic": name, "unit": units[name], "mean": mean}
            row |= {} if ends is None else ends(keys, name, units[name], mean)
            row |= {
                "std": float(averaged.std(of_batches)),
                "n": len(of_batches),
                "n_defined": int(np.isfinite(of_batches).sum()),
                "n_spread": averaged.n_spread(of_batches),
                "short_batch": averaged.short_batch,
            }
            summary.append(row)
    return pd.DataFrame(summary, columns=[*SUMMARY, *names_of_keys[len(KEYS) :]])


def reported_statistics(rows: pd.DataFrame) -> tuple[list[frozenset[str]], npt.NDArray[np.int64]]:
    """Return the different sets of statistics that rows report, and the number of each row's set (n,).

    The column `statistics` names those of a row, separated by spaces; a reported statistic may be undefined (NaN).
    """
    set_of_row, texts = pd.factorize(rows["statistics"])
    return [frozenset(str(names).split()) for names in texts], set_of_row


def summary_document(
    rows: pd.DataFrame,
    command: Mapping[str, Any],
    schema: str = SUMMARY_SCHEMA,
    more: Mapping[str, Any] | None = None,
) -> str:
    """Return the JSON document of a command: schema, command, rows, and `more` entries; NaN is written as null."""
    return json.dumps({"schema": schema, "command": dict(command), "rows": plain_rows(rows), **(more or {})}, indent=1)


def plain_rows(rows: pd.DataFrame) -> list[dict[str, Any]]:
    """Return summary rows as plain values, as JSON has them: None for NaN."""
    return [_json_row(row) for row in rows.to_dict("records")]


def further_columns(*rows: Container[str]) -> list[str]:
    """Return SIDES, USED and MEMBERS as far as any of some rows or frames have them beside SUMMARY."""
    return [name for name in (SIDES, USED, MEMBERS) if any(name in part for part in rows)]


def join(frames: Iterable[pd.DataFrame]) -> pd.DataFrame:
    """Concatenate summary rows of several sources or probes."""
    filled = [frame for frame in frames if len(frame)]
    if not filled:
        return pd.DataFrame(columns=list(SUMMARY))
    records: list[Any] = [record for frame in filled for record in frame.to_dict("records")]
    return pd.DataFrame(records, columns=[*SUMMARY, *further_columns(*filled)])


def _json_row(row: Mapping[Any, Any]) -> dict[str, Any]:
    return {key: _json_value(key, value) for key, value in row.items()}


def _json_value(key: str, value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if value is pd.NA or value is None:
        return None
    plain = value.item() if hasattr(value, "item") else value
    return int(plain) if key in _WHOLE else plain
