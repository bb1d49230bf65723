"""`lossscope study multiverse`: which claimed orderings survive other ways of counting?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from lossscope.core.choices import OUTPUT, Choice
from lossscope.core.request import Request
from lossscope.studies.multiverse_options import MultiverseOptions

from ._app import Work, command
from ._form import Only
from ._options import Format, require_picture, resolve_device
from ._output import notice, print_results
from ._progress import progress
from ._sources import OF_TRAIN
from .study import Out, StudyFile, open_study, study

if TYPE_CHECKING:
    import pandas as pd

    from lossscope.studies.multiverse import Multiverse

SCHEMA = "lossscope.multiverse/1"
_LISTED = 4  # pairs without an ordering, or runs, that a notice names


@command(
    group=study,
    work=Work(keeps=True, imports="lossscope.studies.multiverse", verbose=True),
    first=("metric", "claims", "only", "eps", "batch_factors", "epochs", "dry_run", "picture", "format"),
)
def multiverse(
    file: StudyFile,
    out: Out = None,
    options: MultiverseOptions = MultiverseOptions(),  # noqa: B008 - never changed
    dry_run: Annotated[bool, Choice(None, "Print how many sweeps there are, then stop.", flags="--dry-run")] = False,
    picture: Annotated[
        Path | None, Choice(OUTPUT, "Also draw it: .png, .pdf or .svg.", shown=False, flags="--picture,-o")
    ] = None,
    request: Annotated[Request, Only("trust_code", "device")] = OF_TRAIN,
    format: Format = "table",
) -> None:
    """Which claimed orderings of two losses survive other ways of counting?

    **Examples**

    `lossscope study multiverse studies/bleeker2022-small.toml --dry-run`

    `lossscope study multiverse runs/bleeker2022-small --only VSE++ -o multiverse.pdf`

    `lossscope study multiverse runs/bleeker2022-small --metric i2t_N_eff --format csv > multiverse.csv`

    A claim says which of two losses has the lower number: as the study's paper prints it, or, where it prints none, as
    our means have it. lossscope looks at each claim in every universe: convention, unit, eps, batch size, epoch and
    seed. Numbers are kept in the folder of the study; the same command resumes, and further choices compute only what
    is missing. `lossscope render multiverse multiverse.csv -o multiverse.png` draws the rows.
    docs/analyses/multiverse.md defines the numbers.
    """
    from lossscope.studies.multiverse import Multiverse

    require_picture(picture, "--picture")
    work = open_study(file, out)
    with work.trusted():
        universes = Multiverse.of(work, options)
        _notices(universes)
        if dry_run:
            return
        with progress() as bar:
            universes.compute(resolve_device(request.device), bar)
        rows = universes.rows()
    if picture is not None:
        _draw(rows, picture)
    typed = {"name": "study multiverse", "study": str(file), **vars(options)}
    print_results(rows, lambda: _tables(rows), typed, format, schema=SCHEMA)


def _notices(universes: Multiverse) -> None:
    """Say what there is to compute, and which pairs and runs are left out."""
    left, total = universes.tasks(), universes.number_of_tasks()
    sweeps = sum(not task.is_evaluation for task in left)
    notice(
        f"{len(universes.claims)} claims. To compute: {sweeps} sweeps and {len(left) - sweeps} evaluations; "
        f"{total - len(left)} of {total} are kept."
    )
    if pairs := universes.without_claim:
        more = f", and {len(pairs) - _LISTED} more" if len(pairs) > _LISTED else ""
        notice(f"Note: no ordering: {'; '.join(pairs[:_LISTED])}{more}.")
    if waiting := [run.key for run in universes.chosen if run.key not in universes.done]:
        notice(
            f"Note: {len(waiting)} of {len(universes.chosen)} runs are not done; their universes are undefined: "
            f"{', '.join(waiting[:_LISTED])}{', ...' if len(waiting) > _LISTED else ''}."
        )


def _tables(rows: pd.DataFrame) -> Any:
    from lossscope.tables import multiverse as tables

    return tables.build(rows)


def _draw(rows: pd.DataFrame, path: Path) -> None:
    from lossscope.plots import multiverse as pictures
    from lossscope.plots import style

    with style.screen():
        figure: Any = pictures.draw(rows).figure
        style.save(figure, path, pictures.alt(rows))
    notice(f"Wrote {path}.")
