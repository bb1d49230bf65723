"""`lossscope analyse factors`: is a loss a triplet weight times a pair weight, and which unified loss is nearest?"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from lossscope.core.choices import OUTPUT, Choice
from lossscope.core.request import Request
from lossscope.engine.analysis_options import FactorOptions

from ._app import command
from ._options import File, Format, require_picture, usage
from ._output import notice, print_results
from ._progress import progress
from ._sources import OF_TRAIN, load_source
from .analyse import analyse

if TYPE_CHECKING:
    import pandas as pd

SCHEMA = "lossscope.factors/1"
_USUAL = FactorOptions()


@dataclass(frozen=True)
class FactorsOutput:
    """Where the numbers go."""

    picture: Annotated[
        Path | None,
        Choice(OUTPUT, "Picture of T, P₊, P₋ and the residual: .png, .pdf or .svg.", flags="--picture,-o"),
    ] = None
    cells: Annotated[Path | None, Choice(OUTPUT, "CSV of all cells, which `render weight_factors` draws.")] = None
    format: Format = "table"
    out: File = None


_OUTPUT = FactorsOutput()


@command(
    group=analyse, first=("objective", "low", "high", "batch_size", "batches", "picture", "cells", "format", "out")
)
def factors(
    objective: Annotated[
        tuple[str, ...],
        Choice(
            None,
            "Objective spec; repeat for several. all: every one with its defaults, but parts of others.",
            names="objectives",
        ),
    ],
    sources: Annotated[
        tuple[Path, ...],
        Choice(None, "Checkpoint, run folder or dump, for the nearest unified loss.", argument=True),
    ] = (),
    options: FactorOptions = _USUAL,
    request: Request = OF_TRAIN,
    output: FactorsOutput = _OUTPUT,
) -> None:
    """Is a loss a triplet weight times a pair weight, and which unified loss is it nearest to?

    **Examples**

    `lossscope analyse factors --objective circle --objective "goal:triplet=nca,pair=lin" -o factors.png`

    `lossscope analyse factors checkpoints/tiny.pt --objective ntxent --objective triplet-sh --objective circle`

    `lossscope analyse factors --objective ssp --cells cells.csv --format csv > rows.csv`

    GOAL makes losses as products: w₊ = T(s₊, s₋) P₊(s₊) and w₋ = T(s₊, s₋) P₋(s₋). The command fits such a product to
    the weights of a query with two candidates. The curl says whether they are the gradient of any loss. With a source
    it also searches the margin and the gamma of `unified` whose weights on real batches are nearest. `lossscope render
    weight_factors cells.csv` draws the cells. docs/analyses/factors.md explains the numbers.
    """
    from lossscope.tables import factors as tables

    require_picture(output.picture, "-o")
    if len(sources) > 1:
        raise usage(f"SOURCE must be a single source, or none; got {len(sources)}")
    rows, cells = _of_fields(objective, options)
    if sources:
        rows = rows.merge(_of_batches(sources[0], tuple(rows["objective"]), objective, options, request), how="left")
    arguments = {
        "name": "analyse factors", "source": str(sources[0]) if sources else None,
        "objectives": dict(zip(rows["objective"], rows["spec"], strict=True)),
        "low": options.low, "high": options.high, **vars(options.batches),
    }  # fmt: skip
    print_results(rows, lambda: tables.build(rows), arguments, output.format, output.out, SCHEMA)
    if output.cells is not None:
        from lossscope.io.csv_tables import format_csv
        from lossscope.io.files import write_text

        write_text(output.cells, format_csv(cells))
        notice(f"Wrote {output.cells}.")
    if output.picture is not None:
        from lossscope.plots import style, weight_factors

        with style.screen():
            path = style.save(weight_factors.draw_many(cells), output.picture, weight_factors.alt(cells))
        notice(f"Wrote {path}.")


def _of_fields(words: tuple[str, ...], options: FactorOptions) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Rows and cells of all objectives that have a field; those of `all` that have none are named on stderr."""
    import pandas as pd

    from lossscope.engine.fitting_objectives import titles_of
    from lossscope.engine.weight_factors import weight_factors
    from lossscope.errors import InputError
    from lossscope.registry import build

    specs, optional = titles_of(words)
    parts = []
    with progress() as report:
        for number, (title, spec) in enumerate(specs.items()):
            try:
                parts.append(weight_factors(build("objectives", spec), title, options))
            except InputError as error:
                if title not in optional:
                    raise
                notice(f"Note: {title} is left out: {error}.")
            if report is not None:
                report("factors of losses", number + 1, len(specs))
    rows, cells = zip(*parts, strict=True)
    return pd.concat(rows, ignore_index=True), pd.concat(cells, ignore_index=True)


def _of_batches(
    source: Path, titles: tuple[str, ...], words: tuple[str, ...], options: FactorOptions, request: Request
) -> pd.DataFrame:
    """The nearest unified loss of each objective that takes the batches of a source; others are named on stderr."""
    from lossscope.engine.fitting_objectives import fitting_objectives
    from lossscope.engine.nearest_unified import nearest_unified

    with progress() as report:
        embedded = load_source(source, request, report)
        fitting = fitting_objectives(embedded, words, options.batches)
        for text in fitting.notes:
            notice(f"Note: {text}.")
        kept = {title: objective for title, objective in fitting.objectives.items() if title in titles}
        return nearest_unified(embedded, kept, options.batches, report)
