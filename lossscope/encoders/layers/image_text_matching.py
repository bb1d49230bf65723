"""Training and use of a score of single pairs: which pairs train it, which pairs it re-ranks, and soft targets."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from lossscope.core.pair import Pair
from lossscope.core.similarity import Mask

from ..types import EncodedBatch
from .chunked_scores import trim_padding

_MIN_WEIGHT = 1e-5  # added to the probability of every negative


@dataclass(frozen=True)
class MatchingPairs:
    """Pairs of images and texts, to classify as matching or not."""

    images: Tensor  # (p,) rows of images
    texts: Tensor  # (p,) rows of texts
    label: Tensor  # (p,) int64, 1 for a matching pair, else 0


def sample_pairs(logits: Tensor, mask: Mask) -> MatchingPairs:
    """Return all positive pairs, and for each one a negative image of its text and a negative text of its image.

    A negative is drawn with probability ∝ softmax(logits) + 1e-5 of (n, m) logits, the softmax being over all
    candidates. Positives and invalid candidates are never drawn; a query without any other candidate gives no pair.
    """
    negative_text, negative_image = (
        _sample_negatives(logits, mask.negatives),
        _sample_negatives(logits.T, mask.negatives.T),
    )
    image, text = mask.positives.nonzero(as_tuple=True)
    other_texts, other_images = negative_text[image], negative_image[text]
    with_text, with_image = other_texts >= 0, other_images >= 0
    images = [image, image[with_text], other_images[with_image]]
    texts = [text, other_texts[with_text], text[with_image]]
    label = torch.zeros(sum(map(len, images)), dtype=torch.long, device=logits.device)
    label[: len(image)] = 1
    return MatchingPairs(torch.cat(images), torch.cat(texts), label)


def _sample_negatives(logits: Tensor, negatives: Tensor) -> Tensor:
    """Return (q,) a negative of each query, −1 where there is none."""
    weights = (logits.softmax(1) + _MIN_WEIGHT).masked_fill(~negatives, 0)
    has_negative = negatives.any(1)
    weights[~has_negative] = 1
    return torch.multinomial(weights, 1).squeeze(1).masked_fill(~has_negative, -1)


def soft_targets(mask: Mask) -> Tensor:
    """Return (q, c) 1/|P| on the positives of a query, 0 elsewhere; rows with a positive sum to 1."""
    return mask.positives / mask.positives.sum(1, keepdim=True).clamp(min=1)


def contrastive_loss(logits: Tensor, mask: Mask) -> Tensor:
    """Return the mean of both directions' cross-entropy of (n, m) logits with soft targets, ()."""
    parts = []
    for direction_logits, direction_mask in ((logits, mask), (logits.T, mask.t())):
        has_positive = direction_mask.positives.any(1)
        log_p = (
            direction_logits.masked_fill(~direction_mask.valid, -torch.inf)
            .log_softmax(1)
            .masked_fill(~direction_mask.positives, 0)
        )
        parts.append(-(soft_targets(direction_mask) * log_p).sum(1)[has_positive].mean())
    return (parts[0] + parts[1]) / 2


def best_pairs(S: Tensor, k: int) -> Pair[Tensor]:
    """Return (n, m) bool in both directions, images as rows: the k best texts of each image and images of each text."""
    return Pair(_best_of_rows(S, k), _best_of_rows(S.T, k).T)


def _best_of_rows(S: Tensor, k: int) -> Tensor:
    rows = S.topk(min(k, S.shape[1]), dim=1).indices
    return torch.zeros_like(S, dtype=torch.bool).scatter_(1, rows, True)


def rerank(
    chosen: Pair[Tensor],
    images: EncodedBatch,
    texts: EncodedBatch,
    prepare: Callable[[EncodedBatch], EncodedBatch],
    score: Callable[[EncodedBatch, EncodedBatch], Tensor],
    pairs_per_chunk: int,
) -> Pair[Tensor]:
    """Return (n, m) and (m, n) scores of the chosen pairs, NaN elsewhere; a pair chosen in both directions counts once.

    Args:
        chosen: (n, m) bool in both directions, images as rows.
        images: encoded images.
        texts: encoded texts.
        prepare: preparation of an image, once for all its texts.
        score: (1, c) of a prepared image with texts, which come longest first.
        pairs_per_chunk: texts that are scored at a time.
    """
    chosen_pairs = chosen.i2t | chosen.t2i
    S = torch.full(chosen_pairs.shape, torch.nan, device=chosen_pairs.device)
    length, chosen_on_cpu = texts.lengths.cpu(), chosen_pairs.cpu()
    for row in range(len(chosen_pairs)):
        columns = chosen_on_cpu[row].nonzero().squeeze(1)
        columns = columns[length[columns].argsort(descending=True)]
        image = prepare(images.select(slice(row, row + 1)))
        parts = [
            score(image, trim_padding(texts.select(part.to(S.device)), length[part].tolist()))
            for part in torch.split(columns, pairs_per_chunk)
        ]
        S[row, columns.to(S.device)] = torch.cat(parts, 1)[0].float()
    return Pair(S.masked_fill(~chosen.i2t, torch.nan), S.masked_fill(~chosen.t2i, torch.nan).T.contiguous())
