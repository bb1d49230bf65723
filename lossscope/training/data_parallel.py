"""A batch shared by the processes of a job: each encodes its part, all see the whole, and all stay alike."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from lossscope.core.batches import Batch
from lossscope.core.distributed import ProcessGroup
from lossscope.encoders.types import EncodedBatch, on_device
from lossscope.errors import InputError
from lossscope.sources.checkpoints.captions import CaptionBatcher
from lossscope.sources.checkpoints.checkpoint import stored_tokens

from .sync_batch_norm import uncounted_batches

if TYPE_CHECKING:
    from .state import TrainState
    from .task import Task


def encode_shared(
    task: Task, state: TrainState, sentences: CaptionBatcher, batch: Batch, words: Sequence[Tensor]
) -> tuple[EncodedBatch, EncodedBatch]:
    """Both sides of a batch, whole in every process, each of which encodes its share of them.

    words: what the captions of the whole batch were read as, so that all are padded alike. A process whose share is
    empty encodes one item that counts for nothing: towers refuse batches without items.
    """
    processes, model = task.processes, state.model
    images, own_images = _taken(processes, len(batch.images))
    captions, own_captions = _taken(processes, len(batch.captions))
    with _counted(model, own_images):
        first = model.encode_images(on_device(sentences.split.images.take(batch.images[images]), task.device))
    with _counted(model, own_captions):
        second = model.encode_texts(*(column[captions] for column in words))
    return _whole(processes, first, own_images), _whole(processes, second, own_captions)


def sum_gradients(processes: ProcessGroup, parameters: Sequence[nn.Parameter]) -> None:
    """Add up the gradients over the processes; one that is None in all of them stays None."""
    if processes.size == 1:
        return
    there = processes.sum(torch.tensor([float(p.grad is not None) for p in parameters]))
    held = [p for p, number in zip(parameters, there.tolist(), strict=True) if number]
    own = [torch.zeros_like(p) if p.grad is None else p.grad for p in held]
    for p, total in zip(held, sums(processes, own), strict=True):
        p.grad = total


def sums(processes: ProcessGroup, tensors: Sequence[Tensor]) -> list[Tensor]:
    """The sum over processes of each tensor, in one message for all of one type."""
    found = list(tensors)
    for kind in dict.fromkeys(x.dtype for x in tensors) if processes.size > 1 else ():
        places = [place for place, x in enumerate(tensors) if x.dtype == kind]
        flat = processes.sum(torch.cat([tensors[place].flatten() for place in places]))
        for place, part in zip(places, torch.split(flat, [tensors[place].numel() for place in places]), strict=True):
            found[place] = part.view_as(tensors[place])
    return found


def seed_per_rank(task: Task, state: TrainState) -> None:
    """Before a step of one of many processes: its random numbers depend on (seed, epoch, step, rank) alone."""
    if task.processes.size > 1:
        torch.manual_seed(_seed(task, state, task.processes.rank))


@contextlib.contextmanager
def shared_rng(task: Task, state: TrainState) -> Iterator[None]:
    """While inside, all processes draw the same random numbers, for what all of them compute alike."""
    if task.processes.size == 1:
        yield
        return
    with torch.random.fork_rng([task.device] if task.device.type == "cuda" else []):
        torch.manual_seed(_seed(task, state, -1))
        yield


def require_agreement(task: Task, state: TrainState) -> None:
    """Raise InputError, naming the rank, unless all processes have the same parameters, words, data and place."""
    if task.processes.size == 1:
        return
    held = {**state.model.state_dict(), **(state.upstream.state_dict() if state.upstream else {})}
    net = task.main.network()
    held |= {} if net is None else {f"net.{name}": tensor for name, tensor in net.state_dict().items()}
    sums = [int(x.detach().reshape(-1).view(torch.uint8).sum(dtype=torch.int64)) for x in held.values() if x.numel()]
    own = {
        "parameters": sums,
        "training data": task.train.fingerprint,
        "vocabulary": stored_tokens(task.words),
        "place in the run": (state.epoch, state.step),
    }
    everybody = task.processes.gather({what: _digest(value) for what, value in own.items()})
    for rank, told in enumerate(everybody):
        for what, digest in told.items():
            if digest != everybody[0][what]:
                raise InputError(
                    f"{what} must be the same in all processes; rank {rank}'s in epoch {state.epoch} are not rank 0's. "
                    f"Compare the machines' files and versions, then go on with --resume {task.run.path}"
                )


def _taken(processes: ProcessGroup, n: int) -> tuple[slice, int]:
    """The rows to encode, never none, and how many of them are of this process's share: all of them, or none."""
    own = processes.share(n)
    return (own, own.stop - own.start) if own.stop > own.start else (slice(0, 1), 0)


def _counted(model: nn.Module, own: int) -> contextlib.AbstractContextManager[None]:
    return contextlib.nullcontext() if own else uncounted_batches(model)


def _whole(processes: ProcessGroup, side: EncodedBatch, own: int) -> EncodedBatch:
    """The rows of all processes, padded to the longest of all."""
    if processes.size == 1:
        return side
    lengths = torch.tensor([x.shape[1] if x.ndim > 1 else 0 for x in side.tensors.values()])
    longest = processes.max(lengths).tolist()
    grown = {
        name: processes.rows(_longer(x[:own], length))
        for (name, x), length in zip(side.tensors.items(), longest, strict=True)
    }
    return EncodedBatch.of(grown)


def _longer(x: Tensor, length: int) -> Tensor:
    """x with zeros behind, (n, length, ...)."""
    if x.ndim < 2 or x.shape[1] == length:
        return x
    return torch.cat([x, x.new_zeros(len(x), length - x.shape[1], *x.shape[2:])], 1)


def _seed(task: Task, state: TrainState, who: int) -> int:
    told = f"{task.recipe.seed} {state.epoch} {state.step} {who}"
    return int.from_bytes(hashlib.blake2b(told.encode(), digest_size=8).digest()) >> 1


def _digest(value: object) -> str:
    return hashlib.blake2b(repr(value).encode(), digest_size=16).hexdigest()
