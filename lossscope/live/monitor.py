"""Watch the statistics of a loss in any training loop: call `scope.watch(S)` once a step."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Unpack

import torch.distributed as dist
from torch import Tensor

from lossscope.core.float32_products import float32_products
from lossscope.core.sides import IMAGE_TEXT, Sides
from lossscope.core.similarity import Mask
from lossscope.engine.one_batch import require_batch_probes
from lossscope.engine.run_probes import name_of_objective
from lossscope.errors import InputError
from lossscope.io.trusted_code import trust
from lossscope.objectives.base import Objective
from lossscope.objectives.custom.as_objective import ObjectiveLike, as_objective
from lossscope.registry import build

from .batch_inputs import BatchInputs, WatchedBatch
from .batch_layout import BatchLayout
from .batch_statistics import BatchStatistics, with_loss_gap
from .doctor_options import LOOKED_FOR, DoctorOptions
from .examined import Examined
from .observed import RECORDER_BYTES, Observed, Row
from .safeguards import Safeguards
from .shared_batch import BatchPart, merge_processes
from .watched_step import BothIds, Ids, WatchedStep

if TYPE_CHECKING:
    import pandas as pd

    from lossscope.doctor.types import Finding

    from .crash_hook import CrashHook
    from .events import Event
    from .kept_batch import KeptBatch
    from .ring import Ring

Sink = Callable[[int, Row], None]  # (step, row)
LOGGER = logging.getLogger("lossscope")
INTENDED = (KeyboardInterrupt, SystemExit, GeneratorExit)  # intended ends
_NAN = float("nan")


@dataclass
class LossScope:
    """Compute statistics of every n-th batch, in each direction, in any training loop.

    Raises InputError for values out of range and probes that need gradients of layers, SpecError for invalid specs.

    >>> import torch
    >>> scope = LossScope("ntxent:tau=0.05", probes=("cocos",))
    >>> sorted(scope.watch(torch.eye(4)))[:3]
    ['finite', 'i2t/C_0', 'i2t/C_neg']
    >>> sorted(scope.watch(queries=torch.eye(4), documents=torch.eye(4)))[-2:]
    ['q2d/W_pos', 'q2d/skipped']
    """

    # of the weights W: a spec, an objective, or your own function or module; None: the loss itself, which `wrap` or the
    # callback of a trainer watches
    objective: ObjectiveLike | None = None
    probes: Sequence[str] = ("similarity", "cocos")  # specs of probes that need no gradients of layers
    every: int = 1  # run the probes on steps whose number is a multiple of this
    keep: int = 10_000  # newest rows that `history` keeps; 0: none
    sink: Sink | None = None  # called with the step and its row, to log it elsewhere
    # names of the sides that directions are named after: ("query", "document"), or "item" of one set; None: they follow
    # from what is watched, images and captions where that is S alone
    sides: Sides | Sequence[str] | str | None = None
    # check for faults: findings are `events`, columns `doctor/ID` of rows (1 where one begins, 0 where it ends)
    # and lines of the logger `lossscope`: an error that begins is a warning there. The loop is never interrupted
    doctor: bool | DoctorOptions = False
    on_event: Callable[[Event], None] | None = None  # called with each event, which is then not logged
    recorder: int = 0  # newest steps to write as dumps when a finding begins or the loop dies; 0: none
    recorder_folder: Path | str = "recorder"  # folder for the dumps
    # `watch` is called in every process of an initialised torch.distributed group with the rows of this process against
    # the candidates of all: its row is that of the whole batch, the same in each. Another group than that of all
    # processes is given in place of True. The doctor and the recorder look at the rows of their process
    across_processes: bool | dist.ProcessGroup = False
    # number of queries to draw at random in each direction of a larger batch, seeded by the step; each meets all
    # candidates: `C_neg` is then an estimate with the 95 % interval `C_neg_low` to `C_neg_high`; None: all queries
    queries: int | None = None
    recorder_bytes: int = RECORDER_BYTES  # of the tensors and ids of these steps: of large batches it keeps fewer
    keep_batch: bool = False  # keep a copy of the S of the newest batch, which `heaviest` reads
    history: deque[Row] = field(init=False, repr=False)  # a row for each watched step, with its number
    calls: int = field(default=0, init=False)  # number of calls of `watch`
    _is_checked: bool = field(default=False, init=False, repr=False)  # whether a batch of S was checked for logits
    named_sides: Sides | None = field(default=None, init=False, repr=False)  # `sides`, as Sides
    _rows: int = field(default=0, init=False, repr=False)  # of the present training, also if `history` lost them
    _kept: KeptBatch | None = field(default=None, init=False, repr=False)  # the newest batch, with keep_batch
    _hook: CrashHook | None = field(
        default=None, init=False, repr=False
    )  # active from the first recorded batch to `close`

    def __post_init__(self) -> None:
        if not (isinstance(self.every, int) and self.every >= 1 and isinstance(self.keep, int) and self.keep >= 0):
            got = f"{self.every!r} and {self.keep!r}"
            raise InputError(f"every must be at least 1 and keep at least 0; got {got}. Give whole numbers")
        if not isinstance(self.probes, list | tuple) or not self.probes:
            raise InputError(f'probes must be specs, as ("cocos:eps=0.1",); got {self.probes!r}')
        self.named_sides, self._layout = as_sides(self.sides), BatchLayout(self.across_processes, self.queries)
        typed = [spec for spec in (self.objective, *self.probes) if isinstance(spec, str)]
        with trust(typed):
            self._objective = None if self.objective is None else as_objective(self.objective)
            probes = tuple(dict.fromkeys(build("probes", spec) for spec in self.probes))
        require_batch_probes(probes)
        self._statistics = BatchStatistics(probes)
        self._columns: dict[str, None] = {}  # of all rows so far
        self._begin_safeguards()
        if self._objective is not None:
            self._statistics.plan(self._objective, self.named_sides or IMAGE_TEXT)
        self._layout.require(self._objective, probes, bool(self.doctor or self.recorder))
        if self.keep_batch:
            self._layout.require_whole_batches("keep_batch")
        self.history = deque(maxlen=self.keep)

    def _begin_safeguards(self) -> None:
        """Build the doctor and the flight recorder, which read each batch beside its statistics."""
        given: object = self.doctor
        if not isinstance(given, bool | DoctorOptions):
            raise InputError(f"doctor must be True, False or DoctorOptions(...); got {given!r}")
        for name, value in {"recorder": self.recorder, "recorder_bytes": self.recorder_bytes}.items():
            if isinstance(value, bool) or not isinstance(value, int) or value < 0:
                raise InputError(f"{name} must be a whole number of at least 0; got {value!r}")
        if self.doctor is False and self.on_event is not None:
            raise InputError("on_event receives the doctor's findings; write LossScope(..., doctor=True)")
        self._safeguards = Safeguards()
        if self.doctor:
            from .live_doctor import LiveDoctor

            options = DoctorOptions() if self.doctor is True else self.doctor
            # trainers count from 1, and `every` skips steps before the first watched step
            self._safeguards.doctor = LiveDoctor(options, self.on_event, start=self.every, every=self.every)
        if self.recorder:
            from .flight_recorder import FlightRecorder

            self._safeguards.recorder = FlightRecorder(self.recorder, Path(self.recorder_folder), self.recorder_bytes)

    @float32_products()
    def watch(
        self,
        S: Tensor | None = None,
        mask: Mask | None = None,
        *,
        step: int | None = None,
        ids: Ids | None = None,
        second_ids: Ids | None = None,
        log: Mapping[str, float] | None = None,
        **batch: Unpack[WatchedBatch],
    ) -> Row | None:
        """Return the statistics of this step and append them to `history`; None on steps that `every` skips.

        Nothing is modified, no graph is kept, and one transfer goes to the host. If S or an embedding is not finite,
        `finite` is 0 and the statistics are NaN.

        Args:
            S: (images, captions) similarities of any float type on any device, or of other sides; without a mask (b, b)
                with pair i on the diagonal.
            mask: of the direction i2t: rows of S are queries.
            step: number of the step; None: the number of earlier calls.
            ids: ids of the items of the first side, for the flight recorder.
            second_ids: ids of the items of the second side.
            log: further numbers of the step, see `log`.
            batch: `images` and `captions`, `queries` and `documents` with `negatives`, or `embeddings` with `labels`,
                in place of S or beside it; `offset` and `S_second` of rows of one process. See `WatchedBatch`.

        Raises:
            InputError: shapes that do not fit, arguments that exclude each other, a mask of t2i, or processes that do
                not watch the same.
        """
        number = self.next_step(step)
        if number is None:
            return None
        objective = self._require_objective("S or embeddings")
        inputs = BatchInputs.of(S, mask, batch, self._layout.is_shared)
        if self.queries is None:
            row = self._record(lambda: [inputs.rows(self.named_sides).observed()], number, (ids, second_ids), log)
        else:
            draw = self.queries, number
            row = self._merge(
                lambda: self._statistics.sampled_part(inputs.rows(self.named_sides), objective, *draw), number, log
            )
        self._warn_of_logits(inputs)
        return row

    def _warn_of_logits(self, inputs: BatchInputs) -> None:
        """Warn if S of the first watched batch is no cosine; the doctor, where it is on, has a finding for that.

        To read more batches would make the host wait for the device.
        """
        if inputs.S is None or self._is_checked or self.doctor:
            return
        self._is_checked = True
        largest = inputs.beyond_cosines()
        if largest is not None:
            LOGGER.warning(
                "similarities that are watched reach %.3g, so they are not cosines (at most 1): tau, margins and eps "
                "are of cosines. Pass S without the scale, watch(S) in place of watch(S / tau), or the embeddings, "
                "watch(images=..., captions=...)",
                largest,
            )

    def ring(
        self, columns: int, offset: int = 0, step: int | None = None, log: Mapping[str, float] | None = None
    ) -> Ring:
        """Watch rows of S that come in blocks of columns, as in a ring of processes.

        `with scope.ring(columns=B, offset=rank * b) as ring:` and for each block `ring.add(S, first)`; then `ring.row`
        is the row that `watch` of the whole rows would give. It needs memory for a block and for what can still count.

        Args:
            columns: candidates of all processes together.
            offset: row i matches column offset + i. Add this block first: other blocks wait for it in memory.
            step: number of the step; None: the number of earlier calls.
            log: further numbers of the step, see `log`.

        Raises:
            InputError: probes that need whole rows, or the doctor or the recorder, which do too.
        """
        from lossscope.engine.ring_rows import require_blocks

        from .ring import Ring

        objective = self._require_objective("blocks of S")
        require_blocks(objective, self._statistics.probes)
        if self.queries is not None:
            raise InputError("blocks of a ring have all queries of a process; leave queries out")
        if self.doctor or self.recorder:
            raise InputError("doctor and recorder need whole rows of S, and a ring has blocks; leave them out")
        number, logged = self.next_step(step), _validate(log)
        plan_of = partial(self._statistics.plan, objective, self.named_sides or IMAGE_TEXT)
        finish = None if number is None else partial(self._merge, step=number, log=logged)
        return Ring(columns, offset, plan_of, finish, self._layout.is_shared)

    def wrap(self, loss: Callable[..., Any]) -> Any:
        """Return the loss as a module with bit-identical results that is watched in every training call.

        It is a module of the same class, with the attributes, parameters, buffers and hooks of the loss: what is
        written to either is written to both. The given loss stays unwatched. A function becomes a module.
        Without an objective, W belongs to the loss itself, by autograd in the graph of the step.

        Args:
            loss: a loss of pytorch-metric-learning, open_clip or sentence-transformers, or any function or module of S
                or of two batches of embeddings.

        Raises:
            InputError: a loss of single items or of proxies, which has no similarities between items.
        """
        from .wrap import watch_loss

        self._layout.require_all_queries()
        return watch_loss(loss, self, self._objective, self.named_sides)

    def _require_objective(self, what: str) -> Objective:
        if self._objective is None:
            raise InputError(
                f"LossScope must be given an objective to watch {what}, such as LossScope('ntxent:tau=0.05'). "
                "Without one it watches a loss: scope.wrap(loss), or the callback of a trainer"
            )
        return self._objective

    def next_step(self, step: int | None = None) -> int | None:
        """Return the number of a step that is watched; None where `every` skips it.

        Args:
            step: number of the step; None: the number of earlier calls.
        """
        number = self.calls if step is None else step
        self.calls += 1
        return None if number % self.every else number

    def record(
        self,
        observed: Sequence[Observed],
        step: int,
        ids: BothIds = (None, None),
        log: Mapping[str, float] | None = None,
    ) -> Row:
        """Return the statistics of what losses saw in a step, and append them to `history`.

        Args:
            observed: of each loss.
            step: its number.
            ids: of the items of both sides.
            log: further numbers of the step, see `log`.

        Raises:
            InputError: losses whose rows are not known across processes; or queries, which only `watch` draws.
        """
        self._layout.require_all_queries()
        if self._objective is not None:  # the given objective wins over those of the losses
            observed = [replace(batch, objective=None, value=None) for batch in observed]
        return self._record(lambda: self._layout.require_share(observed), step, ids, log)

    def _record(
        self,
        observe: Callable[[], Sequence[Observed]],
        step: int,
        ids: BothIds,
        log: Mapping[str, float] | None,
    ) -> Row:
        """Return the row of batches of this process, or of the batch that all processes share."""
        if self._layout.is_shared:
            return self._merge(lambda: self._statistics.part(observe()[0], self._objective), step, log, ids)
        observed, logged = observe(), _validate(log)
        row: Row = {"finite": 1.0}
        examined, is_broken = None, False  # the first loss with an S, or the first with an S that is not finite
        for batch in observed:
            finite, statistics = self._statistics.of(batch, self._objective)
            if batch.rows is not None and (examined is None or (not finite and not is_broken)):
                examined, is_broken = batch, not finite
            row["finite"] = min(row["finite"], float(finite))
            prefix = f"{batch.name}/" if batch.name else ""
            row |= {f"{prefix}{name}": value if finite else _NAN for name, value in statistics.items()}
        return self._keep(row, examined, step, ids, logged)

    def _merge(
        self,
        part: Callable[[], BatchPart],
        step: int,
        log: Mapping[str, float] | None = None,
        ids: BothIds = (None, None),
    ) -> Row:
        """Return the row of a batch from the parts of all processes, or from the part of this process."""
        logged: dict[str, float] = {}

        def checked_part() -> BatchPart:
            logged.update(_validate(log))
            return part()

        finite, statistics, seen = merge_processes(self._layout.processes(), step, checked_part)
        row = {"finite": float(finite)}
        row |= {name: value if finite else _NAN for name, value in with_loss_gap(statistics).items()}
        return self._keep(row, seen if seen is not None and seen.shape[0] else None, step, ids, logged)

    def _keep(self, row: Row, examined: Observed | None, step: int, ids: BothIds, logged: Row) -> Row:
        """Append a row to `history`, after the doctor and the recorder have seen its batch, and return it."""
        if examined is not None and (self.doctor or self.recorder):
            if self.recorder and self._hook is None:
                from .crash_hook import CrashHook

                self._hook = CrashHook(self)
            objective = self._objective or examined.objective
            is_trained = self._objective is None
            watched = WatchedStep(
                step, examined, objective, bool(row["finite"]), dict(row), logged, ids, is_trained=is_trained
            )
            row |= dict(event.column for event in self._safeguards.see(watched))
        if examined is not None and self.keep_batch:
            from .kept_batch import KeptBatch

            self._kept = KeptBatch.of(step, examined, self._objective, ids, bool(row["finite"]))
        self._columns |= dict.fromkeys(name for name in row if name != "finite")
        self.history.append({"step": step, **row})
        self._rows += 1
        if self.sink is not None:
            self.sink(step, row)
        return row

    def heaviest(self, number: int = 10) -> pd.DataFrame:
        """Return the queries of the newest batch with the most and the least gradient, and their heaviest negatives.

        A row for each query and negative: `list` is most or least, `query` and `candidate` are rows of the batch,
        `query_id` and `candidate_id` their ids, where `watch` was given any. `weight` of a query is that of its
        negatives and of its positive; `rank` 1 is its heaviest negative, of at most 5, 0 where none has weight, and
        `share` the part of the weight of all its negatives. Weights are in the unit of the probes.

        >>> import torch
        >>> scope = LossScope("triplet", keep_batch=True)
        >>> row = scope.watch(torch.tensor([[0.5, 0.4], [0.1, 0.9]]), ids=["first", "second"])
        >>> print(*scope.heaviest(1)[["direction", "list", "query_id", "candidate", "weight"]].iloc[0])
        i2t most first 1 2.0

        Args:
            number: of queries of each list.

        Raises:
            InputError: no batch is kept, or one that was too large, or not finite.
        """
        if isinstance(number, bool) or not isinstance(number, int) or number < 1:
            raise InputError(f"number must be a whole number of at least 1; got {number!r}")
        if not self.keep_batch:
            raise InputError(
                "heaviest reads the newest batch; got none, as the scope keeps none. Write LossScope(..., "
                "keep_batch=True)"
            )
        if self._kept is None:
            raise InputError(
                "heaviest reads the newest batch; the scope has seen none with similarities so far. Call watch"
            )
        return self._kept.heaviest(self._statistics, number)

    def log(self, **numbers: float) -> None:
        """Add numbers to the newest step: lr, grad_norm, logit_scale, logit_bias, val_recall, val_loss, ...

        The doctor reads them, and the flight recorder writes them. A `loss` replaces the loss that the doctor computes,
        if most steps have it. Raises InputError for other names, and for values that are no numbers.
        """
        self._safeguards.say(_validate(numbers))

    def begin(self, max_steps: int | None = None, done: int = 0) -> None:
        """Begin a training, so that the doctor examines a short training in time; callbacks of trainers do this.

        Args:
            max_steps: of the whole training, watched or not; None: unknown.
            done: steps done before a resumed training.
        """
        self._rows = 0
        if self._safeguards.doctor is not None:
            self._safeguards.doctor.begin(max_steps, done)

    @property
    def events(self) -> tuple[Event, ...]:
        """Findings that began or ended, the newest thousand events, with doctor=True."""
        return () if self._safeguards.doctor is None else tuple(self._safeguards.doctor.events)

    @property
    def findings(self) -> tuple[Finding, ...]:
        """The open findings, with doctor=True."""
        return () if self._safeguards.doctor is None else self._safeguards.doctor.findings

    @property
    def examined(self) -> Examined:
        """What the doctor has checked so far, and what not yet; while much is left, no finding means little."""
        if self._safeguards.doctor is None:
            return Examined(None, tuple(sorted(LOOKED_FOR)), {}, len(self.history))
        return self._safeguards.doctor.examined

    def summary(self) -> str:
        """Return a few lines: what carried the gradient first and last, what the doctor found, and what to try."""
        from .summary import summarise

        rows = list(self.history)[-self._rows :] if self._rows else []
        return summarise(rows, self._rows, self._safeguards.doctor)

    def __str__(self) -> str:
        """Return a line: the objective, the number of calls, and what the doctor says."""
        name = "its loss" if self._objective is None else name_of_objective(self._objective)
        doctor = self._safeguards.doctor
        return f"LossScope of {name}, {self.calls:,} calls; doctor: {'off' if doctor is None else doctor}"

    @property
    def recordings(self) -> tuple[Path, ...]:
        """Folders that the flight recorder wrote."""
        return () if self._safeguards.recorder is None else self._safeguards.recorder.written

    def write_recorder(self, reason: str, error: BaseException | None = None) -> Path | None:
        """Write the newest steps as dumps, once for each reason; return the folder, or None where nothing is kept.

        Args:
            reason: a word for the name of the folder.
            error: the exception that ended the loop, for the manifest.
        """
        details = {} if error is None else {"error": f"{type(error).__name__}: {error}"}
        return self._safeguards.write(reason, details)

    def write_after(self, error: BaseException) -> None:
        """Write the newest steps if an unintended exception ended the loop; log a failure."""
        if isinstance(error, INTENDED):
            return
        try:
            self.write_recorder("exception", error)
        except Exception:
            LOGGER.exception("what was kept could not be written after %s, which follows", type(error).__name__)

    def close(self) -> None:
        """End the loop: later exceptions do not belong to it.

        The doctor examines the log once more, and logs what was not examined.
        """
        self._safeguards.finish()
        if self._hook is not None:
            self._hook.remove()
            self._hook = None

    def __enter__(self) -> LossScope:
        """Watch over a block: an exception that leaves it belongs to the loop."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Write the flight recorder if the block raised an exception."""
        if value is not None:
            self.write_after(value)
        self.close()

    def frame(self) -> pd.DataFrame:
        """Return `history` as a frame: step, finite (1 or 0), and a column for each statistic and direction."""
        import pandas as pd

        columns: Sequence[str] = tuple(self._columns)
        if not columns and self._objective is not None:
            columns = self._statistics.plan(self._objective, self.named_sides or IMAGE_TEXT).columns
        return pd.DataFrame(list(self.history), columns=["step", "finite", *columns])

    def save(self, path: Path | str) -> Path:
        """Write `frame()` atomically.

        Raises InputError unless the name ends in .csv or .parquet, and for .parquet without pyarrow.
        """
        from lossscope.io.files import write_atomically
        from lossscope.io.parquet_tables import write_parquet

        path, frame = Path(path), self.frame()
        if path.suffix == ".parquet":
            try:
                write_parquet(path, frame)
            except ImportError as error:
                raise InputError(f"{path.name} needs pyarrow; `pip install pyarrow`, or save it as .csv") from error
        elif path.suffix == ".csv":
            with write_atomically(path) as part:
                frame.to_csv(part, index=False, lineterminator="\n")
        else:
            raise InputError(f"history must have the suffix .csv or .parquet; got {path.name!r}")
        return path


def _validate(numbers: Mapping[str, float] | None) -> dict[str, float]:
    """Return the logged numbers of a step. Raises InputError for other names, and for values that are no numbers."""
    if not numbers:
        return {}
    from .step_history import validate_logged

    return validate_logged(numbers)


def as_sides(sides: Sides | Sequence[str] | str | None) -> Sides | None:
    """Return sides as they are, or those of ("query", "document"), "query/document", or "item" of one set."""
    if sides is None or isinstance(sides, Sides):
        return sides
    return Sides.parse(sides) if isinstance(sides, str) else Sides.parse("/".join(sides))
