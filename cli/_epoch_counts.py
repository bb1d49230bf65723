"""`lossscope diff RUN --epochs`: the numbers of every epoch of a run, on the same batches."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from lossscope.errors import InputError

from ._diff_sides import load_side
from ._options import usage
from ._output import notice, print_results
from ._processes import writes_results
from ._progress import progress
from ._sources import objectives_for
from ._sweep import SweepArguments, trained_choices

if TYPE_CHECKING:
    import pandas as pd

SCHEMA = "lossscope.epochs/1"
_DRAWN = ("C_q", "C_neg", "C_0", "N_eff", "W_neg", "W_pos")  # statistics of the picture, where the frame has them


def print_epochs(options: SweepArguments, probes: Sequence[str], picture: Path | None) -> None:
    """Write the rows of every epoch, and draw the counts."""
    from lossscope.tables import epochs as tables

    if picture is not None:
        _require_drawn(options, probes)
    rows, split = epoch_rows(options, probes)
    if not writes_results():
        return
    typed = {"name": "diff", "sources": [str(options.sources[0])], "epochs": True, "split": split}
    print_results(rows, lambda: tables.build(rows), typed, options.format, schema=SCHEMA)
    if picture is not None:
        from lossscope.plots import epoch_counts, style

        drawn = rows[rows["statistic"].isin(_DRAWN)]
        with style.screen():
            path = style.save(epoch_counts.draw_many(drawn), picture, epoch_counts.alt(drawn))
        notice(f"Wrote {path}.")


def _require_drawn(options: SweepArguments, probes: Sequence[str]) -> None:
    """Raise a usage error where no probe has a statistic of the picture."""
    from lossscope.registry import build

    objective = build("objectives", (options.sweep.objectives or ("triplet",))[0])
    statistics = (build("probes", probe).statistics(objective) for probe in probes)
    names = {statistic.name for of_probe in statistics for statistic in of_probe}
    if not names & set(_DRAWN):
        raise usage(
            f"--picture of --epochs draws {', '.join(_DRAWN)}, which {', '.join(probes)} has not; add --probes cocos"
        )


def epoch_rows(options: SweepArguments, probes: Sequence[str]) -> tuple[pd.DataFrame, str | None]:
    """Return summary rows of each stored epoch, with the column `epoch`, and the split that they are of."""
    import pandas as pd

    from lossscope.core.distributed import process_group
    from lossscope.io.run_folder import list_checkpoints

    run = options.sources[0]
    checkpoints = list_checkpoints(run)
    if not checkpoints:
        raise InputError(f"{run} must be a run folder with checkpoints/epoch-NN.pt; it has none")
    parts = []
    with progress() as report:
        for epoch, path in checkpoints:
            embedded = load_side(path, options, report, None)
            objectives = objectives_for(options.sweep.objectives, embedded.objective, path)
            trained = trained_choices(embedded, options.sweep, silent=True)
            sweep = options.sweep_of(objectives, probes=tuple(probes), **trained)
            rows = sweep.run(embedded, None, report, process_group(), None, options.jobs).summary
            parts.append(rows.assign(epoch=epoch, source=run.name))
            report and report("epochs", len(parts), len(checkpoints))
    return pd.concat(parts, ignore_index=True), embedded.split
