"""A batch shared by the processes of a job: each encodes its share, all see the whole, and all stay alike."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn

from lossscope.core.batches import Batch
from lossscope.core.distributed import ProcessGroup
from lossscope.datasets.base import Images
from lossscope.encoders.base import Encoder
from lossscope.encoders.types import EncodedBatch, on_device
from lossscope.errors import InputError

from .sync_batch_norm import uncounted_batches


@dataclass(frozen=True)
class StepSeed:
    """Which step of a training: random numbers of many processes depend on it and on the process rank alone."""

    seed: int
    epoch: int
    step: int

    def of(self, rank: int) -> int:
        """Return the seed of a process; rank -1 is what all processes share."""
        text = f"{self.seed} {self.epoch} {self.step} {rank}"
        return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest()) >> 1


def encode_shared(
    model: Encoder, images: Images, batch: Batch, captions: Sequence[Tensor], processes: ProcessGroup
) -> tuple[EncodedBatch, EncodedBatch]:
    """Encode both sides of a batch: each process its share, and every process gets the whole.

    Args:
        model: whose towers run.
        images: of the split.
        batch: which rows of the split.
        captions: ids and lengths of all captions of the batch, so that all shares are padded alike; on the device.
        processes: that share the work. A process whose share is empty encodes one item that counts for nothing, as
            towers refuse batches without items.
    """
    image_rows, own_images = _share(processes, len(batch.images))
    caption_rows, own_captions = _share(processes, len(batch.captions))
    with _counted(model, own_images):
        items = on_device(images.take(batch.images[image_rows]), captions[0].device)
        encoded_images = model.encode_images(items)
    with _counted(model, own_captions):
        encoded_captions = model.encode_texts(*(column[caption_rows] for column in captions))
    return _gather(processes, encoded_images, own_images), _gather(processes, encoded_captions, own_captions)


def sum_gradients(processes: ProcessGroup, parameters: Sequence[nn.Parameter]) -> None:
    """Add up the gradients over the processes; one that is None in all of them stays None."""
    if processes.size == 1:
        return
    present = processes.sum(torch.tensor([float(p.grad is not None) for p in parameters]))
    trained = [p for p, number in zip(parameters, present.tolist(), strict=True) if number]
    own = [torch.zeros_like(p) if p.grad is None else p.grad for p in trained]
    for p, total in zip(trained, sum_tensors(processes, own), strict=True):
        p.grad = total


def sum_tensors(processes: ProcessGroup, tensors: Sequence[Tensor]) -> list[Tensor]:
    """Return the sum over processes of each tensor, in one message for all of one type."""
    sums = list(tensors)
    for kind in dict.fromkeys(x.dtype for x in tensors) if processes.size > 1 else ():
        places = [place for place, x in enumerate(tensors) if x.dtype == kind]
        flat = processes.sum_(torch.cat([tensors[place].flatten() for place in places]))
        for place, part in zip(places, torch.split(flat, [tensors[place].numel() for place in places]), strict=True):
            sums[place] = part.view_as(tensors[place])
    return sums


def seed_per_rank(processes: ProcessGroup, seed: StepSeed) -> None:
    """Seed torch before a step of one of many processes; a single process keeps its stream of random numbers."""
    if processes.size > 1:
        torch.manual_seed(seed.of(processes.rank))


@contextlib.contextmanager
def shared_rng(processes: ProcessGroup, device: torch.device, seed: StepSeed) -> Iterator[None]:
    """Inside, all processes draw the same random numbers, for what all of them compute alike."""
    if processes.size == 1:
        yield
        return
    with torch.random.fork_rng([device] if device.type == "cuda" else []):
        torch.manual_seed(seed.of(-1))
        yield


def require_agreement(processes: ProcessGroup, values: Mapping[str, object], epoch: int, run: Path) -> None:
    """Raise InputError, naming the process rank, unless each value is the same in all processes.

    Args:
        processes: each of which calls this.
        values: what it is -> a value with a stable repr.
        epoch: for the message.
        run: folder to resume.
    """
    if processes.size == 1:
        return
    digests = processes.gather({what: _digest(value) for what, value in values.items()})
    for rank, own in enumerate(digests):
        for what, digest in own.items():
            if digest != digests[0][what]:
                raise InputError(
                    f"{what} must be the same in all processes; rank {rank}'s in epoch {epoch} are not rank 0's. "
                    f"Compare the machines' files and versions, then resume with --resume {run}"
                )


def checksums(tensors: Mapping[str, Tensor]) -> list[int]:
    """Return the sum of the bytes of every tensor."""
    every = (x.detach().reshape(-1) for x in tensors.values() if x.numel())
    return [int(x.view(torch.uint8).sum(dtype=torch.int64)) for x in every]


def _share(processes: ProcessGroup, n: int) -> tuple[slice, int]:
    """The rows to encode, never none, and how many of them are this process's share: all of them, or none."""
    own = processes.share(n)
    return (own, own.stop - own.start) if own.stop > own.start else (slice(0, 1), 0)


def _counted(model: nn.Module, own: int) -> contextlib.AbstractContextManager[None]:
    return contextlib.nullcontext() if own else uncounted_batches(model)


def _gather(processes: ProcessGroup, encoded: EncodedBatch, own: int) -> EncodedBatch:
    """The rows of all processes, padded to the longest of all."""
    if processes.size == 1:
        return encoded
    lengths = torch.tensor([x.shape[1] if x.ndim > 1 else 0 for x in encoded.tensors.values()])
    longest = processes.max(lengths).tolist()
    rows = {
        name: processes.gather_rows(_pad(x[:own], length))
        for (name, x), length in zip(encoded.tensors.items(), longest, strict=True)
    }
    return EncodedBatch.from_tensors(rows)


def _pad(x: Tensor, length: int) -> Tensor:
    """x (n, l, ...) with zeros behind, (n, length, ...)."""
    if x.ndim < 2 or x.shape[1] == length:
        return x
    return torch.cat([x, x.new_zeros(len(x), length - x.shape[1], *x.shape[2:])], 1)


def _digest(value: object) -> str:
    return hashlib.blake2b(repr(value).encode(), digest_size=16).hexdigest()
