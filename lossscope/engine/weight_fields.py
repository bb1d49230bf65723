"""Any objective -> its weight field over (s₊, s₋) and its pair-weight curves, by calling the objective itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

import pandas as pd
import torch
from torch import Tensor

from lossscope.core.similarity import Mask, pair_mask
from lossscope.errors import InputError
from lossscope.objectives.base import Objective
from lossscope.registry import build, expand, short_spec, spec_of

TRIPLETS = ("con", "nca", "cir")
PAIRS = ("con", "lin", "sig", "lin-ms", "sig-ms")
FINE, COARSE = 201, 41  # points of a side; COARSE where every point is a call of its own


def weight_field(
    objective: str | Objective, low: float = -1.0, high: float = 1.0, points: int | None = None
) -> pd.DataFrame:
    """Columns objective, s_pos, s_neg, w_pos, w_neg on a points x points grid: W of queries with two candidates.

    w_pos = dL/ds₊ and w_neg = dL/ds₋. One call of the objective on points² queries; nothing is drawn from a formula.
    points: 201 unless given; 41 for coupled objectives and black boxes, which are called once a point.
    Raises InputError for a coupled objective (its relative terms must be given) or a range that is empty.
    """
    objective = _built(objective)
    steps = _steps(low, high, points or (COARSE if objective.coupled else FINE))
    s_pos, s_neg = (grid.flatten() for grid in torch.meshgrid(steps, steps, indexing="xy"))
    W = _two_candidates(objective, s_pos, s_neg)
    columns = {"s_pos": s_pos, "s_neg": s_neg, "w_pos": W[:, 0], "w_neg": W[:, 1]}
    frame = pd.DataFrame({name: values.numpy() for name, values in columns.items()})
    return frame.assign(objective=spec_of(objective))


def fields(specs: Mapping[str, str], low: float = -1.0, high: float = 1.0, points: int | None = None) -> pd.DataFrame:
    """The weight field of every spec, ranges written out, under its title."""
    frames = []
    for title, spec in specs.items():
        each = expand("objectives", spec)
        for one in each:
            frames.append(weight_field(one, low, high, points).assign(objective=title if len(each) == 1 else one))
    return pd.concat(frames, ignore_index=True)


def goal_specs(
    triplets: Sequence[str] = TRIPLETS,
    pairs: Sequence[str] = (),
    options: Mapping[str, float] = MappingProxyType({}),
    m: float = 0.1,
) -> dict[str, str]:
    """Title -> spec of each triplet weight, times each pair weight if any are named. options: fields of goal.

    Without options they are those of GOAL Figure 2: margin 0.2, tau 10. m: both relative terms of the -ms pairs.
    """
    given = {"tau": 10.0, "margin": 0.2, **options}
    words = "".join(f",{name}={value!r}" for name, value in given.items())
    found = {}
    for triplet in triplets:
        title = f"T {triplet}, " + (f"margin {given['margin']:g}" if triplet == "con" else f"tau {given['tau']:g}")
        for pair in pairs or ["con"]:
            relative = f",m_plus={m!r},m_minus={m!r}" if pair.endswith("-ms") else ""
            found[f"{title}, P {pair}" if pairs else title] = f"goal:triplet={triplet},pair={pair}{words}{relative}"
    return found


def pair_curves(
    pairs: Sequence[str] = PAIRS,
    options: str = "",
    m: float = 0.1,
    low: float = 0.0,
    high: float = 1.0,
    points: int = FINE,
) -> pd.DataFrame:
    """Columns label, side, s, weight: GOAL's pair weights P₊(s₊) and P₋(s₋) with the triplet weight held at 1.

    They are |W| of `goal:triplet=con,variant=released` (whose T is 1 everywhere); `m` is both relative terms of the
    -ms forms. options: further `,key=value` of goal. Source: Xuan & Chen 2023, eq. 9-13 and Figure 3.
    """
    steps = _steps(low, high, points)
    parts = []
    for pair in pairs:
        relative = f",m_plus={m:g},m_minus={m:g}" if pair.endswith("-ms") else ""
        goal = build("objectives", f"goal:triplet=con,variant=released,pair={pair}{relative}{options}")
        W = _two_candidates(goal, steps, steps)
        for side, weight in (("positive", -W[:, 0]), ("negative", W[:, 1])):
            parts.append(pd.DataFrame({"label": pair, "side": side, "s": steps.numpy(), "weight": weight.numpy()}))
    return pd.concat(parts, ignore_index=True)


def objective_curves(
    objective: str | Objective,
    low: float = -1.0,
    high: float = 1.0,
    points: int | None = None,
    held: tuple[float, float] | None = None,
) -> pd.DataFrame:
    """Columns label, side, s, weight of any objective: |dL/ds₊| against s₊ and |dL/ds₋| against s₋.

    held: the s₊ and the s₋ at which the other curve is taken, such as the medians of data; the middle of the range
    unless given. The label says them.
    """
    objective = _built(objective)
    steps = _steps(low, high, points or FINE)
    s_pos, s_neg = held or ((low + high) / 2, (low + high) / 2)
    other = f"other {s_neg:g}" if s_pos == s_neg else f"held: s₋ {s_neg:.2f}, s₊ {s_pos:.2f}"
    positive = _two_candidates(objective, steps, torch.full_like(steps, s_neg))[:, 0].abs()
    negative = _two_candidates(objective, torch.full_like(steps, s_pos), steps)[:, 1].abs()
    parts = [
        pd.DataFrame({"side": side, "s": steps.numpy(), "weight": weight.numpy()})
        for side, weight in (("positive", positive), ("negative", negative))
    ]
    return pd.concat(parts, ignore_index=True).assign(label=f"{short_spec(objective)} ({other})")


def weights_at(objective: str | Objective, density: pd.DataFrame, most: int = 2000) -> pd.DataFrame:
    """W of each query's own (s₊, hardest s₋): what an objective makes of data that are where they are.

    density: columns s_pos, s_neg, which are kept with its others; adds objective, w_pos = dL/ds₊ and w_neg = dL/ds₋ of
    a query with these two candidates. Of a loss that is called once a point (coupled, a black box) `most` rows, evenly
    spaced, are taken. Other negatives than the hardest take no part here; the probes have those.
    Raises InputError for a coupled objective whose relative terms are not given.
    """
    made = _built(objective)
    if made.coupled and len(density) > most:
        density = density.iloc[torch.linspace(0, len(density) - 1, most).round().long().numpy()]
    s_pos, s_neg = (torch.tensor(density[name].to_numpy(), dtype=torch.float64) for name in ("s_pos", "s_neg"))
    W = _two_candidates(made, s_pos, s_neg).numpy()
    return density.assign(objective=spec_of(made), w_pos=W[:, 0], w_neg=W[:, 1]).reset_index(drop=True)


def weights_of(specs: Mapping[str, str], density: pd.DataFrame, most: int = 2000) -> pd.DataFrame:
    """`weights_at` of every spec, ranges written out, under its title, source by source.

    Of a path, whose rows have several epochs: at the first and the last of them.
    """
    if density["epoch"].nunique() > 1:
        ends = density[density["epoch"].isin([density["epoch"].min(), density["epoch"].max()])]
        density = ends.assign(source=ends["source"] + ends["epoch"].map(", epoch {:g}".format))
    parts = []
    for title, spec in specs.items():
        each = expand("objectives", spec)
        for one in each:
            for _, own in density.groupby("source", sort=False):
                parts.append(weights_at(one, own, most).assign(objective=title if len(each) == 1 else one))
    return pd.concat(parts, ignore_index=True)


def _built(objective: str | Objective) -> Objective:
    made: Objective = build("objectives", objective) if isinstance(objective, str) else objective
    if made.coupled and made.relative:
        raise InputError(
            f"a field needs weights of two similarities alone; those of {spec_of(made)} depend on the "
            f"rest of the batch. Give its relative terms, e.g. {','.join(f'{name}=0.1' for name in made.relative)}"
        )
    return made


def _two_candidates(objective: Objective, s_pos: Tensor, s_neg: Tensor) -> Tensor:
    """W of queries with one positive (column 0) and one negative (column 1): (q,), (q,) -> (q, 2).

    Of an objective that takes whole batches, or whose rows influence each other: of the first query of the two pairs
    [[s₊, s₋], [s₋, s₊]], one call a point.
    """
    if objective.coupled:
        pairs = pair_mask(torch.arange(2))
        batches = torch.stack([s_pos, s_neg, s_neg, s_pos], dim=1).reshape(-1, 2, 2)
        return torch.stack([objective(S, pairs).W[0] for S in batches])
    match = torch.zeros(len(s_pos), 2, dtype=torch.bool)
    match[:, 0] = True
    return objective(torch.stack([s_pos, s_neg], dim=1), Mask(match, torch.ones_like(match))).W


def _steps(low: float, high: float, points: int) -> Tensor:
    if not (-1 <= low < high <= 1) or points < 2:
        raise InputError(f"range must be within -1..1 with at least 2 points; got {low}..{high} with {points}")
    return torch.linspace(low, high, points, dtype=torch.float64)
