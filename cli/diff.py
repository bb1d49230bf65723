"""`lossscope diff`: what is another number under B than under A, and is it more than chance?"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lossscope.core.choices import OUTPUT, Choice

from ._app import Work, command
from ._diff_sides import (
    Compared,
    OtherCondition,
    in_words,
    load_side,
    paired_record,
    paired_sweep,
    require_column,
    require_epochs_alone,
    require_sides,
    source_paths,
)
from ._epoch_counts import print_epochs
from ._options import require_picture, usage
from ._output import notice, print_results
from ._processes import writes_results
from ._progress import progress
from ._running import is_typed
from ._shown import print_changed
from ._sweep import SweepArguments

if TYPE_CHECKING:
    import pandas as pd

    from lossscope.engine.heaviest_negatives import HeaviestNegatives
    from lossscope.engine.paired_sweep import PairedResult

    Sides = tuple[HeaviestNegatives, HeaviestNegatives]

SCHEMA = "lossscope.diff/1"


@dataclass(frozen=True)
class Shown:
    """What of the differences is shown beside the tables."""

    top: Annotated[int, Choice(OUTPUT, "Number of most changed queries to list; 0: none.", low=0)] = 10
    by: Annotated[str, Choice(OUTPUT, "Number of a query by which --top ranks.")] = "count"
    page: Annotated[Path | None, Choice(OUTPUT, "Folder for a page with tables and a picture.")] = None
    picture: Annotated[
        Path | None, Choice(OUTPUT, "Picture of the intervals: .png, .pdf or .svg.", flags="--picture,-o")
    ] = None

    def listing(self, options: SweepArguments) -> Shown:
        """Return the same with the length of --show, where that is typed. Raises a usage error for it beside --top."""
        if options.show is None:
            return self
        if is_typed("top"):
            raise usage("--top and --show both limit the list of changed queries; give one")
        return replace(self, top=options.show)


@command(
    work=Work(processes=True, imports="lossscope.engine.paired_sweep", verbose=True),
    first=(
        "objective",
        "b_objective",
        "eps",
        "probes",
        "epoch",
        "epochs",
        "data",
        "split",
        "unit",
        "show",
        "page",
        "picture",
        "format",
    ),
)
def diff(compared: Compared, other: OtherCondition, options: SweepArguments, shown: Shown) -> None:
    """What changed from A to B? Two models on the same batches.

    **Examples**

    `lossscope diff a.pt b.pt`

    `lossscope diff ckpt.pt --objective ntxent --b-objective ntxent:tau=0.05`

    `lossscope diff runs/triplet-seed0 --epoch 1 --b-epoch 2 --page changed/`

    `lossscope diff ckpt.pt --b-mode train --top 20`

    `lossscope diff a.pt b.pt --show 5`

    `lossscope diff runs/triplet-seed0 --epochs -o counts.png`

    Both sources must have the same items in the same order. Every difference is B − A. Its interval pairs query with
    query; it covers other data like these, not other seeds. Each side keeps the objective of its training, unless
    --objective names one for both.
    """
    require_picture(shown.picture, "--picture")
    if compared.epochs:
        require_epochs_alone(options, compared, other, shown.page)
        print_epochs(options, compared.specs(), shown.picture)
        return
    shown = shown.listing(options)
    _require_possible(options, compared, other, shown)
    listing = options.listing()
    paths = source_paths(options, compared.epoch, other)
    with progress() as report:
        a = load_side(paths[0], options, report, None)
        same = paths[1] == paths[0] and other.b_mode != "train"
        b = a if same else load_side(paths[1], options, report, other.b_mode)
        sweeps = paired_sweep(options, compared, other, a, b, shown.top > 0 or shown.page is not None)
        from lossscope.core.distributed import process_group

        sides: Sides | None = None
        if listing is not None:
            sides = replace(listing, sweep=sweeps.first), replace(listing, sweep=sweeps.second)
            sides[0].require_possible(a)
        result = sweeps.run(a, b, report, process_group(), options.jobs)
    queries = _changed(result, a, shown)
    if not writes_results():
        return
    negatives = _negatives(queries, sides, a, b)
    _say_what_was_assumed(result, a, b)
    typed = {
        "name": "diff", "sources": [str(path) for path in paths], "split": a.split,
        "b_mode": other.b_mode or "eval", "top": shown.top, "by": shown.by,
        **paired_record(sweeps, a, b, options.request.data),
    }  # fmt: skip
    if options.format == "csv" and shown.page is None and len(queries) and is_typed("top"):
        notice("Note: CSV has the differences alone; --format json or table lists the queries, too.")
    _print(result, queries, negatives, typed, options.format)
    if len(negatives) and listing is not None and options.format == "table":
        print_changed(queries, negatives, listing.status)
    _draw(result, queries, negatives, typed, shown)


def _require_possible(options: SweepArguments, compared: Compared, other: OtherCondition, shown: Shown) -> None:
    """Raise a usage error for options that do not go together, before a source is opened."""
    require_sides(options, other)
    if shown.page is not None:
        from lossscope.report.page import require_page_folder

        require_page_folder(shown.page, "--page")
    if shown.picture is not None and options.sweep.interval is None:
        raise usage("--picture draws intervals, and --interval none leaves them out; leave one of the two out")
    compared.specs()
    probes = compared.specs(other)
    if is_typed("by"):
        require_column(shown.by, options.sweep.objectives, probes)


def _say_what_was_assumed(result: PairedResult, a: Any, b: Any) -> None:
    """Note which items were taken as the same, and what the result lacks."""
    if a is not b and not (a.recipe and b.recipe):
        from lossscope.engine.paired_items import unstated_ids

        if sides := unstated_ids(a, b):
            notice(f"Note: neither source states ids of {' and '.join(sides)}: diff takes item i of A as item i of B.")
    for text in result.left_out:
        notice(f"Note: left out: {text}.")
    if result.without_interval:
        notice(f"Note: no interval: {result.without_interval}.")


def _changed(result: PairedResult, a: Any, shown: Shown) -> pd.DataFrame:
    """Return the queries that changed most; no row where single queries have no such number."""
    import pandas as pd

    from lossscope.engine.changed_queries import changed_queries, left_out_pairs, per_query_columns

    by = shown.by
    if shown.top == 0 or not writes_results():
        return pd.DataFrame()
    if by not in per_query_columns(result) and not is_typed("by"):
        return pd.DataFrame()
    others = [] if is_typed("by") else left_out_pairs(result, by)
    if others:
        pairs = ", ".join(f"{first} → {second}" for first, second in others)
        notice(
            f"Note: the list of changed queries has none of {pairs}: the two count different things; --by {by} lists "
            "them all the same."
        )
    return changed_queries(result, a, by, shown.top, comparable=not is_typed("by"))


def _negatives(queries: pd.DataFrame, sides: Sides | None, a: Any, b: Any) -> pd.DataFrame:
    """Return the heaviest negatives of the queries that changed most, on both sides; no row without --show."""
    import pandas as pd

    if sides is None:
        return pd.DataFrame()
    if not len(queries):
        notice("Note: --show lists the queries that changed; none did, or --by names a number that they do not have.")
        return pd.DataFrame()
    from lossscope.engine.changed_queries import negatives_of_changed

    return negatives_of_changed(queries, sides, a, b)


def _print(
    result: PairedResult, queries: pd.DataFrame, negatives: pd.DataFrame, typed: dict[str, Any], format: str
) -> None:
    """Write the differences, and the queries that changed most."""
    from lossscope.io.frames import plain_rows
    from lossscope.tables import diff as tables

    if format == "json":
        command, differences = {**typed, "left_out": list(result.left_out)}, plain_rows(result.rows)
        listed = plain_rows(queries.drop(columns=["batch", "batch_row"], errors="ignore"))
        document = {"schema": SCHEMA, "command": command, "rows": differences, "queries": listed}
        if len(negatives):
            from lossscope.engine.changed_queries import changed_document

            document["shown"] = changed_document(queries, negatives)
        typer.echo(json.dumps(document, indent=1))
        return
    more = [tables.build_queries(queries)] if len(queries) else []
    print_results(result.rows, lambda: [*tables.build(result.rows), *more], typed, format, schema=SCHEMA)


def _draw(
    result: PairedResult, queries: pd.DataFrame, negatives: pd.DataFrame, typed: dict[str, Any], shown: Shown
) -> None:
    """Write the page and the picture."""
    if shown.page is not None:
        from lossscope.io.versions import versions
        from lossscope.report.diff_page import write_diff_page

        stated = {"lossscope": versions()["lossscope"], **in_words(typed)}
        notice(f"Wrote {write_diff_page(shown.page, result.rows, queries, negatives, result.left_out, stated)}.")
    if shown.picture is not None:
        from lossscope.plots import differences, style

        with style.screen():
            path = style.save(differences.draw_many(result.rows), shown.picture, differences.alt(result.rows))
        notice(f"Wrote {path}.")
