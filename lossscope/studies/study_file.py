"""A study as a TOML file: data x encoders x objectives x seeds -> cells, each a whole recipe and what it is called."""

from __future__ import annotations

import itertools
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from lossscope.errors import InputError
from lossscope.registry import build, expand, spec_of
from lossscope.training.recipe import Recipe
from lossscope.training.recipe_files import checked_choices

CONVENTIONS = ("corrected", "released", "text")
AXES = ("data", "encoders", "objectives")
WHAT_IF = "ntxent:tau=0.01..1/21 log"
PROBES = ("cocos:eps=0.01,curve=true", "weight_mass", "similarity", "hubness", "alignment", "uniformity")
_ENTRY = {"name", "spec", "recipe", "published", "each", "features"}
_LONGEST = 200  # letters of a cell's folder
_TOP = {"name", "about", "paper", "seeds", "recipe", "examine", *AXES}


@dataclass(frozen=True)
class ExamineConfig:
    """What is asked of every trained run. split: of the probes. test: of retrieval. probes: specs.

    conventions: further conventions in which `cocos` counts; each run is counted in those that its objective knows.
    batch_size: of the probes; None takes that of the run's own training. what_if: objectives, as a range, through which
    every run is counted too, or empty. singles: probes whose numbers are kept for every single query.
    """

    split: str = "train"
    test: str = "test"
    probes: tuple[str, ...] = PROBES
    conventions: tuple[str, ...] = ("released", "text")
    batch_size: int | None = None
    what_if: str = WHAT_IF
    singles: tuple[str, ...] = ("similarity", "tangent")


@dataclass(frozen=True)
class StudyRun:
    """One training. key: its folder. data, encoder, trained: labels. recipe: every choice, `data` that of the entry.

    features: backbone that makes regions of the data's pictures first, or None. dataset, method: what data and encoder
    are called in the published tables, or None.
    """

    key: str
    data: str
    encoder: str
    objective_label: str
    recipe: Recipe
    features: str | None = None
    dataset: str | None = None
    method: str | None = None

    @property
    def seed(self) -> int:
        """Of weights and batches."""
        return self.recipe.seed

    @property
    def group(self) -> tuple[str, str, str]:
        """What cells that differ in their seed alone share."""
        return self.data, self.encoder, self.objective_label


@dataclass(frozen=True)
class StudyGrid:
    """name, about: of the study. paper: whose tables it fills (a name of lossscope/published), or None."""

    name: str
    about: str
    paper: str | None
    cells: tuple[StudyRun, ...]
    examination: ExamineConfig

    def cell(self, key: str) -> StudyRun:
        """The cell of that key. Raises InputError when there is none."""
        for cell in self.cells:
            if cell.key == key:
                return cell
        raise InputError(f"cell must be one of the study's {len(self.cells)}; got {key!r}")


def read_study_file(path: Path | str, data: Mapping[str, str] | None = None) -> StudyGrid:
    """The grid of a TOML file. data: name of a data entry -> spec to use instead, for paths of this machine.

    Raises InputError for a file that can not be read, keys or types that are not those of a study, two cells of one
    name, and specs that do not build.
    """
    try:
        found = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path} must be a readable TOML file of a study; {error}") from error
    _known(found, _TOP, str(path))
    axes = {axis: _entries(found, axis, str(path)) for axis in AXES}
    for name, spec in (data or {}).items():
        same = [entry for entry in axes["data"] if entry["name"] == name]
        if not same:
            raise InputError(f"--data must name one of {', '.join(e['name'] for e in axes['data'])}; got {name!r}")
        same[0]["spec"] = spec
    common = checked_choices(_table(found, "recipe", str(path)), f"[recipe] of {path}")
    seeds = found.get("seeds", [0])
    if not isinstance(seeds, list) or not seeds or not all(type(seed) is int for seed in seeds):
        raise InputError(f"seeds of {path} must be whole numbers, [0, 1, 2]; got {seeds!r}")
    entries = itertools.product(*(axes[axis] for axis in AXES))
    cells = tuple(_cell(one, seed, common, str(path)) for one in entries for seed in dict.fromkeys(seeds))
    _distinct([cell.key for cell in cells], str(path))
    longest = max(cells, key=lambda cell: len(cell.key)).key
    if len(longest) > _LONGEST:
        raise InputError(
            f"names of {path} must make folders of at most {_LONGEST} letters; got {longest!r}. Shorten them"
        )
    about, paper = _words(found, "about", str(path)), _words(found, "paper", str(path))
    name = _words(found, "name", str(path)) or Path(path).stem
    if not re.fullmatch(r"[\w.-]+", name) or name.startswith("."):
        raise InputError(f"name of {path} must be letters, digits, -, _ and ., as it names a folder; got {name!r}")
    if paper is not None and not _tables_of(paper):
        known = ", ".join(sorted({one.partition("_")[0] for one in _tables_of("") if "_" in one}))
        raise InputError(f"paper of {path} must be one whose tables there are ({known}); got {paper!r}")
    return StudyGrid(name, about or "", paper, cells, _examination(found, str(path)))


def _cell(entries: Sequence[Mapping[str, Any]], seed: int, common: Mapping[str, Any], where: str) -> StudyRun:
    data, encoder, objective = entries
    choices = dict(common)
    for entry in entries:
        choices |= checked_choices(entry.get("recipe", {}), f"recipe of {entry['name']!r} in {where}")
    specs = {"data": data["spec"], "encoder": encoder["spec"], "objective": objective["spec"]}
    recipe = Recipe(**{**choices, **specs, "seed": seed}).canonical()
    recipe.batches()  # what the objective and the sampling make of each other
    features = encoder.get("features")
    return StudyRun(
        key="--".join([*(_slug(entry["name"]) for entry in entries), f"seed{seed}"]),
        data=data["name"],
        encoder=encoder["name"],
        objective_label=objective["name"],
        recipe=recipe,
        features=None if features is None else spec_of(build("features", features)),
        dataset=data.get("published"),
        method=encoder.get("published"),
    )


def _entries(found: Mapping[str, Any], axis: str, where: str) -> list[dict[str, Any]]:
    listed = found.get(axis)
    if not isinstance(listed, list) or not listed or not all(isinstance(entry, dict) for entry in listed):
        raise InputError(f"{where} must have one [[{axis}]] table at least; got {listed!r}")
    entries: list[dict[str, Any]] = []
    for entry in listed:
        _known(entry, _ENTRY - ({"features"} if axis != "encoders" else set()), f"[[{axis}]] of {where}")
        for key in ("name", "spec", "published", "features"):
            _words(entry, key, f"[[{axis}]] of {where}")
        for key in ("each", "recipe"):
            _table(entry, key, f"[[{axis}]] of {where}")
        if not isinstance(entry.get("spec"), str):
            raise InputError(f"each [[{axis}]] of {where} must have a spec; got {entry!r}")
        entries += _each({"name": entry["spec"], **entry}, where)
    _distinct([entry["name"] for entry in entries], where)
    return entries


def _each(entry: dict[str, Any], where: str) -> Iterator[dict[str, Any]]:
    """An entry, or one for every combination of `each`, whose values go where name and spec have {key}."""
    each = entry.pop("each", {})
    if not all(isinstance(values, list) and values for values in each.values()):
        raise InputError(f"each of {entry['name']!r} in {where} must give lists, {{tau = [0.05, 0.1]}}; got {each!r}")
    names: list[str] = list(each)
    for values in itertools.product(*each.values()):
        told = dict(zip(names, values, strict=True))
        try:
            yield {**entry, "name": entry["name"].format(**told), "spec": entry["spec"].format(**told)}
        except (KeyError, IndexError, ValueError) as error:
            raise InputError(f"braces of {entry['name']!r} in {where} must name keys of each; {error}") from error


def _examination(found: Mapping[str, Any], where: str) -> ExamineConfig:
    table = _table(found, "examine", where)
    _known(table, {f.name for f in fields(ExamineConfig)}, f"[examine] of {where}")
    for key in ("split", "test", "what_if"):
        _words(table, key, f"[examine] of {where}")
    for key in ("probes", "conventions", "singles"):
        if not isinstance(table.get(key, []), list):
            raise InputError(f"{key} of [examine] in {where} must be a list of words; got {table[key]!r}")
    strange = sorted(set(table.get("conventions", [])) - set(CONVENTIONS))
    if strange:
        raise InputError(f"conventions of {where} must be of {', '.join(CONVENTIONS)}; got {', '.join(strange)}")
    lists: dict[str, Any] = {
        key: tuple(map(str, table[key])) for key in ("probes", "conventions", "singles") if key in table
    }
    given: dict[str, Any] = {**table, **lists}
    for spec in (*lists.get("probes", ()), *lists.get("singles", ())):
        build("probes", spec)
    for spec in expand("objectives", given["what_if"]) if given.get("what_if") else ():
        build("objectives", spec)
    size = given.get("batch_size", 2)
    if type(size) is not int or size < 2:
        raise InputError(f"batch_size of [examine] in {where} must be a number of at least 2; got {size!r}")
    return ExamineConfig(**given)


def _table(found: Mapping[str, Any], name: str, where: str) -> dict[str, Any]:
    table = found.get(name, {})
    if not isinstance(table, dict):
        raise InputError(f"{name} of {where} must be a table, [{name}]; got {table!r}")
    return table


def _words(table: Mapping[str, Any], key: str, where: str) -> str | None:
    """A text, or None where it is not there."""
    found = table.get(key)
    if found is not None and not isinstance(found, str):
        raise InputError(f"{key} of {where} must be words in quotes; got {found!r}")
    return found


def _tables_of(paper: str) -> list[str]:
    """Names of the tables of a paper."""
    home = Path(__file__).parents[1] / "tables"
    return [path.stem for path in home.glob(f"{paper or '*'}_[0-9].py")]


def _known(table: Mapping[str, Any], keys: set[str], where: str) -> None:
    strange = sorted(set(table) - keys)
    if strange:
        raise InputError(f"keys of {where} must be of {', '.join(sorted(keys))}; got {', '.join(strange)}")


def _distinct(names: Sequence[str], where: str) -> None:
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise InputError(f"names in {where} must differ; got {', '.join(map(repr, twice))} twice. Give each a name")


def _slug(name: str) -> str:
    return re.sub(r"[^a-z0-9.]+", "-", name.lower()).strip("-.") or "x"
