"""source x objectives x probes -> frame: every batch once, every objective and probe on it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd
import torch

from .errors import InputError
from .frames import Frame, summarise
from .objectives.base import Objective
from .probes.base import Probe, View, fold, reduce
from .registry import build, spec_of
from .sampling import Batch, How, Sampling
from .similarity import Mask, SameImage, scored
from .sources.base import Embedded
from .weights import Pair

Progress = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Sweep:
    """What is looked at, and how batches are made.

    objectives, probes: specs. sampling: `pairs`, `images`, or None for what each objective needs (one sweep each).
    batch_size None: all in one. same_image: what another caption of the same image is. per_query: keep every row.
    part: batches after which a part is written.
    """

    objectives: tuple[str, ...]
    probes: tuple[str, ...] = ("cocos",)
    sampling: How | None = None
    batch_size: int | None = 128
    seed: int = 0
    shuffle: bool = True
    drop_last: bool = False
    captions: str = "all"
    same_image: SameImage = "keep"
    per_query: bool = False
    part: int = 32

    def plans(self) -> list[tuple[Sampling, list[Objective]]]:
        """One sampling per way of batching that the objectives need. Raises InputError for one that can not."""
        found: dict[How, list[Objective]] = {}
        for spec in self.objectives:
            objective: Objective = build("objectives", spec)
            natural: How = "images" if objective.positives == "many" else "pairs"
            how = self.sampling or natural
            if how == "images" and objective.positives == "one":
                raise InputError(
                    f"--sampling images gives each query several positives, which {spec_of(objective)} does not take; "
                    "use --sampling pairs, or leave it out"
                )
            for probe in self._probes():
                probe.check(objective)
            found.setdefault(how, []).append(objective)
        return [(self._sampling(how), objectives) for how, objectives in found.items()]

    def run(
        self, embedded: Embedded, frame: Frame | None = None, progress: Progress | None = None
    ) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Summary rows and the wide rows of every batch; parts go to `frame` as they are finished.

        A frame that already has parts of the same sweep is gone on with.
        """
        parts: list[pd.DataFrame] = []
        done = frame.keys() if frame else set()
        for sampling, objectives in self.plans():
            total = sampling.count(embedded.caption_image)
            if total == 0:
                raise InputError(
                    f"batches must fit the split; {embedded.name} has fewer items than --batch-size "
                    f"{self.batch_size}. Use a smaller one, or --keep-last"
                )
            for start in range(0, total, self.part):
                key = f"{sampling.how}-{start}"
                stop = min(start + self.part, total)
                if key not in done:
                    rows, queries = self._part(embedded, sampling, objectives, start, stop, progress, total)
                    parts.append(rows)
                    if frame:
                        frame.append(rows, key, queries if self.per_query else None)
        if frame:
            frame.finish()
        rows = frame.read() if frame else pd.concat(parts, ignore_index=True)
        return summarise(rows, self.units()), rows

    def units(self) -> dict[str, str]:
        """Unit of every statistic, in an order that keeps that of each objective as far as one order can."""
        found: dict[str, str] = {}
        order: list[str] = []
        for objective in (build("objectives", spec) for spec in self.objectives):
            place = 0
            for statistic in (s for probe in self._probes() for s in probe.statistics(objective)):
                if statistic.name not in found:
                    order.insert(place, statistic.name)
                    found[statistic.name] = statistic.unit
                place = order.index(statistic.name) + 1
        return {name: found[name] for name in order}

    def _probes(self) -> list[Probe]:
        return [build("probes", spec) for spec in self.probes]

    def _sampling(self, how: How) -> Sampling:
        captions: Any = self.captions
        return Sampling(how, self.batch_size, self.seed, self.shuffle, self.drop_last, captions)

    def _part(
        self,
        embedded: Embedded,
        sampling: Sampling,
        objectives: Sequence[Objective],
        start: int,
        stop: int,
        progress: Progress | None,
        total: int,
    ) -> tuple[pd.DataFrame, pd.DataFrame]:
        rows, queries = [], []
        batches = sampling.batches(embedded.caption_image, start=start)
        for index, batch in zip(range(start, stop), batches, strict=False):
            for row, single in self._batch(embedded, batch, objectives):
                key = {"source": embedded.name, "batch": index, "sampling": sampling.how, "seed": self.seed}
                size = self.batch_size or len(batch.images)
                rows.append({**key, "batch_size": size, **row})
                if self.per_query:
                    names = {k: row[k] for k in ("objective", "direction", "probe", "convention", "eps")}
                    queries.append(pd.DataFrame({**key, **names, **single}))
            if progress:
                progress(f"{sampling.how} batches", index + 1, total)
        return pd.DataFrame(rows), pd.concat(queries) if queries else pd.DataFrame()

    def _batch(
        self, embedded: Embedded, batch: Batch, objectives: Sequence[Objective]
    ) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
        S = embedded.both(batch.images, batch.captions)
        mask = batch.mask(embedded.caption_image, self.same_image).to(S.i2t.device)
        probes = self._probes()
        wanted = any(probe.needs_embeddings for probe in probes) or any(o.embeddings for o in objectives)
        source = embedded if wanted else None
        sides = Pair(scored(S.i2t, mask), scored(S.t2i, mask.t()))
        for objective in objectives:
            for view in views(sides, objective, batch, source):
                for probe in probes:
                    yield self._row(probe, objective, view)

    def _row(self, probe: Probe, objective: Objective, view: View) -> tuple[dict[str, Any], dict[str, Any]]:
        columns = fold(probe, [view])
        row: dict[str, Any] = {
            "objective": spec_of(objective),
            "direction": view.mask.direction,
            "probe": spec_of(probe).partition(":")[0],
            "convention": getattr(probe, "convention", None),
            "eps": getattr(probe, "eps", float("nan")),
            "queries": len(view.S),
        }
        for statistic in probe.statistics(objective):
            row[statistic.name] = reduce(statistic, columns)
            row[f"has_{statistic.name}"] = True
        queries = {
            "query": view.query_ids.numpy(),
            **{k: v.float().cpu().numpy() for k, v in columns.items()},
        }
        return row, queries


def views(
    sides: Pair[tuple[torch.Tensor, Mask]], objective: Objective, batch: Batch, source: Embedded | None
) -> Pair[View]:
    """Both directions of a batch as a probe sees them, dense: one tile each; embeddings only from a `source`.

    sides: S and mask of each direction, pairs that were not scored (NaN) left out.
    """
    images, captions = torch.from_numpy(batch.images), torch.from_numpy(batch.captions)
    v = source.images[images] if source is not None and source.images is not None else None
    t = source.captions[captions] if source is not None and source.captions is not None else None
    (S, mask), (turned, other) = sides
    if objective.embeddings and v is not None and t is not None:
        mask = replace(mask, info={**mask.info, "queries": v, "candidates": t})
        other = replace(other, info={**other.info, "queries": t, "candidates": v})
    return Pair(
        View(S, mask, objective, v, t, images, captions), View(turned, other, objective, t, v, captions, images)
    )
