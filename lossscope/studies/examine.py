"""Evaluate a trained run once and keep the numbers in its folder: retrieval, probes, single queries, C(eps)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from lossscope.core.distributed import process_group
from lossscope.core.embedded import SplitEmbeddings
from lossscope.core.sides import Sides
from lossscope.core.types import Progress
from lossscope.datasets.base import Split
from lossscope.datasets.formats.thumbnails import thumbnails
from lossscope.doctor.examination.examine import examine_run
from lossscope.doctor.examination.options import Options
from lossscope.engine.eps_curves import eps_curves
from lossscope.engine.heaviest_negatives import HeaviestNegatives
from lossscope.engine.run_probes import in_unit
from lossscope.engine.similarity_clouds import hardest_negative_counts
from lossscope.engine.sweep import Sweep
from lossscope.io.evaluation_folder import (
    SCHEMA,
    evaluated_checkpoint,
    evaluation_state,
    is_done,
    read_frame,
    write_evaluation,
)
from lossscope.io.files import fingerprint
from lossscope.io.folder_lock import lock_folder, remove_stale_lock
from lossscope.io.frames import SUMMARY, Frame, join
from lossscope.io.plugin_fingerprints import plugin_fingerprints, plugins_entry
from lossscope.io.run_folder import Run
from lossscope.io.trusted_code import require_trusted
from lossscope.io.versions import versions
from lossscope.registry import build, expand, spec_of
from lossscope.retrieval.evaluate import evaluate
from lossscope.retrieval.folds import mean_of
from lossscope.retrieval.per_query import per_query
from lossscope.sources.base import load
from lossscope.sources.checkpoints.checkpoint import Checkpoint
from lossscope.training.recipe import Recipe
from lossscope.training.recipe_files import read_recipe

from .study_file import ExamineConfig

_SHOWN = 3  # queries of each list of those with the most and the least gradient
_BATCH = 128  # of what-if sweeps, whatever the batches of the training


def examine(
    run: Run,
    config: ExamineConfig,
    device: str = "cpu",
    progress: Progress | None = None,
    pictures: str | None = None,
    data: str | None = None,
) -> Path:
    """Evaluate the run's best checkpoint, unless that is done; return the folder `evaluation` of the run.

    It writes `rows.parquet` (summary rows), `retrieval.parquet` (rank of each test query), `curves.parquet` (C(eps)),
    `what_if.parquet` (summary rows under other objectives), `per_query.parquet` (numbers of single training queries),
    `hardest_negative_counts.parquet` (how often each candidate is the hardest negative, with the probe hubness),
    `heaviest_negatives.parquet` (those of the queries with the most and the least gradient, unless the model scores
    pairs), `pictures.parquet` (of the images among them, where the data set has pixels), `findings.json` (the doctor's
    findings) and, last, `manifest.json`. A stopped sweep resumes. With many processes, each must call this. Probes that
    need embeddings (uniformity, tangent) are left out for a model that scores pairs, which has none.

    Args:
        run: a trained run.
        config: what to compute.
        device: of the encoder.
        progress: called with (label, done, of).
        pictures: data set that the features were made of; its truth is recorded if it is known.
        data: spec to read items from instead of the run's, for moved files.
    """
    out = run.path / "evaluation"
    recipe = read_recipe(run.config)
    plugins = plugin_fingerprints((recipe.objective, *config.probes, config.what_if))
    wanted = {"schema": SCHEMA, "config": _plain(config), "checkpoint": fingerprint(run.best)}
    processes = process_group()
    if is_done(run.path, wanted, plugins):
        if processes.main:
            remove_stale_lock(out)
        return out
    options: dict[str, Any] = {"device": device, "progress": progress, "cache": False}
    options |= {"data": data} if data else {}
    with lock_folder(out) if processes.main else nullcontext():
        _evaluate(run, config, recipe, pictures, {**wanted, **plugins_entry(plugins)}, options)
    processes.barrier()
    return out


def examine_ensemble(
    run: Run,
    members: Mapping[Path, str],
    config: ExamineConfig,
    device: str = "cpu",
    progress: Progress | None = None,
) -> Path:
    """Rank the test split by the mean of runs' similarities, unless that is done; return the folder `evaluation`.

    It writes `rows.parquet` and `retrieval.parquet`; an ensemble has no gradient of its own.

    Args:
        run: folder of the ensemble.
        members: trained runs, each with the spec of its data.
        config: what to compute.
        device: of the encoders.
        progress: called with (label, done, of).

    Raises:
        InputError: a member is not trained, or holds other items.
    """
    checkpoints = [fingerprint(Run(member).best) for member in members]
    wanted = {"schema": SCHEMA, "config": _plain(config), "checkpoint": " ".join(checkpoints)}
    if is_done(run.path, wanted, {}):
        return run.path / "evaluation"
    with lock_folder(run.path / "evaluation"):
        options: dict[str, Any] = {"split": config.test, "device": device, "progress": progress, "cache": False}
        ensemble = mean_of([load(member, data=data, **options) for member, data in members.items()])
        rows = _retrieval(ensemble, config, progress)
        of_member = read_frame(next(iter(members)), "rows")
        assert of_member is not None
        rows = rows.assign(split=config.test, data_fingerprint=of_member["data_fingerprint"].iloc[0])
        ranks = per_query(ensemble, progress)
        write_evaluation(run.path, {"rows": rows, "retrieval": ranks}, {**wanted, "versions": versions()})
    return run.path / "evaluation"


def _retrieval(test: SplitEmbeddings, config: ExamineConfig, progress: Progress | None) -> pd.DataFrame:
    """Return the summary rows of retrieval: of the whole split and, if wanted, of folds."""
    whole = evaluate([test], progress=progress)
    if config.folds == 1:
        return whole
    return join([whole, evaluate([test], config.folds, progress)])


def _evaluate(
    run: Run,
    config: ExamineConfig,
    recipe: Recipe,
    pictures: str | None,
    manifest: Mapping[str, Any],
    options: Mapping[str, Any],
) -> None:
    """Compute and write all files, in a locked folder.

    Args:
        run: a trained run.
        config: what to compute.
        recipe: of the run.
        pictures: data set that the features were made of.
        manifest: the last file to write.
        options: how to read sources.
    """
    out, processes, progress = run.path / "evaluation", process_group(), options["progress"]
    train = load(run.path, split=config.split, **options)
    config = _without_vectors(config) if train.pair_scorer is not None else config
    objective = str(train.objective)
    require_trusted([objective], run.path)
    size = config.batch_size or recipe.batch_size
    probes = (*map(_in_paper_unit, config.probes), *_more_conventions(config, objective, train.sides))
    sweep = trained_sweep(recipe, objective, probes, size)
    result = sweep.run(train, _frame(out / "frame", sweep, train, processes.main), progress, processes)
    what_if = _what_if(sweep, config).run(train, None, progress, processes).summary if _has_what_if(config) else None
    singles = None
    if config.singles:
        of_queries = replace(sweep, probes=config.singles, per_query=True, interval=None)
        frame = _frame(out / "per_query_frame", of_queries, train, processes.main)
        singles = of_queries.run(train, frame, progress, processes).queries
    if processes.main:
        test = load(run.path, split=config.test, **options)
        content: Split = build("datasets", pictures or options.get("data") or recipe.data).split(config.split)
        truth = _truth(content if pictures else None, train.name)
        rows = join([_retrieval(test, config, progress), result.summary, truth])
        rows = rows.assign(split=_splits(rows, config), data_fingerprint=_fingerprint(pictures, run))
        frames = {"rows": rows, "retrieval": per_query(test, progress), "what_if": what_if, "per_query": singles}
        if "curve" in result.batches and result.batches["curve"].notna().any():
            frames["curves"] = eps_curves(result.batches)
        if train.pair_scorer is None and any(spec.partition(":")[0] == "hubness" for spec in config.probes):
            frames["hardest_negative_counts"] = _counts(train, config.batch_size or _BATCH, recipe.seed)
        if train.pair_scorer is None:
            frames["heaviest_negatives"] = listed = _heaviest(sweep, train)
            frames["pictures"] = _pictures(content, train, listed)
        of_run = {name: numbers for name, numbers in frames.items() if numbers is not None}
        found = _findings(run, options)
        write_evaluation(run.path, of_run, {**manifest, "versions": versions()}, found)


def _without_vectors(config: ExamineConfig) -> ExamineConfig:
    """Return a config without the probes that need embeddings, which a model that scores pairs does not have."""
    probes, singles = (
        tuple(spec for spec in specs if "embeddings" not in build("probes", spec).reads)
        for specs in (config.probes, config.singles)
    )
    return replace(config, probes=probes, singles=singles)


def _findings(run: Run, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the doctor's findings in the run, as a document."""
    request = {name: options[name] for name in ("device", "cache", "progress", "data") if name in options}
    in_study = run.path.name == "run"  # STUDY/runs/KEY/run: commands are for the folder of the study
    name = "/".join(run.path.parts[-3:]) if in_study and len(run.path.parts) > 2 else run.path.name
    return examine_run(run.path, name, Options.of(**request)).document()


def trained_sweep(recipe: Recipe, objective: str, probes: Sequence[str], batch_size: int) -> Sweep:
    """Return the sweep over batches of a training: its seed, its rules for false negatives, its mined negatives.

    Args:
        recipe: of the run.
        objective: spec to count.
        probes: specs.
        batch_size: pairs or images a batch.
    """
    return Sweep(
        (objective,),
        tuple(probes),
        batch_size=batch_size,
        seed=recipe.seed,
        same_image=recipe.same_image,
        negatives=recipe.negatives,
        mined=recipe.mined or None,
        masks=tuple(spec for spec in recipe.mask.split(";") if spec),
    )


def is_current(run: Run) -> bool:
    """Return whether the folder has an evaluation of the best checkpoint by this version, with any config."""
    if evaluation_state(run.path) is not None:
        return False
    return evaluated_checkpoint(run.path) == fingerprint(run.best)


def _frame(path: Path, sweep: Sweep, train: SplitEmbeddings, main: bool) -> Frame | None:
    """Return the sweep's frame. With other choices, checkpoint or state of a plug-in, the sweep begins anew."""
    if not main:
        return None
    plugins = plugin_fingerprints((*sweep.objectives, *sweep.probes))
    of_sweep = {"name": "examine", "origin": train.fingerprint, **sweep.record(), **plugins_entry(plugins)}
    command = json.loads(json.dumps(of_sweep))
    if (path / "manifest.json").is_file() and Frame(path).manifest()["command"] != command:
        with lock_folder(path):
            for part in (*path.glob("*.parquet"), path / "manifest.json"):
                part.unlink()
            return Frame.open(path, command)
    return Frame.open(path, command)


def _more_conventions(config: ExamineConfig, objective: str, sides: Sides) -> tuple[str, ...]:
    """Return specs of `cocos` for each further convention that the objective knows, without the curve.

    The convention of the released counters is for images and captions alone.
    """
    known = build("objectives", objective).traits.conventions
    cocos = [build("probes", spec) for spec in config.probes if spec.partition(":")[0] == "cocos"]
    return tuple(
        spec_of(in_unit(replace(probe, convention=convention, curve=False), "paper"))
        for probe in cocos[:1]
        for convention in config.conventions
        if convention in known and convention != probe.convention and (sides.is_image_text or convention != "released")
    )


def _in_paper_unit(spec: str) -> str:
    """Return the spec of a probe with weights in the unit of each objective's paper, unless it names another unit."""
    probe = build("probes", spec)
    stated = in_unit(probe, "paper")
    return spec if stated == probe else spec_of(stated)


def _has_what_if(config: ExamineConfig) -> bool:
    return bool(config.what_if) and any(build("probes", spec).needs_objective for spec in config.probes)


def _what_if(sweep: Sweep, config: ExamineConfig) -> Sweep:
    """Return the sweep of the same batches under other objectives, without curves, which are a vector per batch."""
    probes = [build("probes", _in_paper_unit(spec)) for spec in config.probes]
    without = [replace(p, curve=False) if hasattr(p, "curve") else p for p in probes if p.needs_objective]
    objectives = tuple(expand("objectives", config.what_if))
    names = tuple(spec_of(probe) for probe in without)
    return replace(sweep, objectives=objectives, probes=names, batch_size=config.batch_size or _BATCH)


def _counts(train: SplitEmbeddings, pairs: int, seed: int) -> pd.DataFrame:
    """Return how often each candidate is the hardest negative, in both directions."""
    both = [hardest_negative_counts(train, pairs, seed, label).assign(direction=label) for label in train.sides.labels]
    return pd.concat(both, ignore_index=True).assign(batch_size=pairs)


def _heaviest(sweep: Sweep, train: SplitEmbeddings) -> pd.DataFrame:
    """Return the queries with the most and the least gradient, and their heaviest negatives."""
    rows = HeaviestNegatives(sweep).most_and_least(train, _SHOWN)
    of_rows = ["batch", "batch_row", "query", "candidate", "probability"]  # the ids say which items these are
    return rows.assign(known_positive=rows["known_positive"].astype(float)).drop(columns=of_rows)


def _pictures(content: Split, train: SplitEmbeddings, listed: pd.DataFrame) -> pd.DataFrame | None:
    """Return `id` and `picture`, a data address, of the images in a list; None of data without pixels.

    Features may have other ids than the pictures that they were made of: equal ids could then be other images.
    """
    if list(content.image_ids) != list(train.image_ids):
        return None
    shown = thumbnails(content, pd.concat([listed["query_id"], listed["candidate_id"].dropna()]))
    return pd.DataFrame({"id": list(shown), "picture": list(shown.values())}) if shown else None


def _truth(content: Split | None, source: str) -> pd.DataFrame:
    """Return the share of pairs that match without being positives, in per cent, if the data set knows it.

    With images and captions these are captions of other images; with passages, passages that answer without a label.
    """
    if content is None or not hasattr(content, "truth"):
        return pd.DataFrame(columns=list(SUMMARY))
    relations = content.relations
    true = content.truth().T if relations.sides.is_image_text else content.truth()  # (N, M)
    positive = relations.is_positive(np.arange(relations.first), np.arange(relations.second))
    negatives = int(true.size - positive.sum())
    share = 100.0 * float((true & ~positive).sum()) / negatives
    row = {"source": source, "direction": "both", "probe": "truth", "statistic": "true_negatives", "mean": share}
    sizes = {"n": negatives, "n_defined": negatives, "unit": "%"}
    return pd.DataFrame([{**row, **sizes}], columns=list(SUMMARY))


def _fingerprint(pictures: str | None, run: Run) -> str:
    """Return the fingerprint of the training split, or of the pictures that its features were made of."""
    if pictures is None:
        return Checkpoint.load(run.best).data_fingerprint
    content: Split = build("datasets", pictures).split("train")
    return content.fingerprint


def _splits(rows: pd.DataFrame, config: ExamineConfig) -> list[str]:
    return [config.test if probe == "recall" else config.split for probe in rows["probe"]]


def _plain(config: ExamineConfig) -> dict[str, Any]:
    plain: dict[str, Any] = json.loads(json.dumps(asdict(config)))
    if config.folds == 1:  # evaluations of before have none, and are the same
        del plain["folds"]
    return plain
