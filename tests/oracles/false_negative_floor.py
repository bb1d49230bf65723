"""E log(1 + m) of a sum m of independent coins, by its whole distribution."""

import math

import numpy as np


def expected_log(p: np.ndarray) -> float:
    """Return Σ_m P(m) log(1 + m), P being the Poisson-binomial distribution of coins (n,)."""
    distribution = np.ones(1)
    for probability in p:
        distribution = np.convolve(distribution, [1 - probability, probability])
    return math.fsum(float(mass) * math.log(1 + m) for m, mass in enumerate(distribution))
