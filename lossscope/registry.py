"""``name:key=value,...`` -> object and back; every file of a registry package is one entry, under the file's name.

``ntxent:tau=0.1`` is lossscope/objectives/ntxent.py, whose only public dataclass is built with tau=0.1.
Plug-ins are entry points of the group ``lossscope.<kind>``, or files: ``./file.py:Class[:key=value,...]``; of kind
objectives the file may hold any function or class that computes a loss (see lossscope/objectives/custom), of kind
trainers one that is called as a step (see lossscope/conformance).
"""

from __future__ import annotations

import ast
import dataclasses
import difflib
import functools
import importlib
import math
import os
import re
import sys
import types
import typing
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .errors import SpecError
from .io.trusted_code import require_trusted
from .plugins import require_current_names, require_members
from .spec import Spec, format_value, parse_finite, parse_value, union_members

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

KINDS = {
    "objectives": "objectives",
    "probes": "probes",
    "encoders": "encoders",
    "datasets": "datasets",
    "features": "datasets.features",
    "sources": "sources",
    "launchers": "studies.launchers",
    "masks": "core.masks",
    "findings": "doctor",
    "signals": "audit",
    "trainers": "conformance.trainers",
}
"""Kind -> its package below lossscope; plug-ins register in the entry-point group lossscope.KIND."""
WRAPPERS = {
    "objectives": "lossscope.objectives.custom.wrap_loss:wrap_loss",
    "trainers": "lossscope.conformance.user_step:wrap_step",
}
"""Kind -> what makes an entry of a function, class or object of the user's own file."""
KNOWN_AS = {
    "datasets": {
        "flickr8k": "karpathy:root=DIR,name=flickr8k",
        "flickr30k": "karpathy:root=DIR,name=flickr30k",
        "f8k": "karpathy:root=DIR,name=flickr8k",
        "f30k": "karpathy:root=DIR,name=flickr30k",
        "mscoco": "coco:root=DIR",
        "ms_coco": "coco:root=DIR",
        "csv": "texts:file=FILE.csv",
        "hf": "saved:root=DIR",
        "huggingface": "saved:root=DIR",
        "jsonl": "texts:file=FILE.jsonl",
        "parquet": "texts:file=FILE.parquet",
        "msr_vtt": "msrvtt:root=DIR",
    },
    "objectives": {
        "clip": "ntxent",
        "cross_entropy": "ntxent",
        "info_nce": "infonce",
        "multiple_negatives_ranking": "ntxent",
        "mnrl": "ntxent",
        "nt_xent": "ntxent",
        "simclr": "ntxent",
        "triplet_hn": "triplet_sh",
        "vse++": "triplet_sh",
        "vsepp": "triplet_sh",
    },
}
"""Kind -> a name that people know it by -> what to write here."""
NOT_ENTRIES = frozenset({"base", "traits", "types"})  # files beside the entries that define what an entry is
_HOME = Path(__file__).parent
_RANGE = re.compile(r"(?P<lo>[-+.\deE]+?)\.\.(?P<hi>[-+.\deE]+)(?:/(?P<n>\d+))?(?P<log> log)?")
_MAX_RANGE_LETTERS = 200
_MAX_VALUES = 1000  # of all ranges of a spec together


def names(kind: str) -> list[str]:
    """Return the names of all entries: the files of the package, and the entry points of installed plug-ins."""
    return sorted(_files(kind) | set(_plugins(kind)))


def load(kind: str, name: str) -> type[Any]:
    """Return the class of a name, an entry point or ``path.py:Class``. Raises SpecError listing the known names."""
    if ".py:" in name:
        return _from_file(kind, name)
    key = name.replace("-", "_").lower()
    if key in _files(kind):
        return _public_dataclass(importlib.import_module(f"{_package(kind)}.{key}"))
    plugin = _plugins(kind).get(key)
    if plugin is not None:
        return require_current_names(kind, plugin.load(), plugin.value)
    if key.endswith(".py"):
        raise SpecError(_without_a_name(kind, name))
    choices = names(kind)
    near = [KNOWN_AS[kind][key]] if key in KNOWN_AS.get(kind, {}) else difflib.get_close_matches(key, choices, n=1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    raise SpecError(f"{_singular(kind)} must be one of {', '.join(choices)}; got {name!r}{hint}")


def _without_a_name(kind: str, path: str) -> str:
    """Say how a Python file is named in a spec, and what it defines; the file is read as text."""
    if not Path(path).expanduser().is_file():
        return f"plug-in file must exist, and be followed by a name, {path}:NAME; there is no {path} in {Path.cwd()}"
    try:
        found = _defined_names(kind, Path(path).expanduser())
    except (SyntaxError, ValueError) as error:
        return f"plug-in {path} must be a Python file; {error}"
    defines = f"it defines {', '.join(found)}. Write {path}:{found[0]}" if found else "it defines none"
    article = "an" if _singular(kind)[0] in "aeiou" else "a"
    return f"{path} must be followed by the name of {article} {_singular(kind)}; {defines}"


def _defined_names(kind: str, path: Path) -> list[str]:
    """Return the public names of a file that may follow it in a spec, from its text: classes.

    Where functions are wrapped also functions, lambdas, and what calls returned, as in `loss = ContrastiveLoss(0.2)`.
    """
    tree = ast.parse(path.read_text(encoding="utf-8"))
    kinds = (ast.FunctionDef, ast.ClassDef) if kind in WRAPPERS else (ast.ClassDef,)
    names = [node.name for node in tree.body if isinstance(node, kinds)]
    if kind in WRAPPERS:
        made = [n for n in tree.body if isinstance(n, ast.Assign) and isinstance(n.value, ast.Lambda | ast.Call)]
        names += [target.id for node in made for target in node.targets if isinstance(target, ast.Name)]
    return [name for name in names if not name.startswith("_")]


def build(kind: str, spec: str | Spec) -> Any:
    """Build the object of a spec, its values converted to the types of the class's fields.

    Raises SpecError for an unknown name or key, a value of another type, a missing value, and a plug-in that lacks what
    its kind must have.

    >>> build("objectives", "ntxent:tau=0.2").tau
    0.2
    """
    spec = Spec.parse(spec) if isinstance(spec, str) else spec
    cls: Any = load(kind, spec.name)
    fields = _fields(cls)
    values = {}
    for key, text in spec.values.items():
        values[key] = parse_value(text, _type_of(key, fields, spec.name), f"{spec.name}:{key}")
    missing = [f.name for f in dataclasses.fields(cls) if f.init and f.name not in values and _is_required(f)]
    if missing:
        raise SpecError(f"{spec.name} needs {', '.join(f'{key}=...' for key in missing)}; got {str(spec)!r}")
    built = cls(**values)
    if not cls.__module__.startswith("lossscope."):
        require_members(kind, built, spec.name)
    return built


def spec_of(thing: Any) -> str:
    """Return the spec that rebuilds `thing`, with all its fields; a None that is the default is left out.

    >>> spec_of(build("objectives", "ntxent"))
    'ntxent:tau=0.1'
    """
    values = {}
    for item in dataclasses.fields(thing):
        value = getattr(thing, item.name)
        if item.init and not (value is None and item.default is None):
            values[item.name] = "none" if value is None else format_value(value)
    return str(Spec(_name_of(type(thing)), values))


def short_spec(thing: Any) -> str:
    """Return the spec without default values, and with files by name only: for labels, not for storing.

    >>> short_spec(build("objectives", "unified:gamma=5"))
    'unified:gamma=5'
    """
    values = {}
    for item in dataclasses.fields(thing):
        value = getattr(thing, item.name)
        if item.init and value != item.default:
            values[item.name] = value.name if isinstance(value, Path) else format_value(value)
    return str(Spec(_name_of(type(thing)), values))


def expand(kind: str, spec: str) -> list[str]:
    """Expand a spec with ranges to plain specs, one for each value.

    A range is `lo..hi/n` or `lo..hi/n log`, of float fields only. Raises SpecError for any other range, and for ranges
    of more than 1,000 values together, before any is made.

    >>> expand("objectives", "ntxent:tau=0.1..0.3/3")
    ['ntxent:tau=0.1', 'ntxent:tau=0.2', 'ntxent:tau=0.3']
    """
    parsed = Spec.parse(spec)
    ranged = {key: match for key, text in parsed.values.items() if (match := _match_range(text))}
    if not ranged:
        return [str(parsed)]
    cls: Any = load(kind, parsed.name)
    fields = _fields(cls)
    values_in_all = math.prod(_count_of(match, spec) for match in ranged.values())
    if values_in_all > _MAX_VALUES:
        raise SpecError(f"ranges of a spec must have at most {_MAX_VALUES} values; got {values_in_all} in {spec!r}")
    expanded = [dict(parsed.values)]
    for key, match in ranged.items():
        if float not in union_members(_type_of(key, fields, parsed.name)):
            raise SpecError(f"ranges are for float fields; got {key}={match[0]} in {spec!r}")
        expanded = [{**values, key: value} for values in expanded for value in _steps(match, spec)]
    return [str(Spec(parsed.name, values)) for values in expanded]


def uses_file(spec: str) -> bool:
    """Whether a spec, or the one that it is a part `of`, names a Python file: only users may have it imported."""
    parsed = Spec.parse(spec)
    return ".py:" in parsed.name or ("of" in parsed.values and uses_file(parsed.values["of"]))


def _match_range(text: str) -> re.Match[str] | None:
    """Return the parts of a range, None for any other text; a long one is none and takes long to match."""
    return _RANGE.fullmatch(text) if len(text) <= _MAX_RANGE_LETTERS else None


def _count_of(match: re.Match[str], spec: str) -> int:
    """Return the number of values of a range. Raises SpecError when it has fewer than 2."""
    n = int(match["n"] or 5)
    if n < 2:
        raise SpecError(f"a range must have at least 2 steps; got {match[0]!r} in {spec!r}")
    return n


def _steps(match: re.Match[str], spec: str) -> list[str]:
    n = _count_of(match, spec)
    try:
        lo, hi = parse_finite(match["lo"]), parse_finite(match["hi"])
    except ValueError:
        raise SpecError(f"ends of a range must be numbers; got {match[0]!r} in {spec!r}") from None
    if match["log"] and min(lo, hi) <= 0:
        raise SpecError(f"a range must have positive ends for log; got {match[0]!r} in {spec!r}")
    if match["log"]:
        raw = [math.exp(math.log(lo) + (math.log(hi) - math.log(lo)) * i / (n - 1)) for i in range(n)]
    else:
        raw = [lo + (hi - lo) * i / (n - 1) for i in range(n)]
    return [f"{value:.6g}" for value in raw]


def folder(kind: str) -> Path:
    """Return the folder that holds the files of a kind."""
    return _HOME.joinpath(*KINDS[kind].split("."))


def _package(kind: str) -> str:
    return f"lossscope.{KINDS[kind]}"


def _files(kind: str) -> frozenset[str]:
    return _files_as_of(kind, folder(kind).stat().st_mtime_ns)


@functools.cache
def _files_as_of(kind: str, _changed: int) -> frozenset[str]:
    stems = {path.stem for path in folder(kind).glob("*.py")}
    return frozenset(name for name in stems if name not in NOT_ENTRIES and not name.startswith("_"))


def _type_of(key: str, fields: Mapping[str, Any], name: str) -> Any:
    if key in fields:
        return fields[key]
    near = difflib.get_close_matches(key, fields, n=1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    raise SpecError(f"key of {name} must be one of {', '.join(fields)}; got {key!r}{hint}")


@functools.lru_cache(maxsize=256)
def _fields(cls: type[Any]) -> Mapping[str, Any]:
    hints = typing.get_type_hints(cls)
    return {item.name: hints[item.name] for item in dataclasses.fields(cls) if item.init}


def _is_required(item: dataclasses.Field[Any]) -> bool:
    return item.default is dataclasses.MISSING and item.default_factory is dataclasses.MISSING


def _public_dataclass(module: types.ModuleType) -> type[Any]:
    classes = [
        item
        for name, item in vars(module).items()
        if isinstance(item, type)
        and dataclasses.is_dataclass(item)
        and item.__module__ == module.__name__
        and not name.startswith("_")
    ]
    if len(classes) != 1:
        got = [item.__name__ for item in classes]
        raise SpecError(f"{module.__name__} must hold exactly one public dataclass; got {got}")
    return classes[0]


def _from_file(kind: str, name: str) -> type[Any]:
    path_text, _, class_name = name.rpartition(":")
    path = Path(path_text).expanduser()
    if not path.is_file():
        raise SpecError(f"plug-in file must exist; got {path_text!r} (looked in {Path.cwd()})")
    require_trusted([name], "a file that was read")
    from .io.python_files import import_file

    module = import_file(path)
    if not hasattr(module, class_name):
        near = difflib.get_close_matches(class_name, [n for n in vars(module) if not n.startswith("_")], n=1)
        raise SpecError(
            f"{path_text} must define {class_name}; it does not{f'. Did you mean {near[0]}?' if near else ''}"
        )
    target = getattr(module, class_name)
    is_dataclass = isinstance(target, type) and dataclasses.is_dataclass(target)
    if is_dataclass and (hasattr(target, "counted_weights") or not _is_callable(target)):
        setattr(target, "__lossscope_name__", name)  # noqa: B010 - a mark on a foreign class
        return require_current_names(kind, target, name)
    if kind in WRAPPERS and _is_callable(target):  # imported by name: the registry must not depend on it
        wrapper, _, function = WRAPPERS[kind].partition(":")
        return typing.cast("type[Any]", getattr(importlib.import_module(wrapper), function)(target, name))
    if kind in WRAPPERS:
        computes = "a loss" if kind == "objectives" else "the step of a trainer"
        callables = [n for n in _defined_names(kind, path) if _is_callable(getattr(module, n, None))]
        raise SpecError(
            f"{class_name} of {path_text} must be a function, a class or an object that computes {computes}; got "
            f"{_kind_of(target)}. {_choices(path_text, callables)}"
        )
    raise SpecError(f"{path_text} must define the dataclass {class_name}; got {type(target).__name__}")


def _kind_of(thing: Any) -> str:
    return "a class without __call__" if isinstance(thing, type) else type(thing).__name__


def _choices(path: str, names: list[str]) -> str:
    return f"It defines {', '.join(names)}: write {path}:{names[0]}" if names else "It defines none"


def _is_callable(thing: Any) -> bool:
    """Whether it is a function, an object with __call__, or a class whose objects have it."""
    if isinstance(thing, type):
        return any("__call__" in vars(cls) for cls in thing.__mro__)
    return callable(thing)


def _name_of(cls: type[Any]) -> str:
    mark = getattr(cls, "__lossscope_name__", None)
    if mark is not None:
        return str(mark)
    package, _, name = cls.__module__.rpartition(".")
    if package in map(_package, KINDS):
        return name
    for kind in KINDS:
        for name, plugin in _plugins(kind).items():
            if plugin.value == f"{cls.__module__}:{cls.__qualname__}":
                return name
    raise SpecError(f"{cls.__qualname__} is not registered; pass it as ./file.py:{cls.__qualname__}")


def _plugins(kind: str) -> Mapping[str, EntryPoint]:
    return _plugins_as_of(kind, tuple(map(_with_time, sys.path)))


@functools.cache
def _plugins_as_of(kind: str, _folders: tuple[tuple[str, int], ...]) -> Mapping[str, EntryPoint]:
    """Return the plug-ins that are installed; Python looks through every folder of its path for them."""
    from importlib.metadata import entry_points

    points = entry_points(group=f"lossscope.{kind}")
    return {point.name.replace("-", "_").lower(): point for point in points}


def _with_time(folder: str) -> tuple[str, int]:
    """Return a folder of Python's path, and when something was last installed there."""
    try:
        return folder, os.stat(folder or ".").st_mtime_ns
    except OSError:  # of a path that does not exist
        return folder, 0


def _singular(kind: str) -> str:
    return kind.removesuffix("s") if kind != "datasets" else "data set"
