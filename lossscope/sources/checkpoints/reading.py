"""How a released model reads pictures, and what a data set leaves unsaid of it, filled in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, fields
from typing import Any, get_type_hints

from lossscope.encoders.types import OpenedModel
from lossscope.errors import SpecError
from lossscope.registry import load
from lossscope.spec import Spec, parse_value

_OLDER = {"crop": ("square", "squeeze"), "squeeze": ("squeeze", "square")}  # flag -> fit where it is true, and false


def stored_reading(model: OpenedModel) -> dict[str, str]:
    """Return how a model reads pictures, for its checkpoint: fit, resample and size; {} where nothing is known."""
    shape = model.item_shape
    is_picture = isinstance(shape, tuple) and len(shape) == 3 and shape[1] == shape[2]
    return {**model.reading, "size": str(shape[1])} if model.reading and is_picture else dict(model.reading)


def complete_data(data: str, reading: Mapping[str, str]) -> tuple[str, tuple[str, ...]]:
    """Return the spec of a data set with the fields of a reading that it leaves unsaid, and notices on what differs.

    Values that the spec says stay. Fields that the data set does not have are left out.

    Args:
        data: spec of the data set, as its user wrote it.
        reading: field -> value, of data sets of pictures.
    """
    if not data or not reading:
        return data, ()
    spec = Spec.parse(data)
    cls = load("datasets", spec.name)
    present = {item.name for item in fields(cls) if item.init}
    filled: dict[str, str] = {}
    differing: dict[str, str] = {}
    for name, wanted in reading.items():
        stated = _stated_value(cls, spec, name)
        if stated == wanted:
            continue
        if name in present and not _is_said(spec, name) and _is_allowed(cls, name, wanted):
            filled[name] = wanted
        elif stated is not None and name != "size":  # another size is an error of its own
            differing[name] = stated
    if "fit" in differing and filled.get("resample") == "cv2":  # which data sets have for whole pictures only
        differing["resample"] = str(_stated_value(cls, spec, "resample"))
        del filled["resample"]
    return str(Spec(spec.name, {**spec.values, **filled})), _notices(filled, differing, reading)


def _notices(filled: Mapping[str, str], differing: Mapping[str, str], reading: Mapping[str, str]) -> tuple[str, ...]:
    notices = []
    if filled:
        notices.append(f"pictures are read with {_listed(filled)}, as the model's authors read them")
    if differing:
        wanted = {name: reading[name] for name in differing}
        notices.append(
            f"WARNING: pictures are read with {_listed(differing)}, as the data set says; the model's authors read "
            f"them with {_listed(wanted)}"
        )
    return tuple(notices)


def _listed(values: Mapping[str, str]) -> str:
    return ", ".join(f"{name}={value}" for name, value in values.items())


def _is_said(spec: Spec, name: str) -> bool:
    return name in spec.values or (name == "fit" and any(flag in spec.values for flag in _OLDER))


def _is_allowed(cls: type[Any], name: str, value: str) -> bool:
    try:
        parse_value(value, get_type_hints(cls)[name], name)
    except SpecError:
        return False
    return True


def _stated_value(cls: type[Any], spec: Spec, name: str) -> str | None:
    """Return the value of a field as the spec says it, or by default; None where the data set has no such field."""
    types = get_type_hints(cls)
    value = _read_field(cls, spec, name, types)
    if value is None and name == "fit":
        for flag, (true, false) in _OLDER.items():
            stated = _read_field(cls, spec, flag, types)
            if stated is not None:
                return true if stated else false
    return None if value is None else str(value)


def _read_field(cls: type[Any], spec: Spec, name: str, types: Mapping[str, Any]) -> Any:
    default = next((item.default for item in fields(cls) if item.name == name and item.init), None)
    if name in spec.values and name in types:
        return parse_value(spec.values[name], types[name], f"{spec.name}:{name}")
    return None if default is MISSING else default
