"""What is known of many runs: their summary rows, queries, curves and epochs, each with who the run is."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from lossscope.errors import InputError
from lossscope.io.frames import SUMMARY
from lossscope.io.json_files import read_json
from lossscope.io.run_folder import Run

WHO = ("run", "data", "encoder", "objective_label", "spec", "dataset", "method")
KINDS = ("rows", "queries", "curves", "what_if", "singles", "chosen")
_STUDY = "lossscope.study/1"
_SYSTEM = ("data", "encoder", "objective_label")
_APART = ("data", "encoder", "objective", "seed", "init", "info", "offline")  # not what tells systems apart


@dataclass(frozen=True)
class Results:
    """Frames of all runs, each row beginning with WHO (and seed).

    rows: SUMMARY columns, split and data_fingerprint. queries: direction, query, image, rank, ap5, relevant. curves:
    C(eps). what_if: summary rows through other objectives. singles: numbers of single queries. chosen: how often
    each candidate is the hardest negative.
    epochs: loss, rsum and similarities against epochs. cells: a row per run, `status` and `reason` for those that a
    study has not (done, failed, waiting).
    """

    rows: pd.DataFrame
    queries: pd.DataFrame
    curves: pd.DataFrame
    what_if: pd.DataFrame
    singles: pd.DataFrame
    chosen: pd.DataFrame
    epochs: pd.DataFrame
    cells: pd.DataFrame
    name: str
    paper: str | None = None

    @property
    def gaps(self) -> pd.DataFrame:
        """Cells without numbers, and why."""
        return self.cells[self.cells["status"] != "done"]


def read_results(paths: Sequence[Path | str]) -> Results:
    """Of studies and of run folders that were examined.

    Run folders whose choices differ in more than the seed are called by what differs. Raises InputError for a folder
    that is neither, a run that was not examined, files that are damaged, and two runs of one name or of one seed.
    """
    whole = [Path(path) for path in paths if (Path(path) / "study.json").is_file()]
    studies = [_study(path) for path in whole]
    known = [one for path, study in zip(whole, studies, strict=True) for one in _of_study(path, study)]
    known += _apart([_of_run(Path(path)) for path in paths if Path(path) not in whole])
    twice = sorted({one["run"] for one in known if [o["run"] for o in known].count(one["run"]) > 1})
    if twice:
        raise InputError(f"runs must have names of their own; got {', '.join(twice)} twice. Rename a folder")
    done = [one for one in known if one["status"] == "done"]
    if not done:
        told = "; ".join(f"{one['run']}: {one['status']} {one['reason']}".strip() for one in known[:5])
        raise InputError(f"at least one run must be done; got {told or 'no run'}. See `lossscope study status`")
    _seeds_once(done)
    papers = {study.get("paper") for study in studies}
    name = ", ".join(str(study["name"]) for study in studies) or _counted(len(done))
    frames = {kind: _joined(done, kind) for kind in KINDS}
    epochs = [_epochs(one) for one in done]
    cells = pd.DataFrame([{k: v for k, v in one.items() if k != "path"} for one in known])
    return Results(
        **frames,
        epochs=pd.concat(epochs, ignore_index=True),
        cells=cells,
        name=name,
        paper=papers.pop() if len(papers) == 1 else None,
    )


def _counted(runs: int) -> str:
    return "1 run" if runs == 1 else f"{runs} runs"


def _study(path: Path) -> dict[str, Any]:
    found = read_json(path / "study.json")
    if found.get("schema") != _STUDY:
        raise InputError(f"{path / 'study.json'} must have the schema {_STUDY}; got {found.get('schema')!r}")
    return found


def _of_study(path: Path, study: dict[str, Any]) -> list[dict[str, Any]]:
    found = []
    for cell in study["cells"]:
        folder = path / "cells" / cell["key"]
        state = read_json(folder / "state.json") if (folder / "state.json").is_file() else {"status": "waiting"}
        if state["status"] == "done" and state.get("examine") != study["examine"]:
            state = {"status": "waiting", "reason": "trained, but other things are asked of it now"}
        if state["status"] == "done":
            _require_examined(folder / "run")
        who = {name: cell[name] for name in ("data", "encoder", "objective_label", "dataset", "method")}
        told = {"seed": cell["recipe"]["seed"], "spec": cell["recipe"]["objective"], "path": folder / "run"}
        end = {"status": state["status"], "reason": state.get("reason", ""), "seconds": state.get("seconds")}
        found.append({"run": cell["key"], **who, **told, **end, "recipe": json.dumps(cell["recipe"])})
    return found


def _of_run(path: Path) -> dict[str, Any]:
    if not (path / "config.toml").is_file():
        raise InputError(f"{path} must be the folder of a study or of a run; it has neither study.json nor config.toml")
    _require_examined(path)
    recipe = _recipe(path / "config.toml")
    who = {"data": recipe["data"], "encoder": recipe["encoder"], "objective_label": recipe["objective"]}
    told = {"dataset": None, "method": None, "seed": recipe.get("seed", 0), "spec": recipe["objective"], "path": path}
    end = {"status": "done", "reason": "", "seconds": None, "recipe": json.dumps(recipe)}
    return {"run": path.name, **who, **told, **end}


def _require_examined(run: Path) -> None:
    if not (run / "examined" / "manifest.json").is_file():
        raise InputError(f"{run} must be a run that was examined; it was not. `lossscope report` does it first")


def _recipe(file: Path) -> dict[str, Any]:
    try:
        found = tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"{file} must be a readable TOML file; {error}") from error
    missing = [name for name in ("data", "encoder", "objective") if not isinstance(found.get(name), str)]
    if missing:
        raise InputError(f"{file} must state how the run was trained; it does not name {', '.join(missing)}")
    return found


def _apart(runs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Runs of one objective with other choices are not its seeds: `ntxent:tau=0.1, lr 0.002`."""
    recipes = [json.loads(run["recipe"]) for run in runs]
    named = []
    for run in runs:
        same = [recipe for recipe, one in zip(recipes, runs, strict=True) if _system(one) == _system(run)]
        names = dict.fromkeys(name for recipe in same for name in recipe if name not in _APART)
        differing = [name for name in names if len({str(recipe.get(name)) for recipe in same}) > 1]
        own = json.loads(run["recipe"])
        more = [f"{name.replace('_', '-')} {own.get(name)}" for name in differing]
        named.append({**run, "objective_label": ", ".join([run["objective_label"], *more])})
    return named


def _seeds_once(done: list[dict[str, Any]]) -> None:
    runs: dict[tuple[Any, ...], str] = {}
    for one in done:
        key = (*_system(one), one["seed"])
        if key in runs:
            raise InputError(
                f"every run of {', '.join(_system(one))} must have a seed of its own; {runs[key]} and {one['run']} "
                f"both have {one['seed']}. Leave one of them out"
            )
        runs[key] = one["run"]


def _system(one: dict[str, Any]) -> tuple[str, ...]:
    return tuple(str(one[name]) for name in _SYSTEM)


def _joined(done: list[dict[str, Any]], kind: str) -> pd.DataFrame:
    parts = []
    for one in done:
        file = one["path"] / "examined" / f"{kind}.parquet"
        if file.is_file():
            parts.append(_named(_read(file), one))
    if not parts:
        return pd.DataFrame(columns=[*WHO, *(SUMMARY if kind in ("rows", "what_if") else ())])
    records: list[Any] = [part for part in parts if len(part)]
    found: pd.DataFrame = pd.concat(records, ignore_index=True)
    return found


def _named(frame: pd.DataFrame, one: dict[str, Any]) -> pd.DataFrame:
    who = {name: one[name] for name in WHO}
    named: pd.DataFrame = frame.assign(**who, seed=one["seed"])
    if "source" in named:
        named["source"] = one["run"]
    return named.reindex(columns=[*WHO, *(column for column in named.columns if column not in WHO)])


def _epochs(one: dict[str, Any]) -> pd.DataFrame:
    return Run(one["path"]).curves(one["run"]).assign(**{n: one[n] for n in WHO if n != "run"}, seed=one["seed"])


def _read(file: Path) -> pd.DataFrame:
    try:
        found: pd.DataFrame = pd.read_parquet(file)
    except (OSError, ValueError) as error:
        advice = "Remove the folder it is in, and the command makes it anew"
        raise InputError(f"{file} must be a whole file of the run; {error}. {advice}") from error
    return found
