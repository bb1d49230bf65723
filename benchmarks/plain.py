"""Compute the numbers of a sweep with all cheap probes in plain torch, batch by batch, to compare with.

Each statistic of a batch is a line of torch on whole matrices, without a loop over queries or repeated work. Batches
are pairs, with a positive on the diagonal.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from lossscope.core.batches import Sampling
from lossscope.core.embedded import SplitEmbeddings

Key = tuple[str | None, str, str]  # objective or None, direction, statistic
EPS, MARGIN, TAU, GAMMA, SCALE = 0.01, 0.2, 0.05, 60.0, 50.0
NTXENT = f"ntxent:tau={TAU}"
TOTALS = ("C_B", "C_0", "skipped", "ties")  # numbers of a whole batch
FIVE = (NTXENT, "triplet", "triplet-sh", "unified", "vlc")


def sweep(
    embedded: SplitEmbeddings, objectives: Sequence[str], all_probes: bool, batch_size: int = 128
) -> dict[Key, list[float]]:
    """Return the statistics of each batch; NaN if undefined.

    Args:
        embedded: images and captions.
        objectives: names of `FIVE`.
        all_probes: run all cheap probes, or cocos alone.
        batch_size: pairs.
    """
    assert embedded.images is not None and embedded.captions is not None
    results: dict[Key, list[float]] = defaultdict(list)
    for batch in Sampling("pairs", batch_size).batches(embedded.relations):
        V = embedded.images[torch.from_numpy(batch.images)]
        T = embedded.captions[torch.from_numpy(batch.captions)]
        S_i2t = V @ T.T
        for direction, S in (("i2t", S_i2t), ("t2i", S_i2t.T)):
            statistics: dict[tuple[str | None, str], Tensor] = {}
            for objective in objectives:
                of_objective = objective_statistics(objective, S, all_probes)
                statistics |= {(objective, name): value for name, value in of_objective.items()}
            if all_probes:
                statistics |= {(None, name): value for name, value in similarity_statistics(S).items()}
            numbers = torch.stack([value.float() for value in statistics.values()]).tolist()
            for (spec, name), number in zip(statistics, numbers, strict=True):
                results[spec, direction, name].append(number)
    return results


def summary(results: dict[Key, list[float]], pairs: int, batch_size: int, file: Path) -> dict[Key, tuple[float, float]]:
    """Return the mean over queries, and the deviation over full batches; write all numbers to a file.

    TOTALS are averaged over full batches. Batches without a number are left out. Each batch has `batch_size` of all
    `pairs`, the last batch the rest.
    """
    frame = pd.DataFrame({"/".join(map(str, key)): values for key, values in results.items()})
    frame.to_parquet(file)
    size = np.full(len(frame), min(batch_size, pairs))
    size[-1] = pairs - size[:-1].sum()
    means = frame.mul(size, axis=0).sum() / frame.notna().mul(size, axis=0).sum()
    full = frame[size == size.max()]
    is_total = pd.Series([name in TOTALS for _, _, name in results], index=frame.columns)
    means = full.mean().where(is_total, means)
    columns = zip(results, means, full.std(ddof=0), strict=True)
    return {key: (float(mean), float(std)) for key, mean, std in columns}


def weights(objective: str, S: Tensor) -> tuple[Tensor, Tensor]:
    """Return the weights that the paper thresholds, (B, B), 0 on the diagonal, and that on the positive, (B,)."""
    diagonal = torch.eye(len(S), dtype=torch.bool, device=S.device)
    if objective == "triplet":
        w = ((MARGIN - S.diag()[:, None] + S > 0) & ~diagonal).float()
        return w, w.sum(1)
    if objective == "triplet-sh":
        hardest, column = S.masked_fill(diagonal, -torch.inf).max(1)
        violated = (MARGIN - S.diag() + hardest > 0).float()
        return torch.zeros_like(S).scatter_(1, column[:, None], violated[:, None]), violated
    if objective == "unified":
        p = (GAMMA * (S - MARGIN * diagonal)).softmax(1)
    else:
        p = (S / TAU if objective == NTXENT else SCALE * S).softmax(1)
    return p.masked_fill(diagonal, 0), 1 - p.diag()


def objective_statistics(objective: str, S: Tensor, all_probes: bool) -> dict[str, Tensor]:
    """Return the statistics of cocos; with all probes also those of weight_mass and contributors."""
    w, positive = weights(objective, S)
    high = w > EPS
    count, total = high.sum(1).float(), w.sum(1)
    mass = (w * high).sum(1)
    statistics = {
        "C_0": (count == 0).sum(),
        "W_neg": mass.mean(),
        "W_low": (total - mass).mean(),
        "W_pos": positive.mean(),
        "skipped": count.new_zeros(()),
    }
    if objective.startswith("triplet"):
        statistics |= {"C_q": count[count > 0].mean(), "C_q_all": count.mean(), "C_B": count.sum()}
    else:
        statistics["C_neg"] = count.mean()
    p = w / total[:, None]  # NaN in rows without weight, which are left out
    statistics["N_eff"] = (1 / p.square().sum(1)).nanmean()
    if all_probes:
        largest = p.topk(5, dim=1).values
        statistics |= {
            "share_above": (mass / total).nanmean(),
            "perplexity": torch.special.entr(p).sum(1).exp().nanmean(),
            "top1": largest[:, 0].nanmean(),
            "top5": largest.sum(1).nanmean(),
        }
    return statistics


def similarity_statistics(S: Tensor) -> dict[str, Tensor]:
    """Return the statistics of similarity, alignment, recall and hubness."""
    diagonal = torch.eye(len(S), dtype=torch.bool, device=S.device)
    positive = S.diag()
    negatives = S.masked_fill(diagonal, -torch.inf)
    hardest, column = negatives.max(1)
    three = torch.stack([positive, hardest, positive - hardest])
    quantiles = three.quantile(three.new_tensor([0.1, 0.5, 0.9]), dim=1, interpolation="nearest")
    statistics = {"inverted": (three[2] < 0).float().mean(), "alignment": (2 - 2 * positive).mean()}
    for index, name in enumerate(("s_pos", "s_neg", "margin")):
        statistics[name] = three[index].mean()
        statistics |= {f"{name}_q{q}": quantiles[row, index] for row, q in enumerate((10, 50, 90))}
    rank = 1 + (negatives > positive[:, None]).sum(1).float()
    statistics |= {f"R@{k}": 100 * (rank <= k).float().mean() for k in (1, 5, 10)}
    statistics |= {"medr": rank.quantile(0.5).floor(), "meanr": rank.mean(), "MRR": (1 / rank).mean()}
    statistics["ties"] = (negatives == positive[:, None]).any(1).sum()
    hardest_count = column.bincount(minlength=len(S)).float()
    deviation = hardest_count - hardest_count.mean()
    statistics |= {
        "hub_max_count": hardest_count.max(),
        "hub_skewness": deviation.pow(3).mean() / deviation.square().mean().pow(1.5),
        "never_hardest": (hardest_count == 0).float().mean(),
        "hub_share": hardest_count.topk(max(1, len(S) // 100)).values.sum() / len(S),
    }
    return statistics
