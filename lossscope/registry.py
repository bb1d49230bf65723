"""``name:key=value,...`` -> object and back. The file name IS the registry.

``ntxent:tau=0.1`` means lossscope/objectives/ntxent.py, its single public dataclass, built with tau=0.1.
Plug-ins: an entry point in the group ``lossscope.<kind>``, or ``./file.py:Class[:key=value,...]``; for objectives the
file may hold any function or class that computes a loss (see blackbox).
"""

from __future__ import annotations

import dataclasses
import difflib
import importlib
import importlib.metadata
import importlib.util
import math
import re
import sys
import types
import typing
from pathlib import Path
from typing import Any

from .errors import InputError, SpecError
from .spec import Spec, alternatives, converted, finite, written

KINDS = {
    "objectives": "objectives",
    "probes": "probes",
    "encoders": "encoders",
    "datasets": "datasets",
    "features": "datasets.features",
    "sources": "sources",
    "launchers": "studies.launchers",
}
"""Kind -> its package below lossscope; plug-ins announce themselves in the entry-point group lossscope.KIND."""
RENAMED = {
    "objectives": {
        "collapses": "needs_warmup",
        "counted": "counted_weights",
        "differences": "rows_sum_to_zero",
        "embeddings": "needs_embeddings",
        "learnt": "learnable",
        "needs": "required_info",
        "reads": "optional_info",
        "stated": "closed_form",
        "tiled": "counting_rule",
        "weighed": "differentiable_weights",
    },
    "probes": {"weighs": "needs_objective"},
    "encoders": {"opened": "from_released", "prepared": "prepare", "rebuilt": "rebuild"},
}
"""Kind -> former name of an attribute of its entries -> the name it has now; a plug-in with a former one is refused."""
NOT_ENTRIES = frozenset({"base", "types"})  # files beside the entries that state what an entry is
_HOME = Path(__file__).parent
_RANGE = re.compile(r"(?P<lo>[-+.\deE]+?)\.\.(?P<hi>[-+.\deE]+)(?:/(?P<n>\d+))?(?P<log> log)?")


def names(kind: str) -> list[str]:
    """Names of what exists: one file each, base aside, and the entry points of installed plug-ins."""
    return sorted(_files(kind) | set(_plugins(kind)))


def load(kind: str, name: str) -> type[Any]:
    """The class behind a name, an entry point or ``path.py:Class``. Raises SpecError listing what exists."""
    if ".py:" in name:
        return _from_file(kind, name)
    wanted = name.replace("-", "_").lower()
    if wanted in _files(kind):
        return _public_dataclass(importlib.import_module(f"{_package(kind)}.{wanted}"))
    plugin = _plugins(kind).get(wanted)
    if plugin is not None:
        return _with_todays_names(kind, plugin.load(), plugin.value)
    known = names(kind)
    near = difflib.get_close_matches(wanted, known, n=1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    raise SpecError(f"{_singular(kind)} must be one of {', '.join(known)}; got {name!r}{hint}")


def build(kind: str, spec: str | Spec) -> Any:
    """The object a spec describes, its values converted to the types of the class's fields.

    >>> build("objectives", "ntxent:tau=0.2").tau
    0.2
    """
    spec = Spec.parse(spec) if isinstance(spec, str) else spec
    cls = load(kind, spec.name)
    fields = _fields(cls)
    values = {}
    for key, text in spec.values.items():
        values[key] = converted(text, _type_of(key, fields, spec.name), f"{spec.name}:{key}")
    missing = [f.name for f in dataclasses.fields(cls) if f.init and f.name not in values and _required(f)]
    if missing:
        raise SpecError(f"{spec.name} needs {', '.join(f'{key}=...' for key in missing)}; got {str(spec)!r}")
    return cls(**values)


def spec_of(thing: Any) -> str:
    """The spec that rebuilds `thing`, every field stated (non-fields, and None where it is the default, left out).

    >>> spec_of(build("objectives", "ntxent"))
    'ntxent:tau=0.1'
    """
    values = {}
    for item in dataclasses.fields(thing):
        value = getattr(thing, item.name)
        if item.init and not (value is None and item.default is None):
            values[item.name] = "none" if value is None else written(value)
    return str(Spec(_name_of(type(thing)), values))


def short_spec(thing: Any) -> str:
    """The spec with only what differs from the defaults, and files by their names: for a picture, not for storing.

    >>> short_spec(build("objectives", "unified:gamma=5"))
    'unified:gamma=5'
    """
    values = {}
    for item in dataclasses.fields(thing):
        value = getattr(thing, item.name)
        if item.init and value != item.default:
            values[item.name] = value.name if isinstance(value, Path) else written(value)
    return str(Spec(_name_of(type(thing)), values))


def expand(kind: str, spec: str) -> list[str]:
    """A spec with ranges (`lo..hi/n`, `lo..hi/n log`, float fields only) -> plain specs, one per value.

    >>> expand("objectives", "ntxent:tau=0.1..0.3/3")
    ['ntxent:tau=0.1', 'ntxent:tau=0.2', 'ntxent:tau=0.3']
    """
    parsed = Spec.parse(spec)
    ranged = {key: match for key, text in parsed.values.items() if (match := _RANGE.fullmatch(text))}
    if not ranged:
        return [str(parsed)]
    fields = _fields(load(kind, parsed.name))
    done = [dict(parsed.values)]
    for key, match in ranged.items():
        if float not in alternatives(_type_of(key, fields, parsed.name)):
            raise SpecError(f"ranges are for float fields; got {key}={match[0]} in {spec!r}")
        done = [{**values, key: value} for values in done for value in _steps(match, spec)]
    return [str(Spec(parsed.name, values)) for values in done]


def uses_file(spec: str) -> bool:
    """Whether a spec names a Python file (which is never imported unless the user asked for it)."""
    return ".py:" in Spec.parse(spec).name


def _steps(match: re.Match[str], spec: str) -> list[str]:
    try:
        lo, hi, n = finite(match["lo"]), finite(match["hi"]), int(match["n"] or 5)
    except ValueError:
        raise SpecError(f"ends of a range must be numbers; got {match[0]!r} in {spec!r}") from None
    if n < 2 or (match["log"] and min(lo, hi) <= 0):
        raise SpecError(f"a range must have at least 2 steps, and positive ends for log; got {match[0]!r} in {spec!r}")
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


def _files(kind: str) -> set[str]:
    found = {path.stem for path in folder(kind).glob("*.py")}
    return {name for name in found if name not in NOT_ENTRIES and not name.startswith("_")}


def _type_of(key: str, fields: dict[str, Any], name: str) -> Any:
    if key in fields:
        return fields[key]
    near = difflib.get_close_matches(key, fields, n=1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    raise SpecError(f"key of {name} must be one of {', '.join(fields)}; got {key!r}{hint}")


def _fields(cls: type[Any]) -> dict[str, Any]:
    hints = typing.get_type_hints(cls)
    return {item.name: hints[item.name] for item in dataclasses.fields(cls) if item.init}


def _required(item: dataclasses.Field[Any]) -> bool:
    return item.default is dataclasses.MISSING and item.default_factory is dataclasses.MISSING


def _public_dataclass(module: types.ModuleType) -> type[Any]:
    found = [
        item
        for name, item in vars(module).items()
        if isinstance(item, type)
        and dataclasses.is_dataclass(item)
        and item.__module__ == module.__name__
        and not name.startswith("_")
    ]
    if len(found) != 1:
        have = [item.__name__ for item in found]
        raise SpecError(f"{module.__name__} must hold exactly one public dataclass; got {have}")
    return found[0]


def _from_file(kind: str, name: str) -> type[Any]:
    path_text, _, class_name = name.rpartition(":")
    path = Path(path_text).expanduser()
    if not path.is_file():
        raise SpecError(f"plug-in file must exist; got {path_text!r} (looked in {Path.cwd()})")
    module = _imported(path)
    if not hasattr(module, class_name):
        near = difflib.get_close_matches(class_name, [n for n in vars(module) if not n.startswith("_")], n=1)
        raise SpecError(
            f"{path_text} must define {class_name}; it does not{f'. Did you mean {near[0]}?' if near else ''}"
        )
    found = getattr(module, class_name)
    dataclass = isinstance(found, type) and dataclasses.is_dataclass(found)
    if dataclass and (hasattr(found, "counted_weights") or not _can_be_called(found)):
        setattr(found, "__lossscope_name__", name)  # noqa: B010 - a mark on a foreign class
        return _with_todays_names(kind, found, name)
    if kind == "objectives" and _can_be_called(found):  # by name: the registry imports nothing that stands on it
        return typing.cast(
            "type[Any]", importlib.import_module("lossscope.objectives.custom.wrapped_loss").wrap_loss(found, name)
        )
    raise SpecError(f"{path_text} must define the dataclass {class_name}; got {type(found).__name__}")


def _with_todays_names(kind: str, cls: type[Any], name: str) -> type[Any]:
    """Return a plug-in's class. Raises SpecError when it defines an attribute by a name that was given up."""
    for base in cls.__mro__:
        old = RENAMED.get(kind, {}).keys() & vars(base).keys() if not base.__module__.startswith("lossscope.") else ()
        for attribute in sorted(old):
            raise SpecError(f"{name} must define {RENAMED[kind][attribute]}; it defines {attribute}, its former name")
    return cls


def _can_be_called(thing: Any) -> bool:
    """A function, an object with __call__, or a class whose objects have it."""
    if isinstance(thing, type):
        return any("__call__" in vars(cls) for cls in thing.__mro__)
    return callable(thing)


def _imported(path: Path) -> types.ModuleType:
    """The module of a file, run once per state of the file, so that equal specs give equal objects."""
    name = f"_lossscope_plugin_{abs(hash((path.resolve(), path.stat().st_mtime_ns)))}"
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise SpecError(f"plug-in must be a Python file; got {str(path)!r}")
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        del sys.modules[name]
        raise SpecError(f"plug-in {path} must import without an error; got {type(error).__name__}: {error}") from error
    return module


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


def _plugins(kind: str) -> dict[str, importlib.metadata.EntryPoint]:
    found = importlib.metadata.entry_points(group=f"lossscope.{kind}")
    return {point.name.replace("-", "_").lower(): point for point in found}


def _singular(kind: str) -> str:
    return kind.removesuffix("s") if kind != "datasets" else "data set"


def require_trusted(spec: str, trust_code: bool) -> None:
    """Raise InputError when a stored spec would import a Python file and the user has not said that it may."""
    if spec and uses_file(spec) and not trust_code:
        raise InputError(
            f"the checkpoint names the Python file of {spec!r}; it is not imported unless you pass --trust-code"
        )
