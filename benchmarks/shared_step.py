"""Take a training step with gradients reduced by our code or by DistributedDataParallel, for data_parallel.py."""

from __future__ import annotations

import contextlib
import copy
import datetime
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from lossscope.core.batches import Batch
from lossscope.core.distributed import ProcessGroup, process_group, use_loopback
from lossscope.core.similarity import normalise, pair_mask
from lossscope.core.types import Rows
from lossscope.core.weights import backward
from lossscope.encoders.base import Encoder
from lossscope.encoders.types import EncodedBatch, Items
from lossscope.registry import build
from lossscope.training.data_parallel import encode_shared, sum_gradients
from lossscope.training.forward import batch_loss
from lossscope.training.sync_batch_norm import sync_batch_norms

SIDE, WORDS, LENGTH = 16, 50, 7  # pixels of a picture's side, ids of the vocabulary, ids of a caption
PATIENCE = 60.0  # seconds
VARIANTS = ("ours", "DDP", "DDP unused", "DDP sum")
UNUSED = {"unused by some": LENGTH, "unused by all": LENGTH + 1}  # words of the captions that use a layer


@dataclass(frozen=True)
class Pairs:
    """Random pictures and captions, pair i on the diagonal of S."""

    pixels: Tensor  # (n, 3, SIDE, SIDE) uint8
    ids: Tensor  # (n, LENGTH)
    lengths: Tensor  # (n,)

    @classmethod
    def random(cls, n: int, seed: int = 0) -> Pairs:
        """Return n pairs; the captions of the second half have all of their words."""
        generator = torch.Generator().manual_seed(seed)
        pixels = torch.randint(256, (n, 3, SIDE, SIDE), generator=generator, dtype=torch.uint8)
        ids = torch.randint(1, WORDS, (n, LENGTH), generator=generator)
        return cls(pixels, ids, torch.where(torch.arange(n) < n // 2, LENGTH - 2, LENGTH))

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of a picture."""
        return (3, SIDE, SIDE)

    def __len__(self) -> int:
        return len(self.ids)

    def take(self, rows: Rows) -> Any:
        """Return the pixels of the pictures at these rows."""
        return self.pixels[rows].numpy()


class Gated(Encoder):
    """Towers with a layer that only captions of LENGTH words pass, or no caption at all."""

    def __init__(self, length: int) -> None:
        super().__init__()
        self.colour, self.words, self.long = nn.Linear(3, 8), nn.Embedding(WORDS, 8), nn.Linear(8, 8)
        self.length = length

    def encode_images(self, images: Items) -> EncodedBatch:
        assert isinstance(images, Tensor)
        return EncodedBatch(normalise(self.colour(images.to(self.colour.weight).mean((2, 3)))))

    def encode_texts(self, ids: Tensor, lengths: Tensor) -> EncodedBatch:
        vectors = self.words(ids).sum(1)
        if bool((lengths >= self.length).any()):
            vectors = torch.where((lengths >= self.length)[:, None], self.long(vectors), vectors)
        return EncodedBatch(normalise(vectors))


class WholeForward(nn.Module):
    """A forward pass to S of both towers as one module, for DistributedDataParallel to wrap."""

    def __init__(self, model: Encoder, processes: ProcessGroup) -> None:
        super().__init__()
        self.model, self.processes = model, processes

    def forward(self, pairs: Pairs) -> Tensor:
        rows = np.arange(len(pairs), dtype=np.int64)
        batch = Batch(rows, rows, "pairs")
        sides = encode_shared(self.model, pairs, batch, (pairs.ids, pairs.lengths), self.processes)
        S = self.model.score(*sides)
        assert isinstance(S, Tensor)
        return S


class SharedStep:
    """A model that shares its gradients by one of VARIANTS."""

    def __init__(self, model: Encoder, variant: str, processes: ProcessGroup) -> None:
        self.model, self.variant, self.processes = copy.deepcopy(model), variant, processes
        sync_batch_norms(self.model, processes)
        self.inside = WholeForward(self.model, processes)
        self.forward: Callable[[Pairs], Tensor] = self.inside
        if variant != "ours":
            with warnings.catch_warnings():  # later versions of torch rename broadcast_buffers
                warnings.simplefilter("ignore", FutureWarning)
                wrapped = DistributedDataParallel(
                    self.inside, broadcast_buffers=False, find_unused_parameters=variant != "DDP"
                )
            if variant == "DDP sum":
                wrapped.register_comm_hook(None, _add_up)
            self.forward = wrapped
        self.objective = build("objectives", "ntxent:tau=0.1")

    @property
    def scale(self) -> float:
        """The factor on W: 1 / processes if gradients are added up, 1 if they are averaged."""
        return 1.0 if self.variant in ("DDP", "DDP unused") else 1 / self.processes.size

    def send_back(self, pairs: Pairs) -> Tensor:
        """Run forward, W and backward; return S."""
        S = self.forward(pairs)
        mask = pair_mask(torch.arange(len(pairs)))
        loss = batch_loss(self.objective, S.detach(), mask, None, len(pairs))
        backward(S, loss.gradient, self.scale)
        return S

    def reduce(self, *beside: nn.Parameter) -> None:
        """Finish the gradients; DistributedDataParallel finished them during backward."""
        if self.variant == "ours":
            sum_gradients(self.processes, [*self.model.parameters(), *beside])

    def step(self, pairs: Pairs) -> None:
        """Compute the gradients of a batch."""
        self.model.zero_grad(set_to_none=True)
        self.send_back(pairs)
        self.reduce()

    @property
    def gradients(self) -> dict[str, Tensor | None]:
        """Return the gradients by name of the parameter; None without a gradient."""
        return {name: p.grad for name, p in self.model.named_parameters()}


@contextlib.contextmanager
def joined(file: Path, rank: int, size: int) -> Iterator[ProcessGroup]:
    """Join a gloo group over a file; a process that waits for another gives up after a minute."""
    use_loopback()
    timeout = datetime.timedelta(seconds=PATIENCE)
    dist.init_process_group("gloo", init_method=file.absolute().as_uri(), rank=rank, world_size=size, timeout=timeout)
    try:
        yield process_group()
    finally:
        dist.destroy_process_group()


def encoder(spec: str) -> Encoder:
    """Return a new encoder, always the same; those of UNUSED have a layer that is not always used."""
    torch.manual_seed(0)
    length = UNUSED.get(spec)
    model: Encoder = Gated(length) if length else build("encoders", spec).build((3, SIDE, SIDE), WORDS)
    return model.to(torch.get_default_dtype()).train()


def _add_up(_state: object, bucket: Any) -> torch.futures.Future[Tensor]:
    future = dist.all_reduce(bucket.buffer(), async_op=True).get_future()
    return future.then(partial(_first))  # type: ignore[no-any-return]


# torch needs the classes, not their names
_add_up.__annotations__ |= {"bucket": torch._C._distributed_c10d.GradBucket, "return": torch.futures.Future[Tensor]}


def _first(future: Any) -> Tensor:
    value: Tensor = future.value()[0]
    return value
