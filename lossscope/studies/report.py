"""Report on studies and run folders: evaluate runs that need it, read all results, draw and write the page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path

import pandas as pd

from lossscope.core.types import Progress
from lossscope.engine.goal_losses import goal_losses
from lossscope.engine.weight_fields import PAIRS, TRIPLETS, fields, goal_specs, pair_curves, weight_field
from lossscope.errors import InputError
from lossscope.io.decode import read_toml
from lossscope.io.remembered_trust import remembered_trust
from lossscope.io.run_folder import Run
from lossscope.io.trusted_code import TrustedCode, require_trusted, trust
from lossscope.registry import build, short_spec
from lossscope.report.build import Diagrams, write_report
from lossscope.report.page import page_folder
from lossscope.report.results import Results, RunRecord, read_results
from lossscope.stats.naming import TrainedModel, label_systems
from lossscope.tables.choice import Choice
from lossscope.training.recipe import Recipe
from lossscope.training.recipe_files import check_choices, printed_choices

from .examine import examine, is_current
from .relabel import relabel
from .report_options import ReportOptions
from .study import Study
from .study_file import ExamineConfig, ReportConfig


def report(
    paths: Sequence[Path],
    out: Path,
    options: ReportOptions = ReportOptions(),  # noqa: B008 - never changed
    device: str = "cpu",
    progress: Progress | None = None,
    trust_code: bool = False,
    config: ExamineConfig | None = None,
) -> Path:
    """Write the page, LaTeX, CSV and pictures of studies and run folders; return index.html.

    Args:
        paths: folders of studies or runs.
        out: folder to write: new, empty, or an earlier report.
        options: what the report shows; without `split` and `test` it uses existing evaluations of runs.
        device: of the encoders.
        progress: called with (label, done, of).
        trust_code: import Python files that runs name.
        config: what to compute of run folders; None: as the splits of the options say.

    Raises:
        InputError: a path is neither study nor run, runs do not fit into one table or name code that is not trusted,
            or `out` cannot be written. The report then writes nothing.
    """
    if config is None and (options.split or options.test):
        config = ExamineConfig(split=options.split or "train", test=options.test or "test")
    remembered = TrustedCode().joined(*(remembered_trust(path) for path in paths))
    with page_folder(out), trust(any_file=trust_code, more=remembered):
        for number, path in enumerate(paths):
            if (path / "config.toml").is_file() and (config is not None or not is_current(Run(path))):
                examine(Run(path), config or ExamineConfig(), device, progress)
            if progress:
                progress("reading", number + 1, len(paths))
        results = read_runs(paths, options.labels)
        configs = {path: Study.open(path).grid.report for path in paths if _is_study(path)}
        for path, config_of_study in configs.items():
            require_trusted(config_of_study.objectives, path / "study.json")
        for row in results.runs.to_dict("records"):  # the report builds objectives to draw them, not data and models
            require_trusted([row["spec"]], f"run {row['run']}")
        command = "lossscope report " + " ".join(path.name for path in paths)
        planted = tuple(name for config in configs.values() for name in config.planted)
        results = replace(results, planted=planted, all_printed=options.literature)
        drawn = diagrams(results, list(configs.values()))
        choice = Choice(options.columns, options.published)
        return write_report(results, drawn, out, options.title, command, options.resamples, choice)


def read_runs(paths: Sequence[Path], labels: Sequence[str] = ()) -> Results:
    """Read the evaluations of studies and of run folders.

    Labels of run folders name the choices in which they differ.

    Args:
        paths: folders of studies or runs.
        labels: names of systems, see `relabel`.

    Raises:
        InputError: a folder that is neither, a run without an evaluation, damaged files, two runs of the same name,
            two runs of a system with the same seed, a label of no run.
    """
    studies = [Study.open(path) for path in paths if _is_study(path)]
    records = [record for study in studies for record in _records_of(study)]
    records += _records_of_runs([Path(path) for path in paths if not _is_study(path)])
    records = relabel(records, labels)
    papers = {study.grid.paper for study in studies}
    names = ", ".join(study.grid.name for study in studies)
    return read_results(records, names, papers.pop() if len(papers) == 1 else None)


def diagrams(results: Results, reports: Sequence[ReportConfig] = ()) -> Diagrams:
    """Return weight fields of the trained objectives, by label, and of the objectives that the studies' reports add.

    Coupled relative objectives are left out, as they cannot be drawn without a batch.
    """
    done = results.runs[results.runs["status"] == "done"]  # if all runs of a loss failed, it may not be callable
    labels = done.drop_duplicates("objective_label").set_index("objective_label")["spec"]
    specs = {str(label): str(spec) for label, spec in labels.items()}
    for spec in dict.fromkeys(spec for config in reports for spec in config.objectives):
        specs.setdefault(short_spec(build("objectives", spec)), spec)
    objectives = {label: build("objectives", spec) for label, spec in specs.items()}
    frames = [
        weight_field(objective).assign(objective=label)
        for label, objective in objectives.items()
        if not (objective.coupled and objective.traits.relative)
    ]
    fields_of_objectives = pd.concat(frames, ignore_index=True) if frames else pd.DataFrame()
    if not any("goal" in config.figures for config in reports):
        return Diagrams(fields_of_objectives)
    return Diagrams(fields_of_objectives, fields(goal_specs(TRIPLETS)), pair_curves(PAIRS), goal_losses())


def is_study_or_run(path: Path) -> bool:
    """Whether a folder is that of a study, or of a run of `lossscope train`."""
    return _is_study(path) or (path / "config.toml").is_file()


def _is_study(path: Path | str) -> bool:
    return (Path(path) / "study.json").is_file()


def _records_of(study: Study) -> list[RunRecord]:
    return [
        RunRecord(
            run=status.run.key,
            path=study.folder(status.run) / "run",
            data=status.run.data,
            encoder=status.run.encoder,
            objective_label=status.run.objective_label,
            spec=status.run.recipe.objective,
            seed=status.run.seed,
            recipe=asdict(status.run.recipe) | {"init": study.grid.start_of(status.run)},
            dataset=status.run.dataset,
            method=status.run.method,
            members=", ".join(study.grid.run(key).encoder for key in status.run.members) or None,
            status=status.status,
            reason=status.reason,
            seconds=status.seconds,
        )
        for status in study.statuses()
    ]


def _records_of_runs(paths: Sequence[Path]) -> list[RunRecord]:
    """Return the records of run folders; runs that differ in more than their seed are different systems."""
    recipes = [_read_recipe(path) for path in paths]
    choices = [printed_choices(asdict(recipe)) for recipe in recipes]
    for name in ("data", "encoder"):  # if specs look alike without their folders, print the folders
        specs = {str(getattr(recipe, name)) for recipe in recipes}
        if len({choice[name] for choice in choices}) < len(specs):
            choices = [{**choice, name: str(getattr(r, name))} for choice, r in zip(choices, recipes, strict=True)]
    losses = {choice["objective"]: choice["objective"].rpartition(".py:")[2] for choice in choices}
    if len(set(losses.values())) == len(losses):  # a loss in a user's file goes by its name
        choices = [{**choice, "objective": losses[choice["objective"]]} for choice in choices]
    models = [TrainedModel(p.name, r.seed, c) for p, r, c in zip(paths, recipes, choices, strict=True)]
    labels = label_systems(models, within=("data", "encoder", "objective"))
    return [
        RunRecord(
            run=path.name,
            path=path,
            data=choice["data"],
            encoder=choice["encoder"],
            objective_label=label,
            spec=recipe.objective,
            seed=recipe.seed,
            recipe=asdict(recipe),
        )
        for path, recipe, choice, label in zip(paths, recipes, choices, labels, strict=True)
    ]


def _read_recipe(run: Path) -> Recipe:
    """Read the recipe of a run folder. Raises InputError if it is missing, or lacks choices of the training."""
    file = run / "config.toml"
    if not file.is_file():
        raise InputError(
            f"{run} must be the folder of a study or of a run; it has neither study.json nor config.toml. "
            "Embeddings and other models have a report of their own: give them alone"
        )
    choices = check_choices(read_toml(file), str(file))
    missing = [name for name in ("data", "encoder", "objective") if name not in choices]
    if missing:
        raise InputError(f"{file} must have every choice of the training; it lacks {', '.join(missing)}")
    return Recipe(**choices)
