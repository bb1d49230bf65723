"""Which runs are seeds of one system, which systems stand beside each other, and which seeds do two of them share?"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import pandas as pd

from lossscope.errors import InputError

from .paired_tests import SeedTest
from .per_image import SIDES

NEEDED = ("run", "data", "encoder", "objective_label", "seed", "direction", "query", "image", "rank", "ap5", "relevant")
_QUERY = ["direction", "query", "image", "relevant"]
_UNSEEDED = "none"


@dataclass(frozen=True)
class System:
    """What was trained, and its runs by seed; the key is `none` for a run whose seed nobody knows."""

    name: str
    runs: Mapping[str, str]


@dataclass(frozen=True)
class Block:
    """Systems of one data and encoder, over the same queries; queries: the rows of all their runs."""

    data: str
    encoder: str
    systems: tuple[System, ...]
    queries: pd.DataFrame

    @property
    def told(self) -> str:
        """For a message."""
        return f"{self.data}, {self.encoder}"


@dataclass(frozen=True)
class SeedPairs:
    """Runs of two systems, in pairs; none where they have no seed in common and one of them has several.

    seeded: whether the pairs are of the same seeds. told: which seeds. left_out: runs without a partner.
    """

    a: tuple[str, ...]
    b: tuple[str, ...]
    seeded: bool
    told: str
    left_out: str

    def note(self, seeds: SeedTest) -> str:
        """Why something is not a number; empty where all are."""
        if not self.a:
            return "no common seed: not compared"
        if not self.seeded:
            return "no common seed: one run of each, nothing is known of seeds"
        if seeds.n == 1:
            return "one seed: nothing is known of seeds"
        return "the same difference in every seed: t and d_z are not defined" if math.isnan(seeds.p) else ""


def group_blocks(queries: pd.DataFrame) -> list[Block]:
    """Blocks in order of appearance. Raises InputError where runs can not be compared."""
    _require(queries)
    found = []
    for (data, encoder), part in queries.groupby(["data", "encoder"], sort=False, observed=True):
        own = part.groupby("objective_label", sort=False, observed=True)
        systems = tuple(System(str(name), _runs(str(name), rows)) for name, rows in own)
        _require_same_queries(part)
        found.append(Block(str(data), str(encoder), systems, part))
    if all(len(block.systems) < 2 for block in found):
        told = "; ".join(f"{block.systems[0].name} ({block.told})" for block in found)
        raise InputError(
            f"comparing takes at least two systems with the same data and encoder; got {told}. Add runs of another one"
        )
    return found


def pair_seeds(a: System, b: System) -> SeedPairs:
    """The runs of the seeds that both have; where they have none, the single run of each, if that is all there is."""
    common = [seed for seed in a.runs if seed in b.runs and seed != _UNSEEDED]
    if not common and len(a.runs) == len(b.runs) == 1:
        told = " and ".join(dict.fromkeys((*a.runs, *b.runs)))
        return SeedPairs(tuple(a.runs.values()), tuple(b.runs.values()), False, told, "")
    left = [f"seed {seed} of {one.name}" for one in (a, b) for seed in one.runs if seed not in common]
    one, other = (tuple(system.runs[seed] for seed in common) for system in (a, b))
    return SeedPairs(one, other, bool(common), ", ".join(common), ", ".join(left))


def _runs(name: str, rows: pd.DataFrame) -> dict[str, str]:
    """Seed -> run, by seed."""
    pairs = rows[["run", "seed"]].drop_duplicates().sort_values("seed")
    found: dict[str, str] = {}
    for run, seed in pairs.itertuples(index=False):
        key = _UNSEEDED if pd.isna(seed) else str(int(seed))
        if key in found:
            raise InputError(
                f"runs of {name} must have different seeds; {found[key]} and {run} both have {key}. Leave one out, or "
                "train it with another --seed"
            )
        found[key] = str(run)
    return found


def _require(queries: pd.DataFrame) -> None:
    missing = [name for name in NEEDED if name not in queries]
    if missing:
        raise InputError(f"queries must have the columns {', '.join(NEEDED)}; missing {', '.join(missing)}")
    if queries.empty:
        raise InputError("queries must have rows; got none")
    for name in ("run", "data", "encoder", "objective_label"):
        if queries[name].isna().any():
            raise InputError(f"{name} of every query must be known; {int(queries[name].isna().sum())} rows have none")
    unknown = sorted(set(queries["direction"]) - set(SIDES))
    if unknown:
        raise InputError(f"direction of queries must be i2t or t2i; got {unknown[0]!r}")
    for name in ("rank", "ap5"):
        broken = queries.loc[~(queries[name] >= 0), "run"]
        if len(broken):
            raise InputError(
                f"{name} of every query must be a number of at least 0; {len(broken)} of run {broken.iloc[0]} are not. "
                "Evaluate it again"
            )
    named = queries.groupby("run", sort=False, observed=True)[["data", "encoder", "objective_label", "seed"]]
    several = named.nunique(dropna=False).max(axis=1)
    if (several > 1).any():
        raise InputError(f"a run must have one data, encoder, objective and seed; {several.idxmax()} has several")


def _require_same_queries(rows: pd.DataFrame) -> None:
    """Raise InputError naming the first run whose queries differ from those of the first one."""
    first: tuple[str, pd.DataFrame] | None = None
    for run, own in rows.groupby("run", sort=False, observed=True):
        asked = own[_QUERY].sort_values(_QUERY).reset_index(drop=True)
        twice = asked.duplicated(["direction", "query"])
        if twice.any():
            raise InputError(f"queries of a run must be unique; {run} has {asked.loc[twice, 'query'].iloc[0]!r} twice")
        missing = [side for side in SIDES if side not in set(asked["direction"])]
        if missing:
            raise InputError(f"queries of a run must be of both directions; {run} has none of {missing[0]}")
        first = first or (str(run), asked)
        if not asked.equals(first[1]):
            raise InputError(
                f"runs must have been asked the same queries to be paired; {first[0]} and {run} were not "
                f"({len(first[1])} and {len(asked)} of them). Use the same --data and --split"
            )
