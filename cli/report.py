"""`lossscope report`: studies and runs as one page, a LaTeX folder, CSV and pictures."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from lossscope.core.choices import Choice
from lossscope.core.request import Request
from lossscope.studies.report_options import ReportOptions

from ._app import Work, command
from ._form import Only
from ._options import resolve_device, usage
from ._output import notice, print_path
from ._progress import progress
from ._running import is_typed
from ._sources import OF_TRAIN, load_source

if TYPE_CHECKING:
    from lossscope.core.types import Progress


@command(work=Work(verbose=True), first=("out", "title", "test", "split", "label", "published"))
def report(
    paths: Annotated[
        tuple[Path, ...], Choice(None, "Folders of studies or runs; or embeddings and models.", argument=True)
    ],
    options: ReportOptions,
    out: Annotated[Path, Choice(None, "Folder to write.", flags="--out,-o")] = Path("report"),
    request: Annotated[Request, Only("device", "trust_code")] = OF_TRAIN,
) -> None:
    """Write a page of studies or runs, with LaTeX, CSV and pictures.

    **Examples**

    `lossscope report runs/bleeker2022-small --out report`

    `lossscope report runs/scenes-triplet-seed0 runs/scenes-ntxent-seed0 --label Triplet --label "NT-Xent, tau = 0.1"`

    `lossscope report runs/bleeker2022-small --columns R@1,rsum,C_q --no-published`

    `lossscope report a.npz b.npz --out report`

    The command first evaluates run folders whose best checkpoint has no evaluation yet; a study evaluates its own
    runs. The page of embeddings, or of models from elsewhere, shows their retrieval, the samples that carry the
    gradient under the usual losses, and the findings of `lossscope doctor`.
    """
    from lossscope.studies.report import is_study_or_run
    from lossscope.studies.report import report as write_report

    trained = [path for path in paths if is_study_or_run(path)]
    with progress() as bar:
        if trained:
            page = write_report(paths, out, options, resolve_device(request.device), bar, request.trust_code)
        else:
            page = _report_sources(paths, out, options, request, bar)
    notice("Open the page in a browser:")
    print_path(page)


def _report_sources(
    paths: tuple[Path, ...], out: Path, options: ReportOptions, request: Request, bar: Progress | None
) -> Path:
    """Write the page of embeddings and models; return index.html."""
    from lossscope.doctor.examination.examine import examine_sources
    from lossscope.doctor.examination.options import Options
    from lossscope.io.shipped import require_source
    from lossscope.report.page import page_folder
    from lossscope.studies.report_sources import ReportedSource, report_sources
    from lossscope.tables.choice import Choice as Columns

    of_runs = [f"--{name}" for name in ("label", "resamples", "published") if is_typed(name)]
    if of_runs:
        raise usage(f"{' and '.join(of_runs)} are for studies and runs; {paths[0]} is neither. Leave them out")
    with page_folder(out):
        sources = []
        for path in map(require_source, paths):
            counted = load_source(path, replace(request, split=options.split), bar)
            of_test = replace(request, split=options.test, usual_split="test")
            ranked = counted if counted.split is None else load_source(path, of_test, bar)
            sources.append(ReportedSource(counted, ranked))
        examined = Options.of(
            device=resolve_device(request.device), split=options.test, usual_split="test", trust_code=request.trust_code
        )
        diagnosis = examine_sources([str(path) for path in paths], examined)
        command = f"lossscope report {' '.join(path.name for path in paths)}"
        return report_sources(sources, diagnosis, out, command, options.title, Columns(options.columns), bar)
