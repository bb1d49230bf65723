"""Citations as text, LaTeX, BibTeX, and plain values for JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from .._latex_text import latex_text
from .citation import Citation
from .paper import Paper, software

SCHEMA = "lossscope.citation/1"
_NO_MEASURE, _NO_LOSS = "no paper, as lossscope defines it", "no paper"


def papers_to_cite(citations: Sequence[Citation]) -> list[Paper]:
    """Return the papers of all citations, each once, and lossscope itself, once for each version."""
    papers = {paper.key: paper for one in citations for paper in (*one.measure, *one.objective)}
    own = [software(version) for version in dict.fromkeys(version for one in citations for version in one.versions)]
    if len(own) == 1:
        return [*papers.values(), own[0]]
    return [*papers.values(), *(_with_key(paper, f"{paper.key}-{place}") for place, paper in enumerate(own, 1))]


def paragraphs(citations: Sequence[Citation], papers: Sequence[Paper]) -> list[str]:
    """Return a paragraph a number, then one a paper."""
    numbers = [f"{one.sentence} {_papers_of(one)}" for one in citations]
    return [*numbers, *(f"[{paper.key}] {paper.reference()}" for paper in papers)]


def latex(citations: Sequence[Citation], papers: Sequence[Paper]) -> str:
    r"""Return a paragraph a number, with `\cite` of its papers; the entries are those of `bibtex`."""
    lines = []
    for one in citations:
        own = [paper for paper in papers if paper.is_group and paper.version in one.versions]
        keys = ",".join(dict.fromkeys(paper.key for paper in (*one.measure, *one.objective, *own)))
        lines.append(rf"{latex_text(one.sentence)}~\cite{{{keys}}}")
    return "\n\n".join(lines)


def bibtex(papers: Sequence[Paper]) -> str:
    """Return the entries of the papers."""
    return "\n\n".join(paper.bibtex() for paper in papers)


def document(citations: Sequence[Citation], papers: Sequence[Paper]) -> dict[str, Any]:
    """Return all of it as plain values."""
    return {
        "schema": SCHEMA,
        "citations": [
            {
                "sentence": one.sentence, "facts": dict(one.facts),
                "measure": [paper.key for paper in one.measure], "objective": [paper.key for paper in one.objective],
            }
            for one in citations
        ],
        "papers": {paper.key: {"type": paper.kind, **paper.named} for paper in papers},
        "bibtex": bibtex(papers),
    }  # fmt: skip


def _papers_of(one: Citation) -> str:
    measure, objective = (", ".join(paper.key for paper in papers) for papers in (one.measure, one.objective))
    has_loss = one.facts["objective"] != "no objective"
    loss = f"; loss: {objective or _NO_LOSS}" if has_loss else ""
    return f"[measure: {measure or _NO_MEASURE}{loss}]"


def _with_key(paper: Paper, key: str) -> Paper:
    return replace(paper, key=key)
