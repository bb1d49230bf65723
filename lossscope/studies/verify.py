"""Is this file or folder whole, and what is in it? Verify all checksums."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from lossscope.errors import InputError
from lossscope.io.evaluation_folder import frames_of, read_frame
from lossscope.io.frames import Frame
from lossscope.io.manifests import read_manifest
from lossscope.io.run_folder import Run
from lossscope.registry import load
from lossscope.sources.checkpoints.checkpoint import verify as verify_checkpoint
from lossscope.training.offline_candidates import HardCandidates

from .study import Study

Facts = dict[str, str]  # name -> text
_FEATURE_ROWS = 256  # in memory at a time


def verify(path: Path, trust_code: bool = False) -> Iterator[tuple[Path, Facts]]:
    """Read all of a file or folder, and yield each part with a description.

    Args:
        path: a checkpoint, run, study, frame, folder of mined candidates or of extracted features, or dump.
        trust_code: import Python files that a checkpoint names.

    Raises:
        InputError: a part is damaged or has changed since it was written, or the path is none of these.
    """
    dump = load("sources", "dump")
    if not path.is_dir() or dump.accepts(path):
        yield path, dump(path).describe() if dump.accepts(path) else verify_checkpoint(path, trust_code)
        return
    if (path / "study.json").is_file():
        yield from _verify_study(path, trust_code)
        return
    schema = str(read_manifest(path / "manifest.json").get("schema")) if (path / "manifest.json").is_file() else ""
    if schema.startswith("lossscope.frame/"):
        yield path, _describe_frame(Frame(path))
    elif schema.startswith("lossscope.offline/"):
        yield path, _describe_candidates(HardCandidates.read(path))
    elif schema.startswith("lossscope.features/"):
        yield from _verify_features(path)
    else:
        yield from _verify_run(path, trust_code)


def _verify_study(path: Path, trust_code: bool) -> Iterator[tuple[Path, Facts]]:
    study = Study.open(path)
    statuses = study.statuses()
    done = sum(status.status == "done" for status in statuses)
    yield path, {"kind": "study", "runs": f"{len(statuses)}, {done} of them done"}
    for status in statuses:
        if status.run.members:
            yield from _verify_evaluation(study.folder(status.run) / "run")
        elif (study.folder(status.run) / "run").is_dir():
            yield from _verify_run(study.folder(status.run) / "run", trust_code)


def _verify_run(path: Path, trust_code: bool) -> Iterator[tuple[Path, Facts]]:
    """Verify checkpoints, tables and, if there is any, the evaluation of a run."""
    run = Run(path)
    files = [*sorted(path.glob("*.pt")), *sorted((path / "checkpoints").glob("*.pt"))]
    if not files:
        raise InputError(f"{path} must be a checkpoint file, a run folder or a dump; it is a folder without .pt files")
    for file in files:
        yield file, verify_checkpoint(file, trust_code)
    if run.metrics.is_file():
        curves = run.curves()
        yield (
            path,
            {
                "kind": "tables of a run",
                "rows": f"{(curves['split'] == 'train').sum()} steps, {len(run.epochs())} epochs",
            },
        )
    yield from _verify_evaluation(path)


def _verify_evaluation(path: Path) -> Iterator[tuple[Path, Facts]]:
    """Verify the frames of a run's evaluation, if there is any."""
    if os.path.lexists(path / "evaluation" / "manifest.json"):
        frames = {name: read_frame(path, name) for name in frames_of(path)}
        rows = ", ".join(f"{name} {len(frame)}" for name, frame in frames.items() if frame is not None)
        yield path / "evaluation", {"kind": "evaluation", "rows": rows}
        for frame in sorted(path.glob("evaluation/*/manifest.json")):
            yield frame.parent, _describe_frame(Frame(frame.parent))


def _verify_features(path: Path) -> Iterator[tuple[Path, Facts]]:
    """Verify all rows of features of each split, and its captions."""
    data = load("datasets", "precomp")(path)
    for name in data.splits():
        split, step = data.split(name), _FEATURE_ROWS
        for start in range(0, len(split.images), step):
            split.images.take(np.arange(start, min(start + step, len(split.images)), dtype=np.int64))
        yield (
            path / f"{name}_ims.npy",
            {
                "kind": "extracted features",
                "images": f"{len(split.images)}",
                "captions": f"{len(split.captions)}",
                "shape": f"{split.images.shape}",
            },
        )


def _describe_frame(frame: Frame) -> Facts:
    manifest, rows, queries = frame.manifest(), frame.read(), frame.read("query")
    return {
        "kind": "frame",
        "command": str(manifest["command"].get("name", "unknown")),
        "parts": f"{len(manifest['parts'])}{'' if manifest.get('done') else ', unfinished'}",
        "rows": f"{len(rows)}" + (f" and {len(queries)} of single queries" if len(queries) else ""),
    }


def _describe_candidates(candidates: HardCandidates) -> Facts:
    images, captions = candidates.captions.shape, candidates.images.shape
    return {
        "kind": "hard candidates",
        "captions": f"{images[1]} of each of {images[0]} images",
        "images": f"{captions[1]} of each of {captions[0]} captions",
        "source": candidates.source,
    }
