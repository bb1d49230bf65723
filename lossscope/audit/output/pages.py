"""Write the pages of an audit: the strongest suspects, and the sheet of pairs to label."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from lossscope.core.relations import NONE
from lossscope.core.types import Rows

from ..estimate.design import Stratum
from ..estimate.pair_file import DesignRow
from ..parts.pictures import Pictures
from ..steps.result import AuditResult, ScoredPairs
from ..types import PairRows
from .document import status
from .page import PageDesign, PageItem, PagePair, write_page
from .tables import positives
from .worth_text import floor_text, verdict

_REASONS = 4  # shown of a pair


def write_pages(result: AuditResult, out: Path, shown: int) -> Path:
    """Write index.html, the strongest suspects, and sheet.html, the pairs to label; return the path of the first."""
    sides = result.material.relations.sides
    suspects = first_different(result, shown)
    facts = facts_of(result)
    known, design = _earlier_answers(result), _design(result)
    title = f"Audit: {result.name}"
    page = write_page(
        out / "index.html", _pairs(result, suspects), title, sides, facts, known, PageDesign(design.drawn)
    )
    title = f"Sheet to label: {result.name}"
    to_label = zip(_pairs(result, result.pool.scored), result.pool.design, strict=True)
    pairs = [replace(pair, design=row) for pair, row in to_label]
    write_page(out / "sheet.html", pairs, title, sides, facts, known, design)
    return page


def _earlier_answers(result: AuditResult) -> dict[tuple[str, str], str]:
    """Return the earlier answers, so that a page's labels.csv has them, too."""
    if result.labels is None:
        return {}
    answers = ("yes" if answer else "no" for answer in result.labels.given_answers.tolist())
    return dict(zip(_ids(result, result.labels.given), answers, strict=True))


def _design(result: AuditResult) -> PageDesign:
    """Return the strata of the sheet, with the answers to their pairs.

    Answers to a sheet with another number of strata, as of a smaller set, do not belong to this design.
    """
    labels, shares = result.labels, result.pool.shares
    drawn: dict[tuple[str, str], DesignRow] = {}
    answers: list[list[bool]] = [[] for _ in shares]
    if labels is not None:
        for ids, row in zip(_ids(result, labels.given), labels.given_design, strict=True):
            if row is not None and row.of == len(shares):
                drawn[ids] = row
        for row, answer in zip(labels.design, labels.answers.tolist(), strict=True):
            if row is not None and row.of == len(shares):
                answers[row.stratum - 1].append(answer)
    strata = [Stratum(share, len(given), sum(given)) for share, given in zip(shares, answers, strict=True)]
    return PageDesign(drawn, tuple(strata), result.precision, result.pool.size)


def _ids(result: AuditResult, pairs: PairRows) -> list[tuple[str, str]]:
    images, captions = result.material.image_ids, result.material.caption_ids
    return [(images[q], captions[c]) for q, c in zip(pairs.left.tolist(), pairs.right.tolist(), strict=True)]


def first_different(result: AuditResult, number: int) -> ScoredPairs:
    """Return the most probable suspects; of one set each pair of items once."""
    pairs, relations = result.suspects.pairs, result.material.relations
    if not relations.one_set:
        return result.suspects.take(np.arange(min(number, len(pairs))))
    keys = np.minimum(pairs.left, pairs.right) * relations.second + np.maximum(pairs.left, pairs.right)
    return result.suspects.take(np.sort(np.unique(keys, return_index=True)[1])[:number])


def facts_of(result: AuditResult) -> list[tuple[str, str]]:
    """Return the lines at the top of the page."""
    facts = [("state", status(result.state, result.calibration, result.transfer))]
    if result.rate is None or result.per_query is None:
        return facts
    rate = result.rate
    span = "" if rate.low is None or rate.high is None else f", {rate.low:.3%} to {rate.high:.3%}"
    facts += [
        ("false negatives among negatives", f"{rate.value:.3%}{span}"),
        (f"queries with one in a batch of {result.batch_size}", f"{result.per_query:.1%}"),
    ]
    for weight in result.weights:
        low, high = weight.share.low, weight.share.high
        span = "" if low is None or high is None else f", {low:.1%} to {high:.1%}"
        facts.append((f"gradient weight on them, {weight.objective}", f"{weight.share.value:.1%}{span}"))
    if result.worth is not None:
        for floor in result.worth.floors:
            facts.append((f"loss of a model that is right, {floor.objective}", floor_text(floor)))
        if result.worth.trial is not None:
            facts.append(("trial of the mask", verdict(result.worth.trial, result.state)))
        facts += [("not known", reason) for reason in result.worth.reasons]
    return facts


def _pairs(result: AuditResult, scored: ScoredPairs) -> list[PagePair]:
    material = result.material
    owners = material.positives_of_candidates[:, 0]
    left, right = scored.pairs.left, scored.pairs.right
    pictures = _pictures(result, np.unique(np.r_[left, owners[right][owners[right] != NONE]]))
    first_texts, texts = material.first_texts, None if material.split is None else material.split.captions
    shown = []
    for number, (q, c) in enumerate(zip(left.tolist(), right.tolist(), strict=True)):
        of_query = [] if texts is None else [texts[row] for row in positives(result, q)]
        query = PageItem(
            material.image_ids[q], (*(() if first_texts is None else (first_texts[q],)), *of_query), pictures.get(q)
        )
        candidate = PageItem(
            material.caption_ids[c], () if texts is None else (texts[c],), pictures.get(int(owners[c]))
        )
        shown.append(PagePair(query, candidate, float(scored.probability[number]), reasons_of(result, scored, number)))
    return shown


def reasons_of(result: AuditResult, scored: ScoredPairs, row: int) -> tuple[tuple[str, float], ...]:
    """Return the reasons why a pair may match, the strongest first, in log-odds."""
    if scored.copy[row]:
        return tuple((result.because[name], 1.0) for name in result.copy_names[:1])
    parts = result.calibration.weights[1:] * scored.Z[row]
    order: Sequence[int] = np.argsort(-parts)[:_REASONS].tolist()
    return tuple((result.because[result.signals[k]], float(parts[k])) for k in order if parts[k] > 0)


def _pictures(result: AuditResult, rows: Rows) -> dict[int, npt.NDArray[np.uint8]]:
    """Return the pictures of these items of the first side, by row; empty if the data have no pictures."""
    if not result.material.has(Pictures):
        return {}
    pixels = np.asarray(result.material.part(Pictures).images.take(rows))
    if pixels.dtype != np.uint8:
        pixels = (pixels * 255).round().clip(0, 255).astype(np.uint8)
    return dict(zip(rows.tolist(), pixels, strict=True))
