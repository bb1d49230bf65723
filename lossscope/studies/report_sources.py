"""Embeddings and models that lossscope did not train -> a page: recall, which samples carry the gradient, findings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pandas as pd

from lossscope.core.embedded import SplitEmbeddings
from lossscope.core.types import Progress
from lossscope.doctor.examination.examine import Diagnosis
from lossscope.doctor.examination.page import finding_sections, sentences_of, states_of
from lossscope.engine.eps_curves import eps_curves
from lossscope.engine.heaviest_negatives import HeaviestNegatives
from lossscope.engine.selection import objective_specs
from lossscope.engine.sweep import Sweep
from lossscope.errors import InputError
from lossscope.io.frames import join
from lossscope.io.versions import versions
from lossscope.plots import eps_curve, style
from lossscope.report.build import choose_columns
from lossscope.report.chapters import which_samples
from lossscope.report.page import write_page
from lossscope.report.sections import Answer, Picture, Section
from lossscope.retrieval.evaluate import evaluate
from lossscope.tables import retrieval, statistics
from lossscope.tables.base import Table
from lossscope.tables.choice import Choice

_LISTED = 3  # queries of each list


@dataclass(frozen=True)
class ReportedSource:
    """A source as a report needs it."""

    counted: SplitEmbeddings  # whose samples are counted
    ranked: SplitEmbeddings  # whose retrieval is measured; of a dump the same


def report_sources(
    sources: Sequence[ReportedSource],
    diagnosis: Diagnosis,
    out: Path,
    command: str,
    title: str | None = None,
    choice: Choice | None = None,
    progress: Progress | None = None,
) -> Path:
    """Write the page, LaTeX, CSV and pictures of sources; return index.html.

    Losses are those that the sources were trained with, or the usual ones; `answer_unit` is the unit of their weights.

    Args:
        sources: at least one.
        diagnosis: of the same sources.
        out: folder to write: new, empty, or an earlier report.
        command: that makes the page, for its provenance.
        title: of the page; None: the names of the sources.
        choice: of the columns that tables show; None: all.
        progress: called with (label, done, of).

    Raises:
        InputError: two sources of one name or of different sides, or a chosen column that no table has.
    """
    names = [source.counted.name for source in sources]
    if len(set(names)) < len(names):
        raise InputError(f"sources of a report must differ; got {', '.join(names)}")
    sides = {source.counted.sides.text for source in sources}
    if len(sides) > 1:
        raise InputError(f"sources of a report must be of the same sides; got {' and '.join(sides)}. Report each alone")
    objectives = [objective_specs((), source.counted.objective) for source in sources]
    sweeps = [Sweep(objectives=specs, probes=("cocos:curve=true", "similarity")) for specs in objectives]
    counted_under = [objective for sweep in sweeps for objective in sweep.plan.objectives]
    beside = [sweep.beside(counted_under) for sweep in sweeps]
    swept = [sweep.run(source.counted, progress=progress) for source, sweep in zip(sources, beside, strict=True)]
    listed = [
        HeaviestNegatives(sweep).most_and_least(source.counted, _LISTED, progress=progress)
        for source, sweep in zip(sources, beside, strict=True)
        if source.counted.pair_scorer is None
    ]
    counted = join(result.summary for result in swept)
    batches = pd.concat([result.batches for result in swept], ignore_index=True)
    ranked = join(evaluate([source.ranked], progress=progress) for source in sources)
    with style.screen():
        sections = [_retrieval(ranked), _gradient(counted, batches), *_samples(listed)]
        sections += [_similarity(counted), *finding_sections(diagnosis)]
    if choice is not None:
        sections = choose_columns(sections, choice)
    answer = Answer(sentences_of(diagnosis), figure="eps-curve")
    provenance = {
        "command": command,
        "sources": "; ".join(f"{source.counted.name} ({source.counted.fingerprint[:12]})" for source in sources),
        "versions": ", ".join(f"{name} {version}" for name, version in versions().items()),
    }
    numbers = {"rows": pd.concat([ranked, counted], ignore_index=True)}
    return write_page(
        out, title or ", ".join(Path(name).name for name in names), states_of(diagnosis), sections, provenance, answer,
        numbers,
    )  # fmt: skip


def _retrieval(rows: pd.DataFrame) -> Section:
    text = "How often is the positive among the first k candidates, of all candidates of the split?"
    return Section("How well does it retrieve?", text, (retrieval.build(rows),))


def _gradient(rows: pd.DataFrame, batches: pd.DataFrame) -> Section:
    curves = eps_curves(batches)
    figure = eps_curve.draw(curves).figure
    caption = "How many samples of a query have a weight above eps, for every eps."
    picture = Picture("eps-curve", caption, eps_curve.alt(curves), figure, "eps_curve", curves)
    text = "The weight of a sample is the size of the gradient that it gets: samples without weight teach nothing."
    return Section("Which samples carry the gradient?", text, (picture, *_numbered(statistics.build(rows, "cocos"))))


def _samples(listed: Sequence[pd.DataFrame]) -> list[Section]:
    """Return a table of each source and objective; nothing where no source has a list."""
    tables: list[Table] = []
    for rows in listed:
        for (source, objective), group in rows.groupby(["source", "objective"], sort=False):
            of = f"{objective} of {source}"
            tables.append(which_samples.build_table(f"which_samples-{len(tables) + 1}", of, group, {}))
    text = (
        "The queries with the most and the least gradient, and their heaviest negatives. "
        "`lossscope cocos SOURCE --show 20 --out DIR` lists more, and writes those of all queries."
    )
    return [Section(which_samples.TITLE, text, tuple(tables))] if tables else []


def _similarity(rows: pd.DataFrame) -> Section:
    text = "How similar are positives, and the hardest negative of each query?"
    return Section("Are positives and negatives apart?", text, _numbered(statistics.build(rows, "similarity")))


def _numbered(tables: Sequence[Table]) -> tuple[Table, ...]:
    """Return the tables with names of their own: `cocos-1`, `cocos-2` of families with different statistics."""
    seen: Counter[str] = Counter()
    numbered = []
    for table in tables:
        seen[table.name] += 1
        numbered.append(replace(table, name=f"{table.name}-{seen[table.name]}"))
    return tuple(numbered)
