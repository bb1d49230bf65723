"""`lossscope diff`: what is another number under B than under A, and is it more than chance?"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from ._app import command
from ._diff_sides import (
    OtherCondition,
    in_words,
    load_side,
    paired_record,
    paired_sweep,
    probes_with_eps,
    require_column,
    require_epochs_alone,
    require_sides,
    source_paths,
)
from ._epoch_counts import print_epochs
from ._options import OUTPUT, complete_names, usage, with_options
from ._output import notice, print_results
from ._processes import writes_results
from ._progress import progress
from ._sweep import SweepArguments
from ._typed import is_typed

if TYPE_CHECKING:
    import pandas as pd

    from lossscope.engine.paired_sweep import PairedResult

SCHEMA = "lossscope.diff/1"
_B = "The other side, of one source"


@command(processes=True, imports="lossscope.engine.paired_sweep")
@with_options(SweepArguments)
def diff(
    options: SweepArguments,
    probes: Annotated[
        list[str],
        typer.Option(help="NAME[:key=value,...]; repeat for several.", autocompletion=complete_names("probes")),
    ] = ["cocos", "similarity"],  # noqa: B006 - read by typer, never changed
    eps: Annotated[float | None, typer.Option(help="Threshold of A, and of B.", show_default="0.01")] = None,
    epoch: Annotated[int | None, typer.Option(help="Epoch of A, a run folder.", show_default="the best", min=0)] = None,
    b_objective: Annotated[
        list[str] | None,
        typer.Option(
            help="Objective of B; one for each of A.", autocompletion=complete_names("objectives"), rich_help_panel=_B
        ),
    ] = None,
    b_eps: Annotated[float | None, typer.Option(help="Threshold of B.", rich_help_panel=_B)] = None,
    b_mode: Annotated[
        Literal["eval", "train"] | None,
        typer.Option(help="Mode of B's model: train has dropout, and batch norm of the batch.", rich_help_panel=_B),
    ] = None,
    b_epoch: Annotated[int | None, typer.Option(help="Epoch of B, of the same run.", rich_help_panel=_B, min=0)] = None,
    epochs: Annotated[
        bool, typer.Option("--epochs", help="Of one run folder: the counts of every epoch, with their intervals.")
    ] = False,
    top: Annotated[
        int, typer.Option(help="Queries that changed most to list; 0: none.", min=0, rich_help_panel=OUTPUT)
    ] = 10,
    by: Annotated[str, typer.Option(help="Number of a query that --top goes by.", rich_help_panel=OUTPUT)] = "count",
    page: Annotated[
        Path | None, typer.Option(help="Folder for a page with tables and a picture.", rich_help_panel=OUTPUT)
    ] = None,
    picture: Annotated[
        Path | None,
        typer.Option("--picture", "-o", help="Of the intervals: .png, .pdf or .svg.", rich_help_panel=OUTPUT),
    ] = None,
) -> None:
    """Tell two models apart, or one model under two conditions, on the same batches: differences with intervals.

    **Examples**

    `lossscope diff a.pt b.pt`

    `lossscope diff ckpt.pt --objective ntxent --b-objective ntxent:tau=0.05`

    `lossscope diff runs/triplet-seed0 --epoch 1 --b-epoch 2 --page changed/`

    `lossscope diff ckpt.pt --b-mode train --top 20`

    `lossscope diff runs/triplet-seed0 --epochs -o counts.png`

    Both sources must have the same items in the same order. Every difference is B − A; its interval is over other data
    like these, paired query by query, and says nothing of other seeds. Each side is counted under the objective that
    it was trained with, unless --objective names one for both.
    """
    other = OtherCondition(b_objective, b_eps, b_mode, b_epoch)
    if picture is not None and picture.suffix.lower() not in (".pdf", ".png", ".svg"):
        raise usage(f"--picture must end in .pdf, .png or .svg; got {picture.name!r}")
    if epochs:
        require_epochs_alone(options, other, epoch, page)
        print_epochs(options, list(probes), eps, picture)
        return
    require_sides(options, other)
    if page is not None:
        from lossscope.report.build import require_writable

        require_writable(page, "--page")
    if picture is not None and options.interval == "none":
        raise usage("--picture draws intervals, and --interval none leaves them out; leave one of the two out")
    for threshold, option in ((eps, "--eps"), (b_eps, "--b-eps")):
        typed_probes = probes_with_eps(list(probes), threshold, option)
    if is_typed("by"):
        require_column(by, options.objective, typed_probes)
    paths = source_paths(options, epoch, other)
    with progress(options.quiet, options.verbose) as report:
        a = load_side(paths[0], options, report, None)
        b = a if paths[1] == paths[0] and b_mode != "train" else load_side(paths[1], options, report, b_mode)
        sweeps = paired_sweep(options, other, list(probes), eps, a, b, top > 0 or page is not None)
        from lossscope.core.distributed import process_group

        result = sweeps.run(a, b, report, process_group(), options.jobs)
    queries = _changed(result, a, by, top, options.quiet)
    if not writes_results():
        return
    if a is not b and not (a.recipe and b.recipe):
        from lossscope.engine.paired_items import unstated_ids

        if sides := unstated_ids(a, b):
            notice(
                f"Note: neither source states ids of {' and '.join(sides)}: item i of A is taken as item i of B.",
                options.quiet,
            )
    for text in result.left_out:
        notice(f"Note: left out: {text}.", options.quiet)
    if result.without_interval:
        notice(f"Note: no interval: {result.without_interval}.", options.quiet)
    typed = {
        "name": "diff", "sources": [str(path) for path in paths], "split": options.split, "b_mode": b_mode or "eval",
        "top": top, "by": by, **paired_record(sweeps, a, b, options.data),
    }  # fmt: skip
    if options.format == "csv" and page is None and len(queries) and is_typed("top"):
        notice("Note: CSV has the differences alone; --format json or table lists the queries, too.", options.quiet)
    _print(result.rows, queries, typed, result.left_out, options.format)
    _draw(result, queries, typed, page, picture, options.quiet)


def _changed(result: PairedResult, a: Any, by: str, top: int, quiet: bool) -> pd.DataFrame:
    """Return the queries that changed most; no row where single queries have no such number."""
    import pandas as pd

    from lossscope.engine.changed_queries import changed_queries, left_out_pairs, per_query_columns

    if top == 0 or not writes_results():
        return pd.DataFrame()
    if by not in per_query_columns(result) and not is_typed("by"):
        return pd.DataFrame()
    others = [] if is_typed("by") else left_out_pairs(result, by)
    if others:
        pairs = ", ".join(f"{first} → {second}" for first, second in others)
        notice(
            f"Note: the list of changed queries has none of {pairs}: the two count different things; --by {by} lists "
            "them all the same.", quiet,
        )  # fmt: skip
    return changed_queries(result, a, by, top, comparable=not is_typed("by"))


def _print(
    rows: pd.DataFrame, queries: pd.DataFrame, typed: dict[str, Any], left_out: tuple[str, ...], format: str
) -> None:
    """Write the differences, and the queries that changed most."""
    from lossscope.io.frames import plain_rows
    from lossscope.tables import diff as tables

    if format == "json":
        command, differences = {**typed, "left_out": list(left_out)}, plain_rows(rows)
        document = {"schema": SCHEMA, "command": command, "rows": differences, "queries": plain_rows(queries)}
        typer.echo(json.dumps(document, indent=1))
        return
    more = [tables.build_queries(queries)] if len(queries) else []
    print_results(rows, lambda: [*tables.build(rows), *more], typed, format, schema=SCHEMA)


def _draw(
    result: PairedResult,
    queries: pd.DataFrame,
    typed: dict[str, Any],
    page: Path | None,
    picture: Path | None,
    quiet: bool,
) -> None:
    """Write the page and the picture."""
    if page is not None:
        from lossscope.io.versions import versions
        from lossscope.report.diff_page import write_diff_page

        shown = {"lossscope": versions()["lossscope"], **in_words(typed)}
        notice(f"Wrote {write_diff_page(page, result.rows, queries, result.left_out, shown)}.", quiet)
    if picture is not None:
        from lossscope.plots import differences, style

        with style.screen():
            path = style.save(differences.draw_many(result.rows), picture, differences.alt(result.rows))
        notice(f"Wrote {path}.", quiet)
