"""Read a study from TOML: data x encoders x objectives x seeds -> runs, each with a whole recipe and its labels."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from lossscope.core.types import Convention
from lossscope.errors import InputError
from lossscope.io.decode import decode, read_toml
from lossscope.io.folder_names import LONGEST_NAME, is_folder_name
from lossscope.io.json_files import shorten
from lossscope.io.reading import naming
from lossscope.io.trusted_code import require_trusted
from lossscope.registry import build, expand, spec_of
from lossscope.report.papers import papers_with_tables
from lossscope.training.components import resolve
from lossscope.training.recipe import Recipe
from lossscope.training.recipe_files import check_choices

AXES = ("data", "encoders", "objectives")
WHAT_IF = "ntxent:tau=0.01..1/21 log"
PROBES = ("cocos:eps=0.01,curve=true", "weight_mass", "similarity", "hubness", "alignment", "uniformity")

Figures = Literal["goal"]  # GOAL's weight fields and pair curves, Figures 2 and 3


@dataclass(frozen=True)
class ExamineConfig:
    """What the evaluation of a trained run computes."""

    split: str = "train"  # of the probes
    test: str = "test"  # split of retrieval
    folds: int = 1  # equal runs of its images, ranked apart and averaged beside the whole split; COCO 1K: 5
    probes: tuple[str, ...] = PROBES  # specs
    conventions: tuple[Convention, ...] = ("released", "text")  # further conventions, for objectives that know them
    batch_size: int | None = None  # of the probes; None: that of the training
    what_if: str = WHAT_IF  # a range of objectives under which each run is counted, too; or empty
    singles: tuple[str, ...] = ("similarity", "tangent")  # probes with numbers kept for each query

    def __post_init__(self) -> None:
        if self.batch_size is not None and self.batch_size < 2:
            raise InputError(f"batch_size of [examine] must be a number of at least 2; got {self.batch_size}")
        if self.folds < 1:
            raise InputError(f"folds must be a number of at least 1; got {self.folds}")

    @property
    def specs(self) -> tuple[str, ...]:
        """All specs of probes and objectives."""
        return (*self.probes, *self.singles, self.what_if)


@dataclass(frozen=True)
class ReportConfig:
    """Diagrams of a study's report beside those of its runs."""

    objectives: tuple[str, ...] = ()  # specs of further weight fields
    figures: tuple[Figures, ...] = ()
    planted: tuple[str, ...] = ()  # names of data on which runs fail on purpose, as the page then says


@dataclass(frozen=True)
class Sizes:
    """Sizes of a training split, from which `--dry-run` counts steps where the data are not on this machine."""

    train: int  # images
    captions: int  # of each image

    def __post_init__(self) -> None:
        if self.train < 1 or self.captions < 1:
            raise InputError(f"sizes must be at least 1; got train = {self.train}, captions = {self.captions}")


@dataclass(frozen=True)
class StudyRun:
    """A training of a study."""

    key: str  # its folder
    data: str  # label
    encoder: str  # label
    objective_label: str
    recipe: Recipe  # all choices; `data` is that of the entry
    features: str | None = None  # backbone that first makes regions of the data's pictures
    dataset: str | None = None  # name of the data in the published tables
    method: str | None = None  # name of the encoder in the published tables
    folds: int | None = None  # in which the test split is ranked; None: those of [examine]
    members: tuple[str, ...] = ()  # keys of the runs whose similarities an ensemble averages; it trains nothing
    begins_from: str | None = None  # key of the run whose best checkpoint is its `init`
    sizes: Sizes | None = None  # of its data

    def __post_init__(self) -> None:
        if not is_folder_name(self.key):
            rule = f"letters, digits, - and ., at most {LONGEST_NAME}, as it names a folder"
            raise InputError(f"key of a run must be {rule}; got {shorten(self.key)}")
        if self.folds is not None and self.folds < 1:
            raise InputError(f"folds must be a number of at least 1; got {self.folds}")

    @property
    def specs(self) -> tuple[str, ...]:
        """The specs that its training builds."""
        return (*self.recipe.specs, *([self.features] if self.features is not None else []))

    @property
    def needs(self) -> tuple[str, ...]:
        """The keys of the runs that must be done before."""
        return self.members if self.begins_from is None else (self.begins_from, *self.members)

    def examined(self, config: ExamineConfig) -> ExamineConfig:
        """Return the config of its evaluation."""
        return config if self.folds is None else replace(config, folds=self.folds)

    @property
    def seed(self) -> int:
        """The seed of weights and batches."""
        return self.recipe.seed

    @property
    def system(self) -> tuple[str, str, str]:
        """The labels that runs share if they differ in their seed alone."""
        return self.data, self.encoder, self.objective_label


@dataclass(frozen=True)
class StudyGrid:
    """The runs of a study, with the configs of their evaluation and report."""

    name: str
    about: str
    paper: str | None  # the paper of the tables that it fills: a prefix of the names of lossscope/tables
    runs: tuple[StudyRun, ...]
    examine: ExamineConfig = ExamineConfig()
    report: ReportConfig = ReportConfig()

    def __post_init__(self) -> None:
        twice = [key for key, times in Counter(run.key for run in self.runs).items() if times > 1]
        if twice:
            raise InputError(f"keys of a study's runs must differ; got {twice[0]!r} twice")
        self._require_starts()

    @property
    def specs(self) -> tuple[str, ...]:
        """The specs of its runs, of their evaluation, and of its report, each once."""
        of_runs = (spec for run in self.runs for spec in run.specs)
        return tuple(dict.fromkeys((*of_runs, *self.examine.specs, *self.report.objectives)))

    def start_of(self, run: StudyRun) -> str | None:
        """Return what a run begins with: a checkpoint, or the labels in which the run that it begins from differs."""
        if run.begins_from is None:
            return run.recipe.init
        start = self.run(run.begins_from)
        return f"best.pt of {', '.join(a for a, b in zip(start.system, run.system, strict=True) if a != b)}"

    def _require_starts(self) -> None:
        """Raise InputError if a run begins from one that is not here, or from itself, directly or through others."""
        begins_from = {run.key: run.begins_from for run in self.runs}
        for key in begins_from:
            path = [key]
            while (start := begins_from[path[-1]]) is not None:
                if start not in begins_from or start in path:
                    raise InputError(
                        f"begin_from must lead to another run of the same data and seed; {path[-1]} begins "
                        f"from {start}, which is {'before it in a circle' if start in path else 'no run of the study'}"
                    )
                path.append(start)

    def run(self, key: str) -> StudyRun:
        """Return the run of this key. Raises InputError if there is none."""
        for run in self.runs:
            if run.key == key:
                return run
        raise InputError(f"run must be one of the study's {len(self.runs)}; got {key!r}")


def read_study_file(
    path: Path | str, data: Mapping[str, str] | None = None, seeds: Sequence[int] | None = None
) -> StudyGrid:
    """Read the grid of a TOML file.

    Args:
        path: the file.
        data: name of a data entry -> spec to use instead, for paths of this machine.
        seeds: to use instead of those of the file.

    Raises:
        InputError: a file that cannot be read, keys or types that do not belong to a study, two runs of the same name,
            a spec that does not build or names a Python file that is not trusted.
    """
    where = str(path)
    file = decode(_StudyFile, read_toml(path, "a readable TOML file of a study"), where)
    with naming(path, "a study that can be run"):
        return _grid_of(file, path, data or {}, seeds)


def _grid_of(file: _StudyFile, path: Path | str, data: Mapping[str, str], seeds: Sequence[int] | None) -> StudyGrid:
    where = str(path)
    axes = {axis: _written_out(getattr(file, axis), axis, where) for axis in AXES}
    axes["data"] = _with_paths(axes["data"], data)
    _require_only(axes, where)
    _require_begin_from(axes, where)
    features = filter(None, (getattr(entry, "features", None) for entry in axes["encoders"]))
    entries = (entry.spec for entry in itertools.chain(*axes.values()))
    require_trusted((*entries, *features, *file.examine.specs, *file.report.objectives), where)
    common = check_choices(file.recipe, f"[recipe] of {where}")
    combinations = [
        combination
        for combination in itertools.product(*(axes[axis] for axis in AXES))
        if _belong_together(combination)
    ]
    wanted = dict.fromkeys(file.seeds if seeds is None else seeds)
    if not wanted or not combinations:
        raise InputError(f"{where} must have at least one seed and one combination of entries; it has none")
    runs = tuple(_run(combination, seed, common, where) for combination in combinations for seed in wanted)
    runs += tuple(run for entry in file.ensembles for run in _ensemble(entry, axes["encoders"], runs, where))
    _require_distinct([run.key for run in runs], where)
    name = _name(file, path)
    if file.paper is not None and file.paper not in papers_with_tables():
        known = ", ".join(papers_with_tables())
        raise InputError(f"paper of {where} must be one whose tables there are ({known}); got {file.paper!r}")
    _require_specs(file.examine, file.report)
    return StudyGrid(name, file.about, file.paper, runs, file.examine, file.report)


def read_study_name(path: Path | str) -> str:
    """Return the name of a study's TOML file and build nothing. Raises InputError if the file is no study."""
    return _name(decode(_StudyFile, read_toml(path, "a readable TOML file of a study"), str(path)), path)


def _name(file: _StudyFile, path: Path | str) -> str:
    name = file.name or Path(path).stem
    if not is_folder_name(name):
        rule = f"letters, digits, -, _ and ., at most {LONGEST_NAME}, as it names a folder"
        raise InputError(f"name of {path} must be {rule}; got {shorten(name)}")
    return name


@dataclass(frozen=True)
class _Entry:
    """An [[objectives]] table."""

    spec: str
    name: str = ""  # empty: the spec
    published: str | None = None
    recipe: dict[str, Any] = field(default_factory=dict)
    each: dict[str, tuple[str | int | float | bool, ...]] = field(default_factory=dict)
    only: dict[Literal["data", "encoders", "objectives"], tuple[str, ...]] = field(default_factory=dict)
    begin_from: str | None = None  # name of the entry of its axis from whose best checkpoint each run begins


@dataclass(frozen=True)
class _DataEntry(_Entry):
    """A [[data]] table."""

    sizes: Sizes | None = None
    folds: int | None = None


@dataclass(frozen=True)
class _EnsembleEntry:
    """An [[ensembles]] table: encoders whose similarities are averaged."""

    name: str
    of: tuple[str, ...]  # names of encoders
    published: str | None = None


@dataclass(frozen=True)
class _EncoderEntry(_Entry):
    """An [[encoders]] table."""

    features: str | None = None


@dataclass(frozen=True)
class _StudyFile:
    """The tables of a study's TOML file."""

    data: tuple[_DataEntry, ...]
    encoders: tuple[_EncoderEntry, ...]
    objectives: tuple[_Entry, ...]
    ensembles: tuple[_EnsembleEntry, ...] = ()
    name: str = ""
    about: str = ""
    paper: str | None = None
    seeds: tuple[int, ...] = (0,)
    recipe: dict[str, Any] = field(default_factory=dict)
    examine: ExamineConfig = ExamineConfig()
    report: ReportConfig = ReportConfig()


def _run(entries: Sequence[_Entry], seed: int, common: Mapping[str, Any], where: str) -> StudyRun:
    data, encoder, objective = entries
    choices = dict(common)
    for entry in entries:
        choices |= check_choices(entry.recipe, f"recipe of {entry.name!r} in {where}")
    specs = {"data": data.spec, "encoder": encoder.spec, "objective": objective.spec}
    features = getattr(encoder, "features", None)
    key = _key([entry.name for entry in entries], seed, where)
    start = _key([entry.begin_from or entry.name for entry in entries], seed, where)
    if start != key and choices.get("init"):
        raise InputError(f"{key} of {where} must have begin_from or init; it has both")
    return StudyRun(
        key=key,
        data=data.name,
        encoder=encoder.name,
        objective_label=objective.name,
        recipe=resolve(Recipe(**{**choices, **specs, "seed": seed})).recipe,
        features=None if features is None else spec_of(build("features", features)),
        dataset=data.published,
        method=encoder.published,
        folds=getattr(data, "folds", None),
        begins_from=start if start != key else None,
        sizes=getattr(data, "sizes", None),
    )


def _key(names: Sequence[str], seed: int, where: str) -> str:
    key = "--".join([*map(_folder_name, names), f"seed{seed}"])
    if len(key) > LONGEST_NAME:
        raise InputError(
            f"names of {where} must make folders of at most {LONGEST_NAME} letters; got {key!r}. Shorten them"
        )
    return key


def _ensemble(
    entry: _EnsembleEntry, encoders: Sequence[_Entry], runs: Sequence[StudyRun], where: str
) -> Iterator[StudyRun]:
    """Yield an ensemble for all data, objectives and seeds that every member has.

    Raises InputError for members that are no encoders, fewer than two of them, or nothing that they share.
    """
    names = [encoder.name for encoder in encoders]
    unknown = [name for name in entry.of if name not in names]
    if unknown or len(set(entry.of)) < 2:
        raise InputError(
            f"members of the ensemble {entry.name!r} in {where} must be two or more encoders ({', '.join(names)}); got "
            f"{', '.join(entry.of) or 'none'}"
        )
    if entry.name in names:
        raise InputError(f"names of ensembles in {where} must differ from those of encoders; got {entry.name!r}")
    groups: dict[tuple[str, str, int], dict[str, StudyRun]] = {}
    for run in runs:
        groups.setdefault((run.data, run.objective_label, run.seed), {})[run.encoder] = run
    shared = [group for group in groups.values() if all(name in group for name in entry.of)]
    if not shared:
        raise InputError(
            f"members of the ensemble {entry.name!r} in {where} must be trained on the same data with the same "
            f"objective; {' and '.join(entry.of)} are not"
        )
    for group in shared:
        first = group[entry.of[0]]
        yield replace(
            first,
            key=_key([first.data, entry.name, first.objective_label], first.seed, where),
            encoder=entry.name,
            method=entry.published,
            features=None,
            begins_from=None,
            members=tuple(group[name].key for name in entry.of),
        )


def _written_out(entries: Sequence[_Entry], axis: str, where: str) -> list[_Entry]:
    """Return each entry once per combination of its `each`. Raises InputError for none, and for equal names."""
    if not entries:
        raise InputError(f"{where} must have one [[{axis}]] table at least; it has none")
    written = [combination for entry in entries for combination in _combinations(entry, where)]
    _require_distinct([entry.name for entry in written], where)
    return written


def _combinations(entry: _Entry, where: str) -> Iterator[_Entry]:
    """Yield an entry for each combination of `each`; its values replace {key} in name and spec."""
    name = entry.name or entry.spec
    for key, values in entry.each.items():
        if not values:
            raise InputError(f"each of {name!r} in {where} must give lists, {{tau = [0.05, 0.1]}}; got {key} = []")
    for values in itertools.product(*entry.each.values()):
        chosen = dict(zip(entry.each, values, strict=True))
        try:
            start = None if entry.begin_from is None else entry.begin_from.format(**chosen)
            spec = entry.spec.format(**chosen)
            yield replace(entry, name=name.format(**chosen), spec=spec, begin_from=start, each={})
        except (KeyError, IndexError, ValueError) as error:
            raise InputError(f"braces of {name!r} in {where} must name keys of each; {error}") from error


def _with_paths(entries: list[_Entry], data: Mapping[str, str]) -> list[_Entry]:
    names = [entry.name for entry in entries]
    for name in data:
        if name not in names:
            raise InputError(f"--data must name one of {', '.join(names)}; got {name!r}")
    return [replace(entry, spec=data.get(entry.name, entry.spec)) for entry in entries]


def _belong_together(entries: Sequence[_Entry]) -> bool:
    """Return whether the `only` of each entry allows the others."""
    names = dict(zip(AXES, (entry.name for entry in entries), strict=True))
    return all(names[axis] in allowed for entry in entries for axis, allowed in entry.only.items())


def _require_only(axes: Mapping[str, Sequence[_Entry]], where: str) -> None:
    """Raise InputError for an `only` that names no entry."""
    for entry in itertools.chain(*axes.values()):
        for axis, allowed in entry.only.items():
            names = [other.name for other in axes[axis]]
            strange = [name for name in allowed if name not in names]
            if strange:
                raise InputError(
                    f"only of {entry.name!r} in {where} must name entries of {axis} ({', '.join(names)}); got "
                    f"{strange[0]!r}"
                )


def _require_begin_from(axes: Mapping[str, Sequence[_Entry]], where: str) -> None:
    """Raise InputError for a `begin_from` that names no other entry of its axis."""
    for axis, entries in axes.items():
        for entry in entries:
            others = [other.name for other in entries if other is not entry]
            if entry.begin_from not in (None, *others):
                raise InputError(
                    f"begin_from of {entry.name!r} in {where} must name another of {axis} ({', '.join(others)}); got "
                    f"{entry.begin_from!r}"
                )


def _require_specs(examine: ExamineConfig, report: ReportConfig) -> None:
    """Raise SpecError for a spec that does not build."""
    for spec in (*examine.probes, *examine.singles):
        build("probes", spec)
    for spec in (*report.objectives, *([examine.what_if] if examine.what_if else [])):
        for objective in expand("objectives", spec):
            build("objectives", objective)


def _require_distinct(names: Sequence[str], where: str) -> None:
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise InputError(f"names in {where} must differ; got {', '.join(map(repr, twice))} twice. Give each a name")


def _folder_name(name: str) -> str:
    return re.sub(r"[^a-z0-9.]+", "-", name.lower().replace("*", " star")).strip("-.") or "x"


def demo_file(quick: bool = False, data: str = "scenes") -> Path:
    """Return the TOML file of the study that `lossscope demo` runs on one of the built-in data sets.

    Args:
        quick: the smaller study.
        data: scenes or passages.
    """
    name = "demo" if data == "scenes" else f"demo_{data}"
    return Path(__file__).with_name(f"{name}_quick.toml" if quick else f"{name}.toml")
