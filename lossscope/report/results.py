"""The results of many runs: their summary rows, queries, curves and epochs, each beside the labels of its run."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from lossscope.core.sides import IMAGE_TEXT
from lossscope.errors import InputError
from lossscope.io.evaluation_folder import examined_recall, frames_of, read_findings, read_frame, unexplained
from lossscope.io.frames import EPOCHS, MEMBERS, SIDES, SUMMARY
from lossscope.io.run_folder import Run
from lossscope.stats.naming import require_distinct_seeds
from lossscope.visible_text import show_text

INTERVAL_METHOD = "interval_method"  # how the interval of a row was made, `method` elsewhere
_SUMMARY = tuple(INTERVAL_METHOD if name == "method" else name for name in SUMMARY)
LABELS = ("run", "data", "encoder", "objective_label", "spec", "dataset", "method")
CANNOT_EXPLAIN = "cannot-explain"  # id of a bad state that no finding explains
FINDINGS = ("run", "severity", "id", "title", "explains", "advice", "command")
FRAMES = (
    "rows",
    "retrieval",
    "curves",
    "what_if",
    "per_query",
    "hardest_negative_counts",
    "heaviest_negatives",
    "pictures",
)


@dataclass(frozen=True)
class RunRecord:
    """One run, with its labels in tables and pictures."""

    run: str  # unique name
    path: Path  # run folder; the frames are in its folder `evaluation`
    data: str  # label
    encoder: str  # label
    objective_label: str
    spec: str  # of the objective, in full
    seed: int
    recipe: Mapping[str, Any] = field(default_factory=dict)  # every choice of the training
    members: str | None = None  # encoders whose similarities an ensemble averages
    dataset: str | None = None  # name of the data in published tables
    method: str | None = None  # name of the encoder in published tables
    status: str = "done"  # or failed, running, waiting
    reason: str = ""  # why it is not done
    seconds: float | None = None  # of training and evaluation


@dataclass(frozen=True)
class Results:
    """Frames of all runs; the first columns of each are LABELS."""

    rows: pd.DataFrame  # SUMMARY columns, split and data_fingerprint
    retrieval: pd.DataFrame  # direction, query, image, rank, ap5, relevant
    curves: pd.DataFrame  # C(eps)
    what_if: pd.DataFrame  # summary rows under other objectives
    per_query: pd.DataFrame  # numbers of single queries
    hardest_negative_counts: pd.DataFrame  # how often each candidate is the hardest negative
    epochs: pd.DataFrame  # loss, rsum and similarities against epochs
    runs: pd.DataFrame  # a row per run: its labels, status and reason, seconds
    recipes: Mapping[str, Mapping[str, Any]]  # run -> every choice of its training
    name: str  # of the study, or the number of runs
    paper: str | None = None  # whose tables are wanted
    all_printed: bool = False  # whether they also have printed rows without a run of ours
    findings: pd.DataFrame = field(default_factory=lambda: pd.DataFrame(columns=list(FINDINGS)))  # of the doctor
    # runs that the doctor has examined -> the lower recall@1 of both directions; None where it is not known
    examined: Mapping[str, float | None] = field(default_factory=dict)
    # the queries with the most and the least gradient, and their heaviest negatives; none of earlier evaluations
    heaviest_negatives: pd.DataFrame = field(default_factory=pd.DataFrame)
    pictures: pd.DataFrame = field(default_factory=pd.DataFrame)  # of the items among them: id, data address
    planted: tuple[str, ...] = ()  # names of data on which runs fail on purpose

    def of_runs(self, runs: Collection[str]) -> Results:
        """Return the results of these runs alone."""
        frames: dict[str, Any] = {
            name: frame[frame["run"].isin(runs)]
            for name, frame in vars(self).items()
            if isinstance(frame, pd.DataFrame) and "run" in frame
        }
        examined = {run: recall for run, recall in self.examined.items() if run in runs}
        return replace(self, **frames, examined=examined)

    @property
    def gaps(self) -> pd.DataFrame:
        """Runs without numbers, with status and reason."""
        return self.runs[self.runs["status"] != "done"]


def read_results(records: Sequence[RunRecord], name: str = "", paper: str | None = None) -> Results:
    """Read the evaluations of runs.

    Args:
        records: the runs.
        name: of the study; empty: the number of runs.
        paper: whose tables are wanted, or None.

    Raises:
        InputError: two runs have one name, or two of a system one seed; they are of different sides; none is done; one
            that is done has no evaluation, or a damaged one.
    """
    records = [_printable(record) for record in records]
    names = [record.run for record in records]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise InputError(f"names of runs must differ; got {', '.join(twice)} twice. Rename a folder")
    done = [record for record in records if record.status == "done"]
    if not done:
        listed = "; ".join(f"{record.run}: {record.status} {record.reason}".strip() for record in records[:5])
        raise InputError(f"at least one run must be finished; got {listed or 'no run'}. See `lossscope study status`")
    for record in done:
        frames_of(record.path)
    require_distinct_seeds((f"{run.data}, {run.encoder}, {run.objective_label}", run.run, run.seed) for run in done)
    frames: dict[str, Any] = {kind: _concatenate(done, kind) for kind in FRAMES}
    _require_one_kind(frames["rows"])
    found = {record.run: read_findings(record.path) for record in done}
    documents = {run: document for run, document in found.items() if document is not None}
    rows = [{k: v for k, v in asdict(record).items() if k not in ("path", "recipe")} for record in records]
    return Results(
        **frames,
        epochs=pd.concat([_epochs(record) for record in done if record.members is None], ignore_index=True),
        runs=pd.DataFrame(rows),
        recipes={record.run: record.recipe for record in records},
        name=name or ("1 run" if len(done) == 1 else f"{len(done)} runs"),
        paper=paper,
        findings=pd.DataFrame(_findings(documents), columns=list(FINDINGS)),
        examined={run: examined_recall(document) for run, document in documents.items()},
    )


def _findings(documents: Mapping[str, Mapping[str, Any]]) -> list[dict[str, str]]:
    """Return a row for each finding of the doctor in a run, in its order."""
    rows = []
    for run, document in documents.items():
        for finding in document["findings"]:
            advice = finding["advice"][0] if finding["advice"] else {}
            texts = {name: show_text(str(finding[name])) for name in ("severity", "id", "title")}
            rows.append({
                "run": run, **texts, "explains": show_text(", ".join(map(str, finding["explains"]))),
                "advice": show_text(str(advice.get("text") or "")),
                "command": show_text(str(advice.get("command") or "")),
            })  # fmt: skip
        for text in unexplained(document):
            of_state = {"severity": "warning", "id": CANNOT_EXPLAIN, "title": show_text(text)}
            rows.append({"run": run, **of_state, "explains": "", "advice": "", "command": ""})
    return rows


def _printable(record: RunRecord) -> RunRecord:
    """Return the record with control characters of its labels as \\xNN: every table, picture and file has them so."""
    texts = ("run", "data", "encoder", "objective_label", "spec", "dataset", "method", "reason")
    values: dict[str, Any] = {name: getattr(record, name) for name in texts}
    shown: dict[str, Any] = {name: show_text(text) for name, text in values.items() if text is not None}
    return replace(record, **shown)


def _require_one_kind(rows: pd.DataFrame) -> None:
    """Raise InputError where runs are of different sides: their directions and scores have no common table."""
    by_sides: dict[str, str] = {}
    for run, group in rows.groupby("run", sort=False):
        stated = list(group[SIDES].dropna().unique()) if SIDES in group else []
        by_sides.setdefault(str(stated[0]) if len(stated) else IMAGE_TEXT.text, str(run))
    if len(by_sides) > 1:
        got = " and ".join(f"{sides} of {run}" for sides, run in by_sides.items())
        raise InputError(f"runs of a report must be of the same sides; got {got}. Write a report of each")


def _concatenate(done: Sequence[RunRecord], kind: str) -> pd.DataFrame:
    """Return the frames of one kind, of all runs that have one; without any row, an empty frame with the labels."""
    frames = ((record, read_frame(record.path, kind)) for record in done)
    parts = [_add_labels(frame, record) for record, frame in frames if frame is not None]
    filled = [part for part in parts if len(part)]  # an empty part would change the types of columns
    if filled:
        return pd.concat(filled, ignore_index=True)
    return parts[0] if parts else pd.DataFrame(columns=[*LABELS, *(_SUMMARY if kind in ("rows", "what_if") else ())])


def _add_labels(frame: pd.DataFrame, record: RunRecord) -> pd.DataFrame:
    """Return the frame with the labels of its run as first columns; `method` is then the system, not the interval's."""
    labels: dict[str, Any] = {name: getattr(record, name) for name in LABELS}
    labelled: pd.DataFrame = frame.rename(columns={"method": INTERVAL_METHOD}).assign(**labels, seed=record.seed)
    if "probe" in labelled:
        as_it_came = record.recipe.get("epochs") == 0 and not record.recipe.get("init")
        labelled[MEMBERS], labelled[EPOCHS] = record.members, 0 if as_it_came else record.recipe.get("epochs") or np.nan
    if "source" in labelled:
        labelled["source"] = record.run
    return labelled.reindex(columns=[*LABELS, *(column for column in labelled.columns if column not in LABELS)])


def _epochs(record: RunRecord) -> pd.DataFrame:
    labels: dict[str, Any] = {name: getattr(record, name) for name in LABELS if name != "run"}
    return Run(record.path).curves(record.run).assign(**labels, seed=record.seed)
