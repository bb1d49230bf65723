"""Does `watch` get a whole batch, the rows of one process, or rows to sample?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch.distributed as dist

from lossscope.core.distributed import ProcessGroup, process_group
from lossscope.engine.sampled.draw import LEAST
from lossscope.errors import InputError
from lossscope.objectives.base import Objective
from lossscope.probes.base import Probe

from .observed import MOST_ENTRIES, Observed


@dataclass(frozen=True)
class BatchLayout:
    """The options of a LossScope for the layout. Raises InputError for other values."""

    across_processes: bool | dist.ProcessGroup
    queries: int | None

    def __post_init__(self) -> None:
        given: object = self.across_processes
        if dist.is_available() and given == dist.GroupMember.NON_GROUP_MEMBER:
            raise InputError("across_processes must be a group that has this process; new_group gave it none")
        if not isinstance(given, bool) and not (dist.is_available() and isinstance(given, dist.ProcessGroup)):
            raise InputError(f"across_processes must be True, False or a process group; got {given!r}")
        number = self.queries
        if number is not None and (isinstance(number, bool) or not isinstance(number, int) or number < LEAST):
            raise InputError(f"queries must be a whole number of at least {LEAST}; got {number!r}")

    @property
    def is_shared(self) -> bool:
        """Whether each process has its own rows of one batch."""
        return self.across_processes is not False

    def require(self, objective: Objective | None, probes: Sequence[Probe], has_doctor: bool) -> None:
        """Raise InputError for an objective or probe that needs whole batches.

        Args:
            objective: of the watch; None: the loss itself, which is not known yet.
            probes: all of them.
            has_doctor: whether the doctor or the recorder reads the batches, too.
        """
        if self.is_shared and objective is not None:
            from lossscope.engine.shares import require_shares

            require_shares(objective, probes)
        if self.queries is None:
            return
        if objective is None:
            raise InputError("LossScope must be given an objective to watch a sample of queries; got queries alone")
        from lossscope.engine.sampled.requirements import require_probes_of_queries

        require_probes_of_queries([objective], probes, "queries")
        if has_doctor:
            raise InputError(
                "doctor and recorder look at whole batches, and queries is a sample; leave one of them out"
            )

    def require_all_queries(self) -> None:
        """Raise InputError where queries are drawn: only `watch` draws them, not a wrapped loss."""
        if self.queries is not None:
            raise InputError(
                "queries samples what you pass to watch. A wrapped loss and a trainer's callback have all rows, "
                "or those with room. Leave it out, or call watch"
            )

    def require_whole_batches(self, option: str) -> None:
        """Raise InputError for an option that needs all rows, where a process has a share or queries are drawn."""
        if self.is_shared or self.queries is not None:
            got = "across_processes" if self.is_shared else "queries"
            raise InputError(f"{option} keeps whole batches of one process; got {got}. Leave one of the two out")

    def require_share(self, observed: Sequence[Observed]) -> Sequence[Observed]:
        """Return what losses have seen; across processes, a single loss with the rows of this process.

        Raises InputError where these rows are not known.
        """
        if not self.is_shared:
            return observed
        if len(observed) != 1 or observed[0].rows is None or observed[0].offset is None:
            raise InputError(
                "across_processes adds up the rows of watch, or those of a wrapped ClipLoss with local_loss. "
                "Other losses do not tell which rows a process has. Leave it out, or call watch"
            )
        if observed[0].drawn_from is not None:
            raise InputError(
                f"across_processes needs all rows of each process, and of more than {MOST_ENTRIES:,} similarities "
                "there are some. Call watch, with queries= for a sample of the whole batch"
            )
        return observed

    def processes(self) -> ProcessGroup:
        """Return the processes that have rows of each batch. Raises InputError outside a group."""
        if not self.is_shared:
            return ProcessGroup()
        if not (dist.is_available() and dist.is_initialized()):
            raise InputError(
                "across_processes must be called in every process of an initialised group; got none. Call "
                "torch.distributed.init_process_group(...) before, or leave it out"
            )
        handle = None if isinstance(self.across_processes, bool) else self.across_processes
        return process_group(handle)
