"""The processes of one job, as torchrun starts them: which one this is, what they tell each other, how they meet.

A gather keeps gradients: what it sends back is the sum over processes of the gradient on one's own rows. So when each
of N processes evaluates the whole loss and sends back 1/N of it, the sum of parameter gradients over processes is the
gradient of one process that had everything, whatever the loss and its reduction are.
"""

from __future__ import annotations

import contextlib
import datetime
import os
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor

from lossscope.errors import InputError

T = TypeVar("T")
TOLD = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")  # what torchrun puts into the environment
TIMEOUT = 7200.0  # seconds to wait for the others, unless LOSSSCOPE_TIMEOUT says: the first one may be validating
_HERE = ("localhost", "127.0.0.1", "::1")


class _Gathered(torch.autograd.Function):
    """forward: every rank's rows, `counts` of them. backward: the sum over ranks of the gradient on one's own rows."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, counts: list[int], process_group: ProcessGroup) -> Tensor:
        ctx.begin, ctx.count, ctx.processes = sum(counts[: process_group.rank]), len(x), process_group
        padded = x.new_zeros(max(counts), *x.shape[1:])
        padded[: len(x)] = x
        return torch.cat([rows[:count] for rows, count in zip(process_group.stack(padded), counts, strict=True)])

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None]:
        summed: Tensor = ctx.processes.sum(gradients[0])
        return summed[ctx.begin : ctx.begin + ctx.count], None, None


@dataclass(frozen=True)
class ProcessGroup:
    """Process `rank` of `size`; what needs the others must be called by all of them, in one order."""

    rank: int = 0
    size: int = 1

    @property
    def main(self) -> bool:
        """Whether it is the one that writes and speaks."""
        return self.rank == 0

    def share(self, n: int) -> slice:
        """The part of 0..n-1 that is this process's; the parts follow each other, some may be empty.

        >>> [ProcessGroup(rank, 3).share(4) for rank in range(3)]
        [slice(0, 1, None), slice(1, 2, None), slice(2, 4, None)]
        """
        return slice(n * self.rank // self.size, n * (self.rank + 1) // self.size)

    def gather(self, thing: T) -> list[T]:
        """Everybody's thing, by rank."""
        if self.size == 1:
            return [thing]
        found: list[Any] = [None] * self.size
        dist.all_gather_object(found, thing)
        return found

    def stack(self, x: Tensor) -> Tensor:
        """Everybody's tensor of one shape, (size, ...), without gradient."""
        if self.size == 1:
            return x.detach()[None]
        own = x.detach().to(_device()).contiguous()
        found = [torch.empty_like(own) for _ in range(self.size)]
        dist.all_gather(found, own)
        return torch.stack(found).to(x.device)

    def sum(self, x: Tensor) -> Tensor:
        """The sum over processes, without gradient; x itself alone."""
        return self._reduced(x, dist.ReduceOp.SUM)

    def max(self, x: Tensor) -> Tensor:
        """The maximum over processes, without gradient; x itself alone."""
        return self._reduced(x, dist.ReduceOp.MAX)

    def any(self, flag: bool) -> bool:
        """Whether it is so in any process."""
        return flag if self.size == 1 else bool(self.max(torch.tensor(float(flag))))

    def rows(self, x: Tensor) -> Tensor:
        """(n, ...) of every process -> all rows in the order of ranks, with gradient; n may differ, and be 0."""
        if self.size == 1:
            return x
        counts = self.stack(torch.tensor(len(x))).tolist()
        found: Tensor = _Gathered.apply(x, counts, self)  # type: ignore[no-untyped-call]
        return found

    def barrier(self) -> None:
        """Wait until all are here."""
        self.any(False)

    def _reduced(self, x: Tensor, how: Any) -> Tensor:
        if self.size == 1:
            return x
        found = x.detach().to(_device(), copy=True).contiguous()
        dist.all_reduce(found, how)
        return found.to(x.device)


def process_group() -> ProcessGroup:
    """The process this is of the group that has met; alone where there is none."""
    return ProcessGroup(dist.get_rank(), dist.get_world_size()) if dist.is_initialized() else ProcessGroup()


def launched_group() -> ProcessGroup:
    """The process this is by torchrun's word, before they have met. Raises InputError when it is no number."""
    if not all(os.environ.get(name) for name in TOLD):
        return ProcessGroup()
    rank, size = (_number(name) for name in ("RANK", "WORLD_SIZE"))
    if not 0 <= rank < size:
        raise InputError(f"RANK must be in 0..WORLD_SIZE-1; got {rank} of {size}")
    return ProcessGroup(rank, size)


def local_rank() -> int:
    """The place of this process on its machine, 0 alone: the GPU that is its own."""
    return _number("LOCAL_RANK") if os.environ.get("LOCAL_RANK") else 0


@contextlib.contextmanager
def join_group(device: str) -> Iterator[ProcessGroup]:
    """Meet the others that torchrun started, by gloo on the CPU and nccl on GPUs; alone, nothing is done.

    device: `cpu`, `cuda` (the GPU of the local rank) or `cuda:INDEX`. Raises InputError when they can not meet.
    """
    place = launched_group()
    if place.size == 1 or dist.is_initialized():
        yield process_group()
        return
    backend = _meet(place, torch.device(device))
    sound = False
    try:
        yield process_group()
        sound = True
    finally:
        if sound or backend == "gloo":  # nccl could wait for those that an error has kept away
            dist.destroy_process_group()


def loopback() -> None:
    """Let gloo talk over the loopback interface, unless told otherwise: for processes of one machine."""
    found = [name for _, name in socket.if_nameindex() if name.startswith("lo")]
    if found:
        os.environ.setdefault("GLOO_SOCKET_IFNAME", found[0])


def is_lost_process(told: str) -> bool:
    """Whether an error only says, in gloo's or nccl's words, that another process has gone."""
    return any(name in told.lower() for name in ("gloo", "nccl"))


def _meet(place: ProcessGroup, device: torch.device) -> str:
    backend, own = "gloo", None
    if device.type == "cuda":
        backend, own = "nccl", torch.device("cuda", local_rank() if device.index is None else device.index)
        torch.cuda.set_device(own)
    elif os.environ["MASTER_ADDR"] in _HERE or os.environ.get("LOCAL_WORLD_SIZE") == str(place.size):
        loopback()
    wait = datetime.timedelta(seconds=_number("LOSSSCOPE_TIMEOUT") if "LOSSSCOPE_TIMEOUT" in os.environ else TIMEOUT)
    try:
        dist.init_process_group(backend, timeout=wait, device_id=own)
    except (RuntimeError, ValueError) as error:
        at = f"{os.environ['MASTER_ADDR']}:{os.environ['MASTER_PORT']}"
        raise InputError(f"{place.size} processes must be able to meet at {at}; {error}") from error
    return backend


def _device() -> torch.device:
    """Where tensors must be to travel."""
    return torch.device("cuda", torch.cuda.current_device()) if dist.get_backend() == "nccl" else torch.device("cpu")


def _number(name: str) -> int:
    if not os.environ[name].isdecimal():
        raise InputError(f"{name} of the environment must be a whole number; got {os.environ[name]!r}")
    return int(os.environ[name])
