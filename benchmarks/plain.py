"""What a sweep with all cheap probes reports, written down batch by batch in plain torch: the numbers to compare with.

Everything of a batch is one line of torch on whole matrices; nothing is looped over queries, and nothing is made twice.
Pairs only, one positive on the diagonal.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import pandas as pd
import torch
from torch import Tensor

from lossscope.core.batches import Sampling
from lossscope.core.embedded import SplitEmbeddings

Key = tuple[str | None, str, str]  # objective or None, direction, statistic
EPS, MARGIN, TAU, GAMMA, SCALE = 0.01, 0.2, 0.05, 60.0, 50.0
NTXENT = f"ntxent:tau={TAU}"
FIVE = (NTXENT, "triplet", "triplet-sh", "unified", "vlc")


def sweep(
    embedded: SplitEmbeddings, objectives: Sequence[str], everything: bool, batch_size: int = 128
) -> dict[Key, list[float]]:
    """Numbers of every batch, NaN where one is not defined. everything: all cheap probes, or cocos alone."""
    assert embedded.images is not None and embedded.captions is not None
    found: dict[Key, list[float]] = defaultdict(list)
    for batch in Sampling("pairs", batch_size).batches(embedded.caption_image):
        V = embedded.images[torch.from_numpy(batch.images)]
        T = embedded.captions[torch.from_numpy(batch.captions)]
        S = V @ T.T
        for direction, one in (("i2t", S), ("t2i", S.T)):
            told: dict[tuple[str | None, str], Tensor] = {}
            for objective in objectives:
                own = of_objective(objective, one, everything)
                told |= {(objective, name): value for name, value in own.items()}
            if everything:
                told |= {(None, name): value for name, value in of_similarities(one).items()}
            numbers = torch.stack([value.float() for value in told.values()]).tolist()
            for (asked, name), number in zip(told, numbers, strict=True):
                found[asked, direction, name].append(number)
    return found


def summary(found: dict[Key, list[float]], file: Path) -> dict[Key, tuple[float, float]]:
    """Mean and standard deviation over batches, of those where a number is defined; all numbers go to a file."""
    frame = pd.DataFrame({"/".join(map(str, key)): values for key, values in found.items()})
    frame.to_parquet(file)
    both = zip(found, frame.mean(), frame.std(ddof=0), strict=True)
    return {key: (float(mean), float(std)) for key, mean, std in both}


def weights(objective: str, S: Tensor) -> tuple[Tensor, Tensor]:
    """(B, B) what the paper thresholds, 0 on the diagonal, and (B,) the weight on the positive."""
    own = torch.eye(len(S), dtype=torch.bool, device=S.device)
    if objective == "triplet":
        w = ((MARGIN - S.diag()[:, None] + S > 0) & ~own).float()
        return w, w.sum(1)
    if objective == "triplet-sh":
        hardest, column = S.masked_fill(own, -torch.inf).max(1)
        violated = (MARGIN - S.diag() + hardest > 0).float()
        return torch.zeros_like(S).scatter_(1, column[:, None], violated[:, None]), violated
    if objective == "unified":
        p = (GAMMA * (S - MARGIN * own)).softmax(1)
    else:
        p = (S / TAU if objective == NTXENT else SCALE * S).softmax(1)
    return p.masked_fill(own, 0), 1 - p.diag()


def of_objective(objective: str, S: Tensor, everything: bool) -> dict[str, Tensor]:
    """cocos; and weight_mass and contributors."""
    w, positive = weights(objective, S)
    high = w > EPS
    count, total = high.sum(1).float(), w.sum(1)
    mass = (w * high).sum(1)
    told = {
        "C_0": (count == 0).sum(),
        "W_neg": mass.mean(),
        "W_low": (total - mass).mean(),
        "W_pos": positive.mean(),
        "skipped": count.new_zeros(()),
    }
    if objective.startswith("triplet"):
        told |= {"C_q": count[count > 0].mean(), "C_q_all": count.mean(), "C_B": count.sum()}
    else:
        told["C_neg"] = count.mean()
    p = w / total[:, None]  # NaN in rows without weight, which are left out
    told["N_eff"] = (1 / p.square().sum(1)).nanmean()
    if everything:
        largest = p.topk(5, dim=1).values
        told |= {
            "share_above": (mass / total).nanmean(),
            "perplexity": torch.special.entr(p).sum(1).exp().nanmean(),
            "top1": largest[:, 0].nanmean(),
            "top5": largest.sum(1).nanmean(),
        }
    return told


def of_similarities(S: Tensor) -> dict[str, Tensor]:
    """similarity, alignment, recall and hubness."""
    own = torch.eye(len(S), dtype=torch.bool, device=S.device)
    positive = S.diag()
    negatives = S.masked_fill(own, -torch.inf)
    hardest, column = negatives.max(1)
    three = torch.stack([positive, hardest, positive - hardest])
    quantiles = three.quantile(three.new_tensor([0.1, 0.5, 0.9]), dim=1, interpolation="nearest")
    told = {"inverted": (three[2] < 0).float().mean(), "alignment": (2 - 2 * positive).mean()}
    for place, name in enumerate(("s_pos", "s_neg", "margin")):
        told[name] = three[place].mean()
        told |= {f"{name}_q{q}": quantiles[row, place] for row, q in enumerate((10, 50, 90))}
    rank = 1 + (negatives > positive[:, None]).sum(1).float()
    told |= {f"R@{k}": 100 * (rank <= k).float().mean() for k in (1, 5, 10)}
    told |= {"medr": rank.quantile(0.5).floor(), "meanr": rank.mean(), "MRR": (1 / rank).mean()}
    told["ties"] = (negatives == positive[:, None]).any(1).sum()
    chosen = column.bincount(minlength=len(S)).float()
    apart = chosen - chosen.mean()
    told |= {
        "hub_max_count": chosen.max(),
        "hub_skewness": apart.pow(3).mean() / apart.square().mean().pow(1.5),
        "never_hardest": (chosen == 0).float().mean(),
        "hub_share": chosen.topk(max(1, len(S) // 100)).values.sum() / len(S),
    }
    return told
