"""`lossscope trajectory`: how did a run go?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from lossscope.core.choices import Choice

from ._app import command
from ._output import notice, print_csv, print_tables


@command()
def trajectory(
    runs: Annotated[tuple[Path, ...], Choice(None, "Run folders.", argument=True)],
    out: Annotated[Path, Choice(None, "Picture: .png, .pdf or .svg.", flags="--out,-o")] = Path("trajectory.png"),
    format: Annotated[Literal["table", "csv", "json"], Choice(None, "Format of the rows of epochs.")] = "table",
) -> None:
    """Draw loss, rsum and similarities against epochs.

    **Examples**

    `lossscope trajectory runs/scenes-triplet-seed0 runs/scenes-triplet-sh-seed0 -o runs.pdf`

    When both similarities run together the model has collapsed: a triplet loss then stays at 2 x batch x margin.
    """
    import pandas as pd

    from lossscope.io.reading import show_path
    from lossscope.io.run_folder import Run
    from lossscope.io.scores import require_one_score
    from lossscope.plots import style
    from lossscope.plots import trajectory as picture
    from lossscope.plots.labels import shortest_names
    from lossscope.tables import trajectory as table

    runs = tuple(dict.fromkeys(runs))
    distinct = len({run.name for run in runs}) == len(runs) and "run" not in {run.name for run in runs}
    labels = [show_path(run.name if distinct else run) for run in runs]  # the folder of a run in a study is named `run`
    tables = [Run(run).epochs(label) for run, label in zip(runs, labels, strict=True)]
    require_one_score({label: rows.columns for label, rows in zip(labels, tables, strict=True)})
    curves = pd.concat([Run(run).curves(label) for run, label in zip(runs, labels, strict=True)], ignore_index=True)
    with style.screen():
        style.save(picture.draw_many(curves), out, picture.alt(curves))
    epochs = pd.concat(tables, ignore_index=True)
    validated = curves[curves["split"] == "val"]
    epochs = epochs.merge(validated[["run", "epoch", "warmup"]], on=["run", "epoch"], how="left", validate="1:1")
    if format == "csv":
        print_csv(epochs)
    elif format == "json":
        typer.echo(epochs.to_json(orient="records"))
    else:
        print_tables([table.build(epochs.assign(run=epochs["run"].map(shortest_names(labels))))], format)
    notice(f"Wrote {out}.")
