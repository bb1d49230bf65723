"""Which papers define a statistic or a loss? Of those that `Source:` names, for a statistic the ones that define it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache

from lossscope.declarations import declarations
from lossscope.spec import Spec

from .bibliography import PAPERS
from .paper import Paper

_DEFINED: Mapping[str, Mapping[str, str]] = {
    "alignment": {"wang2020": "alignment"},
    "by_rank": {"bleeker2022": "exponent ridge"},
    "cocos": {"bleeker2022": "C_q C_B C_0 C_neg W_neg W_pos", "kish1965": "N_eff"},
    "contributors": {"kish1965": "N_eff", "hill1973": "perplexity"},
    "effective_rank": {"garrido2023": "effective_rank", "roy2007": "effective_rank"},
    "hubness": {"radovanovic2010": "hub_skewness"},
    "modality_gap": {"liang2022": "gap"},
    "tangent": {"li2022": "tangent candidate_tangent hardest_tangent bound_17"},
    "uniformity": {"wang2020": "uniformity"},
    "weight_mass": {"bleeker2022": "W_neg W_pos"},
}
"""Probe -> each paper of its `Source:` line -> the statistics that this paper defines; no paper defines any other."""


def papers_of_objective(spec: str | None) -> tuple[Paper, ...]:
    """Return the papers of an objective; none without one, and of a file of your own."""
    return () if not spec else _papers_of(_name_of(spec))


def papers_of_measure(probe: str, statistic: str) -> tuple[Paper, ...]:
    """Return the papers that define a statistic of a probe; none where no paper does."""
    defined = _DEFINED.get(_name_of(probe), {})
    by_key = {paper.key: paper for paper in PAPERS}
    return tuple(by_key[key] for key, statistics in defined.items() if statistic in statistics.split())


def named_papers(source: str) -> tuple[Paper, ...]:
    """Return the papers that a `Source:` line names, in its order.

    >>> [paper.key for paper in named_papers("Brown et al. 2020; Bleeker & de Rijke 2022, eq. 5-8, 12-13.")]
    ['brown2020', 'bleeker2022']
    """
    found = ((re.search(paper.cited, source), paper) for paper in PAPERS)
    matches = sorted(((match.start(), paper.key, paper) for match, paper in found if match))
    return tuple(paper for _, _, paper in matches)


@cache
def _papers_of(objective: str) -> tuple[Paper, ...]:
    source = {item.name: item.source for item in declarations("objectives")}.get(objective, "")
    return named_papers(source)


def _name_of(spec: str) -> str:
    return Spec.parse(spec).name.replace("-", "_")
