"""`lossscope demo`: the main job on the embedded data set."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from lossscope.core.choices import Choice
from lossscope.core.request import Device

from ._app import Work, command
from ._options import Seed, resolve_device
from ._output import notice, print_path
from ._progress import progress

_TITLES = {
    "scenes": "What four losses do to the same model",
    "passages": "What four losses do to the same text model",
}


@command(work=Work(keeps=True))
def demo(
    out: Annotated[Path, Choice(None, "Folder to write; the same command resumes it.")] = Path("demo"),
    data: Annotated[
        Literal["scenes", "passages"], Choice(None, "Rendered images and captions, or questions and passages.")
    ] = "scenes",
    quick: Annotated[bool, Choice(None, "Run a smaller demo, in about a minute.", flags="--quick")] = False,
    seed: Seed = 0,
    device: Device = "auto",
) -> None:
    """See it all in minutes: four losses, one model, one report.

    **Examples**

    `lossscope demo`

    `lossscope demo --quick --out /tmp/demo`

    `lossscope demo --data passages`

    The demo runs the study lossscope/studies/demo.toml, or demo_passages.toml, and writes its report. It generates
    the data and trains the models here, from a seed, without any download.
    """
    import time

    from lossscope.errors import InputError
    from lossscope.registry import build
    from lossscope.studies.report import report
    from lossscope.studies.report_options import ReportOptions
    from lossscope.studies.study import Study
    from lossscope.studies.study_file import demo_file, read_study_file

    begun = time.monotonic()
    target = resolve_device(device)
    study = Study.begin(out / "study", read_study_file(demo_file(quick, data), seeds=(seed,)))
    notice(f"Training {len(study.grid.runs)} models, each with its own process")
    with progress() as bar:
        statuses = study.run(build("launchers", "local"), target, True, notice, bar)
        unfinished = [status for status in statuses if status.status != "done"]
        if unfinished:
            raise InputError(
                f"{unfinished[0].run.key} must be finished; it is {unfinished[0].status}: {unfinished[0].reason}"
            )
        notice("Drawing the report")
        page = report([study.path], out / "report", ReportOptions(title=_TITLES[data]), progress=bar)
    notice(f"Done in {time.monotonic() - begun:.0f} s. Open the page in a browser:")
    print_path(page)
