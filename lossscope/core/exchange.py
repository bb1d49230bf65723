"""Pass a few numbers of each process to all others, in one message of fixed size where they fit into it."""

from __future__ import annotations

import torch
from torch import Tensor

from .distributed import ProcessGroup

FIRST = 512  # float64 of the first message, 4 kB: the same in every process, whatever it has to say


def exchange(processes: ProcessGroup, numbers: Tensor) -> list[Tensor]:
    """Return the numbers of all processes, by rank, on the host.

    There is one all_gather of FIRST numbers, and a second of what is left where a process has more than fit: no process
    must know how many the others have, so none can wait for another, or read what was never sent.

    Args:
        processes: that all call this.
        numbers: (k,) float64; k may differ between processes.
    """
    if processes.size == 1:
        return [numbers.cpu()]
    sent = torch.cat([numbers.new_tensor([len(numbers)]), numbers])
    first = sent.new_zeros(FIRST)
    first[: min(len(sent), FIRST)] = sent[:FIRST]
    received = processes.stack(first).cpu()
    lengths = [1 + int(length) for length in received[:, 0]]
    longest = max(lengths)
    if longest > FIRST:
        rest = sent.new_zeros(longest - FIRST)
        rest[: max(len(sent) - FIRST, 0)] = sent[FIRST:]
        received = torch.cat([received, processes.stack(rest).cpu()], 1)
    return [part[1:length] for part, length in zip(received, lengths, strict=True)]
