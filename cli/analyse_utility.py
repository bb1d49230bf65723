"""`lossscope analyse utility`: what is one step with this loss worth?"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from lossscope.core.choices import OUTPUT, SOURCE, Choice
from lossscope.core.request import Request
from lossscope.errors import OptionError
from lossscope.training.utility_options import UtilityOptions

from ._app import Work, command
from ._form import Only
from ._options import Format, Sources, require_picture
from ._output import notice, print_results
from ._progress import progress
from ._sources import OF_TRAIN, load_source, objectives_for
from .analyse import analyse

if TYPE_CHECKING:
    import pandas as pd

    from lossscope.core.types import Progress

SCHEMA = "lossscope.utility/1"
_OPTIONS = UtilityOptions()


@dataclass(frozen=True)
class UtilityOutput:
    """Where the numbers go, beside stdout."""

    picture: Annotated[
        Path | None, Choice(OUTPUT, "Also draw them: .png, .pdf or .svg.", shown=False, flags="--picture,-o")
    ] = None
    per_batch: Annotated[
        Path | None, Choice(OUTPUT, "Also write a row per batch, objective and metric: .csv.", shown=False)
    ] = None

    def __post_init__(self) -> None:
        if self.per_batch is not None and self.per_batch.suffix.lower() != ".csv":
            raise OptionError(f"--per-batch must end in .csv; got {self.per_batch.name!r}")


_NOTHING = UtilityOutput()


@command(
    group=analyse,
    work=Work(imports="lossscope.training.one_step_utility", verbose=True),
    first=(
        "objective", "step", "batches", "batch_size", "held_out", "eps", "data", "split", "picture", "per_batch",
        "format",
    ),
)  # fmt: skip
def utility(
    sources: Sources,
    objective: Annotated[tuple[str, ...], Choice(None, "Objective spec; repeat for several.", names="objectives")] = (),
    held_out: Annotated[
        str, Choice(SOURCE, "Split on which the change is measured, other than --split and train.")
    ] = "val",
    options: UtilityOptions = _OPTIONS,
    request: Annotated[
        Request, Only("data", "split", "device", "vocabulary", "encoder", "accepted_options", "trust_code")
    ] = OF_TRAIN,
    output: UtilityOutput = _NOTHING,
    format: Format = "table",
) -> None:
    """What is one step with this loss worth? The change of a held-out split.

    **Examples**

    `lossscope analyse utility tiny --objective ntxent --objective triplet --objective triplet-sh`

    `lossscope analyse utility ckpt.pt --objective ntxent:tau=0.02..0.2/4 --batches 10 --picture utility.pdf`

    `lossscope analyse utility ckpt.pt --objective triplet --objective ntxent --format csv > rows.csv`

    From a frozen checkpoint, lossscope takes one step along each loss's normalised gradient, on each of --batches
    batches of --split, and measures margin, R@1, nDCG and rsum of --held-out. Then the parameters get their bits back.
    All losses get the same batches. The first loss is the one that differences refer to. `lossscope render utility
    rows.csv -o utility.png` draws the rows.
    """
    import pandas as pd

    from lossscope.training.utility_summary import summarise_utility

    require_picture(output.picture, "--picture")
    if objective:
        objectives_for(objective, None, sources[0])  # refuse a wrong spec before anything is read
    with progress() as report:
        parts = [_rows(source, objective, held_out, options, request, report) for source in sources]
    rows = pd.concat(parts, ignore_index=True)
    summary = summarise_utility(rows, options.interval)
    _notices(summary, options)
    if output.per_batch is not None:
        _write_rows(rows, output.per_batch)
    if output.picture is not None:
        _draw(summary, output.picture)
    typed = {
        "name": "analyse utility", "sources": [str(source) for source in sources], "split": request.named_split,
        "held_out": held_out, **vars(options),
    }  # fmt: skip
    print_results(summary, lambda: _tables(summary), typed, format, schema=SCHEMA)


def _rows(
    source: Path,
    objective: tuple[str, ...],
    held_out: str,
    options: UtilityOptions,
    request: Request,
    report: Progress | None,
) -> pd.DataFrame:
    """Return the rows of a source."""
    from lossscope.training.one_step_utility import one_step_utility, with_learnt_values
    from lossscope.training.stepped_model import open_stepped_model

    stepped = open_stepped_model(source, held_out, request, lambda path, of_split: load_source(path, of_split, report))
    learnt = with_learnt_values(objective, stepped.objective)
    if learnt != objective:
        notice(f"Note: {stepped.objective} has the scale that {stepped.name} has learnt.")
    specs = objectives_for(learnt, stepped.objective, source)
    return one_step_utility(stepped, specs, options, report)


def _notices(summary: pd.DataFrame, options: UtilityOptions) -> None:
    """Say what the numbers lack."""
    if options.interval is not None and options.batches < 2:
        notice("Note: no interval: a single batch has no spread; --batches 20 has.")


def _tables(summary: pd.DataFrame) -> Any:
    from lossscope.tables import utility as tables

    return tables.build(summary)


def _write_rows(rows: pd.DataFrame, path: Path) -> None:
    from lossscope.io.csv_tables import format_csv
    from lossscope.io.files import write_text

    write_text(path, format_csv(rows))
    notice(f"Wrote {path}.")


def _draw(summary: pd.DataFrame, path: Path) -> None:
    from lossscope.plots import style
    from lossscope.plots import utility as pictures

    with style.screen():
        style.save(pictures.draw_many(summary), path, pictures.alt(summary))
    notice(f"Wrote {path}.")
