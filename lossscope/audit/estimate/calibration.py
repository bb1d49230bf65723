"""From signals to a probability: logistic regression, its prior from human judgements, with draws of the posterior."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize
from scipy.special import expit

Doubles = npt.NDArray[np.float64]

PRIOR_SD, INTERCEPT_SD = 0.75, 5.0  # of a weight and of the intercept, in log-odds a standard deviation of the signal
_DRAWS = 400  # of the weights
_STEPS, _WARM = 4000, 500  # steps of the sampler, and the first ones, which it drops
_MANY = 1000  # labels: from this number on the posterior is close to normal
_SEED = 0


@dataclass(frozen=True, eq=False)
class Calibration:
    """p = σ(b₀ + Σ bₖ zₖ) of signals z in standard deviations of random pairs.

    `draws` come from the posterior, given labels. Without labels the uncertainty of the weights is unknown.
    """

    names: tuple[str, ...]  # of the signals, k
    weights: Doubles  # (k + 1,) the intercept first
    draws: Doubles | None = None  # (m, k + 1)
    labels: int = 0  # in the fit
    origin: str = ""  # where the weights come from, in words
    deviations: Doubles | None = None  # (k + 1,) of the prior before labels; None: `prior_sd`

    def logit(self, Z: Doubles, weights: Doubles | None = None) -> Doubles:
        """Return log-odds (n,) of signals (n, k)."""
        b = self.weights if weights is None else weights
        log_odds: Doubles = b[0] + Z @ b[1:]
        return log_odds

    def probability(self, Z: Doubles, weights: Doubles | None = None) -> Doubles:
        """Return the probability that each pair matches, (n,), for signals (n, k)."""
        p: Doubles = expit(self.logit(Z, weights))
        return p

    def fit(self, Z: Doubles, answers: npt.NDArray[np.bool_], origin: str) -> Calibration:
        """Return the calibration after labels: the posterior of a prior whose mean is `weights`.

        Args:
            Z: (n, k) signals of labelled pairs.
            answers: (n,) whether each pair matches.
            origin: of the labels, in words.
        """
        sd = prior_sd(len(self.weights)) if self.deviations is None else self.deviations
        weights, covariance = posterior_mode(Z, answers, self.weights, sd)
        random = np.random.default_rng(_SEED)
        if len(answers) >= _MANY:
            draws = random.multivariate_normal(weights, covariance, _DRAWS)
        else:
            draws = posterior_draws(Z, answers, self.weights, sd, weights, random)
        return replace(self, weights=draws.mean(0), draws=draws, labels=len(answers), origin=origin)


def prior_sd(size: int) -> Doubles:
    """Return the standard deviations of the prior, (size,), the intercept first."""
    return np.array([INTERCEPT_SD, *[PRIOR_SD] * (size - 1)])


def posterior_mode(Z: Doubles, answers: npt.NDArray[np.bool_], mean: Doubles, sd: Doubles) -> tuple[Doubles, Doubles]:
    """Return the most probable weights and the inverse curvature there, given labels and a normal prior."""
    X, y = np.c_[np.ones(len(Z)), Z], answers.astype(np.float64)

    def objective(b: Doubles) -> tuple[float, Doubles]:
        z = X @ b
        value = np.logaddexp(0, z).sum() - y @ z + 0.5 * (((b - mean) / sd) ** 2).sum()
        return float(value), X.T @ (expit(z) - y) + (b - mean) / sd**2

    best: Doubles = minimize(objective, mean, jac=True, method="L-BFGS-B", options={"maxiter": 2000}).x
    p = expit(X @ best)
    curvature = (X * (p * (1 - p))[:, None]).T @ X + np.diag(1 / sd**2)
    covariance: Doubles = np.linalg.inv(curvature)
    return best, covariance


def posterior_draws(
    Z: Doubles, answers: npt.NDArray[np.bool_], mean: Doubles, sd: Doubles, start: Doubles, random: np.random.Generator
) -> Doubles:
    """Return (m, k + 1) draws of the posterior by elliptical slice sampling, which needs no tuning.

    Source: Murray, Adams & MacKay 2010.
    """
    X, y = np.c_[np.ones(len(Z)), Z], answers.astype(np.float64)

    def likelihood(b: Doubles) -> float:
        z = X @ b
        return float(y @ z - np.logaddexp(0, z).sum())

    b, level, kept = start - mean, likelihood(start), []
    for step in range(_STEPS):
        nu = random.standard_normal(len(mean)) * sd
        threshold = level + np.log(random.random())
        angle = random.random() * 2 * np.pi
        low, high = angle - 2 * np.pi, angle
        while True:
            proposal = b * np.cos(angle) + nu * np.sin(angle)
            level = likelihood(mean + proposal)
            if level > threshold:
                break
            low, high = (angle, high) if angle < 0 else (low, angle)
            angle = low + (high - low) * random.random()
        b = proposal
        if step >= _WARM:
            kept.append(mean + b)
    chosen = np.linspace(0, len(kept) - 1, _DRAWS).round().astype(int)
    draws: Doubles = np.array(kept)[chosen]
    return draws


def interval(values: Sequence[float] | Doubles) -> tuple[float, float]:
    """Return the middle 95 % of draws."""
    low, high = np.quantile(np.asarray(values, np.float64), [0.025, 0.975])
    return float(low), float(high)
