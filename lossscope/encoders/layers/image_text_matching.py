"""Around a score of single pairs: which pairs to train it on, which to re-rank with it, and soft targets."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from lossscope.core.pair import Pair
from lossscope.core.similarity import Mask

from ..types import EncodedBatch
from .chunked_scores import without_padding

_LEAST = 1e-5  # added to the probability of every negative


@dataclass(frozen=True)
class Drawn:
    """Pairs to tell apart: rows of images and of texts, (p,), and whether they belong together, (p,) int64."""

    images: Tensor
    texts: Tensor
    label: Tensor


def drawn(logits: Tensor, mask: Mask) -> Drawn:
    """Every positive pair, and for each a negative image of its text and a negative text of its image.

    A negative is drawn with probability ∝ softmax(logits) + 1e-5 of (n, m) logits, the softmax being over all
    candidates. What is a positive or takes no part is never drawn; a query that has nothing else gives no pair.
    """
    of_image, of_text = _partners(logits, mask.negatives), _partners(logits.T, mask.negatives.T)
    image, text = mask.positives.nonzero(as_tuple=True)
    others, pictures = of_image[image], of_text[text]
    with_text, with_image = others >= 0, pictures >= 0
    images = [image, image[with_text], pictures[with_image]]
    texts = [text, others[with_text], text[with_image]]
    label = torch.zeros(sum(map(len, images)), dtype=torch.long, device=logits.device)
    label[: len(image)] = 1
    return Drawn(torch.cat(images), torch.cat(texts), label)


def _partners(logits: Tensor, negatives: Tensor) -> Tensor:
    """(q,) a negative of each query, −1 where there is none."""
    weights = (logits.softmax(1) + _LEAST).masked_fill(~negatives, 0)
    known = negatives.any(1)
    weights[~known] = 1
    return torch.multinomial(weights, 1).squeeze(1).masked_fill(~known, -1)


def soft_targets(mask: Mask) -> Tensor:
    """(q, c) 1/|P| on the positives of a query, 0 elsewhere; rows with a positive sum to 1."""
    return mask.positives / mask.positives.sum(1, keepdim=True).clamp(min=1)


def contrast(logits: Tensor, mask: Mask) -> Tensor:
    """Mean of both directions' cross-entropy of (n, m) logits with soft targets, ()."""
    parts = []
    for one, own in ((logits, mask), (logits.T, mask.t())):
        known = own.positives.any(1)
        shown = one.masked_fill(~own.valid, -torch.inf).log_softmax(1).masked_fill(~own.positives, 0)
        parts.append(-(soft_targets(own) * shown).sum(1)[known].mean())
    return (parts[0] + parts[1]) / 2


def best(S: Tensor, k: int) -> Pair[Tensor]:
    """(n, m) bool in both directions, image rows: the k best texts of each image, the k best images of each text."""
    return Pair(_best(S, k), _best(S.T, k).T)


def _best(S: Tensor, k: int) -> Tensor:
    rows = S.topk(min(k, S.shape[1]), dim=1).indices
    return torch.zeros_like(S, dtype=torch.bool).scatter_(1, rows, True)


def reranked(
    chosen: Pair[Tensor],
    images: EncodedBatch,
    texts: EncodedBatch,
    prepare: Callable[[EncodedBatch], EncodedBatch],
    score: Callable[[EncodedBatch, EncodedBatch], Tensor],
    at_once: int,
) -> Pair[Tensor]:
    """(n, m) and (m, n) scores of the chosen pairs, NaN elsewhere; a pair that both directions chose is scored once.

    prepare: an image, once for all its texts. score: (1, c) of that with texts, which come longest first, `at_once`
    at a time.
    """
    wanted = chosen.i2t | chosen.t2i
    S = torch.full(wanted.shape, torch.nan, device=wanted.device)
    length, known = texts.lengths.cpu(), wanted.cpu()
    for row in range(len(wanted)):
        columns = known[row].nonzero().squeeze(1)
        columns = columns[length[columns].argsort(descending=True)]
        image = prepare(images.rows(slice(row, row + 1)))
        parts = [
            score(image, without_padding(texts.rows(part.to(S.device)), length[part].tolist()))
            for part in torch.split(columns, at_once)
        ]
        S[row, columns.to(S.device)] = torch.cat(parts, 1)[0].float()
    return Pair(S.masked_fill(~chosen.i2t, torch.nan), S.masked_fill(~chosen.t2i, torch.nan).T.contiguous())
