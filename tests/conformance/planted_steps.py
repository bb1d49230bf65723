"""Steps of trainers: sound ones, and twelve that repeat a bug of a released library, written anew.

Each bug names the thread it is from and the check that must find it: FOUND_BY.
"""

from __future__ import annotations

import torch
import torch.distributed as dist
import torch.nn.functional as F  # noqa: N812 - as trainers write it
from torch import Tensor, nn

from lossscope.core.distributed import process_group

TAU = 0.05


def gather(x: Tensor) -> Tensor:
    """Return the rows of all processes, with gradient."""
    return process_group().gather_rows(x)


def gather_constants(x: Tensor) -> Tensor:
    """Return the rows of all processes, without gradient."""
    return torch.cat(list(process_group().stack(x)))


def gather_own(x: Tensor) -> Tensor:
    """Return the rows of all processes; the rows of this process keep their gradient."""
    parts = list(process_group().stack(x))
    parts[dist.get_rank()] = x
    return torch.cat(parts)


def unit(*sides: Tensor) -> tuple[Tensor, ...]:
    """Rows of length 1."""
    return tuple(F.normalize(x, dim=-1) for x in sides)


def labels(queries: Tensor) -> Tensor:
    """Return the columns of this process's positives among gathered candidates."""
    return torch.arange(len(queries), device=queries.device) + dist.get_rank() * len(queries)


# sound


def local_loss(queries, candidates, negatives=None):
    """Each process takes the loss of its own queries; all candidates have a gradient."""
    q, c = unit(queries, candidates)
    everything = gather(c)
    if negatives is not None:
        everything = torch.cat([everything, gather(*unit(negatives.flatten(0, 1)))])
    return F.cross_entropy(q @ everything.T / TAU, labels(q))


class Clip(nn.Module):
    """Both directions of the whole batch in every process, with a learnt scale."""

    def __init__(self) -> None:
        super().__init__()
        self.logit_scale = nn.Parameter(torch.tensor(3.0))

    def forward(self, queries: Tensor, candidates: Tensor) -> Tensor:
        q, c = (gather(x) for x in unit(queries, candidates))
        S = self.logit_scale.exp() * q @ c.T
        target = torch.arange(len(S), device=S.device)
        return (F.cross_entropy(S, target) + F.cross_entropy(S.T, target)) / 2


def own_process(queries, candidates, negatives=None):
    """No candidates of other processes."""
    q, c = unit(queries, candidates)
    if negatives is not None:
        c = torch.cat([c, *unit(negatives.flatten(0, 1))])
    return F.cross_entropy(q @ c.T / TAU, torch.arange(len(q), device=q.device))


def triplet(queries, candidates, negatives=None):
    """Hinge of all negatives in the batch, and of the query's mined negatives."""
    q, c = unit(queries, candidates)
    S = q @ gather(c).T
    positive = S.gather(1, labels(q)[:, None])
    hinge = (0.2 - positive + S).relu().scatter(1, labels(q)[:, None], 0.0).sum(1)
    if negatives is not None:
        hinge = hinge + (0.2 - positive + (q[:, None] * unit(negatives)[0]).sum(2)).relu().sum(1)
    return hinge.mean()


def sigmoid(queries, candidates):
    """SigLIP: own rows against the columns of all."""
    q, c = unit(queries, candidates)
    S = 10 * q @ gather(c).T - 10
    z = torch.full_like(S, -1.0).scatter(1, labels(q)[:, None], 1.0)
    return -F.logsigmoid(z * S).sum() / len(q)


def masked(queries, candidates, negatives):
    """In-batch negatives above the positive are dropped; the query's mined negatives stay."""
    q, c, n = unit(queries, candidates, negatives)
    S, mined = q @ c.T, torch.einsum("bd,bkd->bk", q, n)
    positive = S.diagonal()[:, None]
    S = S.masked_fill(positive + 0.1 < S, -torch.inf)
    return F.cross_entropy(torch.cat([S, mined], 1) / TAU, torch.arange(len(q), device=q.device))


def cached(queries, candidates, chunk_size=None):
    """The gradients of embeddings first, then chunk by chunk; backward is called inside."""
    rows = chunk_size or len(queries)
    leaves = [x.detach().clone().requires_grad_() for x in (queries, candidates)]
    local_loss(*leaves).backward()
    for side, leaf in zip((queries, candidates), leaves, strict=True):
        for x, g in zip(side.split(rows), leaf.grad.split(rows), strict=True):
            (x * g).sum().backward()


def accumulated(queries, candidates, micro_batches=1):
    """The mean over micro-batches, each with its own candidates."""
    parts = zip(queries.chunk(micro_batches), candidates.chunk(micro_batches), strict=True)
    return sum(own_process(q, c) for q, c in parts) / micro_batches


# planted


def constants(queries, candidates):
    """open_clip issue 616: own queries against all candidates; only the process's own candidates have a gradient."""
    q, c = unit(queries, candidates)
    everything = gather_own(c)
    return F.cross_entropy(q @ everything.T / TAU, labels(q))


def all_constant(queries, candidates):
    """SLIP issue 31: both sides are gathered without gradient, own rows too, on one process as on many."""
    q, c = unit(queries, candidates)
    S, T = q @ gather_constants(c).T / TAU, c @ gather_constants(q).T / TAU
    return (F.cross_entropy(S, labels(q)) + F.cross_entropy(T, labels(q))) / 2


def one_nth(queries, candidates):
    """lightly issue 1977, DeCLUTR PR 212: the whole loss in every process; only own rows have a gradient."""
    q, c = (gather_own(x) for x in unit(queries, candidates))
    return F.cross_entropy(q @ c.T / TAU, torch.arange(len(q), device=q.device))


def no_offset(queries, candidates):
    """Local loss with the labels of rank 0 in every process."""
    q, c = unit(queries, candidates)
    return F.cross_entropy(q @ gather(c).T / TAU, torch.arange(len(q), device=q.device))


def interleaved(queries, candidates, negatives=None):
    """sentence-transformers PR 3453: positives and negatives of a process gathered as one block."""
    q, c = unit(queries, candidates)
    block = c if negatives is None else torch.cat([c, *unit(negatives.flatten(0, 1))])
    return F.cross_entropy(q @ gather(block).T / TAU, labels(q))


def last_chunk(queries, candidates, chunk_size=None):
    """sentence-transformers PR 3862: gradients of all mini-batches but the last are dropped."""
    rows = chunk_size or len(queries)
    leaves = [x.detach().clone().requires_grad_() for x in (queries, candidates)]
    local_loss(*leaves).backward()
    for side, leaf in zip((queries, candidates), leaves, strict=True):
        (side.split(rows)[-1] * leaf.grad.split(rows)[-1]).sum().backward()


def times_processes(queries, candidates):
    """pylate PR 156, tevatron issues 30 and 143: the loss times the number of processes, although nothing is lost."""
    return local_loss(queries, candidates) * dist.get_world_size()


def resampled(queries, candidates, negatives=None):
    """ms-swift PR 10068: missing negatives are drawn from positive and negatives, off by one."""
    q, c = unit(queries, candidates)
    columns = [q @ c.T]
    if negatives is not None:
        n = unit(negatives)[0]
        pool = torch.cat([c[:, None], n], 1)
        missing = pool[:, torch.randint(n.shape[1], (1,))]  # of positive and negatives but the last
        columns.append(torch.einsum("bd,bkd->bk", q, torch.cat([n, missing], 1)))
    return F.cross_entropy(torch.cat(columns, 1) / TAU, torch.arange(len(q), device=q.device))


def mask_all(queries, candidates, negatives=None):
    """ms-swift issue 6969: the mask for false negatives also drops the query's mined negatives."""
    q, c = unit(queries, candidates)
    S = q @ c.T
    positive = S.diagonal()[:, None]
    if negatives is not None:
        S = torch.cat([S, torch.einsum("bd,bkd->bk", q, unit(negatives)[0])], 1)
    return F.cross_entropy(S.masked_fill(positive + 0.1 < S, -torch.inf) / TAU, torch.arange(len(q), device=q.device))


def sum_of_means(queries, candidates, micro_batches=1):
    """open_clip issue 761, GradCache issue 7: backward of every micro-batch, without dividing by their number."""
    parts = zip(queries.chunk(micro_batches), candidates.chunk(micro_batches), strict=True)
    return sum(own_process(q, c) for q, c in parts)


def over_the_batch(queries, candidates):
    """tensorflow/similarity issue 233: normalised over the batch."""
    q, c = F.normalize(queries, dim=0), gather(F.normalize(candidates, dim=0))
    return F.cross_entropy(q @ c.T / TAU, labels(q))


def without_negatives(queries, candidates, negatives=None):
    """FlagEmbedding issue 958: mined negatives change nothing."""
    return local_loss(queries, candidates)


def overflow(queries, candidates):
    """A softmax written by hand in the type of the embeddings: exp(20) overflows fp16."""
    q, c = unit(queries, candidates)
    S = (q @ gather(c).T).to(queries.dtype) / TAU
    e = S.exp()
    return (e.sum(1).log() - S.gather(1, labels(q)[:, None])[:, 0]).mean()


SOUND = ("local_loss", "Clip", "own_process", "triplet", "sigmoid", "masked", "cached", "accumulated")
FOUND_BY = {
    "constants": "gather-without-gradient",
    "one_nth": "gather-without-gradient",
    "no_offset": "labels-without-offset",
    "interleaved": "mined-negative-as-positive",
    "last_chunk": "cached-gradient-differs",
    "times_processes": "loss-scaled-by-processes",
    "resampled": "positive-as-negative",
    "mask_all": "mask-hits-curated-negatives",
    "sum_of_means": "accumulation-scale",
    "over_the_batch": "normalised-over-wrong-axis",
    "without_negatives": "negatives-ignored",
    "overflow": "half-precision",
}


# sound, and unusual


def share_of_the_mean(queries, candidates):
    """Own rows, divided by the pairs of all processes: right where gradients are added up."""
    q, c = unit(queries, candidates)
    total = F.cross_entropy(q @ gather(c).T / TAU, labels(q), reduction="sum")
    return total / (len(q) * dist.get_world_size())


def whole_times_processes(queries, candidates):
    """tevatron: the whole loss in every process, own rows with gradient, times the number of processes."""
    return one_nth(queries, candidates) * dist.get_world_size()


def float32_inside(queries, candidates):
    """Cast all inputs to float32."""
    return local_loss(queries.float(), candidates.float())


def bfloat16_logits(queries, candidates):
    """Logits and loss in bfloat16."""
    q, c = unit(queries, candidates)
    return F.cross_entropy((q @ gather(c).T / TAU).bfloat16(), labels(q))


def smoothed(queries, candidates):
    """Label smoothing at a low temperature: queries are drawn to other candidates as well."""
    q, c = unit(queries, candidates)
    return F.cross_entropy(q @ gather(c).T / 0.01, labels(q), label_smoothing=0.1)


def flat_negatives(queries, candidates, negatives):
    """Mined negatives as (b k, d), and never without."""
    q, c, n = unit(queries, candidates, negatives)
    return F.cross_entropy(q @ torch.cat([gather(c), gather(n)]).T / TAU, labels(q))


def one_negative(queries, candidates, negatives):
    """One mined negative a query, (b, d)."""
    q, c, n = unit(queries, candidates, negatives)
    mined = (q * n).sum(1, keepdim=True)
    return F.cross_entropy(torch.cat([q @ c.T, mined], 1) / TAU, torch.arange(len(q), device=q.device))


# with a bug that no parameter shows


def last_chunk_inside(queries, candidates):
    """`last_chunk` that makes its own chunks and returns the value of its loss."""
    leaves = [x.detach().clone().requires_grad_() for x in (queries, candidates)]
    value = local_loss(*leaves)
    value.backward()
    for side, leaf in zip((queries, candidates), leaves, strict=True):
        (side.split(2)[-1] * leaf.grad.split(2)[-1]).sum().backward()
    return value.detach()


def parts_added_up(queries, candidates):
    """`sum_of_means` that makes its own two micro-batches."""
    return sum_of_means(queries, candidates, 2)


def interleaved_alone(queries, candidates, negatives=None):
    """`interleaved` on one process: each query's negatives stand behind its candidate, labels count candidates."""
    q, c = unit(queries, candidates)
    columns = c if negatives is None else torch.cat([c[:, None], unit(negatives)[0]], 1).flatten(0, 1)
    return F.cross_entropy(q @ columns.T / TAU, torch.arange(len(q), device=q.device))


def positive_in_front(queries, candidates):
    """`resampled` without a draw: the positive has a separate column, and is among the candidates once more."""
    q, c = unit(queries, candidates)
    S = q @ gather(c).T
    positive = S.gather(1, labels(q)[:, None])
    return F.cross_entropy(torch.cat([positive, S], 1) / TAU, torch.zeros(len(q), dtype=torch.int64, device=q.device))


def logits(queries, candidates):
    """Own queries against the candidates of all processes, divided by the temperature."""
    q, c = unit(queries, candidates)
    return q @ gather(c).T / TAU


def probabilities(queries, candidates):
    """Softmax probabilities of the positives."""
    return logits(queries, candidates).softmax(1).gather(1, labels(queries)[:, None])


def log_of_mean(queries, candidates):
    """The mean probability of the positives, then the log."""
    return -probabilities(queries, candidates).mean().log()


def exp_of_nll(queries, candidates):
    """exp(nll_loss(softmax)): no log anywhere."""
    return (-probabilities(queries, candidates).mean()).exp()


def maximum_of_others(queries, candidates):
    """CEBRA issue 48: the maximum of each row, without keepdim, is taken from the columns."""
    S = logits(queries, candidates)
    return F.cross_entropy(S - F.pad(S.detach().amax(1), (0, S.shape[1] - len(S))), labels(queries))


def maximum_of_the_row(queries, candidates):
    """The maximum of each row, with keepdim."""
    S = logits(queries, candidates)
    return F.cross_entropy(S - S.detach().amax(1, keepdim=True), labels(queries))


def over_all_pairs(queries, candidates):
    """The softmax of all similarities at once."""
    S = logits(queries, candidates)
    return -S.flatten().log_softmax(0).view_as(S).gather(1, labels(queries)[:, None]).mean()


def two_views(queries, candidates):
    """SimCLR: all rows of both views but a row itself are its candidates."""
    x = torch.cat([*unit(queries, candidates)])
    size = len(queries)
    target = (torch.arange(2 * size) + size) % (2 * size)
    return F.cross_entropy((x @ x.T / TAU).fill_diagonal_(-torch.inf), target)


def with_a_constant(queries, candidates):
    """A part of the value that moves no embedding."""
    return F.cross_entropy(logits(queries, candidates), labels(queries)) + 1


def each_with_itself(queries, candidates):
    """Queries against queries and candidates against candidates."""
    diagonal = torch.arange(len(queries), device=queries.device)
    return sum(F.cross_entropy(x @ x.T / TAU, diagonal) for x in unit(queries, candidates))


def dies(queries, candidates):
    """End the process."""
    import os

    os._exit(7)


def wants_unit_vectors(queries, candidates):
    """Refuse vectors that are not of unit length."""
    if not torch.allclose(queries.norm(dim=1), torch.ones_like(queries[:, 0]), atol=1e-9):
        raise ValueError("queries must be normalised")
    return F.cross_entropy(queries @ gather(candidates).T / TAU, labels(queries))


def gathers_no_queries(queries, candidates):
    """Queries of one process are negatives of one another: a different loss on many processes."""
    q, c = unit(queries, candidates)
    between_queries = (q @ q.T).fill_diagonal_(-torch.inf)
    return F.cross_entropy(torch.cat([q @ gather(c).T, between_queries], 1) / TAU, labels(q))
