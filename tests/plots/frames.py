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
    cosines,
    count_recall,
    differences,
    direction_field,
    epoch_counts,
    eps_curve,
    hubness,
    loss_guess,
    overlay,
    pair_cloud,
    power,
    sensitivity,
    spectrum,
    tangent,
    tangent_cloud,
    training,
    trajectory,
    triplet_field,
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


FRAMES: dict[ModuleType, Callable[[], tuple[pd.DataFrame, pd.DataFrame]]] = {
    alignment: lambda: (_alignment()[lambda rows: rows["space"] == "queries"], _alignment()),
    circle: _circle,
    cosines: lambda: (_cosines(), _cosines()),
    count_recall: lambda: (_counts()[lambda rows: rows["panel"] == "VSE++, scenes"], _counts()),
    curves: lambda: (pair_curves(), pair_curves()),
    differences: lambda: (_differences()[lambda rows: rows["unit"] == "samples"], _differences()),
    direction_field: _goal,
    epoch_counts: lambda: (_epoch_counts()[lambda rows: rows["statistic"] == "C_q"], _epoch_counts()),
    eps_curve: lambda: (_curve(), _curve()),
    hubness: lambda: (pd.DataFrame({"label": "a", "count": [3, 1, 0]}),) * 2,
    loss_guess: lambda: (_losses(), _losses()),
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
    vanishing_map: lambda: (_hardest()[lambda rows: rows["epoch"] == 1], _hardest()),
    weight_factors: lambda: (_factors()[lambda rows: rows["objective"] == "ssp"], _factors()),
    weight_field: lambda: _goal()[:1] * 2,
    weight_mass: lambda: (_mass(), _mass()),
    what_if: lambda: (pd.DataFrame(_statistics(("C_neg",))), pd.DataFrame(_statistics(("C_neg", "W_neg", "N_eff")))),
}
