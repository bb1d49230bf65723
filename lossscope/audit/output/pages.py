"""The pages of an audit: the strongest suspects, and the sheet of pairs to label."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from lossscope.core.relations import NONE
from lossscope.core.types import Rows

from ..parts.pictures import Pictures
from ..steps.result import AuditResult, ScoredPairs
from .document import UNSURE, status
from .page import PageItem, PagePair, write_page
from .tables import positives
from .worth_text import floor_text, verdict

_REASONS = 4  # of a pair that are shown


def write_pages(result: AuditResult, out: Path, shown: int) -> Path:
    """Write index.html, the strongest suspects, and sheet.html, the pairs to label; return the path of the first."""
    sides = result.material.relations.sides
    suspects = first_different(result, shown)
    facts = facts_of(result)
    known = _labelled(result)
    page = write_page(out / "index.html", _pairs(result, suspects), f"Audit: {result.name}", sides, facts, known)
    write_page(out / "sheet.html", _pairs(result, result.sheet), f"Sheet to label: {result.name}", sides, facts, known)
    return page


def _labelled(result: AuditResult) -> dict[tuple[str, str], str]:
    """Return the answers that were given, so that a page's labels.csv has the earlier ones, too."""
    if result.labels is None:
        return {}
    material, pairs = result.material, result.labels.given
    return {
        (material.image_ids[left], material.caption_ids[right]): "yes" if answer else "no"
        for left, right, answer in zip(
            pairs.left.tolist(), pairs.right.tolist(), result.labels.given_answers, strict=True
        )
    }


def first_different(result: AuditResult, number: int) -> ScoredPairs:
    """Return the most probable suspects, of one set each two items once."""
    pairs, relations = result.suspects.pairs, result.material.relations
    if not relations.one_set:
        return result.suspects.take(np.arange(min(number, len(pairs))))
    keys = np.minimum(pairs.left, pairs.right) * relations.second + np.maximum(pairs.left, pairs.right)
    return result.suspects.take(np.sort(np.unique(keys, return_index=True)[1])[:number])


def facts_of(result: AuditResult) -> list[tuple[str, str]]:
    """Return what the page says at its top."""
    rate, mark = result.rate, UNSURE if result.is_of_other_things else ""
    span = "" if rate.low is None or rate.high is None else f", {rate.low:.3%} to {rate.high:.3%}"
    facts = [
        ("false negatives among negatives", f"{rate.value:.3%}{span}{mark}"),
        (f"queries with one in a batch of {result.batch_size}", f"{result.per_query:.1%}{mark}"),
        ("probabilities", status(result)),
    ]
    for one in result.weights:
        low, high = one.share.low, one.share.high
        span = "" if low is None or high is None else f", {low:.1%} to {high:.1%}"
        facts.append((f"gradient weight on them, {one.objective}", f"{one.share.value:.1%}{span}{mark}"))
    if result.worth is not None:
        for floor in result.worth.floors:
            facts.append((f"loss of a model that is right, {floor.objective}", floor_text(floor, mark)))
        if result.worth.trial is not None:
            facts.append(("trial of the mask", verdict(result.worth.trial, result.is_calibrated)))
        facts += [("not known", reason) for reason in result.worth.reasons]
    return facts


def _pairs(result: AuditResult, scored: ScoredPairs) -> list[PagePair]:
    material = result.material
    owners = material.positives_of_candidates[:, 0]
    left, right = scored.pairs.left, scored.pairs.right
    pictures = _pictures(result, np.unique(np.r_[left, owners[right][owners[right] != NONE]]))
    own, texts = material.first_texts, None if material.split is None else material.split.captions
    shown = []
    for place, (q, c) in enumerate(zip(left.tolist(), right.tolist(), strict=True)):
        of_query = [] if texts is None else [texts[row] for row in positives(result, q)]
        query = PageItem(material.image_ids[q], (*(() if own is None else (own[q],)), *of_query), pictures.get(q))
        candidate = PageItem(
            material.caption_ids[c], () if texts is None else (texts[c],), pictures.get(int(owners[c]))
        )
        shown.append(PagePair(query, candidate, float(scored.probability[place]), _reasons(result, scored, place)))
    return shown


def _reasons(result: AuditResult, scored: ScoredPairs, place: int) -> tuple[tuple[str, float], ...]:
    """Return what speaks for a pair, the strongest first, in log-odds."""
    if scored.copy[place]:
        return tuple((result.because[name], 1.0) for name in result.copy_names[:1])
    parts = result.calibration.weights[1:] * scored.Z[place]
    order: Sequence[int] = np.argsort(-parts)[:_REASONS].tolist()
    return tuple((result.because[result.signals[k]], float(parts[k])) for k in order if parts[k] > 0)


def _pictures(result: AuditResult, rows: Rows) -> dict[int, npt.NDArray[np.uint8]]:
    """Return the pictures of some items of the first side, by row; none where the data have none."""
    if not result.material.has(Pictures):
        return {}
    pixels = np.asarray(result.material.part(Pictures).images.take(rows))
    if pixels.dtype != np.uint8:
        pixels = (pixels * 255).round().clip(0, 255).astype(np.uint8)
    return dict(zip(rows.tolist(), pixels, strict=True))
