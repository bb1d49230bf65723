"""Scenarios, the paths from a source to its numbers, and the whole matrix in float64 that each path must match."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
import pytest
import torch
from torch import Tensor

from lossscope.core.batches import Batch
from lossscope.core.embedded import SplitEmbeddings
from lossscope.core.relations import Relations
from lossscope.core.sides import ITEM_PROXY, ONE_SET, QUERY_DOCUMENT
from lossscope.core.similarity import Mask, normalise
from lossscope.engine.reducers import reduce_column
from lossscope.engine.run_probes import ProbePlan
from lossscope.engine.sweep import Sweep, SweepResult
from lossscope.live.monitor import LossScope
from lossscope.objectives.base import Objective
from lossscope.probes.views.view import BatchShape, DenseRows
from lossscope.registry import build, names, spec_of

Kind = Literal["random", "tied", "collapsed", "clusters", "sorted"]
KINDS: tuple[Kind, ...] = ("random", "tied", "collapsed", "clusters", "sorted")
Key = tuple[Any, ...]
Numbers = dict[Key, Any]
"""What a path gives: a number of each statistic, and an array of each column of queries, in the order of the batch.

Keys are (batch, objective, direction, probe, eps, statistic or column) of sweeps, (column,) of a loop.
"""

EXACT = frozenset({
    "C_q", "C_q_all", "C_B", "C_0", "C_neg", "skipped", "R@1", "R@5", "R@10", "medr", "meanr", "ties", "hub_max_count",
    "never_hardest", "s_neg", "s_pos", "inverted",
    "query", "count", "rank", "tied",
})  # fmt: skip
"""Statistics that have the same bits on every path, where products are exact."""
WARM = {"smoothap": "smoothap:tau=0.1"}
"""Objectives at a temperature at which float32 rounds no weight to 0 that float64 has."""
VANISHING = frozenset({"radial", "tangent", "bound_17"})
"""Shares of gradients that nearly vanish."""

# the cuts of S into pieces: the only names of the engine's internals that this module knows
PIECES = {
    "tile rows": ("lossscope.engine.blocks.matrix.ROWS", "lossscope.engine.ring_rows.ROWS"),
    "tile columns": ("lossscope.engine.blocks.matrix.COLUMNS", "lossscope.engine.ring_rows.COLUMNS"),
    "panel": ("lossscope.engine.large_batches.PANEL",),
    "strip": ("lossscope.engine.blocks.strips.STRIP",),
    "stack": ("lossscope.engine.small_batches.STACK_ENTRIES",),
    "large in a loop": ("lossscope.live.batch_statistics.LARGE_ENTRIES",),
}


@contextmanager
def pieces(sizes: Mapping[str, int]) -> Iterator[None]:
    """Cut S into pieces of other sizes; names are those of PIECES."""
    with pytest.MonkeyPatch.context() as patch:
        for name, size in sizes.items():
            for target in PIECES[name]:
                patch.setattr(target, size)
        yield


def captions(kind: Kind, images: int, per_image: int, seed: int = 0, d: int = 16, grid: bool = True) -> SplitEmbeddings:
    """Return images and captions; on a grid, numbers are multiples of 1/32 and their products exact in any order."""
    generator = torch.Generator().manual_seed(seed)
    owner = np.repeat(np.arange(images), per_image)
    v = torch.randn(images, d, generator=generator) / d**0.5
    t = v[owner] + 0.5 * torch.randn(len(owner), d, generator=generator) / d**0.5
    if kind == "tied":
        v, t = v.sign(), t.sign() / 4
    if kind == "collapsed":
        v, t = torch.full_like(v, 1.0), torch.full_like(t, 0.25)
    if kind == "clusters":
        v, t = (x[torch.randint(min(3, len(x)), (len(x),), generator=generator)] for x in (v, t))
    if kind == "sorted":  # sums grow to the end: an early cut keeps too much
        t = t * torch.linspace(0.1, 1, len(t))[:, None]
    v = v / 4
    if grid:
        v, t = ((x * 32).round() / 32 for x in (v, t))
    ids = [[str(i) for i in range(n)] for n in (images, len(owner))]
    return SplitEmbeddings("made", v, t, None, owner, ids[0], ids[1], "f" * 64)


def documents(kind: Kind, n: int, _: int, seed: int = 0) -> SplitEmbeddings:
    """Return queries and documents: some shared, some queries without a positive, with mined negatives."""
    random, m = np.random.default_rng(seed), n + n // 2
    pairs = np.unique(np.stack([random.integers(0, n, 2 * n), random.integers(0, m, 2 * n)], 1), axis=0)
    relations = Relations(n, m, pairs, QUERY_DOCUMENT, negatives=random.integers(-1, m, (n, 2)))
    made = captions(kind, m, 1, seed)
    assert made.images is not None and made.captions is not None
    ids = [[str(i) for i in range(k)] for k in (n, m)]
    return SplitEmbeddings("documents", made.images[:n], made.captions, None, None, *ids, "0", relations=relations)


def classes(kind: Kind, n: int, per_class: int, seed: int = 0) -> SplitEmbeddings:
    """Return one labelled set."""
    vectors = captions(kind, n * per_class, 1, seed).images
    ids = [str(i) for i in range(n * per_class)]
    relations = Relations.of_labels(np.arange(n * per_class) % n)
    return SplitEmbeddings("classes", vectors, vectors, None, None, ids, ids, "0", relations=relations)


def proxies(kind: Kind, n: int, per_class: int, seed: int = 0) -> SplitEmbeddings:
    """Return items and class vectors, the last of which has no item."""
    made = captions(kind, n + 1, per_class, seed)
    assert made.images is not None and made.captions is not None
    labels = np.arange(n * per_class) // per_class
    relations = Relations(len(labels), n + 1, np.stack([np.arange(len(labels)), labels], 1), ITEM_PROXY)
    ids = [[str(i) for i in range(k)] for k in (len(labels), n + 1)]
    return SplitEmbeddings("p", made.captions[: len(labels)], made.images, None, None, *ids, "0", relations=relations)


def objectives(positives: str, by_sums: bool) -> tuple[str, ...]:
    """Return the registry's objectives with independent rows that need nothing but S."""
    built = [(name, build("objectives", name)) for name in names("objectives")]
    plain = [(name, objective) for name, objective in built if _is_plain(objective)]
    chosen = [
        name for name, objective in plain if (objective.traits.positives, _has_sums(objective)) == (positives, by_sums)
    ]
    return tuple(WARM.get(name, name) for name in chosen)


def _is_plain(objective: Objective) -> bool:
    traits = objective.traits
    return not (objective.coupled or traits.square or traits.needs_embeddings or traits.required_info)


def _has_sums(objective: Objective) -> bool:
    return objective.counting_rule is not None


ONE, MANY = objectives("one", True), objectives("many", True)
WHOLE, ONE_WHOLE = objectives("many", False), objectives("one", False)
COUPLED = tuple(name for name in names("objectives") if build("objectives", name).coupled)
TILES = ("cocos:unit=paper", "cocos:eps=0.0001,unit=paper", "similarity", "recall", "alignment")
"""Probes that one pass over tiles serves, with a number of each query."""
ROWS = ("cocos:unit=paper", "contributors", "tangent", "influence")
"""Probes that need whole rows."""


@dataclass(frozen=True)
class Scenario:
    """A sweep over a kind of source."""

    make: Callable[..., SplitEmbeddings]
    objectives: tuple[str, ...]
    probes: tuple[str, ...] = TILES
    options: Mapping[str, Any] = field(default_factory=dict)  # of a sweep
    in_pieces: bool = True  # whether the engine may cut S
    sampled: bool = True  # whether each number belongs to a query
    per_query: bool = True  # whether to compare numbers of queries too; shares of gradients near 0 differ by any factor

    def sweep(self, **options: Any) -> Sweep:
        """Return the sweep over one batch of everything, unless options say otherwise."""
        given = {"batch_size": None, "interval": None, "per_query": self.per_query, **self.options, **options}
        return Sweep(self.objectives, self.probes, **given)


SCENARIOS = {
    "pairs": Scenario(captions, (*ONE, "ntxent:tau=0.01", "triplet:margin=0")),
    "pairs, hubs": Scenario(captions, ONE[:2], (*TILES, "hubness"), sampled=False),
    "siblings left out": Scenario(captions, ("ntxent", "triplet", "unified"), options={"same_image": "mask"}),
    "first captions": Scenario(captions, ("ntxent",), options={"captions": "first"}),
    "images": Scenario(captions, MANY, options={"sampling": "images"}),
    "rows": Scenario(captions, ("ntxent", "triplet", "circle:gamma=8"), ROWS, {"sampling": "pairs"}, per_query=False),
    "rows of pairs": Scenario(captions, WHOLE, ("cocos:unit=paper", "similarity"), {"sampling": "pairs"}),
    "rows of an angle": Scenario(captions, ONE_WHOLE, ("cocos:unit=paper",), {"sampling": "pairs"}),
    "proxies": Scenario(proxies, ("cosface:scale=8", "arcface:scale=8", "ntxent"), ("cocos:unit=paper", "recall")),
    "rows of images": Scenario(captions, WHOLE, ("cocos:unit=paper", "contributors"), {"sampling": "images"}),
    "views": Scenario(captions, ("ntxent",), options={"sampling": "views"}),
    "documents": Scenario(documents, ("ntxent", "triplet")),
    "groups": Scenario(documents, (*MANY, "supcon"), ("cocos:unit=paper", "recall"), {"sampling": "groups"}),
    "classes": Scenario(classes, (*MANY, "supcon"), ("cocos:unit=paper", "recall"), {"per_class": 2}),
    "coupled": Scenario(captions, COUPLED, ("cocos:unit=paper",), {"sampling": "pairs"}, in_pieces=False),
}


def whole_matrix(scenario: Scenario, source: SplitEmbeddings, sweep: Sweep) -> Numbers:
    """Return the numbers of each batch of a sweep from its whole S in float64, one direction after the other."""
    plan, numbers = sweep.plan.for_relations(source.relations), Numbers()
    for batching in plan.batchings:
        probes = ProbePlan.of(batching.objectives, plan.probes)
        for number, batch in enumerate(batching.sampling.batches(source.relations)):
            for rows in dense_rows(source, batch, sweep.same_image):
                for result in probes.of_direction(rows.shape.direction).run(rows):
                    label = ONE_SET if batch.mode == "views" and result.direction != "both" else None
                    direction = label or source.sides.label(result.direction)
                    spec = None if result.objective is None else spec_of(result.objective)
                    probe = spec_of(result.probe).partition(":")[0]
                    key = number, spec, direction, probe, getattr(result.probe, "eps", None)
                    columns = result.columns
                    for statistic in result.statistics():
                        numbers[*key, plan.name_of(statistic.name)] = float(reduce_column(statistic, columns, 1)[0])
                    if sweep.per_query and result.probe.axis == "query":
                        columns = {name: column for name, column in columns.items() if column.ndim == 1}
                        columns |= {"query": result.shape.query_ids}
                        numbers |= _of_queries(key, {name: column.numpy() for name, column in columns.items()})
    return numbers


def dense_rows(source: SplitEmbeddings, batch: Batch, same_image: Any = "keep") -> list[DenseRows]:
    """Return the whole S of a batch in float64, with its mask, for each of its directions."""
    split = source.joined if batch.mode == "views" else source
    assert split.images is not None and split.captions is not None
    first, second = torch.from_numpy(batch.images), torch.from_numpy(batch.captions)
    v, t = split.images.double()[first], split.captions.double()[second]
    mask = batch.mask(source.relations, same_image)
    embeddings = {"queries": v, "candidates": t}
    S = torch.stack([(t * row).sum(1) for row in v])
    forward = DenseRows(BatchShape(1, "i2t", first, second[None]), S, replace(mask, info=embeddings), v, t[None])
    if len(batch.directions) == 1:
        return [forward]
    embeddings = {"queries": t, "candidates": v}
    shape = BatchShape(1, "t2i", second, first[None])
    return [forward, DenseRows(shape, S.T.contiguous(), replace(mask.t(), info=embeddings), t, v[None])]


def numbers_of_batches(result: SweepResult) -> Numbers:
    """Return the numbers of each batch and of each query of a sweep."""
    numbers: Numbers = {
        (row["batch"], *_key_of(row), name): row[name]
        for row in result.batches.to_dict("records")
        for name in row["statistics"].split()
    }
    if len(result.queries):
        for _, rows in result.queries.groupby(["batch", "objective", "direction", "probe", "eps"], dropna=False):
            key = rows["batch"].iloc[0], *_key_of(rows.iloc[0])
            columns = rows.drop(columns=[name for name in _NAMES if name in rows])
            numbers |= _of_queries(key, {str(name): column.to_numpy() for name, column in columns.items()})
    return numbers


def _of_queries(key: Key, columns: Mapping[str, Any]) -> Numbers:
    """Return the columns of queries that have numbers; a skipped query has none."""
    skipped, of_all = np.asarray(columns["skipped"], bool), ("query", "skipped")
    masked = {
        (*key, "queries", name): np.asarray(column, float) if name in of_all else np.where(skipped, np.nan, column)
        for name, column in columns.items()
    }
    return {name: column for name, column in masked.items() if not np.isnan(column).all()}


def numbers_of_summary(rows: pd.DataFrame, column: str = "mean") -> Numbers:
    """Return the summary's numbers of a sweep with one batch, number 0."""
    return {(0, *_key_of(row), row["statistic"]): row[column] for row in rows.to_dict("records")}


def _key_of(row: Mapping[str, Any]) -> Key:
    """Return objective, direction, probe and eps."""
    objective, eps = (None if pd.isna(row[name]) else row[name] for name in ("objective", "eps"))
    return objective, row["direction"], row["probe"], eps


_NAMES = {
    "source", "sampling", "seed", "objective", "direction", "probe", "convention", "eps", "weight_unit", "batch",
    "sides",
}  # fmt: skip
"""Columns of a row of a query that are no numbers of it."""


def assert_same(actual: Numbers, expected: Numbers, exact: bool = True, close: float = 2e-5) -> None:
    """Assert that a path gives all the numbers and no others.

    Args:
        actual: of the path.
        expected: of the whole matrix.
        exact: counts, ranks and similarities must have the same bits; otherwise `close` applies to them too.
        close: relative and absolute difference that other numbers may have.
    """
    assert expected and not actual.keys() ^ expected.keys()
    for key in expected:
        name = str(key[-1]).rpartition("/")[2]
        if exact and name in EXACT:
            relative, absolute = 1e-6, 0.0
        else:
            relative = 500 * close if name in VANISHING else close
            absolute = relative if "queries" in key else relative / 4
        np.testing.assert_allclose(actual[key], expected[key], relative, absolute, equal_nan=True, err_msg=str(key))


def row_of_matrix(scope: LossScope, S: Tensor, S_second: Tensor | None, mask: Mask) -> Numbers:
    """Return the numbers that a loop's row must have, from whole rows of S in float64.

    Args:
        scope: supplies the objective and the probes.
        S: (b, B) of the first direction.
        S_second: (b, B) of the second; None without a second direction.
        mask: of both.
    """
    objective = build("objectives", scope.objective) if isinstance(scope.objective, str) else scope.objective
    probes = [build("probes", spec) for spec in scope.probes]
    numbers: Numbers = {("finite",): 1.0}
    sides = [S] if S_second is None else [S, S_second]
    results = []
    for direction, rows in zip(("i2t", "t2i"), sides, strict=False):
        directed = mask if direction == "i2t" else Mask(mask.match, mask.valid, direction="t2i")
        queries, candidates = (torch.arange(n) for n in rows.shape)
        shape = BatchShape(1, direction, queries, candidates[None], len(queries) == len(candidates))  # type: ignore[arg-type]
        plan = ProbePlan.of([objective], probes).of_direction(direction)  # type: ignore[arg-type, list-item]
        results += [(direction, result) for result in plan.run(DenseRows(shape, rows.double(), directed))]
    columns = [(d, result, statistic) for d, result in results for statistic in result.statistics()]
    plain = [f"{result.direction}/{statistic.name}" for _, result, statistic in columns]
    for (_, result, statistic), name in zip(columns, plain, strict=True):
        value = float(reduce_column(statistic, result.columns, 1)[0])
        spec = scope.probes[probes.index(result.probe)]
        numbers[(name if plain.count(name) == 1 else f"{result.direction}/{spec}/{statistic.name}",)] = value
    return numbers


def similarities(kind: Kind, n: int, seed: int = 0) -> Tensor:
    """Return (n, n) similarities of pairs, exact in float32."""
    made = captions(kind, n, 1, seed)
    assert made.images is not None and made.captions is not None
    return made.images @ made.captions.T


def shares(edges: list[int], n: int) -> list[slice]:
    """Cut 0..n-1 at the given edges; a share may be empty."""
    return [slice(a, b) for a, b in pairwise([0, *sorted(edges), n])]


def write_shards(folder: Path, source: SplitEmbeddings, number: int) -> Path:
    """Write both sides of a source in shards, as float32 of unit length."""
    folder.mkdir(parents=True)
    for name, rows in (("images", source.images), ("captions", source.captions)):
        assert rows is not None
        for index, part in enumerate(np.array_split(normalise(rows).numpy(), number)):
            np.save(folder / f"{name}-{index}.npy", part)
    np.save(folder / "caption_image.npy", source.caption_image)
    return folder
