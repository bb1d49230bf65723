"""Which papers does a probe or an objective come from? Those that the `Source:` line of its file names."""

from __future__ import annotations

import re
from functools import cache

from lossscope.declarations import declarations
from lossscope.spec import Spec

from .bibliography import PAPERS
from .paper import Paper

_OF_STATISTICS = {("cocos", "N_eff"): r"Kish 1965"}  # statistics that another probe's paper defines


def papers_of_objective(spec: str | None) -> tuple[Paper, ...]:
    """Return the papers of an objective; none without one, and of a file of your own."""
    return () if not spec else _papers_of("objectives", _name_of(spec))


def papers_of_measure(probe: str, statistic: str) -> tuple[Paper, ...]:
    """Return the papers that define a statistic of a probe; none where no paper does."""
    other = _OF_STATISTICS.get((_name_of(probe), statistic))
    return named_papers(other) if other else _papers_of("probes", _name_of(probe))


def named_papers(source: str) -> tuple[Paper, ...]:
    """Return the papers that a `Source:` line names, in its order.

    >>> [paper.key for paper in named_papers("Brown et al. 2020; Bleeker & de Rijke 2022, eq. 5-8, 12-13.")]
    ['brown2020', 'bleeker2022']
    """
    places = ((re.search(paper.cited, source), paper) for paper in PAPERS)
    matches = sorted(((match.start(), paper.key, paper) for match, paper in places if match))
    return tuple(paper for _, _, paper in matches)


@cache
def _papers_of(kind: str, name: str) -> tuple[Paper, ...]:
    source = {one.name: one.source for one in declarations(kind)}.get(name, "")
    return named_papers(source)


def _name_of(spec: str) -> str:
    return Spec.parse(spec).name.replace("-", "_")
