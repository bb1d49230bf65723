"""What does `lossscope check --trainer` say of the losses of released libraries, on one process and on two?

Each class is checked as released; a cached class also against its plain form. A library that is not installed keeps its
rows. The results are in studies/conformance/results/libraries.csv and docs/conformance.md; they take ten minutes.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import importlib.util
import warnings
from collections.abc import Iterator
from pathlib import Path

import pandas as pd

from lossscope.conformance.suite import check_trainer
from lossscope.io.trusted_code import trust
from lossscope.objectives.checks.verdict import Verdict

RESULTS = Path(__file__).parent / "results" / "libraries.csv"
LOSS = "./studies/conformance/symmetric_loss.py:symmetric"  # for GradCache
ST, PML, CLIP = "sentence_transformers", "pytorch_metric_learning", "open_clip"
MNRL = f"{ST}:loss=MultipleNegativesRankingLoss"
ALL_TERMS = 'options="directions=query_to_doc+doc_to_query+query_to_query+doc_to_doc"'
RUNS: tuple[tuple[str, str | None], ...] = (  # trainer, and its plain form
    (ST, None),
    (f"{ST}:gather=false", None),
    (f"{MNRL},{ALL_TERMS}", None),
    (f'{MNRL},options="directions=query_to_doc+doc_to_query partition_mode=per_direction"', None),
    (f'{MNRL},options="hardness_mode=all_negatives hardness_strength=5"', None),
    (f"{ST}:loss=CachedMultipleNegativesRankingLoss", ST),
    (f"{ST}:loss=CachedMultipleNegativesRankingLoss,{ALL_TERMS}", f"{MNRL},{ALL_TERMS}"),
    (f"{ST}:loss=MultipleNegativesSymmetricRankingLoss", None),
    (
        f"{ST}:loss=CachedMultipleNegativesSymmetricRankingLoss",
        f"{ST}:loss=MultipleNegativesSymmetricRankingLoss",
    ),
    (f"{ST}:loss=GISTEmbedLoss", None),
    (f"{ST}:loss=CachedGISTEmbedLoss", f"{ST}:loss=GISTEmbedLoss"),
    (f"{ST}:loss=MegaBatchMarginLoss", None),
    (f"{ST}:loss=TripletLoss", None),
    (PML, None),
    (f"{PML}:efficient=true", None),
    (f"{PML}:one_set=true", None),
    (f"{PML}:one_set=true,efficient=true", None),
    (f"{PML}:wrapped=false", None),
    (f"{PML}:loss=SupConLoss,one_set=true", None),
    (f"{PML}:loss=TripletMarginLoss", None),
    (f"{PML}:loss=TripletMarginLoss,efficient=true", None),
    (f"{PML}:loss=MultiSimilarityLoss,one_set=true", None),
    (f"{PML}:loss=ContrastiveLoss,one_set=true", None),
    (f"{PML}:loss=CircleLoss,one_set=true", None),
    (CLIP, None),
    (f"{CLIP}:local_loss=true", None),
    (f"{CLIP}:gather_with_grad=true", None),
    (f"{CLIP}:local_loss=true,gather_with_grad=true", None),
    (f"{CLIP}:loss=SigLipLoss", None),
    (f'{CLIP}:loss=SigLipLoss,options="dist_impl=gather"', None),
    (f'{CLIP}:loss=SigLipLoss,options="dist_impl=shift"', None),
    (f'{CLIP}:loss=SigLipLoss,options="dist_impl=reduce"', None),
    (f"grad_cache:loss={LOSS}", None),
)
PACKAGES = {
    ST: "sentence-transformers",
    PML: "pytorch-metric-learning",
    CLIP: "open_clip_torch",
    "grad_cache": "GradCache",
}
Row = dict[str, object]


def library(trainer: str) -> str:
    """Return the module of a trainer's library."""
    return trainer.partition(":")[0]


def version(module: str, stated: dict[str, str]) -> str:
    """Return the version of a library by pip, or the stated version if pip did not install it."""
    return stated[module] if module in stated else importlib.metadata.version(PACKAGES[module])


def run(trainer: str, plain: str | None, processes: int) -> list[Verdict]:
    """Return the verdicts of a trainer."""
    with trust([trainer, *([plain] if plain else [])]), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return check_trainer(trainer, processes, plain=plain)


def rows(trainer: str, plain: str | None, processes: int, version: str) -> Iterator[Row]:
    """Yield a row for each verdict other than pass and skipped, and a last row with the counts alone."""
    verdicts = run(trainer, plain, processes)
    head = {"library": library(trainer), "version": version, "trainer": trainer, "plain": plain or ""}
    counts = {key: sum(v.outcome == key for v in verdicts) for key in ("pass", "fail", "note", "skipped")}
    for verdict in (v for v in verdicts if v.outcome in ("fail", "note") and v.name != "half-precision"):
        outcome = {"check": verdict.name, "outcome": verdict.outcome, "evidence": verdict.evidence}
        yield {**head, "processes": processes, **counts, **outcome}
    yield {**head, "processes": processes, **counts, "check": "", "outcome": "", "evidence": ""}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="part of a trainer's spec")
    parser.add_argument("--version", action="append", default=[], help="MODULE=VERSION of what pip did not install")
    options = parser.parse_args()
    stated = dict(typed.split("=", 1) for typed in options.version)
    old = pd.read_csv(RESULTS, keep_default_na=False) if RESULTS.is_file() else pd.DataFrame()
    for trainer, plain in RUNS:
        if options.only not in trainer or importlib.util.find_spec(library(trainer)) is None:
            continue
        for processes in (1, 2):
            new = pd.DataFrame(rows(trainer, plain, processes, version(library(trainer), stated)))
            if len(old):
                old = old[(old["trainer"] != trainer) | (old["processes"] != processes)]
            old = pd.concat([old, new], ignore_index=True)
            print(trainer, processes, new.iloc[-1][["pass", "fail", "note", "skipped"]].to_dict(), flush=True)
            order = {spec: position for position, (spec, _) in enumerate(RUNS)}
            old = old.sort_values(
                ["trainer", "processes"], key=lambda x: x.map(order) if x.name == "trainer" else x, kind="stable"
            )
            old.to_csv(RESULTS, index=False, lineterminator="\n")


if __name__ == "__main__":
    main()
