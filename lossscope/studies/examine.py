"""What a trained run is asked once and for all, and kept in its folder: retrieval, single queries, probes, C(eps)."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pandas as pd

from lossscope.core.distributed import process_group
from lossscope.datasets.base import Split
from lossscope.engine.eps_curves import eps_curves
from lossscope.engine.plan import Sweep
from lossscope.engine.similarity_clouds import hardest_negative_counts
from lossscope.io.files import fingerprint, write_atomically, write_text
from lossscope.io.frames import SUMMARY, Frame, join
from lossscope.io.json_files import read_json
from lossscope.io.run_folder import Run
from lossscope.io.versions import versions
from lossscope.registry import build, expand, require_trusted, spec_of
from lossscope.retrieval.evaluate import evaluate
from lossscope.retrieval.per_query import per_query
from lossscope.sources.base import load
from lossscope.sources.checkpoints.checkpoint import Checkpoint
from lossscope.training.recipe_files import read_recipe

from .study_file import ExamineConfig

SCHEMA = "lossscope.examined/1"
_BATCH = 128  # of what-if sweeps, the same for runs that were trained with other batches
Progress = Callable[[str, int, int], None]


def examine(
    run: Run,
    asked: ExamineConfig,
    device: str = "cpu",
    progress: Progress | None = None,
    data: str | None = None,
    trust_code: bool = False,
    read: str | None = None,
) -> Path:
    """Ask it of the run's best checkpoint, unless that was done; the folder `examined` of the run.

    `rows.parquet` (summary rows), `queries.parquet` (rank of every test query), `curves.parquet` (C(eps)),
    `what_if.parquet` (summary rows through other objectives), `singles.parquet` (numbers of single training queries),
    `chosen.parquet` (how often each candidate is the hardest negative, where hubness is asked for),
    and `manifest.json`, which is written last. data: spec that the pictures come from, whose truth is told where it is
    known. read: spec to read items from instead of the run's own, where files were moved. A sweep that was stopped goes
    on. Of many processes each must call this.
    """
    out = run.path / "examined"
    wanted = {"schema": SCHEMA, "asked": _plain(asked), "checkpoint": fingerprint(run.best)}
    if _done(out, wanted):
        return out
    options: dict[str, Any] = {"device": device, "progress": progress, "cache": False, "trust_code": trust_code}
    options |= {"data": read} if read else {}
    here, recipe = process_group(), read_recipe(run.config)
    train = load(run.path, split=asked.split, **options)
    objective = str(train.objective)
    require_trusted(objective, trust_code)
    probes = (*asked.probes, *_conventions(asked, objective))
    size = asked.batch_size or recipe.batch_size
    sweep = Sweep((objective,), probes, batch_size=size, seed=recipe.seed, same_image=recipe.same_image)
    summary, batches = sweep.run(train, _frame(out / "frame", sweep, train.fingerprint, here.main), progress, here)
    others = tuple(expand("objectives", asked.what_if)) if asked.what_if else ()
    weighing = tuple(_plain_cocos(spec) for spec in asked.probes if build("probes", spec).needs_objective)
    what_if = replace(sweep, objectives=others, probes=weighing, batch_size=asked.batch_size or _BATCH)
    other = what_if.run(train, None, progress, here)[0] if others and weighing else None
    singles = replace(sweep, probes=asked.singles, per_query=True)
    kept = _frame(out / "singles", singles, train.fingerprint, here.main)
    if asked.singles:
        singles.run(train, kept, progress, here)
    if here.main:
        test = load(run.path, split=asked.test, **options)
        found = join([evaluate([test], progress=progress), summary, _truth(data, asked.split, train.name)])
        queries = per_query(test, progress)
        _forget(out)
        _write(out / "rows.parquet", found.assign(split=_splits(found, asked), data_fingerprint=_origin(data, run)))
        _write(out / "queries.parquet", queries)
        if "curve" in batches and batches["curve"].notna().any():
            _write(out / "curves.parquet", eps_curves(batches))
        if other is not None:
            _write(out / "what_if.parquet", other)
        if kept is not None and asked.singles:
            _write(out / "singles.parquet", kept.read("query"))
        if train.pair_scorer is None and any(spec.partition(":")[0] == "hubness" for spec in asked.probes):
            pairs = asked.batch_size or _BATCH
            both = (
                hardest_negative_counts(train, pairs, recipe.seed, side).assign(direction=side)
                for side in ("i2t", "t2i")
            )
            _write(out / "chosen.parquet", pd.concat(both, ignore_index=True).assign(batch_size=pairs))
        write_text(out / "manifest.json", json.dumps({**wanted, "versions": versions()}, indent=1) + "\n")
    here.barrier()
    return out


def is_current(run: Run) -> bool:
    """Whether the run's folder has answers about its best checkpoint, whatever was asked."""
    file = run.path / "examined" / "manifest.json"
    return file.is_file() and bool(read_json(file).get("checkpoint") == fingerprint(run.best))


def _done(out: Path, wanted: dict[str, Any]) -> bool:
    file = out / "manifest.json"
    if not file.is_file():
        return False
    found = read_json(file)
    return {key: found.get(key) for key in wanted} == wanted


def _forget(out: Path) -> None:
    """Take away the answers to an earlier question, the manifest that vouches for them first."""
    for file in (out / "manifest.json", *out.glob("*.parquet")):
        file.unlink(missing_ok=True)


def _frame(path: Path, sweep: Sweep, origin: str, main: bool) -> Frame | None:
    """The sweep's frame; one of other choices, or of an earlier checkpoint, is begun anew."""
    if not main:
        return None
    command = json.loads(json.dumps({"name": "examine", "origin": origin, **asdict(sweep)}))
    if (path / "manifest.json").is_file() and Frame(path).manifest()["command"] != command:
        for part in path.iterdir():
            part.unlink()
    return Frame.open(path, command)


def _conventions(asked: ExamineConfig, objective: str) -> tuple[str, ...]:
    """`cocos` again in each further convention that the objective knows, without the curve."""
    known = build("objectives", objective).conventions
    cocos = [build("probes", spec) for spec in asked.probes if spec.partition(":")[0] == "cocos"]
    return tuple(
        spec_of(replace(probe, convention=convention, curve=False))
        for probe in cocos[:1]
        for convention in asked.conventions
        if convention in known and convention != probe.convention
    )


def _plain_cocos(spec: str) -> str:
    """The probe without its curve, which is a vector per batch."""
    probe = build("probes", spec)
    return spec_of(replace(probe, curve=False)) if hasattr(probe, "curve") else spec


def _truth(data: str | None, split: str, source: str) -> pd.DataFrame:
    """Share of (image, caption of another image) pairs that are true, in per cent, where the data set knows it."""
    content = build("datasets", data).split(split) if data else None
    if content is None or not hasattr(content, "truth"):
        return pd.DataFrame(columns=list(SUMMARY))
    true = content.truth()
    others = true.sum() - true[range(len(true)), content.caption_image].sum()
    share = 100.0 * float(others) / (true.size - len(true))
    row = {"source": source, "direction": "both", "probe": "truth", "statistic": "true_negatives", "mean": share}
    told = {"n": true.size - len(true), "n_defined": true.size - len(true), "unit": "%"}
    return pd.DataFrame([{**row, **told}], columns=list(SUMMARY))


def _origin(data: str | None, run: Run) -> str:
    """Fingerprint of the training split: of the pictures where features were made of them."""
    if data is None:
        return Checkpoint.load(run.best).data_fingerprint
    content: Split = build("datasets", data).split("train")
    return content.fingerprint


def _splits(rows: pd.DataFrame, asked: ExamineConfig) -> list[str]:
    return [asked.test if probe == "recall" else asked.split for probe in rows["probe"]]


def _plain(asked: ExamineConfig) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(json.dumps(asdict(asked)))
    return found


def _write(path: Path, rows: pd.DataFrame) -> None:
    with write_atomically(path) as part:
        rows.to_parquet(part, index=False)
