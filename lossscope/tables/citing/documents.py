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
    papers = {paper.key: paper for citation in citations for paper in (*citation.measure, *citation.objective)}
    entries = [
        software(version)
        for version in dict.fromkeys(version for citation in citations for version in citation.versions)
    ]
    if len(entries) == 1:
        return [*papers.values(), entries[0]]
    return [*papers.values(), *(_with_key(paper, f"{paper.key}-{number}") for number, paper in enumerate(entries, 1))]


def paragraphs(citations: Sequence[Citation], papers: Sequence[Paper]) -> list[str]:
    """Return a paragraph per number, then a paragraph per paper."""
    numbers = [f"{citation.sentence} {_papers_of(citation)}" for citation in citations]
    return [*numbers, *(f"[{paper.key}] {paper.reference()}" for paper in papers)]


def latex(citations: Sequence[Citation], papers: Sequence[Paper]) -> str:
    r"""Return a paragraph per number, with `\cite` of its papers; `bibtex` has the entries."""
    lines = []
    for citation in citations:
        entries = [paper for paper in papers if paper.is_group and paper.version in citation.versions]
        keys = ",".join(dict.fromkeys(paper.key for paper in (*citation.measure, *citation.objective, *entries)))
        lines.append(rf"{latex_text(citation.sentence)}~\cite{{{keys}}}")
    return "\n\n".join(lines)


def bibtex(papers: Sequence[Paper]) -> str:
    """Return the entries of the papers."""
    return "\n\n".join(paper.bibtex() for paper in papers)


def document(citations: Sequence[Citation], papers: Sequence[Paper]) -> dict[str, Any]:
    """Return citations, papers and BibTeX as plain values."""
    return {
        "schema": SCHEMA,
        "citations": [
            {
                "sentence": citation.sentence, "facts": dict(citation.facts),
                "measure": [paper.key for paper in citation.measure],
                "objective": [paper.key for paper in citation.objective],
            }
            for citation in citations
        ],
        "papers": {paper.key: {"type": paper.kind, **paper.named} for paper in papers},
        "bibtex": bibtex(papers),
    }  # fmt: skip


def _papers_of(citation: Citation) -> str:
    measure, objective = (", ".join(paper.key for paper in papers) for papers in (citation.measure, citation.objective))
    has_loss = citation.facts["objective"] != "no objective"
    loss = f"; loss: {objective or _NO_LOSS}" if has_loss else ""
    return f"[measure: {measure or _NO_MEASURE}{loss}]"


def _with_key(paper: Paper, key: str) -> Paper:
    return replace(paper, key=key)
