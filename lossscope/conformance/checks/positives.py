"""Is the positive of each query its own candidate, on one process?

The gradient of a query pulls what the loss takes for its positives and pushes what it takes for negatives.
"""

from __future__ import annotations

from collections.abc import Iterator

from lossscope.objectives.checks.verdict import Verdict

from ..case import Case, rows, verdict

PLACE = 20
AFTER = ("step", "normalised-over-wrong-axis")


def examine(case: Case) -> Iterator[Verdict]:
    """Look at what each query pulls."""
    name, pulls = "positives", case.pulls
    if not case.is_readable:
        text = (
            f"not readable: {pulls.residual:.2g} of the gradient of queries is no sum of embeddings, as where the step "
            "has layers of its own before its products"
        )
        yield verdict(name, "skipped", text, residual=pulls.residual)
        return
    if not bool(pulls.active.any()) and bool(pulls.pushed_queries.any()):
        text = "queries are compared with queries and with no candidate: multiply one view by the other, q @ c.T"
        yield verdict(name, "fail", text, wrong=float(case.trial.size))
        return
    if not bool(pulls.active.any()):
        yield verdict(name, "note", "no query has a gradient on random embeddings: nothing can be read from it")
        return
    bad = pulls.strayed
    if bool(bad.any()):
        example = int(bad.nonzero()[0])
        drawn = pulls.pulled[example].nonzero().flatten().tolist()
        text = f"query {example} pulls {_those(drawn)}; it must pull candidate {example} ({rows(bad)} are wrong)"
        yield verdict(name, "fail", text, wrong=float(bad.sum()))
        return
    soft = float(pulls.softness.max())
    if soft > 0:
        text = f"queries are drawn to other candidates, too, at most {100 * soft:.2g} % as strongly as to their own"
        yield verdict(name, "note", f"{text}: soft targets, such as label smoothing", softness=soft)
        return
    active = int(pulls.active.sum())
    yield verdict(name, "pass", f"{active} of {case.trial.size} queries pull their own candidate, and no other")


def _those(candidates: list[int]) -> str:
    if not candidates:
        return "no candidate"
    return f"candidate{'s' if len(candidates) > 1 else ''} {', '.join(map(str, candidates))}"
