"""`lossscope analyse alignment`: do two losses pull the same way?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from lossscope.core.choices import OUTPUT, Choice
from lossscope.core.request import Request
from lossscope.engine.analysis_options import AlignmentOptions

from ._app import command
from ._options import File, Format, require_picture, usage
from ._output import notice, print_path, print_results
from ._progress import progress
from ._sources import OF_TRAIN, load_source
from .analyse import analyse

SCHEMA = "lossscope.alignment/1"
_USUAL = AlignmentOptions()


@command(group=analyse, first=("objective", "cut", "direction", "batch_size", "batches", "picture", "format", "out"))
def alignment(
    sources: Annotated[
        tuple[Path, ...], Choice(None, "Checkpoint, run folder or dump; a model has layers.", argument=True)
    ],
    objective: Annotated[
        tuple[str, ...],
        Choice(
            None,
            "Objective spec; repeat for several. all: every one with its defaults, but parts of others.",
            names="objectives",
        ),
    ],
    options: AlignmentOptions = _USUAL,
    request: Request = OF_TRAIN,
    picture: Annotated[
        Path | None, Choice(OUTPUT, "Picture of the cosines: .png, .pdf or .svg.", flags="--picture,-o")
    ] = None,
    format: Format = "table",
    out: File = None,
) -> None:
    """Do two losses pull the same way? Cosines of their gradients on the same batches.

    **Examples**

    `lossscope analyse alignment checkpoints/tiny.pt --objective ntxent --objective triplet-sh`

    `lossscope analyse alignment checkpoints/tiny.pt --objective all --batches 6 -o alignment.png`

    `lossscope analyse alignment dump.npz --objective "ntxent:tau=0.05..0.2/3" --format csv > rows.csv`

    A cosine of 1: a step under either loss does the same. 0: a step under either leaves the other. Below 0: each undoes
    what the other does. Gradients are compared in three spaces: rows of W = dL/dS, the tangent part of the gradient at
    each query, and the parameters of the model by layer. `--objective all` leaves out what does not take the batches of
    the source, and says why. `lossscope render alignment rows.csv` draws the rows. docs/analyses/alignment.md explains
    the numbers.
    """
    from lossscope.engine.fitting_objectives import fitting_objectives
    from lossscope.engine.gradient_alignment import gradient_alignment, missing_spaces
    from lossscope.plots import alignment as drawing
    from lossscope.plots import style
    from lossscope.tables import alignment as tables

    require_picture(picture, "-o")
    if len(sources) != 1:
        raise usage(f"SOURCE must be a single source; got {len(sources)}")
    with progress() as report:
        embedded = load_source(sources[0], request, report)
        fitting = fitting_objectives(embedded, objective, options.batches)
        for text in (*fitting.notes, *missing_spaces(embedded)):
            notice(f"Note: {text}.")
        rows = gradient_alignment(embedded, fitting.objectives, options, report)
    arguments = {
        "name": "analyse alignment", "source": str(sources[0]), "split": embedded.split,
        "objectives": {title: str(spec) for title, spec in zip(rows["a"], rows["a_spec"], strict=True)},
        "left_out": dict(fitting.left_out), "direction": options.direction, "cut": options.cut,
        **vars(options.batches),
    }  # fmt: skip
    print_results(rows, lambda: tables.build(rows), arguments, format, out, SCHEMA)
    if picture is not None:
        with style.screen():
            path = style.save(drawing.draw_many(rows), picture, drawing.alt(rows))
        notice(f"Wrote {path}.") if format != "table" or out is not None else print_path(path)
