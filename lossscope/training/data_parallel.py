"""Share a batch among the processes of a job: each encodes its share, and all of them see the whole batch."""

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
    """The step of a training. With many processes, random numbers depend on it and on the process rank alone."""

    seed: int
    epoch: int
    step: int

    def of(self, rank: int) -> int:
        """Return the seed of a process; rank -1 is for a seed that all processes share."""
        text = f"{self.seed} {self.epoch} {self.step} {rank}"
        return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest()) >> 1


def encode_shared(
    model: Encoder, images: Images, batch: Batch, captions: Sequence[Tensor], processes: ProcessGroup
) -> tuple[EncodedBatch, EncodedBatch]:
    """Encode both sides of a batch: each process encodes its share and gets the whole.

    Args:
        model: with the towers.
        images: of the split.
        batch: rows of the split.
        captions: ids and lengths of all captions of the batch, so that all shares have the same padding; on the device.
        processes: of the job. A process without a share encodes one item that does not count, as towers refuse empty
            batches.
    """
    image_rows, own_images = _share(processes, len(batch.images))
    caption_rows, own_captions = _share(processes, len(batch.captions))
    with _count_unless_empty(model, own_images):
        items = on_device(images.take(batch.images[image_rows]), captions[0].device)
        encoded_images = model.encode_images(items)
    with _count_unless_empty(model, own_captions):
        encoded_captions = model.encode_texts(*(column[caption_rows] for column in captions))
    return _gather(processes, encoded_images, own_images), _gather(processes, encoded_captions, own_captions)


def sum_gradients(processes: ProcessGroup, parameters: Sequence[nn.Parameter]) -> None:
    """Add up the gradients over the processes; a gradient that is None in all of them stays None."""
    if processes.size == 1:
        return
    present = processes.sum(torch.tensor([float(p.grad is not None) for p in parameters]))
    trained = [p for p, number in zip(parameters, present.tolist(), strict=True) if number]
    gradients = [torch.zeros_like(p) if p.grad is None else p.grad for p in trained]
    for p, total in zip(trained, sum_tensors(processes, gradients), strict=True):
        p.grad = total


def sum_tensors(processes: ProcessGroup, tensors: Sequence[Tensor]) -> list[Tensor]:
    """Return the sum over processes of each tensor; all tensors of a type share a message."""
    sums = list(tensors)
    for kind in dict.fromkeys(x.dtype for x in tensors) if processes.size > 1 else ():
        indices = [index for index, x in enumerate(tensors) if x.dtype == kind]
        flat = processes.sum_(torch.cat([tensors[index].flatten() for index in indices]))
        sizes = [tensors[index].numel() for index in indices]
        for index, part in zip(indices, torch.split(flat, sizes), strict=True):
            sums[index] = part.view_as(tensors[index])
    return sums


def seed_per_rank(processes: ProcessGroup, seed: StepSeed) -> None:
    """Seed torch before a step, if there are many processes; a single process keeps its random stream."""
    if processes.size > 1:
        torch.manual_seed(seed.of(processes.rank))


@contextlib.contextmanager
def shared_rng(processes: ProcessGroup, device: torch.device, seed: StepSeed) -> Iterator[None]:
    """Make all processes draw the same random numbers inside, where all of them compute the same."""
    if processes.size == 1:
        yield
        return
    with torch.random.fork_rng([device] if device.type == "cuda" else []):
        torch.manual_seed(seed.of(-1))
        yield


def require_agreement(processes: ProcessGroup, values: Mapping[str, object], epoch: int, run: Path) -> None:
    """Raise InputError, naming the process rank, unless each value is the same in all processes.

    Args:
        processes: of the job; each calls this.
        values: name -> a value with a stable repr.
        epoch: for the message.
        run: folder to resume.
    """
    if processes.size == 1:
        return
    digests = processes.gather({what: _digest(value) for what, value in values.items()})
    for rank, of_rank in enumerate(digests):
        for what, digest in of_rank.items():
            if digest != digests[0][what]:
                raise InputError(
                    f"{what} must be the same in all processes; rank {rank}'s in epoch {epoch} are not rank 0's. "
                    f"Compare the machines' files and versions, then resume with --resume {run}"
                )


def checksums(tensors: Mapping[str, Tensor]) -> list[int]:
    """Return the sum of the bytes of every tensor."""
    flat = (x.detach().reshape(-1) for x in tensors.values() if x.numel())
    return [int(x.view(torch.uint8).sum(dtype=torch.int64)) for x in flat]


def _share(processes: ProcessGroup, n: int) -> tuple[slice, int]:
    """Return the rows to encode, at least one, and the size of this process's share: all of these rows, or 0."""
    share = processes.share(n)
    return (share, share.stop - share.start) if share.stop > share.start else (slice(0, 1), 0)


def _count_unless_empty(model: nn.Module, number: int) -> contextlib.AbstractContextManager[None]:
    return contextlib.nullcontext() if number else uncounted_batches(model)


def _gather(processes: ProcessGroup, encoded: EncodedBatch, number: int) -> EncodedBatch:
    """Return the rows of all processes, padded to the longest."""
    if processes.size == 1:
        return encoded
    lengths = torch.tensor([x.shape[1] if x.ndim > 1 else 0 for x in encoded.tensors.values()])
    longest = processes.max(lengths).tolist()
    rows = {
        name: processes.gather_rows(_pad(x[:number], length))
        for (name, x), length in zip(encoded.tensors.items(), longest, strict=True)
    }
    return EncodedBatch.from_tensors(rows)


def _pad(x: Tensor, length: int) -> Tensor:
    """Return x (n, l, ...) padded with zeros to (n, length, ...)."""
    if x.ndim < 2 or x.shape[1] == length:
        return x
    return torch.cat([x, x.new_zeros(len(x), length - x.shape[1], *x.shape[2:])], 1)


def _digest(value: object) -> str:
    return hashlib.blake2b(repr(value).encode(), digest_size=16).hexdigest()
