"""The processes of one job, as torchrun starts them: the rank of this one, and how tensors pass between them.

`gather_rows` keeps gradients: its backward pass returns the sum over processes of the gradient on a process's own
rows. So when each of N processes evaluates the whole loss and backpropagates 1/N of it, the sum of the parameter
gradients over processes is the gradient of one process with all rows, whatever the loss and its reduction are.
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

from .parent_process import end_with_parent

T = TypeVar("T")
TORCHRUN_VARIABLES = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")  # set by torchrun in the environment
TIMEOUT = 7200.0  # seconds to wait for other processes, unless LOSSSCOPE_TIMEOUT is set: rank 0 may be validating
_LOCALHOST = ("localhost", "127.0.0.1", "::1")


class _GatherRows(torch.autograd.Function):
    """forward: the rows of every rank, `counts` of them. backward: the gradient on this rank's rows, summed."""

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
    """Process `rank` of `size`; collective methods must be called by all processes, in the same order."""

    rank: int = 0
    size: int = 1
    handle: dist.ProcessGroup | None = None  # some of the processes of the job; None: all of them

    @property
    def main(self) -> bool:
        """Whether this is rank 0, the process that writes files and prints."""
        return self.rank == 0

    @property
    def is_alone(self) -> bool:
        """Whether nothing needs to be sent."""
        return self.size == 1

    def share(self, n: int) -> slice:
        """Return this process's part of 0..n-1; the parts are consecutive, some may be empty.

        >>> [ProcessGroup(rank, 3).share(4) for rank in range(3)]
        [slice(0, 1, None), slice(1, 2, None), slice(2, 4, None)]
        """
        return slice(n * self.rank // self.size, n * (self.rank + 1) // self.size)

    def gather(self, thing: T) -> list[T]:
        """Return the objects of all processes, by rank."""
        if self.is_alone:
            return [thing]
        objects: list[Any] = [None] * self.size
        dist.all_gather_object(objects, thing, group=self.handle)
        return objects

    def stack(self, x: Tensor) -> Tensor:
        """Return the tensors of all processes, all of one shape, as (size, ...), without gradient."""
        if self.is_alone:
            return x.detach()[None]
        sent = x.detach().to(_transfer_device(self.handle)).contiguous()
        received = [torch.empty_like(sent) for _ in range(self.size)]
        dist.all_gather(received, sent, group=self.handle)
        return torch.stack(received).to(x.device)

    def sum(self, x: Tensor) -> Tensor:
        """Return the sum over processes, without gradient; x itself if there is one process."""
        return self._reduce(x, dist.ReduceOp.SUM)

    def sum_(self, x: Tensor) -> Tensor:
        """Return the sum over processes, without gradient; x, which is overwritten, if it can be sent as it is."""
        return self._reduce(x, dist.ReduceOp.SUM, copy=False)

    def max(self, x: Tensor) -> Tensor:
        """Return the maximum over processes, without gradient; x itself if there is one process."""
        return self._reduce(x, dist.ReduceOp.MAX)

    def any(self, flag: bool) -> bool:
        """Whether the flag is set in any process."""
        return flag if self.is_alone else bool(self.max(torch.tensor(float(flag))))

    def gather_rows(self, x: Tensor) -> Tensor:
        """Concatenate the rows (n, ...) of all processes by rank, with gradient; n may differ, and be 0."""
        if self.is_alone:
            return x
        counts = self.stack(torch.tensor(len(x))).tolist()
        rows: Tensor = _GatherRows.apply(x, counts, self)  # type: ignore[no-untyped-call]
        return rows

    def barrier(self) -> None:
        """Wait until all processes have called this."""
        self.any(False)

    def _reduce(self, x: Tensor, operation: Any, copy: bool = True) -> Tensor:
        if self.is_alone:
            return x
        reduced = x.detach().to(_transfer_device(self.handle), copy=copy).contiguous()
        dist.all_reduce(reduced, operation, group=self.handle)
        return reduced.to(x.device)


def process_group(handle: dist.ProcessGroup | None = None) -> ProcessGroup:
    """Return the current process group, of size 1 if none has been joined.

    Args:
        handle: some of its processes, this one included, as `torch.distributed.new_group` returns it; None: all.
    """
    if not (dist.is_available() and dist.is_initialized()):
        return ProcessGroup()
    return ProcessGroup(dist.get_rank(handle), dist.get_world_size(handle), handle)


def launched_group() -> ProcessGroup:
    """Return the group that torchrun's environment describes, before it is joined; of size 1 without torchrun.

    Raises InputError when RANK or WORLD_SIZE is not a whole number in range.
    """
    if not all(os.environ.get(name) for name in TORCHRUN_VARIABLES):
        return ProcessGroup()
    rank, size = (_environment_number(name) for name in ("RANK", "WORLD_SIZE"))
    if not 0 <= rank < size:
        raise InputError(f"RANK must be in 0..WORLD_SIZE-1; got {rank} of {size}")
    return ProcessGroup(rank, size)


def local_rank() -> int:
    """Return the rank of this process on its machine, which is the index of its GPU; 0 without torchrun."""
    return _environment_number("LOCAL_RANK") if os.environ.get("LOCAL_RANK") else 0


@contextlib.contextmanager
def join_group(device: str) -> Iterator[ProcessGroup]:
    """Join the process group that torchrun started, by gloo on the CPU and nccl on GPUs; without torchrun, do nothing.

    Args:
        device: `cpu`, `cuda` (the GPU of the local rank) or `cuda:INDEX`.

    Raises:
        InputError: when the processes cannot connect.
    """
    group = launched_group()
    if group.size == 1 or dist.is_initialized():
        yield process_group()
        return
    end_with_parent()
    backend = _connect(group, torch.device(device))
    succeeded = False
    try:
        yield process_group()
        succeeded = True
    finally:
        if succeeded or backend == "gloo":  # after an error nccl could wait for processes that never come
            dist.destroy_process_group()


def use_loopback() -> None:
    """Let gloo use the loopback interface, unless GLOO_SOCKET_IFNAME is set: for processes of one machine."""
    interfaces = [name for _, name in socket.if_nameindex() if name.startswith("lo")]
    if interfaces:
        os.environ.setdefault("GLOO_SOCKET_IFNAME", interfaces[0])


def is_lost_process(message: str) -> bool:
    """Whether an error message of gloo or nccl only says that another process has gone."""
    return any(name in message.lower() for name in ("gloo", "nccl"))


def _connect(group: ProcessGroup, device: torch.device) -> str:
    """Initialise the process group and return its backend."""
    backend, gpu = "gloo", None
    if device.type == "cuda":
        backend, gpu = "nccl", torch.device("cuda", local_rank() if device.index is None else device.index)
        torch.cuda.set_device(gpu)
    elif os.environ["MASTER_ADDR"] in _LOCALHOST or os.environ.get("LOCAL_WORLD_SIZE") == str(group.size):
        use_loopback()
    seconds = _environment_number("LOSSSCOPE_TIMEOUT") if "LOSSSCOPE_TIMEOUT" in os.environ else TIMEOUT
    timeout = datetime.timedelta(seconds=seconds)
    try:
        dist.init_process_group(backend, timeout=timeout, device_id=gpu)
    except (RuntimeError, ValueError) as error:
        address = f"{os.environ['MASTER_ADDR']}:{os.environ['MASTER_PORT']}"
        raise InputError(f"{group.size} processes must be able to connect at {address}; {error}") from error
    return backend


def _transfer_device(handle: dist.ProcessGroup | None) -> torch.device:
    """Return the device that tensors must be on to be sent."""
    is_nccl = dist.get_backend(handle) == "nccl"
    return torch.device("cuda", torch.cuda.current_device()) if is_nccl else torch.device("cpu")


def _environment_number(name: str) -> int:
    if not os.environ[name].isdecimal():
        raise InputError(f"{name} of the environment must be a whole number; got {os.environ[name]!r}")
    return int(os.environ[name])
