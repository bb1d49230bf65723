"""Make two frames for each picture: one for `draw`, one for `draw_many`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from types import ModuleType
from typing import Any

import numpy as np
import pandas as pd

from lossscope.engine.weight_fields import circle_steps, fields, goal_specs, pair_curves, weights_at
from lossscope.plots import (
    alignment,
    by_rank,
    cosines,
    count_recall,
    differences,
    direction_field,
    epoch_counts,
    eps_curve,
    fidelity,
    hubness,
    loss_guess,
    multiverse,
    overlay,
    pair_cloud,
    power,
    sensitivity,
    spectrum,
    tangent,
    tangent_cloud,
    training,
    trajectory,
    transfer,
    triplet_field,
    utility,
    vanishing_map,
    weight_factors,
    weight_field,
    weight_mass,
    what_if,
)  # fmt: skip
from lossscope.plots import circle_steps as circle
from lossscope.plots import pair_curves as curves


def _rng() -> np.random.Generator:
    return np.random.default_rng(0)


def _cloud() -> pd.DataFrame:
    x, y = _rng().uniform(0.1, 0.9, (2, 400))
    columns = {"source": "runs/a/best.pt", "split": "train", "epoch": np.nan, "s_pos": x, "s_neg": y}
    return pd.DataFrame({**columns, "batch_size": 128.0, "direction": "i2t"})


def _epochs() -> pd.DataFrame:
    rows = [
        {"run": run, "epoch": float(epoch), "split": "val", "loss": 2.0 / (epoch + 1), "rsum": 10.0 * epoch}
        | {f"{side}_{part}": 0.1 * epoch for side in ("pos", "neg") for part in trajectory.PARTS}
        | {"warmup": "triplet" if run == "triplet_sh" and epoch in (1, 2) else None}
        for run in ("triplet_sh", "ntxent:tau=0.1")
        for epoch in range(11)
    ]
    return pd.DataFrame(rows)


def _counts() -> pd.DataFrame:
    rows = [
        (label, panel, direction, seed, 3.0 + seed, 300.0 + seed)
        for label in ("Triplet", "NT-Xent")
        for panel in ("VSE++, scenes", "VSRN, scenes", "VSRN, other scenes", "VSE++, other scenes")
        for direction in ("i2t", "t2i")
        for seed in range(3)
    ]
    return pd.DataFrame(rows, columns=list(count_recall.COLUMNS))


def _statistics(names: tuple[str, ...]) -> Iterator[dict[str, Any]]:
    for name in names:
        for direction in ("i2t", "t2i"):
            for tau in (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0):
                yield {"value": tau, "direction": direction, "statistic": name, "mean": 10 * tau, "std": tau}


def _mass() -> pd.DataFrame:
    names = {"W_neg": 0.5, "W_low": 0.2, "N_eff": 7.0}
    rows = [
        {"label": label, "direction": direction, "statistic": name, "mean": mean}
        for label in ("ntxent", "triplet", "smoothap")
        for direction in ("i2t", "t2i")
        for name, mean in names.items()
    ]
    return pd.DataFrame(rows)


def _curve() -> pd.DataFrame:
    eps = 10.0 ** np.arange(-8, 3)
    frame = pd.DataFrame({"source": "a.pt", "objective": "ntxent:tau=0.1", "direction": "i2t", "eps": eps})
    return frame.assign(mean=100 / (1 + eps / 1e-4))


def _varied() -> pd.DataFrame:
    rows = [(name, value, seed, 400 + value) for name in ("margin", "gamma") for value in (1, 2, 3) for seed in (0, 1)]
    return pd.DataFrame(rows, columns=list(sensitivity.COLUMNS))


def _power() -> pd.DataFrame:
    rows = [(system, over, n, 90 / n**0.5, 50 / n**0.5, 400 / n**0.5)
            for over, numbers in (("seeds", (3, 5, 10, 20)), ("images", (200, 1000, 5000)))
            for system in ("Triplet SH", "NT-Xent") for n in numbers]  # fmt: skip
    frame = pd.DataFrame(rows, columns=["system", "over", "n", "mdd", "mdd_low", "mdd_high"])
    constant = {"data": "scenes", "encoder": "VSE++", "baseline": "Triplet", "statistic": "rsum", "direction": "both"}
    return frame.assign(**constant, level=0.95, power=0.8, alpha=0.05, difference=20.0)


def _differences() -> pd.DataFrame:
    shared = {"source": "a.pt", "b_source": "b.pt", "objective": "ntxent:tau=0.1", "b_objective": "ntxent:tau=0.1"}
    rows = [
        {**shared, "direction": direction, "probe": probe, "statistic": name, "unit": unit, "mean": 1.0, "b_mean": 1.2,
         "difference": 0.2, "low": low, "high": 0.4, "level": 0.95}
        for probe, name, unit in (
            ("cocos", "C_neg", "samples"), ("cocos", "W_neg", "weight"), ("similarity", "s_pos_q10", "similarity"),
        )
        for direction, low in (("i2t", -0.1), ("t2i", 0.1))
    ]  # fmt: skip
    return pd.DataFrame(rows)


def _epoch_counts() -> pd.DataFrame:
    rows = [
        {"source": "run", "objective": "triplet_sh:margin=0.2", "direction": direction, "statistic": name,
         "unit": "samples", "epoch": epoch, "mean": 9.0 - epoch, "low": 8.5 - epoch, "high": 9.5 - epoch, "level": 0.95}
        for name in ("C_q", "C_B", "N_eff") for direction in ("i2t", "t2i") for epoch in range(1, 8)
    ]  # fmt: skip
    return pd.DataFrame(rows)


def _transfer() -> pd.DataFrame:
    losses = ("triplet:margin=0.2", "ntxent:tau=0.1")
    rows = [
        {"objective": loss, "trained_with": trained, "direction": direction, "statistic": name, "mean": 2.0**i * 3.0**j}
        for direction in ("i2t", "t2i")
        for name in ("C_neg", "share_above")
        for i, loss in enumerate(losses)
        for j, trained in enumerate(losses)
    ]
    return pd.DataFrame(rows)


def _utility() -> pd.DataFrame:
    metrics = {"margin": ("similarity", 0.002), "R@1": ("%", 0.4), "nDCG": ("1", 0.005), "rsum": ("sum of %", 2.0)}
    rows = [
        {"source": "runs/a/best.pt", "objective": objective, "direction": direction, "metric": metric, "unit": unit,
         "change": scale * size, "low": 0.9 * scale * size, "high": 1.1 * scale * size, "counted": counted,
         "counted_low": 0.9 * counted, "counted_high": 1.1 * counted}
        for objective, scale, counted in (
            ("ntxent:tau=0.1", 1.0, 11.8), ("triplet:margin=0.2", 0.9, 7.8), ("triplet_sh:margin=0.2", -0.2, 0.97),
        )
        for metric, (unit, size) in metrics.items() for direction in ("i2t", "t2i", "both")
    ]  # fmt: skip
    return pd.DataFrame(rows).assign(level=0.95, n=20, step=1e-4, held_out="val")


def _norms() -> pd.DataFrame:
    return pd.DataFrame({"label": np.repeat(["a", "b", "c", "d"], 50), "value": _rng().uniform(0, 2, 200)})


def _cosines() -> pd.DataFrame:
    kinds = {"positive": 0.6, "hardest negative": 0.4, "negative": 0.0}
    rows = [(kind, value) for kind, mean in kinds.items() for value in _rng().normal(mean, 0.1, 300)]
    return pd.DataFrame(rows, columns=list(cosines.COLUMNS))


def _losses() -> pd.DataFrame:
    rows = pd.DataFrame({"step": np.arange(1, 401), "loss": 4.85 * (1 + 0.01 * _rng().normal(size=400))})
    return rows.assign(guess=4.85, guess_name="log B, of 128 candidates")


def _spectrum() -> pd.DataFrame:
    rows = [
        (side, index, scale / (1 + index) ** power)
        for side, scale, power in (("images", 1.0, 0.5), ("captions", 0.8, 2.0), ("isotropic", 0.4, 0.0))
        for index in range(64)
    ]
    return pd.DataFrame(rows, columns=list(spectrum.COLUMNS))


@cache
def _goal() -> tuple[pd.DataFrame, pd.DataFrame]:
    rows = fields(goal_specs(), points=21)
    return rows[rows["objective"] == rows["objective"].iloc[-1]], rows


def _hardest() -> pd.DataFrame:
    s = _rng().uniform(0, 1, 200)
    shared = {"source": "runs/a/best.pt", "similarity": s, "weight": s, "tangent": s * np.sqrt(1 - s**2)}
    parts = [
        pd.DataFrame({"objective": name, "epoch": epoch, **shared})
        for name in ("vlc", "unified")
        for epoch in (1.0, 2.0)
    ]
    return pd.concat(parts)


def _alignment() -> pd.DataFrame:
    names, cosines = ("ntxent", "triplet_sh", "circle"), {("ntxent", "triplet_sh"): 0.95, ("ntxent", "circle"): -0.2}
    rows = [
        {"space": space, "layer": "total" if space == "parameters" else "", "a": a, "b": b, "a_order": i + 1.0,
         "cosine": 1.0 if a == b else cosines.get((a, b), np.nan), "a_cluster": 1.0 + (i == 2), "cut": 0.9}
        for space in alignment.SPACES for i, a in enumerate(names) for b in names[i:]
    ]  # fmt: skip
    return pd.DataFrame(rows)


def _factors() -> pd.DataFrame:
    s_neg, s_pos = (grid.ravel() for grid in np.meshgrid(*[np.linspace(0, 1, 9)] * 2, indexing="ij"))
    rows = pd.DataFrame({"s_pos": s_pos, "s_neg": s_neg, "triplet": np.exp(s_neg - s_pos), "positive": 1.5 - s_pos})
    rows = rows.assign(negative=0.5 + s_neg, residual=np.where(s_neg > s_pos, 0.0, np.nan))
    return pd.concat([rows.assign(objective=name) for name in ("circle", "ssp")], ignore_index=True)


def _circle() -> tuple[pd.DataFrame, pd.DataFrame]:
    rows = circle_steps({name: name for name in ("triplet_sh", "unified:gamma=5")}, (0.5, 0.7, 0.2))
    return rows[rows["objective"] == "triplet_sh"], rows


def _of_curves(numbers: dict[str, float], curves: dict[str, tuple[list[float], list[float]]]) -> pd.DataFrame:
    """Return rows of single numbers and curves, as a probe's --curve writes them, of two losses and directions."""
    rows = [(name, np.nan, mean) for name, mean in numbers.items()]
    rows += [(name, x, y) for name, points in curves.items() for x, y in zip(*points, strict=True)]
    frame = pd.DataFrame(rows, columns=["statistic", "x", "mean"])
    lines = [(loss, direction) for loss in ("ntxent:tau=0.1", "triplet_sh") for direction in ("i2t", "t2i")]
    return pd.concat([frame.assign(source="a.pt", objective=loss, direction=turn) for loss, turn in lines])


def _fidelity() -> pd.DataFrame:
    k = [1.0, 2, 3, 5, 8, 13, 20, 30, 50, 80]
    return _of_curves({"k95": 4.5, "k95_q50": 4.0, "cos1": 0.8}, {"curve": (k, [1 - 0.2 / x**1.5 for x in k])})


def _by_rank() -> pd.DataFrame:
    ranks, D = [1.0, 2, 4, 8, 16, 32, 64, 128], [round(0.05 * step, 2) for step in range(-40, 41)]
    shares = [0.5, 0.2, 0.1, 0.1, 0.05, 0.03, 0.01, 0.01]
    curves = {
        "candidate_weight": (ranks, [1 / rank for rank in ranks]),
        "query_weight": (ranks, [3 / rank**1.5 for rank in ranks]),
        "query_share": (ranks, shares),
        "weight_share": (ranks, shares),
        "difference_weight": (D, [float(np.exp(-((x / 0.2) ** 2))) for x in D]),
    }
    return _of_curves({"exponent": -1.5, "ridge": 0.0, "near_share": 0.4, "mean_rank": 5.0}, curves)


def _universes() -> pd.DataFrame:
    numbers = [
        {"metric": "i2t_count", "lower": "SmoothAP", "convention": convention, "unit": "paper", "eps": eps,
         "batch": batch, "holds": None if batch == 2.0 else convention == "corrected" or eps < 0.05}
        for convention in ("corrected", "released") for eps in (0.01, 0.1) for batch in (1.0, 2.0)
    ]  # fmt: skip
    retrieval = {"metric": "rsum", "lower": "NT-Xent", "convention": None, "unit": None, "holds": True}
    rows = [
        {**row, "epoch": epoch, "seed": seed}
        for row in (*numbers, retrieval)
        for epoch in ("first", "best")
        for seed in (0, 1)
    ]
    constant = {"data": "scenes", "encoder": "VSE++", "higher": "Triplet", "stated_lower": 1.27, "stated_higher": 6.79}
    frame = pd.DataFrame(rows).assign(**constant)
    return frame.assign(origin=["ours" if metric == "rsum" else "printed" for metric in frame["metric"]])


FRAMES: dict[ModuleType, Callable[[], tuple[pd.DataFrame, pd.DataFrame]]] = {
    by_rank: lambda: (_by_rank(), _by_rank()),
    alignment: lambda: (_alignment()[lambda rows: rows["space"] == "queries"], _alignment()),
    circle: _circle,
    cosines: lambda: (_cosines(), _cosines()),
    count_recall: lambda: (_counts()[lambda rows: rows["panel"] == "VSE++, scenes"], _counts()),
    curves: lambda: (pair_curves(), pair_curves()),
    differences: lambda: (_differences()[lambda rows: rows["unit"] == "samples"], _differences()),
    direction_field: _goal,
    epoch_counts: lambda: (_epoch_counts()[lambda rows: rows["statistic"] == "C_q"], _epoch_counts()),
    eps_curve: lambda: (_curve(), _curve()),
    fidelity: lambda: (_fidelity(), _fidelity()),
    hubness: lambda: (pd.DataFrame({"label": "a", "count": [3, 1, 0]}),) * 2,
    loss_guess: lambda: (_losses(), _losses()),
    multiverse: lambda: (_universes(), _universes()),
    overlay: lambda: (_cloud(), _cloud()),
    pair_cloud: lambda: (weights_at("ntxent", _cloud()),) * 2,
    power: lambda: (_power()[lambda rows: rows["over"] == "seeds"], _power()),
    sensitivity: lambda: (_varied()[lambda rows: rows["parameter"] == "margin"], _varied()),
    spectrum: lambda: (_spectrum(), _spectrum()),
    tangent: lambda: (_norms()[lambda rows: rows["label"] == "a"], _norms()),
    tangent_cloud: lambda: (_hardest()[lambda rows: rows["objective"] == "vlc"], _hardest()),
    training: lambda: (_epochs(), _epochs()),
    trajectory: lambda: (_epochs()[lambda rows: rows["run"] == "triplet_sh"], _epochs()),
    triplet_field: _goal,
    transfer: lambda: (_transfer().query("direction == 'i2t' and statistic == 'C_neg'"), _transfer()),
    utility: lambda: (_utility()[lambda rows: rows["metric"] == "margin"], _utility()),
    vanishing_map: lambda: (_hardest()[lambda rows: rows["epoch"] == 1], _hardest()),
    weight_factors: lambda: (_factors()[lambda rows: rows["objective"] == "ssp"], _factors()),
    weight_field: lambda: _goal()[:1] * 2,
    weight_mass: lambda: (_mass(), _mass()),
    what_if: lambda: (pd.DataFrame(_statistics(("C_neg",))), pd.DataFrame(_statistics(("C_neg", "W_neg", "N_eff")))),
}
