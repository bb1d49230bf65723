"""Compute the weight field of an objective over (s₊, s₋) and its pair-weight curves by calling the objective."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType

import pandas as pd
import torch
from torch import Tensor

from lossscope.core.similarity import Mask
from lossscope.errors import InputError
from lossscope.objectives.base import Objective
from lossscope.objectives.counting.units import two_candidate_weights
from lossscope.objectives.custom.as_objective import ObjectiveLike, as_objective
from lossscope.registry import build, expand, short_spec, spec_of
from lossscope.spec import Spec

TRIPLETS = ("con", "nca", "cir")
PAIRS = ("con", "lin", "sig", "lin-ms", "sig-ms")
FINE, COARSE = 201, 41  # points along a side; COARSE if the objective takes one call a point


def weight_field(
    objective: ObjectiveLike, low: float = -1.0, high: float = 1.0, points: int | None = None
) -> pd.DataFrame:
    """Return W of queries with two candidates on a grid: columns objective, s_pos, s_neg, w_pos, w_neg.

    w_pos = dL/ds₊ and w_neg = dL/ds₋ come from calling the objective on points² queries, not from a formula.

    Args:
        objective: a spec, the objective, or a function or module that computes a loss.
        low: smallest similarity.
        high: largest similarity.
        points: points along each side of the grid; None: 201, or 41 for coupled objectives and black boxes, which take
            one call a point.

    Raises:
        InputError: the range is empty, or the weights depend on missing relative terms.
    """
    objective = _build(objective)
    usual = COARSE if objective.coupled else FINE
    steps = _steps(low, high, usual if points is None else points)
    s_pos, s_neg = (grid.flatten() for grid in torch.meshgrid(steps, steps, indexing="xy"))
    W = two_candidate_weights(objective, s_pos, s_neg)
    columns = {"s_pos": s_pos, "s_neg": s_neg, "w_pos": W[:, 0], "w_neg": W[:, 1]}
    frame = pd.DataFrame({name: values.numpy() for name, values in columns.items()})
    return frame.assign(objective=spec_of(objective))


def fields(specs: Mapping[str, str], low: float = -1.0, high: float = 1.0, points: int | None = None) -> pd.DataFrame:
    """Concatenate the weight fields of all specs, ranges expanded; the column objective is the title.

    Args:
        specs: title -> spec; for a range, the spec of each objective is its title.
        low: smallest similarity.
        high: largest similarity.
        points: see `weight_field`.
    """
    frames = []
    for title, spec in specs.items():
        expanded = expand("objectives", spec)
        for member in expanded:
            field = weight_field(member, low, high, points)
            frames.append(field.assign(objective=title if len(expanded) == 1 else member))
    return pd.concat(frames, ignore_index=True)


def goal_specs(
    triplets: Sequence[str] = TRIPLETS,
    pairs: Sequence[str] = (),
    options: Mapping[str, float] = MappingProxyType({}),
    m: float = 0.1,
) -> dict[str, str]:
    """Return title -> spec of each triplet weight of GOAL, times each pair weight.

    Args:
        triplets: names of triplet weights.
        pairs: names of pair weights; empty: constant pair weights, which titles do not name.
        options: fields of `goal`; margin 0.2 and tau 10, as in GOAL Figure 2, unless given.
        m: both relative terms of the -ms pairs.
    """
    values = {"tau": 10.0, "margin": 0.2, **options}
    words = "".join(f",{name}={value!r}" for name, value in values.items())
    specs = {}
    for triplet in triplets:
        title = f"T {triplet}, " + (f"margin {values['margin']:g}" if triplet == "con" else f"tau {values['tau']:g}")
        for pair in pairs or ["con"]:
            relative = f",m_plus={m!r},m_minus={m!r}" if pair.endswith("-ms") else ""
            specs[f"{title}, P {pair}" if pairs else title] = f"goal:triplet={triplet},pair={pair}{words}{relative}"
    return specs


def pair_curves(
    pairs: Sequence[str] = PAIRS,
    options: str = "",
    m: float = 0.1,
    low: float = 0.0,
    high: float = 1.0,
    points: int = FINE,
) -> pd.DataFrame:
    """Return GOAL's pair weights P₊(s₊) and P₋(s₋) at a triplet weight of 1: columns label, side, s, weight.

    They are W of `goal:triplet=con,variant=released`, whose triplet weight is 1 everywhere. P₋ of lin and lin-ms is
    below 0 where s₋ is: it pulls such negatives.
    Source: Xuan & Chen 2023, eq. 9-13 and Figure 3.

    Args:
        pairs: names of pair weights.
        options: further `,key=value` of goal.
        m: both relative terms of the -ms pairs.
        low: smallest similarity.
        high: largest similarity.
        points: of each curve.
    """
    steps = _steps(low, high, points)
    parts = []
    for pair in pairs:
        relative = f",m_plus={m:g},m_minus={m:g}" if pair.endswith("-ms") else ""
        goal = build("objectives", f"goal:triplet=con,variant=released,pair={pair}{relative}{options}")
        W = two_candidate_weights(goal, steps, steps)
        for side, weight in (("positive", -W[:, 0]), ("negative", W[:, 1])):
            parts.append(pd.DataFrame({"label": pair, "side": side, "s": steps.numpy(), "weight": weight.numpy()}))
    return pd.concat(parts, ignore_index=True)


def objective_curves(
    objective: ObjectiveLike,
    low: float = -1.0,
    high: float = 1.0,
    points: int | None = None,
    other: tuple[float, float] | None = None,
) -> pd.DataFrame:
    """Return −dL/ds₊ against s₊ and dL/ds₋ against s₋ of an objective: columns label, side, s, weight.

    A weight below 0 pushes a positive, or pulls a negative.

    Args:
        objective: a spec, the objective, or a function or module that computes a loss.
        low: smallest similarity.
        high: largest similarity.
        points: of each curve; 201 unless given.
        other: fixed s₊ while s₋ varies, and fixed s₋ while s₊ varies, such as medians of data; the label states them.
            None: the middle of the range.
    """
    objective = _build(objective)
    steps = _steps(low, high, FINE if points is None else points)
    s_pos, s_neg = other or ((low + high) / 2, (low + high) / 2)
    fixed = f"other {s_neg:g}" if s_pos == s_neg else f"other: s₋ {s_neg:.2f}, s₊ {s_pos:.2f}"
    positive = two_candidate_weights(objective, steps, torch.full_like(steps, s_neg))[:, 0]
    negative = two_candidate_weights(objective, torch.full_like(steps, s_pos), steps)[:, 1]
    parts = [
        pd.DataFrame({"side": side, "s": steps.numpy(), "weight": weight.numpy()})
        for side, weight in (("positive", 0 - positive), ("negative", 0 + negative))
    ]
    return pd.concat(parts, ignore_index=True).assign(label=f"{_label(objective)} ({fixed})")


def weights_at(objective: ObjectiveLike, cloud: pd.DataFrame, limit: int = 2000) -> pd.DataFrame:
    """Return W at the (s₊, hardest s₋) of each query: the cloud with the columns objective, w_pos and w_neg.

    w_pos = dL/ds₊ and w_neg = dL/ds₋ are for a query with these two candidates only; the probes report the weights of
    its other negatives.

    Args:
        objective: a spec, the objective, or a function or module that computes a loss.
        cloud: columns s_pos, s_neg and any others.
        limit: number of evenly spaced rows to keep for an objective that takes one call a point (coupled objectives
            and black boxes).

    Raises:
        InputError: the weights depend on missing relative terms.
    """
    built = _build(objective)
    if built.coupled and len(cloud) > limit:
        cloud = cloud.iloc[torch.linspace(0, len(cloud) - 1, limit).round().long().numpy()]
    s_pos, s_neg = (torch.tensor(cloud[name].to_numpy(), dtype=torch.float64) for name in ("s_pos", "s_neg"))
    W = two_candidate_weights(built, s_pos, s_neg).numpy()
    return cloud.assign(objective=spec_of(built), w_pos=W[:, 0], w_neg=W[:, 1]).reset_index(drop=True)


def weights_of(specs: Mapping[str, str], cloud: pd.DataFrame, limit: int = 2000) -> pd.DataFrame:
    """Concatenate `weights_at` of all specs, ranges expanded, and of all sources of the cloud.

    A cloud with several epochs keeps the first and the last.

    Args:
        specs: title -> spec; for a range, the spec of each objective is its title.
        cloud: columns source, epoch, s_pos, s_neg and any others.
        limit: see `weights_at`.
    """
    if cloud["epoch"].nunique() > 1:
        ends = cloud[cloud["epoch"].isin([cloud["epoch"].min(), cloud["epoch"].max()])]
        cloud = ends.assign(source=ends["source"] + ends["epoch"].map(", epoch {:g}".format))
    parts = []
    for title, spec in specs.items():
        expanded = expand("objectives", spec)
        for member in expanded:
            for _, of_source in cloud.groupby("source", sort=False):
                weights = weights_at(member, of_source, limit)
                parts.append(weights.assign(objective=title if len(expanded) == 1 else member))
    return pd.concat(parts, ignore_index=True)


def circle_steps(specs: Mapping[str, str], similarities: Sequence[float]) -> pd.DataFrame:
    """Return where descent moves a query, its positive and its negatives on the unit circle, for each objective.

    Columns: objective, role (query, positive, negative), similarity to the query, x and y of the unit vector, dx and dy
    of minus the part of its gradient that is tangential to the circle: for the query v of −Σ_c W_c t_c, for a candidate
    t_c of −W_c v. The query is at the top, the positive left of it, each negative on the side with more room for it.
    Source: Li et al. 2022, Figure 1 and eq. 9-15.

    Args:
        specs: title -> spec; for a range, the spec of each objective is its title.
        similarities: of the positive, then of each negative, within -1..1.

    Raises:
        InputError: there are fewer than two similarities, one is beyond -1..1, or the weights of a query depend on
            other queries.
    """
    if len(similarities) < 2 or not all(-1 <= s <= 1 for s in similarities):
        raise InputError(
            f"similarities must be that of the positive and of one negative or more, within -1..1; got {similarities}. "
            "Write 0.5,0.7,0.2"
        )
    s = torch.tensor([list(similarities)], dtype=torch.float64)
    angles = math.pi / 2 + torch.tensor(_apart(list(map(math.acos, similarities))), dtype=torch.float64)
    v, t = torch.tensor([0.0, 1.0], dtype=torch.float64), torch.stack([angles.cos(), angles.sin()], 1)
    match = torch.zeros_like(s, dtype=torch.bool)
    match[:, 0] = True
    parts = []
    for title, spec in specs.items():
        members = expand("objectives", spec)
        for member in members:
            objective = _build(member)
            if objective.coupled:
                raise InputError(
                    f"a query on the circle needs weights of its candidates alone; those of {spec_of(objective)} "
                    "depend on other queries. Leave --on-circle out"
                )
            w = objective(s, Mask(match, torch.ones_like(match))).W[0]
            vectors, gradients = torch.cat([v[None], t]), torch.cat([(w @ t)[None], w[:, None] * v])
            steps = 0 - gradients + (gradients * vectors).sum(1, keepdim=True) * vectors
            roles = ["query", "positive", *["negative"] * (len(similarities) - 1)]
            columns = {"role": roles, "similarity": [1.0, *similarities], "x": vectors[:, 0], "y": vectors[:, 1]}
            frame = pd.DataFrame({**columns, "dx": steps[:, 0], "dy": steps[:, 1]})
            parts.append(frame.assign(objective=title if len(members) == 1 else member))
    return pd.concat(parts, ignore_index=True)


def _apart(angles: Sequence[float]) -> list[float]:
    """Return the angles with signs: the first to the left, +, each other where its neighbours are further away."""
    signed = [angles[0]]
    for angle in angles[1:]:
        room = {sign: min(abs(sign * angle - other) for other in signed) for sign in (-1, 1)}
        signed.append(angle if room[1] > room[-1] else -angle)
    return signed


def _build(objective: ObjectiveLike) -> Objective:
    built = as_objective(objective)
    if built.coupled and built.traits.relative:
        raise InputError(
            f"a field needs weights of two similarities alone; those of {spec_of(built)} depend on the "
            "rest of the batch. Give its relative terms, e.g. "
            f"{','.join(f'{name}=0.1' for name in built.traits.relative)}"
        )
    return built


def _label(objective: Objective) -> str:
    """Return the short spec; if an objective has a single option, the label states it even at its default."""
    return spec_of(objective) if len(Spec.parse(spec_of(objective)).values) == 1 else short_spec(objective)


def _steps(low: float, high: float, points: int) -> Tensor:
    if not hasattr(points, "__index__") or not all(isinstance(end, int | float) for end in (low, high)):
        raise InputError(
            f"low and high must be numbers and points a whole number; got {low!r}, {high!r} and {points!r}"
        )
    if not (-1 <= low < high <= 1) or points < 2:
        raise InputError(f"range must be within -1..1 with at least 2 points; got {low}..{high} with {points}")
    return torch.linspace(low, high, points, dtype=torch.float64)
