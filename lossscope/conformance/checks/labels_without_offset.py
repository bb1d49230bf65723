"""On many processes, is the positive of each query still its own candidate, or that of the same row of rank 0?

Row i of process r is row r b + i of the gathered candidates. Labels 0..b-1 are right on rank 0 alone. Source: local
losses as those of open_clip, solo-learn issue 229.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch

from lossscope.objectives.checks.verdict import Verdict

from ..case import Case, rows, verdict
from ..together import Together

PLACE = 110
AFTER = ("step", "normalised-over-wrong-axis", "positives", "processes")


def examine(case: Case) -> Iterator[Verdict]:
    """Look at what each query pulls on several processes."""
    name = "labels-without-offset"
    if not case.has(Together) or not case.is_readable:
        yield verdict(name, "skipped", "needs several processes, and weights that can be read")
        return
    together, size = case.part(Together), case.trial.size
    pulls, process_of = together.pulls, together.process_of
    if not bool(pulls.active.any()):
        yield verdict(name, "skipped", "no query has a gradient: nothing can be read from it")
        return
    bad = pulls.strayed
    if not bool(bad.any()):
        yield verdict(name, "pass", f"the queries of all {case.trial.processes} processes pull their own candidate")
        return
    first = [int((process_of == process_of[q]).nonzero()[0]) for q in range(size)]
    local = torch.arange(size) - torch.tensor(first)
    like_rank_0 = bad & pulls.pulled[torch.arange(size), local]
    example = int(bad.nonzero()[0])
    drawn = pulls.pulled[example].nonzero().flatten().tolist()
    where = f"row {int(local[example])} of rank {int(process_of[example])}"
    text = f"{where} pulls candidate {', '.join(map(str, drawn)) or 'none'} of {size}, its own is {example}"
    if bool(like_rank_0.any()):
        text += f"; {rows(like_rank_0)} take the row of rank 0 for their positive: add rank * b to the labels"
    yield verdict(name, "fail", text, wrong=float(bad.sum()))
