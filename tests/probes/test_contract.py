"""Are the numbers of all probes independent of how batches are stacked and cut, and of the order of a batch?"""

from __future__ import annotations

from typing import Any

import torch

from lossscope.registry import names
from tests.each import each
from tests.probes import lab

MASSES = ("ntxent", "triplet", "triplet_sh", "unified:gamma=5", "smoothap:tau=0.3", "goal:pair=sig")
OBJECTIVES = {  # of probes that read weights
    "by_rank:curve=true": ("ntxent", "triplet", "siglip", "smoothap:tau=0.3"),
    "cocos": MASSES,
    "cocos:curve=true": ("ntxent", "triplet", "smoothap:tau=0.3"),
    "contributors": ("ntxent", "triplet", "triplet_sh", "smoothap:tau=0.3"),
    "fidelity": ("ntxent", "triplet", "siglip", "smoothap:tau=0.3"),
    "fidelity:of=embeddings": ("ntxent", "goal:pair=sig"),
    "influence": ("ntxent", "triplet", "goal:pair=sig", "siglip", "smoothap:tau=0.3"),
    "tangent": ("ntxent", "smoothap:tau=0.3"),
    "tangent:of=candidate": ("ntxent", "smoothap:tau=0.3"),
    "tangent:of=hardest": ("ntxent", "smoothap:tau=0.3"),
    "weight_mass": MASSES,
}
APART = {"false_negatives", "parameter_gradients"}  # they read more than vectors, and have separate tests
CASES: list[tuple[str, str, dict[str, Any]]] = [
    (probe, objective, {"many": objective.startswith("smoothap")})
    for probe, objectives in OBJECTIVES.items()
    for objective in objectives
] + [
    (probe, "ntxent", options)
    for probe in sorted({*names("probes")} - {spec.partition(":")[0] for spec in OBJECTIVES} - APART)
    for options in ({}, {"many": True}, {"d": 20})
]


@each("probe, objective, options", CASES)
def test_stacks_and_panels_give_the_same_results(probe: str, objective: str, options: dict[str, Any]) -> None:
    lab.assert_invariant_to_cuts(probe, lab.random_batches(**options), objective)


@each("probe, objective, options", CASES, "seed", range(3))
def test_the_order_of_a_batch_does_not_matter(probe: str, objective: str, options: dict[str, Any], seed: int) -> None:
    batches, generator = lab.random_batches(seed, **options), torch.Generator().manual_seed(seed)
    moved = batches.permute(*(torch.randperm(n, generator=generator).tolist() for n in (6, 7)))
    actual, expected = (lab.measure(probe, case, objective) for case in (moved, batches))
    lab.assert_same(actual, expected, rtol=1e-7 if probe == "effective_rank" else 1e-9)
