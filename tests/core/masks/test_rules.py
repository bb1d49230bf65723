"""Do the rules for false negatives match their definitions, entry by entry?"""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from lossscope.core.known_pairs import KnownPairs, rule_spec
from lossscope.core.masks.base import BatchItems, MaskInputs, hide_negatives
from lossscope.core.similarity import Mask
from lossscope.engine.false_negatives import build_rule
from lossscope.errors import InputError, SpecError
from lossscope.registry import build, names
from tests.each import each

KNOWN = {(10, 101): 0.9, (12, 103): 0.5, (13, 108): 0.08, (14, 100): 1.0}  # pair of rows -> probability
IDS = [f"q{row}" for row in range(20)], [f"d{row}" for row in range(120)]


@pytest.fixture(scope="module", autouse=True)
def audited(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write the mask.npz of an audit, in the current folder of these tests."""
    file = tmp_path_factory.mktemp("audit") / "mask.npz"
    left, right = (np.array(column) for column in zip(*KNOWN, strict=True))
    KnownPairs(left, right, np.array(list(KNOWN.values()), np.float32), *map(tuple, IDS)).write(file)
    return file


@pytest.fixture(autouse=True)
def _beside_it(audited: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(audited.parent)


def batch(seed: int = 0, q: int = 6, c: int = 9) -> MaskInputs:
    """Return random cosines; query 0 has two positives, query 1 none, and one candidate of query 2 is not valid."""
    random = torch.Generator().manual_seed(seed)
    match = torch.eye(q, c, dtype=torch.bool)
    match[0, 3], match[1, 1] = True, False
    valid = torch.ones(q, c, dtype=torch.bool)
    valid[2, 5] = False
    S, G = (torch.rand(q, c, generator=random) * 2 - 1 for _ in range(2))
    keys = torch.randint(4, (q, c), generator=random)
    related = torch.rand(q, c, generator=random) < 0.3
    items = BatchItems(*IDS, np.arange(10, 10 + q), np.arange(100, 100 + c)[None])
    return MaskInputs(S, Mask(match, valid), related, keys, G, items)


def best(row: Tensor, positives: Tensor) -> float:
    return max((float(s) for s, p in zip(row, positives, strict=True) if p), default=float("nan"))


def above(rows: MaskInputs, q: int, c: int) -> bool:
    return float(rows.S[q, c]) > best(rows.S[q], rows.mask.positives[q]) + 0.1


def percent(rows: MaskInputs, q: int, c: int) -> bool:
    positive = best(rows.S[q], rows.mask.positives[q])
    return float(rows.S[q, c]) > positive - 0.05 * abs(positive)


def gist(rows: MaskInputs, q: int, c: int) -> bool:
    assert rows.guide is not None
    return float(rows.guide[q, c]) > best(rows.guide[q], rows.mask.positives[q])


def gist_relative(rows: MaskInputs, q: int, c: int) -> bool:
    assert rows.guide is not None
    positive = best(rows.guide[q], rows.mask.positives[q])
    return float(rows.guide[q, c]) > positive - 0.2 * abs(positive)


def same_item(rows: MaskInputs, q: int, c: int) -> bool:
    assert rows.related is not None
    return bool(rows.related[q, c])


def same_text(rows: MaskInputs, q: int, c: int) -> bool:
    keys = rows.candidate_keys
    assert keys is not None
    return any(int(keys[q, p]) == int(keys[q, c]) for p in rows.mask.positives[q].nonzero()[:, 0])


def pairs(rows: MaskInputs, q: int, c: int) -> bool:
    assert rows.items is not None
    return KNOWN.get((int(rows.items.queries[q]), int(rows.items.candidates[0, c])), 0) >= 0.1


ORACLES = {
    "pairs:file=mask.npz": pairs,
    "above": above,
    "percent": percent,
    "gist": gist,
    "gist:margin=0.2,strategy=relative": gist_relative,
    "same_item": same_item,
    "same_text": same_text,
}


@each("spec", ORACLES, "seed", range(5))
def test_what_is_hidden_is_what_the_definition_says(spec: str, seed: int) -> None:
    rows = batch(seed)
    hidden = rows.mask.valid & ~hide_negatives(rows, [build("masks", spec)]).valid
    for q in range(rows.S.shape[0]):
        for c in range(rows.S.shape[1]):
            expected = bool(rows.mask.negatives[q, c]) and ORACLES[spec](rows, q, c)
            assert bool(hidden[q, c]) == expected, (q, c)


def test_every_rule_has_an_oracle() -> None:
    assert {spec.partition(":")[0] for spec in ORACLES} == set(names("masks"))


@each("name", [*(name for name in names("masks") if name != "pairs"), "pairs:file=mask.npz"])
def test_positives_stay_and_a_row_without_one_stays_whole(name: str) -> None:
    rows = batch(1)
    mask = hide_negatives(rows, [build("masks", name)])
    assert torch.equal(mask.positives, rows.mask.positives)
    assert name == "same_item" or torch.equal(mask.valid[1], rows.mask.valid[1])


def test_a_negative_positive_moves_the_threshold_down() -> None:
    """share · s₊ would be above s₊ = −0.5, and would hide no negative as similar as the positive."""
    mask = Mask(torch.tensor([[True, False, False]]), torch.ones(1, 3, dtype=torch.bool))
    rows = MaskInputs(torch.tensor([[-0.5, -0.51, -0.6]]), mask)
    assert hide_negatives(rows, [build("masks", "percent")]).valid.tolist() == [[True, False, True]]


@each("name, changes, says", [
    ("gist", {"guide": None}, "no guide is given. Name its embeddings: --guide SOURCE"),
    ("same_text", {"candidate_keys": None}, "lossscope cannot use --mask same-text: it needs the inputs"),
    ("same_item", {"related": None}, "both sides in one set"),
    ("pairs:file=mask.npz", {"items": None}, "lossscope cannot use --mask pairs: it looks items up by the ids"),
])  # fmt: skip
def test_what_a_rule_needs_must_be_there(name: str, changes: dict[str, Any], says: str) -> None:
    rows = batch()
    given = {"related": rows.related, "candidate_keys": rows.candidate_keys, "guide": rows.guide, "items": rows.items}
    given |= changes
    with pytest.raises(InputError, match=says):
        hide_negatives(MaskInputs(rows.S, rows.mask, **given), [build("masks", name)])


@each("spec", ["above:margin=inf", "percent:share=0", "percent:share=1.1", "gist:margin=-1"])
def test_options_out_of_range_are_refused(spec: str) -> None:
    with pytest.raises((InputError, ValueError)):
        build("masks", spec)


@each("threshold", ["0", "1.1", "-1"])
def test_a_threshold_that_is_no_probability_is_refused(threshold: str) -> None:
    with pytest.raises(InputError, match=r"threshold must be in \(0, 1\]"):
        build("masks", f"pairs:file=mask.npz,threshold={threshold}")


def test_the_second_direction_hides_the_same_pairs_transposed() -> None:
    rows = batch(2)
    assert rows.items is not None
    rule = build("masks", "pairs:file=mask.npz")
    turned = BatchItems(*IDS, rows.items.candidates[0], rows.items.queries[None], first_are_queries=False)
    back = MaskInputs(rows.S.T, rows.mask.t(), items=turned)
    assert torch.equal(rule.hidden(back).T, rule.hidden(rows))


def test_two_batches_below_each_other_are_looked_up_apart() -> None:
    queries, candidates = np.array([10, 12, 13, 14]), np.array([[101, 103], [108, 100]])
    items = BatchItems(*IDS, queries, candidates)
    S = torch.zeros(4, 2)
    hidden = build("masks", "pairs:file=mask.npz").hidden(MaskInputs(S, Mask(S > 0, S == 0), items=items))
    assert hidden.tolist() == [[True, False], [False, True], [False, False], [False, True]]


def test_pairs_follow_their_ids_into_a_part_of_the_split(audited: Path) -> None:
    first, second = [IDS[0][14], IDS[0][10]], [IDS[1][100], IDS[1][5], IDS[1][101]]
    items = BatchItems(first, second, np.array([0, 1]), np.array([[0, 1, 2]]))
    S = torch.zeros(2, 3)
    hidden = build("masks", f"pairs:file={audited}").hidden(MaskInputs(S, Mask(S > 0, S == 0), items=items))
    assert hidden.tolist() == [[True, False, False], [False, False, True]]


def test_pairs_of_other_items_are_refused() -> None:
    items = BatchItems(["a", "b"], ["c", "d"], np.array([0, 1]), np.array([[0, 1]]))
    S = torch.zeros(2, 2)
    with pytest.raises(InputError, match=r"mask.npz must be of the items of this split; its first side has 20 items"):
        build("masks", "pairs:file=mask.npz").hidden(MaskInputs(S, Mask(S > 0, S == 0), items=items))


def test_numbers_of_rows_are_no_ids_of_another_split(tmp_path: Path) -> None:
    ids = tuple(map(str, range(4)))
    KnownPairs(np.array([0]), np.array([1]), np.array([0.9], np.float32), ids, ids).write(tmp_path / "mask.npz")
    items = BatchItems(["0", "1"], list(ids), np.array([0, 1]), np.array([[0, 1]]))
    S = torch.zeros(2, 2)
    with pytest.raises(InputError, match="must be of the items of this split"):
        build("masks", f"pairs:file={tmp_path}/mask.npz").hidden(MaskInputs(S, Mask(S > 0, S == 0), items=items))


@each("changes, says", [
    ({"left": np.array([99])}, r"left of .* must be rows 0..1; got 99..99"),
    ({"probability": np.array([1.5], np.float32)}, "must be numbers in 0..1"),
    ({"probability": np.array([np.nan], np.float32)}, "must be numbers in 0..1"),
    ({"left": np.array([0.5])}, "left of .* must be a column"),
    ({"left_ids": np.array(["a", "x"])}, "ids of the left side of .* must be those of the audit"),
    ({"schema": np.array("lossscope.pairs/9")}, "must be a mask.npz of `lossscope audit`"),
    ({"right": np.array([0, 1])}, "must be of one length"),
    ({"least": np.array(1.5)}, "least of .* must be a number in 0..1"),
    ({"least": np.array([0.1, 0.2])}, "least of .* must be a number in 0..1"),
    ({"least": np.array(np.nan)}, "least of .* must be a number in 0..1"),
])  # fmt: skip
def test_a_damaged_file_of_pairs_is_refused(tmp_path: Path, changes: dict[str, Any], says: str) -> None:
    file = tmp_path / "mask.npz"
    KnownPairs(np.array([0]), np.array([1]), np.array([0.9], np.float32), ("a", "b"), ("c", "d")).write(file)
    arrays = dict(np.load(file)) | changes
    np.savez(file, **arrays)
    with pytest.raises(InputError, match=says):
        _ = build("masks", f"pairs:file={file}").known


@each("least, threshold", [(0.05, 0.04), (0.3, 0.1), (0.01, 0.005)])
def test_a_threshold_below_what_the_file_lists_is_refused(tmp_path: Path, least: float, threshold: float) -> None:
    """Such a threshold would leave out less than it claims."""
    file = tmp_path / "mask.npz"
    pairs = np.array([0]), np.array([1]), np.array([0.9], np.float32)
    KnownPairs(*pairs, ("a", "b"), ("c", "d"), least=least).write(file)
    rows = replace(batch(), items=BatchItems(["a", "b"], ["c", "d"], np.array([0, 1]), np.array([[0, 1]])))
    with pytest.raises(InputError, match=rf"threshold must be in {least:g}\.\.1, as .* lists pairs from {least:g} on"):
        build("masks", f"pairs:file={file},threshold={threshold}").hidden(rows)
    assert build("masks", f"pairs:file={file},threshold={least}").hidden(rows).tolist() == [[False, True], [False] * 2]


def test_the_folder_of_an_audit_is_its_mask(audited: Path) -> None:
    assert rule_spec(str(audited.parent)) == f"pairs:file={audited.parent}"
    assert rule_spec("percent:share=0.9") == "percent:share=0.9"
    assert rule_spec("nothing/here") == "nothing/here"
    assert rule_spec(".") == "pairs:file=."


@each("typed", ["percent", "same-item", "Same_Item", "above:margin=0.2"])
def test_a_folder_that_is_named_like_a_rule_does_not_replace_it(audited: Path, typed: str) -> None:
    name = typed.partition(":")[0]
    (audited.parent / name).mkdir(exist_ok=True)
    shutil.copy(audited, audited.parent / name)
    assert build_rule(typed) == build("masks", typed)
    assert build_rule(f"./{name}") == build("masks", f"pairs:file={name}")


@each("typed", ["", " ", ":threshold=0.5"])
def test_an_empty_rule_is_not_the_file_in_this_folder(typed: str) -> None:
    assert Path("mask.npz").is_file()
    with pytest.raises(SpecError):
        build_rule(typed)
