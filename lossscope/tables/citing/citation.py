"""`C_neg (i2t) = 11.65 samples, 95 % interval 11.44 to 11.85`, its source and settings: a number others can repeat."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

from lossscope.errors import InputError
from lossscope.io.frame_summary import Measurement
from lossscope.spec import Spec
from lossscope.visible_text import show_text

from .._intervals import is_sample
from .._legend import explanations
from .._summary import format_value
from ..cells import decimals
from .paper import Paper
from .sources import papers_of_measure, papers_of_objective

_DIGEST = 16  # printed digits of a fingerprint
_IN_ROW = ("eps", "convention", "unit", "curve")  # fields of probes that rows state, and `curve`, which has no effect
_SAME = {"keep": "another positive of the same item counted as a negative", "mask": "other positives left out"}
_MINED = {"batch": "of the whole batch", "own": "of their own query alone", "none": "left out"}


@dataclass(frozen=True)
class Citation:
    """How to cite one number."""

    facts: Mapping[str, str]  # number, source and settings: name -> text; `number` first
    measure: tuple[Paper, ...]  # papers that define the statistic; empty: no paper does
    objective: tuple[Paper, ...]  # papers that define the loss
    versions: tuple[str, ...]  # versions of lossscope that computed the number; "" for an unknown version

    @property
    def sentence(self) -> str:
        """Return all facts in one line."""
        number, *rest = self.facts.values()
        return f"{number}: {'; '.join(rest)}."


def citations(
    measured: Measurement, statistics: list[str] | None = None, directions: list[str] | None = None
) -> list[Citation]:
    """Return how to cite each number of a frame, or only the given statistics and directions.

    Raises InputError, which names the known ones, for an unknown statistic or direction.
    """
    rows = measured.rows
    for column, chosen in (("statistic", statistics), ("direction", directions)):
        known = list(dict.fromkeys(map(str, rows[column])))
        unknown = [name for name in chosen or () if name not in known]
        if unknown:
            raise InputError(f"--{column} must be one of {', '.join(known)}; got {', '.join(unknown)}")
        rows = rows[rows[column].isin(chosen)] if chosen else rows
    if rows.empty:
        raise InputError("--statistic and --direction must leave a number; no number has both. Leave one out")
    return [citation(row, measured) for row in rows.to_dict("records")]


def citation(row: Mapping[Any, Any], measured: Measurement) -> Citation:
    """Return how to cite the number of a summary row.

    Args:
        row: one of `measured.rows`.
        measured: the frame of the row.
    """
    probe, statistic = str(row["probe"]), str(row["statistic"])
    spec = _text_or_none(row["objective"])
    facts = {
        "number": _number(row),
        "meaning": explanations(probe.partition(":")[0]).get(statistic, ""),
        "probe": f"probe {_probe(probe, measured.command)}",
        **_counting(row),
        "objective": f"objective {spec}" if spec else "no objective",
        **_data(row, measured),
        **_batches(row, measured.command),
        "seed": f"seed {format_value(row['seed'])}",
        "deviation": _deviation(row),
        "version": f"lossscope {' and '.join(version or 'of unknown version' for version in measured.versions)}",
    }
    shown = {name: show_text(text.replace("\n", " ").replace("\t", " ")) for name, text in facts.items() if text}
    return Citation(shown, papers_of_measure(probe, statistic), papers_of_objective(spec), measured.versions)


def _number(row: Mapping[Any, Any]) -> str:
    """Return `C_neg (i2t) = 11.65 samples, 95 % interval 11.44 to 11.85 (two-way over 600 images)`."""
    name, mean, unit = f"{row['statistic']} ({row['direction']})", row["mean"], str(row["unit"])
    if mean is None or math.isnan(mean):
        return f"{name} is undefined"
    digits, after = decimals(unit, mean), {"1": "", "%": " %"}.get(unit, f" {unit}")
    text = f"{name} = {mean:z.{digits}f}{after}"
    low, high = row.get("low"), row.get("high")
    if pd.isna(low) or pd.isna(high):
        return f"{text}, without an interval"
    level = f"{100 * row['level']:.6g} % interval {low:z.{digits}f} to {high:z.{digits}f}"
    of = ", for all queries of this set" if is_sample(row["sampling"]) else ""
    return f"{text}, {level} ({row['method']}{of})"


def _probe(label: str, command: Mapping[str, Any]) -> str:
    """Return the probe with the parameters that rows do not state."""
    name = label.partition(":")[0]
    specs = [Spec.parse(str(spec)) for spec in command.get("probes", ())]
    same = [spec for spec in specs if spec.name.replace("-", "_") == name.replace("-", "_")]
    if len(same) != 1:
        return label
    return str(Spec(name, {key: value for key, value in same[0].values.items() if key not in _IN_ROW}))


def _counting(row: Mapping[Any, Any]) -> dict[str, str]:
    """Return convention, eps and unit of weights, if the probe has them."""
    convention, eps, unit = (row.get(name) for name in ("convention", "eps", "weight_unit"))
    return {
        "convention": "" if pd.isna(convention) else f"convention {convention}",
        "eps": "" if pd.isna(eps) else f"eps {format_value(eps)}",
        "weight_unit": "" if pd.isna(unit) else f"weight unit {unit}",
    }


def _data(row: Mapping[Any, Any], measured: Measurement) -> dict[str, str]:
    """Return source, data, split, number of items, and fingerprint."""
    command = measured.command
    data = command.get("data") or measured.data
    items = " and ".join(f"{number} {side}" for side, number in measured.items.items())
    split = command.get("split")
    files = command.get("plugins")
    pairs = files.items() if isinstance(files, dict) else ()
    digests = ", ".join(f"{name} {str(digest)[:_DIGEST]}" for name, digest in pairs)
    return {
        "source": f"source {row['source']}",
        "data": f"data {data}" if data else "",
        "split": f"split {split}" if split else "",
        "items": items,
        "fingerprint": f"fingerprint {str(command.get('origin', 'unknown'))[:_DIGEST]}",
        "files": f"with {digests}" if digests else "",
    }


def _batches(row: Mapping[Any, Any], command: Mapping[str, Any]) -> dict[str, str]:
    """Return how batches were made, and what they leave out."""
    n, defined = int(row["n"]), row.get("n_defined")
    number = f"{n} batch{'' if n == 1 else 'es'} of {format_value(row['batch_size'])}"
    partly = f", defined in {int(defined)}" if not pd.isna(defined) and int(defined) < n else ""
    negatives, mined = command.get("negatives"), command.get("mined")
    mode, per_class = str(row["sampling"]).partition(",")[0].partition(" ")[0], command.get("per_class")
    masks, terms = command.get("masks") or (), command.get("terms") or ()
    guide = str(command.get("guide_origin", ""))[:_DIGEST]
    return {
        "batches": f"{number}{partly}",
        "sampling": f"sampling {row['sampling']}",
        "order": "shuffled" if command.get("shuffle", True) else "in file order",
        "last": "without the last, shorter batch" if command.get("drop_last") else "",
        "captions": "the first caption of each image" if command.get("captions") == "first" else "",
        "same_image": _SAME.get(str(command.get("same_image")), "") if mode == "pairs" else "",
        "per_class": f"{per_class} items of a class" if per_class else "",
        "negatives": f"mined negatives {_MINED.get(str(negatives), negatives)}" if negatives else "",
        "mined": f"{mined} mined negatives of a query" if mined else "",
        "masks": f"masks {' and '.join(map(str, masks))}" if masks else "",
        "guide": f"guide of fingerprint {guide}" if guide else "",
        "terms": f"further candidates {', '.join(map(str, terms))}" if terms else "",
    }


def _deviation(row: Mapping[Any, Any]) -> str:
    """Return the deviation over batches, named as such: it is not the uncertainty of the number."""
    std, n = row.get("std"), row.get("n_spread")
    n = row["n"] if n is None or pd.isna(n) else n
    if std is None or pd.isna(std) or n < 2:
        return ""
    return f"sd over {int(n)} batches {std:.{decimals(str(row['unit']), row['mean'])}f}"


def _text_or_none(value: Any) -> str | None:
    return None if value is None or pd.isna(value) else str(value)
