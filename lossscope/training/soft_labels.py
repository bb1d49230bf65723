"""Which pairs of the training split does the model take for wrong? NCR's soft labels, one for each pair and epoch."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from lossscope.core.batches import Sampling

from .data_parallel import StepSeed
from .forward import BatchInputs, Forward
from .state import TrainState
from .task import Task

_ITERATIONS, _CHANGE, _VARIANCE = 10, 1e-2, 5e-4  # of the mixture, as in the released code
_CLEAN = 0.5  # probability above which a pair counts as right
Floats = npt.NDArray[np.float64]


def estimate_labels(task: Task, state: TrainState) -> Tensor:
    """y = w + (1 − w) p of a pair that is probably right, y = p of any other: return the label (M,) of each caption.

    w is the probability that the pair belongs to the component of smaller losses in a mixture of two normal
    distributions, p what the model predicts of the pair. Both come from one pass over the training split in batches of
    pairs, in eval mode, without a gradient. No random generator that training uses moves. If every pair is probably
    right, the hundredth with the smallest w counts as wrong. A pair that is alone in its batch has no negative, so that
    its loss is 0.
    Source: Huang et al. 2021 and its released code. There two networks give each other's w and average their p of wrong
    pairs, p is of the weights of the step, and wrong pairs stay out of the first half of the epochs. Here one network
    labels its own pairs, with the weights at the start of the epoch, and trains with all of them.

    Args:
        task: with the training split.
        state: the model, as it is at the start of an epoch.
    """
    relations, margin = task.train.relations, float(getattr(task.objective, "margin", 0.2))
    losses, predicted = np.zeros(len(task.train.captions)), np.ones(len(task.train.captions))
    forward = Forward(state.model, task.recipe.encoder, task.device, task.recipe.precision, task.processes)
    sampling = Sampling("pairs", task.recipe.batch_size, task.recipe.seed, negatives="none")
    training = state.model.training
    state.model.eval()
    try:
        with torch.no_grad():
            for number, batch in enumerate(sampling.batches(relations, state.epoch)):
                mask = batch.mask(relations, task.recipe.same_image).to(task.device)
                seed = StepSeed(task.recipe.seed, state.epoch, number)
                S = forward.run(BatchInputs(task.captions, batch, mask), seed).S
                of_batch = pair_losses(S, mask.negatives, margin)
                losses[batch.captions] = of_batch
                predicted[batch.captions] = predict(of_batch, margin)
    finally:
        state.model.train(training)
    return torch.from_numpy(labels_of(losses, predicted)).float()


def pair_losses(S: Tensor, negatives: Tensor, margin: float) -> Floats:
    """l_b = (1/B) Σ_n ([margin + s_bn − s_bb]₊ + [margin + s_nb − s_bb]₊): return the loss of each pair, (B,).

    Args:
        S: (B, B) of pairs.
        negatives: (B, B) bool, the entries that are negatives.
        margin: in similarity.
    """
    positive = S.diagonal()
    first = ((margin + S - positive[:, None]).relu() * negatives).sum(1)
    second = ((margin + S - positive[None, :]).relu() * negatives).sum(0)
    return ((first + second) / len(S)).double().cpu().numpy()


def predict(losses: Floats, margin: float) -> Floats:
    """p_b = (margin − l_b/2)₊ over the mean of its largest tenth, at most 1: return the prediction of each pair, (B,).

    Args:
        losses: (B,) of the pairs of a batch.
        margin: in similarity.
    """
    space = np.clip(margin - losses / 2, 0, margin)
    largest = np.sort(space)[-(len(space) // 10 + 1) :].mean()
    return np.minimum(space / largest, 1) if largest > 0 else np.zeros_like(space)


def labels_of(losses: Floats, predicted: Floats) -> Floats:
    """Return y of all pairs, (n,), from their losses and predictions."""
    clean = clean_probability(losses)
    threshold = np.sort(clean)[len(clean) // 100] if clean.min() > _CLEAN else _CLEAN
    return np.where(clean > threshold, clean + (1 - clean) * predicted, predicted)


def clean_probability(losses: Floats) -> Floats:
    """w_i = P(the component of the smaller mean | l_i) of two normal distributions: return it for each pair, (n,).

    Losses are scaled to 0..1, and the fit begins with the two clusters of least squares. 1 where all losses are equal.
    """
    low, high = losses.min(), losses.max()
    if not high > low:
        return np.ones_like(losses)
    x = (losses - low) / (high - low)
    components, before = _fit(x, _two_clusters(x)), -np.inf
    for _ in range(_ITERATIONS):
        shares, likelihood = _shares(x, components)
        components = _fit(x, shares)
        if abs(likelihood - before) < _CHANGE:
            break
        before = likelihood
    return _shares(x, components)[0][:, int(components[1].argmin())]


def _shares(x: Floats, components: tuple[Floats, Floats, Floats]) -> tuple[Floats, float]:
    """Return the probability (n, 2) of each component at the points, and the mean log-likelihood of the points."""
    weight, mean, variance = components
    log_density = np.log(weight) - (np.log(2 * np.pi * variance) + (x[:, None] - mean) ** 2 / variance) / 2
    total = np.logaddexp(log_density[:, 0], log_density[:, 1])
    return np.exp(log_density - total[:, None]), float(total.mean())


def _fit(x: Floats, shares: Floats) -> tuple[Floats, Floats, Floats]:
    """Return weight, mean and variance of each component, (2,), from the shares (n, 2) of the points."""
    number = shares.sum(0) + 10 * np.finfo(np.float64).eps
    mean = (shares * x[:, None]).sum(0) / number
    variance = (shares * (x[:, None] - mean) ** 2).sum(0) / number + _VARIANCE
    return number / len(x), mean, variance


def _two_clusters(x: Floats) -> Floats:
    """Return (n, 2) 0 and 1: which side of the cut that has the least squares within each point is on."""
    ordered = np.sort(x)
    number, sums = np.arange(1, len(x)), ordered.cumsum()[:-1]
    between = sums**2 / number + (ordered.sum() - sums) ** 2 / (len(x) - number)
    cut = int(between.argmax())
    is_high = x > (ordered[cut] + ordered[cut + 1]) / 2
    return np.stack([~is_high, is_high], 1).astype(np.float64)
