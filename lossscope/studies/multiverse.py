"""Which claimed orderings of a study survive other ways of counting? Claims, what is to compute, and the rows."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from pathlib import Path
from typing import Any

import pandas as pd

from lossscope.core.types import Convention, Progress
from lossscope.errors import InputError
from lossscope.io.files import fingerprint
from lossscope.io.folder_lock import lock_folder
from lossscope.io.plugin_fingerprints import plugin_fingerprints
from lossscope.io.run_folder import Run, list_checkpoints
from lossscope.io.scores import RSUM, score_of
from lossscope.report.results import Results
from lossscope.sources.base import load
from lossscope.sources.checkpoints.checkpoint import Checkpoint
from lossscope.stats.claims import COUNT, COUNTED_AS, Metric, find_claims
from lossscope.stats.multiverse import COLUMNS
from lossscope.tables import runs
from lossscope.tables.orderings import printed_numbers

from .kept_numbers import RECALL, KeptNumbers
from .multiverse_options import ALL_EPOCHS, MultiverseOptions
from .multiverse_pairs import Value, compare
from .multiverse_sweeps import count, rank
from .report import read_runs
from .study import Study
from .study_file import StudyRun
from .universes import Ways, batch_size_of, conventions_of, probe_of, ways_of
from .worker import data_of

FOLDER = "multiverse"  # in that of the study
_WITHOUT_EPS = ("N_eff", "W_pos", "skipped")  # statistics of cocos on which eps has no effect
_LABEL = "sweeps and evaluations"


@dataclass(frozen=True)
class Task:
    """A sweep over a checkpoint with a batch size, or its evaluation."""

    run: StudyRun
    checkpoint: Path
    file: Path  # of its numbers
    kept: KeptNumbers  # what the file has
    probes: tuple[str, ...]  # that it lacks; RECALL: the evaluation

    @property
    def is_evaluation(self) -> bool:
        """Whether it ranks the test split."""
        return self.probes == (RECALL,)


@dataclass(frozen=True)
class Multiverse:
    """The claims of a study, and the universes in which they are looked at."""

    study: Study
    options: MultiverseOptions
    claims: pd.DataFrame  # of `find_claims`
    without_claim: tuple[str, ...]  # notes on pairs without an ordering
    chosen: tuple[StudyRun, ...]  # the runs that train, of the entries that were asked for
    done: frozenset[str]  # keys of those with an evaluation

    @classmethod
    def of(cls, study: Study, options: MultiverseOptions = MultiverseOptions()) -> Multiverse:  # noqa: B008 - frozen
        """Return the multiverse of a study; it computes nothing yet.

        Raises:
            InputError: no run is done, an entry of `only` or a metric that the study does not have, no ordering.
        """
        results = read_runs([study.path])
        chosen = _choose(study, options.only)
        done = {status.run.key for status in study.statuses() if status.status == "done"}
        rows = results.rows[results.rows["run"].isin({run.key for run in chosen})]
        if rows.empty:
            raise InputError("at least one run of --only must be finished; got none. See `lossscope study status`")
        metrics = [Metric.parse(name) for name in options.metric or _usual_metrics(rows)]
        claims, without = find_claims(_numbers_of_runs(rows), printed_numbers(rows, results.paper), metrics)
        if options.claims == "printed":
            claims, without = claims[claims["origin"] == "printed"].reset_index(drop=True), ()
        if claims.empty:
            raise InputError(
                "a study must have two systems of the same data and encoder, in different order in a metric; "
                + _why_no_claim(results, options)
            )
        return cls(study, options, claims, without, chosen, frozenset(done))

    def tasks(self) -> tuple[Task, ...]:
        """Return the sweeps and evaluations whose numbers are not kept yet, checkpoint by checkpoint."""
        return tuple(task for task in self._all_tasks() if task.probes)

    def number_of_tasks(self) -> int:
        """Return how many sweeps and evaluations the multiverse has, those included whose numbers are kept."""
        return sum(1 for _ in self._all_tasks())

    def compute(self, device: str = "cpu", progress: Progress | None = None) -> None:
        """Run what is still to compute; the file of each sweep is written when it ends, so that a stop keeps it.

        Args:
            device: of the encoders.
            progress: called with (label, done, of).

        Raises:
            InputError: another process computes the multiverse of this study, or a checkpoint cannot be read.
        """
        with lock_folder(self.study.path / FOLDER):
            left = self.tasks()
            done = 0
            for _, of_checkpoint in groupby(left, key=lambda task: (task.checkpoint, task.is_evaluation)):
                tasks = list(of_checkpoint)
                first = tasks[0]
                config = first.run.examined(self.study.grid.examine)
                split = config.test if first.is_evaluation else config.split
                data = data_of(first.run, self.study.path)
                source = load(first.checkpoint, split=split, device=device, cache=False, data=data)
                for task in tasks:
                    size = task.kept.batch_size
                    numbers, refused = rank(source) if size is None else count(source, task.run, task.probes, size)
                    task.file.parent.mkdir(parents=True, exist_ok=True)
                    task.kept.joined(numbers, refused).write(task.file)
                    done += 1
                    if progress:
                        progress(_LABEL, done, len(left))

    def rows(self) -> pd.DataFrame:
        """Return a row for each claim and universe, columns COLUMNS of `lossscope.stats.multiverse`.

        `holds` is None where a system has no number; `reason` then says why.

        Raises:
            InputError: numbers are still to compute.
        """
        if left := self.tasks():
            raise InputError(f"every universe must be computed; {len(left)} {_LABEL} are left. Call compute()")
        kept: dict[Path, KeptNumbers] = {}
        claims = ({str(name): value for name, value in claim.items()} for claim in self.claims.to_dict("records"))
        found = [row for claim in claims for row in self._rows_of(claim, kept)]
        return pd.DataFrame(found, columns=list(COLUMNS))

    @cached_property
    def _by_system(self) -> Mapping[tuple[str, str, str], Mapping[int, StudyRun]]:
        systems: dict[tuple[str, str, str], dict[int, StudyRun]] = {}
        for run in self.chosen:
            systems.setdefault(run.system, {})[run.seed] = run
        return systems

    @cached_property
    def _epochs(self) -> Mapping[str, Mapping[str, tuple[int, Path]]]:
        return {run.key: self._epochs_of(run) for run in self.chosen if run.key in self.done}

    def _epochs_of(self, run: StudyRun) -> dict[str, tuple[int, Path]]:
        """Return name of an epoch -> its number and checkpoint; several names may be of one epoch."""
        folder = Run(self.study.folder(run) / "run")
        kept = dict(list_checkpoints(folder.path))
        if self.options.epochs == (ALL_EPOCHS,) and kept:
            return {str(number): (number, path) for number, path in kept.items()}
        best = Checkpoint.load(folder.best).epoch
        numbers = list(kept)
        named = {"best": best}
        if numbers:
            named |= {"first": numbers[0], "middle": numbers[(len(numbers) - 1) // 2], "last": numbers[-1]}
        wanted = ("best",) if self.options.epochs == (ALL_EPOCHS,) else self.options.epochs
        found = {name: named[name] for name in wanted if name in named}
        return {name: (number, kept.get(number, folder.best)) for name, number in found.items()}

    @cached_property
    def _fingerprints(self) -> dict[Path, str]:
        return {}

    def _empty(self, run: StudyRun, checkpoint: Path, batch_size: int | None) -> KeptNumbers:
        if checkpoint not in self._fingerprints:
            self._fingerprints[checkpoint] = fingerprint(checkpoint)
        config = run.examined(self.study.grid.examine)
        split = config.test if batch_size is None else config.split
        plugins = plugin_fingerprints((run.recipe.objective,))
        return KeptNumbers(self._fingerprints[checkpoint], split, batch_size, plugins)

    def _file(self, run: StudyRun, epoch: int, batch_size: int | None) -> Path:
        what = "retrieval" if batch_size is None else f"batch-{batch_size}"
        return self.study.path / FOLDER / run.key / f"epoch-{epoch:02d}--{what}.json"

    def _read(self, run: StudyRun, epoch: tuple[int, Path], batch_size: int | None) -> KeptNumbers:
        number, checkpoint = epoch
        return KeptNumbers.read(self._file(run, number, batch_size), self._empty(run, checkpoint, batch_size))

    def _all_tasks(self) -> Iterator[Task]:
        counted, ranked = self._runs_of("cocos"), self._runs_of(RECALL)
        for run in self.chosen:
            for number, path in dict.fromkeys(self._epochs.get(run.key, {}).values()):
                sizes = [batch_size_of(run, factor) for factor in self.options.batch_factors]
                wanted: list[tuple[int | None, tuple[str, ...]]] = []
                if run.key in counted:
                    wanted += [(size, self._probes(run)) for size in dict.fromkeys(sizes) if size is not None]
                wanted += [(None, (RECALL,))] if run.key in ranked else []
                for size, probes in wanted:
                    kept = self._read(run, (number, path), size)
                    yield Task(run, path, self._file(run, number, size), kept, kept.lacks(probes))

    def _runs_of(self, probe: str) -> set[str]:
        """Return the keys of the runs that a claim on numbers of a probe is about."""
        claims = self.claims[self.claims["probe"] == probe]
        systems = {
            (row["data"], row["encoder"], row[side])
            for row in claims.to_dict("records")
            for side in ("lower", "higher")
        }
        return {run.key for run in self.chosen if run.system in systems}

    def _probes(self, run: StudyRun) -> tuple[str, ...]:
        """Return the specs of `cocos` in all ways of counting that the objective of a run knows."""
        known = conventions_of(run.recipe.objective)
        ways = (way for way in self._ways if way.convention in known)
        return tuple(dict.fromkeys(probe_of(run.recipe.objective, way) for way in ways))

    @cached_property
    def _ways(self) -> tuple[Ways, ...]:
        return ways_of(self.options)

    def _rows_of(self, claim: dict[str, Any], kept: dict[Path, KeptNumbers]) -> Iterator[dict[str, Any]]:
        """Yield the rows of a claim; `kept` holds the files that are read."""
        sides = ("lower", "higher")
        systems = [self._by_system[claim["data"], claim["encoder"], claim[side]] for side in sides]
        epochs = self._epoch_names([run for system in systems for run in system.values()])
        constant = {"study": self.study.grid.name, "split": self._split(claim), **_without(claim, "probe")}
        for seed in sorted(set(systems[0]) | set(systems[1])):
            pair = [system.get(seed) for system in systems]
            for epoch in epochs:
                for universe in self._universes(claim, [run for run in pair if run is not None]):
                    found = [
                        self._value(run, epoch, universe, (claim["direction"], claim[f"statistic_{side}"]), kept)
                        for run, side in zip(pair, sides, strict=True)
                    ]
                    yield {**constant, **universe, "epoch": epoch, "seed": seed, **compare(found)}

    def _split(self, claim: Mapping[str, Any]) -> str:
        config = self.study.grid.examine
        return config.test if claim["probe"] == RECALL else config.split

    def _epoch_names(self, of_claim: Sequence[StudyRun]) -> list[str]:
        names = dict.fromkeys(name for run in of_claim for name in self._epochs.get(run.key, {}))
        return sorted(names, key=int) if self.options.epochs == (ALL_EPOCHS,) and "best" not in names else list(names)

    def _universes(self, claim: Mapping[str, Any], pair: Sequence[StudyRun]) -> Iterator[dict[str, Any]]:
        """Yield convention, unit, eps and batch of each universe of a claim; all empty for retrieval."""
        if claim["probe"] == RECALL:
            yield {"convention": None, "unit": None, "eps": math.nan, "batch": math.nan}
            return
        known = {name for run in pair for name in conventions_of(run.recipe.objective)}
        free = {claim["statistic_lower"], claim["statistic_higher"]} <= set(_WITHOUT_EPS)
        for way in self._ways:
            if way.convention not in self.options.conventions or way.convention not in known:
                continue
            if free and way.eps != self.options.eps[0]:
                continue
            for factor in self.options.batch_factors:
                eps = math.nan if free else way.eps
                yield {"convention": way.convention, "unit": way.unit, "eps": eps, "batch": factor}

    def _value(
        self,
        run: StudyRun | None,
        epoch: str,
        universe: Mapping[str, Any],
        number: tuple[str, str],
        kept: dict[Path, KeptNumbers],
    ) -> Value:
        """Return the number of a system, its (direction, statistic), in a universe."""
        if run is None:
            return Value(reason="the system has no run of this seed")
        if run.key not in self.done:
            return Value(reason=f"{run.key} is not done")
        if epoch not in self._epochs[run.key]:
            return Value(reason=f"{run.key} has no kept epoch {epoch}")
        at, probe, size = self._epochs[run.key][epoch], RECALL, None
        if universe["convention"] is not None:
            size = batch_size_of(run, universe["batch"])
            if size is None:
                reason = f"{universe['batch']:g} times batch size {run.recipe.batch_size} is below 2"
                return Value(epoch=at[0], reason=reason)
            known = conventions_of(run.recipe.objective)
            convention: Convention = universe["convention"] if universe["convention"] in known else "corrected"
            eps = self.options.eps[0] if math.isnan(universe["eps"]) else universe["eps"]
            probe = probe_of(run.recipe.objective, Ways(convention, universe["unit"], eps))
        file = self._file(run, at[0], size)
        if file not in kept:
            kept[file] = self._read(run, at, size)
        return Value.of(kept[file], probe, number, at[0])


def _choose(study: Study, only: Sequence[str]) -> tuple[StudyRun, ...]:
    """Return the runs that train, of the named entries. Raises InputError for a name that the study does not have."""
    trained = [run for run in study.grid.runs if not run.members]
    for position, kind in enumerate(("data", "encoder", "objective")):
        names = dict.fromkeys(run.system[position] for run in study.grid.runs if not run.members)
        wanted = [name for name in only if name in names]
        if kind == "objective" and len(wanted) == 1:
            raise InputError(f"--only must name two losses or none, since a claim orders two; got {wanted[0]}")
        trained = [run for run in trained if not wanted or run.system[position] in wanted]
    known = dict.fromkeys(name for run in study.grid.runs if not run.members for name in run.system)
    if unknown := [name for name in only if name not in known]:
        raise InputError(f"--only must be an entry of the study, of {', '.join(known)}; got {unknown[0]!r}")
    return tuple(trained)


def _numbers_of_runs(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the numbers of runs at the study's choices: of whole splits, and counts in the corrected convention."""
    recall: pd.DataFrame = runs.select_probe(rows, RECALL, FOLDER)
    if not (rows["probe"] == "cocos").any():
        return recall
    counts: pd.DataFrame = runs.select_probe(rows, "cocos", FOLDER)
    counts = counts[(counts["convention"] == "corrected") & (counts["eps"] == counts["eps"].iloc[0])]
    return pd.concat([recall, counts], ignore_index=True)


def _usual_metrics(rows: pd.DataFrame) -> list[str]:
    """Return the score of retrieval, and the counts per query of each direction."""
    recall = rows[rows["probe"] == RECALL]
    score = score_of(recall["statistic"])
    first = str(recall["direction"].iloc[0])
    counted = rows[(rows["probe"] == "cocos") & rows["statistic"].isin(COUNTED_AS)]
    return [
        score.name if score is RSUM else f"{first}_{score.name}",
        *(f"{direction}_{COUNT}" for direction in counted["direction"].unique()),
    ]


def _why_no_claim(results: Results, options: MultiverseOptions) -> str:
    if options.claims == "printed":
        return f"none is printed by {results.paper or 'any paper: the study names none'}. Use --claims all"
    return "got none. See `lossscope study status`"


def _without(claim: Mapping[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in claim.items() if key != name}
