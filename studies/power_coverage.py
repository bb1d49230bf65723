"""Do the powers and intervals of `study power` and `compare` hold? Three tables by simulation.

`python studies/power_coverage.py` prints them in half a minute; docs/compare.md has them, and tests compare both.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache

import numpy as np
import numpy.typing as npt
from scipy import stats

from lossscope.stats.options import Design, Resampling
from lossscope.stats.power import sd_interval, smallest_effect
from lossscope.stats.spread import spread_of_images
from lossscope.stats.superiority import superiority

Values = npt.NDArray[np.float64]
Draw = Callable[[np.random.Generator, tuple[int, ...]], Values]
TRIALS = 20_000
LEVEL = 0.95
SEEDS = (2, 3, 5, 10, 20)
SHARES = (0.5, 0.8, 0.95)  # true P(A > B)


def normal(rng: np.random.Generator, shape: tuple[int, ...]) -> Values:
    """Return normal differences, as the t-test assumes."""
    return rng.normal(size=shape)


def skewed(rng: np.random.Generator, shape: tuple[int, ...]) -> Values:
    """Return differences with a long tail to one side."""
    return rng.exponential(size=shape)


def failing(rng: np.random.Generator, shape: tuple[int, ...]) -> Values:
    """Return differences; 1 in 10 is of a failed training, far below the others."""
    return np.where(rng.random(shape) < 0.1, -20.0, 0.0) + rng.normal(size=shape)


DISTRIBUTIONS: tuple[Draw, ...] = (normal, skewed, failing)


@cache
def population(draw: Draw) -> Values:
    """Return very many differences, to read the truth from."""
    return draw(np.random.default_rng(0), (2_000_000,))


def power_at_smallest(n: int, trials: int = TRIALS) -> tuple[float, float]:
    """Return the share of t-tests of n pairs that find the smallest effect, and the share that finds a false one."""
    rng = np.random.default_rng([1, n])
    noise = rng.normal(size=(trials, n))
    effect = smallest_effect(n, Design())
    shares = [float((stats.ttest_1samp(noise + shift, 0, axis=1).pvalue <= 0.05).mean()) for shift in (effect, 0.0)]
    return shares[0], shares[1]


def coverage_of_superiority(n: int, draw: Draw, share: float, trials: int = TRIALS) -> dict[str, float]:
    """Return the share of intervals that hold P(A > B), by method.

    Args:
        n: seeds.
        draw: differences, without their location.
        share: the true P(A > B).
        trials: simulated studies.
    """
    rng = np.random.default_rng([2, n, round(100 * share)])
    location = float(np.quantile(population(draw), 1 - share))
    differences = draw(rng, (trials, n)) - location
    wins = (differences > 0).sum(1)
    exact = [superiority(np.where(np.arange(n) < k, 1.0, -1.0), np.zeros(n), LEVEL) for k in range(n + 1)]
    tails = (
        stats.binom.ppf([[0.025], [0.975]], n, np.arange(n + 1) / n) / n
    )  # the bootstrap of infinitely many resamples
    t = differences.mean(1) / (differences.std(1, ddof=1) / np.sqrt(n))
    below = stats.nct.cdf(t, n - 1, np.sqrt(n) * stats.norm.ppf(share))
    return {
        "Clopper-Pearson": float(np.mean([exact[k].low <= share <= exact[k].high for k in wins])),
        "percentile bootstrap": float(np.mean([tails[0, k] <= share <= tails[1, k] for k in wins])),
        "noncentral t": float(((below >= 0.025) & (below <= 0.975)).mean()),
    }


def coverage_of_sd(n: int, draw: Draw, trials: int = TRIALS) -> float:
    """Return the share of chi-square intervals over n seeds that hold the standard deviation."""
    values = draw(np.random.default_rng([3, n]), (trials, n))
    truth = float(population(draw).std())
    low, high = sd_interval(1.0, n, LEVEL)
    sd = values.std(1, ddof=1)
    return float(((sd * low <= truth) & (truth <= sd * high)).mean())


def images(rng: np.random.Generator, shape: tuple[int, ...]) -> Values:
    """Return differences of the rsum of single images: most are 0, a few are hundreds."""
    return rng.choice([-300.0, -200, -100, 0, 100, 200, 300], p=[0.02, 0.03, 0.07, 0.7, 0.1, 0.05, 0.03], size=shape)


def coverage_of_sd_of_images(n: int, trials: int = 2000) -> float:
    """Return the share of bootstrap intervals over n images that hold the standard deviation."""
    rng, resampling = np.random.default_rng([4, n]), Resampling(999, 0, LEVEL)
    truth = float(images(np.random.default_rng(0), (4_000_000,)).std())
    spreads = [spread_of_images(images(rng, (n,)), "images", resampling) for _ in range(trials)]
    return float(np.mean([spread.low <= truth <= spread.high for spread in spreads]))


def _rows(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [" | ".join(cells) for cells in (header, ["---"] * len(header), *rows)]
    return "\n".join(f"| {line} |" for line in lines) + "\n"


def power_table() -> str:
    """Return the power at the smallest effect, and false alarms, in per cent."""
    rows = [(str(n), *(f"{100 * share:.1f}" for share in power_at_smallest(n))) for n in SEEDS]
    return _rows(("seeds", "power at the smallest difference", "false alarms"), rows)


def superiority_table() -> str:
    """Return the least coverage over true shares of 0.5, 0.8 and 0.95, in per cent, by method and distribution."""
    rows = []
    for n in (3, 5, 10):
        for draw in DISTRIBUTIONS:
            covered = [coverage_of_superiority(n, draw, share) for share in SHARES]
            least = [f"{100 * min(shares[method] for shares in covered):.1f}" for method in covered[0]]
            rows.append((str(n), draw.__name__, *least))
    return _rows(("seeds", "differences", "Clopper-Pearson", "percentile bootstrap", "noncentral t"), rows)


def sd_table() -> str:
    """Return the coverage of the intervals of the standard deviation, in per cent."""
    rows = [(f"{n} seeds", *(f"{100 * coverage_of_sd(n, draw):.1f}" for draw in DISTRIBUTIONS), "") for n in SEEDS]
    rows += [(f"{n} images", "", "", "", f"{100 * coverage_of_sd_of_images(n):.1f}") for n in (100, 1000)]
    return _rows(("", *(f"chi-square, {draw.__name__}" for draw in DISTRIBUTIONS), "bootstrap, rsum of images"), rows)


if __name__ == "__main__":
    print(power_table(), superiority_table(), sd_table(), sep="\n")
