"""Which runs are seeds of one system, which systems are comparable, and which seeds do two systems share?"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import pandas as pd

from lossscope.core.types import DIRECTIONS
from lossscope.errors import InputError
from lossscope.io.frames import require_columns

from .metric_names import is_direction
from .naming import NO_SEED, require_distinct_seeds
from .paired_tests import SeedTest

COLUMNS = (
    "run",
    "data",
    "encoder",
    "objective_label",
    "seed",
    "direction",
    "query",
    "rank",
    "ap5",
    "relevant",
)  # fmt: skip - rows of images and captions also have `image`
_QUERY = ["direction", "query", "image", "relevant"]  # what identifies a query and its positives


@dataclass(frozen=True)
class System:
    """What was trained, and its runs by seed."""

    name: str
    runs: Mapping[str, str]  # seed -> run; the key is `none` for a run of unknown seed


@dataclass(frozen=True)
class Block:
    """Systems of one data and encoder, over the same queries."""

    data: str
    encoder: str
    systems: tuple[System, ...]
    queries: pd.DataFrame  # rows of all runs of the systems

    @property
    def label(self) -> str:
        """Data and encoder, for a message."""
        return f"{self.data}, {self.encoder}"


@dataclass(frozen=True)
class SeedPairs:
    """Runs of two systems in pairs; none where the systems share no seed and one of them has several runs."""

    a: tuple[str, ...]  # runs of the first system
    b: tuple[str, ...]  # runs of the second system, in the same order
    same_seeds: bool  # whether the runs of a pair have the same seed
    seeds: str  # the seeds, as text
    left_out: str  # runs without a partner, as text

    def note(self, test: SeedTest) -> str:
        """Return the reason why a number of the comparison is undefined; empty where all are defined."""
        if not self.a:
            return "no common seed: not compared"
        if not self.same_seeds:
            return "no common seed, one run each: seed variance unknown"
        if test.n == 1:
            return "one seed: seed variance unknown"
        return "the same difference in every seed: t and d_z are not defined" if math.isnan(test.p) else ""


def group_blocks(queries: pd.DataFrame) -> list[Block]:
    """Return the blocks of rows with `COLUMNS`, in order of appearance.

    Rows of other sides than images and captions get a column `image`, what is resampled: the query itself.

    Raises:
        InputError: columns or values are missing or invalid; runs of a block have different queries; two runs of a
            system have one seed, or one of several has none; no block has two systems.
    """
    _require_valid(queries)
    queries = _with_units(queries)
    blocks = []
    for (data, encoder), block_rows in queries.groupby(["data", "encoder"], sort=False, observed=True):
        by_system = block_rows.groupby("objective_label", sort=False, observed=True)
        systems = tuple(System(str(name), _runs_by_seed(str(name), rows)) for name, rows in by_system)
        _require_same_queries(block_rows)
        blocks.append(Block(str(data), str(encoder), systems, block_rows))
    if all(len(block.systems) < 2 for block in blocks):
        listed = "; ".join(f"{block.systems[0].name} ({block.label})" for block in blocks)
        raise InputError(
            f"comparing takes at least two systems with the same data and encoder; got {listed}. "
            "Add runs of another one"
        )
    return blocks


def _with_units(queries: pd.DataFrame) -> pd.DataFrame:
    """Return rows whose column `image` is the query where they are not of images and captions."""
    other = ~queries["direction"].isin(DIRECTIONS)
    if not other.any():
        return queries
    units = (
        queries["query"] if "image" not in queries else queries["image"].astype(object).where(~other, queries["query"])
    )
    return queries.assign(image=units)


def pair_seeds(a: System, b: System) -> SeedPairs:
    """Pair the runs of the seeds that both systems have; without common seeds, the single run of each, if single."""
    common = [seed for seed in a.runs if seed in b.runs and seed != NO_SEED]
    if not common and len(a.runs) == len(b.runs) == 1:
        seeds = " and ".join(dict.fromkeys((*a.runs, *b.runs)))
        return SeedPairs(tuple(a.runs.values()), tuple(b.runs.values()), False, seeds, "")
    left_out = [f"seed {seed} of {system.name}" for system in (a, b) for seed in system.runs if seed not in common]
    runs_a, runs_b = (tuple(system.runs[seed] for seed in common) for system in (a, b))
    return SeedPairs(runs_a, runs_b, bool(common), ", ".join(common), ", ".join(left_out))


def _runs_by_seed(name: str, rows: pd.DataFrame) -> dict[str, str]:
    """Return seed -> run of one system, by seed. Raises InputError for two runs of one seed."""
    pairs = rows[["run", "seed"]].drop_duplicates().sort_values("seed")
    seeds = [None if pd.isna(seed) else int(seed) for seed in pairs["seed"]]
    require_distinct_seeds((name, str(run), seed) for run, seed in zip(pairs["run"], seeds, strict=True))
    return {NO_SEED if seed is None else str(seed): str(run) for run, seed in zip(pairs["run"], seeds, strict=True)}


def _require_valid(queries: pd.DataFrame) -> None:
    """Raise InputError unless columns, names, directions, ranks and seeds are those of whole runs."""
    require_columns(queries, COLUMNS, "queries")
    if queries.empty:
        raise InputError("queries must have rows; got none")
    for name in ("run", "data", "encoder", "objective_label"):
        if queries[name].isna().any():
            raise InputError(
                f"{name} must have a value for every query; {int(queries[name].isna().sum())} rows have none"
            )
    _require_directions(set(queries["direction"]))
    if "image" not in queries and queries["direction"].isin(DIRECTIONS).any():
        require_columns(queries, ("image",), "queries")
    for name in ("rank", "ap5"):
        broken = queries.loc[~(queries[name] >= 0), "run"]
        if len(broken):
            raise InputError(
                f"{name} of every query must be a number of at least 0; {len(broken)} of run {broken.iloc[0]} are not. "
                "Evaluate it again"
            )
    by_run = queries.groupby("run", sort=False, observed=True)[["data", "encoder", "objective_label", "seed"]]
    n_values = by_run.nunique(dropna=False).max(axis=1)
    if (n_values > 1).any():
        raise InputError(f"a run must have one data, encoder, objective and seed; {n_values.idxmax()} has several")


def _require_directions(directions: set[str]) -> None:
    unknown = sorted(direction for direction in directions if not is_direction(str(direction)))
    if unknown:
        known = "i2t or t2i" if directions & set(DIRECTIONS) else "such as q2d and d2q, or all"
        raise InputError(f"direction of queries must be {known}; got {unknown[0]!r}")


def _require_same_queries(rows: pd.DataFrame) -> None:
    """Raise InputError naming the first run whose queries differ from those of the first run."""
    first: tuple[str, pd.DataFrame] | None = None
    for run, run_rows in rows.groupby("run", sort=False, observed=True):
        queries = run_rows[_QUERY].sort_values(_QUERY).reset_index(drop=True)
        twice = queries.duplicated(["direction", "query"])
        if twice.any():
            raise InputError(
                f"queries of a run must be unique; {run} has {queries.loc[twice, 'query'].iloc[0]!r} twice"
            )
        directions = set(queries["direction"])
        missing = [direction for direction in DIRECTIONS if direction not in directions]
        if missing and directions & set(DIRECTIONS):
            raise InputError(f"queries of a run must be of both directions; {run} has none of {missing[0]}")
        first = first or (str(run), queries)
        if not queries.equals(first[1]):
            raise InputError(
                f"runs must have the same queries; those of {first[0]} and {run} differ ({len(first[1])} and "
                f"{len(queries)} queries). Use the same --data and --split"
            )
