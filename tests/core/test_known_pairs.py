"""Does a mask find the pairs of an audit in the data of that audit, by ids and by the texts of these ids?"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from lossscope.audit.output.folder import mask_of
from lossscope.audit.steps.options import AuditOptions
from lossscope.audit.steps.run import audit
from lossscope.core.embedded import SplitEmbeddings
from lossscope.core.known_pairs import KnownPairs, read_known_pairs
from lossscope.datasets.base import Split
from lossscope.engine.sweep import Sweep
from lossscope.errors import InputError
from lossscope.registry import build
from lossscope.sources.base import load
from lossscope.training.inputs import require_known_pairs
from lossscope.training.loop import train
from tests import tiny
from tests.each import each

ROWS = [(f"How is thing {row} made?", f"Thing {row} is made of part {row // 2}.") for row in range(40)]
OTHER = [(f"Where does animal {row} live?", f"Animal {row} lives in place {row // 2}.") for row in range(40)]
SCENES = "scenes:train=60,val=20,test=20,size=16,ambiguity=0.4"
pytestmark = pytest.mark.usefixtures("transferred")  # these tests are about probabilities
PAIR = np.array([0]), np.array([1]), np.array([0.9], np.float32)


def texts(path: Path, rows: Sequence[tuple[str, str]], ids: Sequence[str] = ()) -> str:
    """Return the spec of a file of rows; without ids the reader makes them up."""
    named: list[dict[str, str]] = [{"id": id} for id in ids] or [{} for _ in rows]
    lines = [json.dumps({"query": q, "positive": d, **fields}) for (q, d), fields in zip(rows, named, strict=True)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return f'texts:file="{path}",val_share=0,test_share=0'


def train_split(data: str) -> Split:
    split: Split = build("datasets", data).split("train")
    return split


def mask(folder: Path, data: str, **options: Any) -> Any:
    """Return the rule of an audit of data alone, as training takes it."""
    mask_of(audit([], AuditOptions.of(data, sheet=10, **options))).write(folder / "mask.npz")
    return build("masks", f"pairs:file={folder}/mask.npz")


def embedded(split: Split) -> SplitEmbeddings:
    """Return a split under a model of random vectors, as from a checkpoint."""
    random = torch.Generator().manual_seed(0)
    first, second = (
        torch.nn.functional.normalize(torch.randn(n, 8, generator=random), dim=1)
        for n in (len(split.image_ids), len(split.caption_ids))
    )
    return SplitEmbeddings(
        "random", first, second, None, None, split.image_ids, split.caption_ids, "", relations=split.relations,
        read_texts=split.texts_by_id,
    )  # fmt: skip


def sweep(rule: Any, source: SplitEmbeddings, probe: str = "cocos") -> None:
    file = rule.file
    probes = (f"false_negatives:audit={file}",) if probe == "false_negatives" else (probe,)
    Sweep(("ntxent",), probes, batch_size=8, masks=() if probe == "false_negatives" else (f"{file}",)).run(source)


@each("probe", ["cocos", "false_negatives"])
def test_a_mask_of_other_texts_with_the_same_made_up_ids_is_refused(tmp_path: Path, probe: str) -> None:
    """Both files name their rows train-q00000, train-q00001, ...: a probability would land on an unrelated pair."""
    rule, other = mask(tmp_path, texts(tmp_path / "a.jsonl", ROWS)), texts(tmp_path / "b.jsonl", OTHER)
    assert train_split(other).image_ids == list(rule.known.left_ids)
    says = r"items of this split; 40 of 40 items .* have another text there, such as 'train-q00000', here 'Where does"
    with pytest.raises(InputError, match=says):
        require_known_pairs([rule], train_split(other))
    with pytest.raises(InputError, match=says):
        sweep(rule, embedded(train_split(other)), probe)


def test_a_mask_of_the_same_lines_in_another_order_is_refused_where_ids_are_made_up(tmp_path: Path) -> None:
    rule = mask(tmp_path, texts(tmp_path / "a.jsonl", ROWS))
    with pytest.raises(InputError, match="have another text there"):
        require_known_pairs([rule], train_split(texts(tmp_path / "b.jsonl", ROWS[::-1])))


def test_a_mask_of_scenes_is_not_one_of_other_scenes(tmp_path: Path) -> None:
    """Pictures have no texts, but their captions have."""
    rule, other = mask(tmp_path, SCENES), train_split(SCENES.replace("0.4", "0.1"))
    assert other.caption_ids == list(rule.known.right_ids)
    with pytest.raises(InputError, match=r"items of this split; \d+ of 300 items .* have another text there"):
        require_known_pairs([rule], other)


@each("probe", ["cocos", "false_negatives"])
def test_a_mask_is_taken_by_the_data_that_was_audited(tmp_path: Path, probe: str) -> None:
    ids = [f"row-{row}" for row in range(40)]
    order = np.random.default_rng(0).permutation(40)
    rule = mask(tmp_path, texts(tmp_path / "a.jsonl", ROWS, ids), keep=0.0)
    other = texts(tmp_path / "b.jsonl", [ROWS[row] for row in order], [ids[row] for row in order])
    few = texts(tmp_path / "c.jsonl", ROWS[:12], ids[:12])
    for spec in (texts(tmp_path / "a.jsonl", ROWS, ids), few):
        require_known_pairs([rule], train_split(spec))
        sweep(rule, embedded(train_split(spec)), probe)
    split = train_split(other)
    named = replace(split, caption_ids=[rule.known.right_ids[row] for row in order])  # ids made up by order
    require_known_pairs([rule], named)
    found = rule.known.probabilities(
        named.image_ids, named.caption_ids, np.arange(40), np.arange(40), named.texts_by_id
    )
    dense = np.zeros((40, 40), np.float32)
    dense[rule.known.left, rule.known.right] = rule.known.probability
    assert dense.any()
    assert np.array_equal(found, dense[np.ix_(order, order)])


def test_a_mask_of_texts_alone_is_taken_by_a_checkpoint_and_by_a_dump_of_ids(tmp_path: Path) -> None:
    rule = mask(tmp_path, tiny.SCENES)
    recipe = replace(tiny.RECIPE, epochs=1, mask=f"{tmp_path}")
    train(recipe, tmp_path / "run")
    source = load(tmp_path / "run", split="train", cache=False)
    sweep(rule, source)
    sweep(rule, replace(source, read_texts=None))
    with pytest.raises(InputError, match="have another text there"):
        sweep(rule, load(tmp_path / "run", split="train", data=f"{tiny.SCENES},ambiguity=0.5", cache=False))


def test_texts_are_compared_once_for_a_split(tmp_path: Path) -> None:
    rule, split = mask(tmp_path, tiny.SCENES), train_split(tiny.SCENES)
    reads = []

    def read() -> Any:
        reads.append(1)
        return split.texts_by_id()

    sweep(rule, replace(embedded(split), read_texts=read))
    sweep(rule, replace(embedded(split), read_texts=read), "false_negatives")
    assert len(reads) == 1


def test_an_id_that_two_items_have_is_refused() -> None:
    """Probabilities of both would add up: 0.6 + 0.7 = 1.3."""
    twice = KnownPairs(
        np.array([0, 1]), np.array([0, 0]), np.array([0.6, 0.7], np.float32), ("a", "a"), ("c", "d"), "m.npz"
    )
    with pytest.raises(InputError, match=r"first side of m.npz must differ, .* 'a' occurs twice"):
        twice.require_items(["a", "b"], ["c", "d"])
    with pytest.raises(InputError, match=r"second side of this split must differ, .* 'c' occurs twice"):
        KnownPairs(*PAIR, ("a", "b"), ("c", "d")).require_items(["a", "b"], ["c", "d", "c"])
    same = twice.probabilities(["a", "a"], ["c", "d"], np.arange(2), np.arange(2))
    assert same.tolist() == pytest.approx(np.array([[0.6, 0], [0.7, 0]])), "pairs of the same items are known"


def test_a_mask_that_is_not_there_is_explained_by_the_state_of_its_audit(tmp_path: Path) -> None:
    """For any missing file in an audit's folder, the message said that the audit is ranked only."""
    document, refused = tmp_path / "audit.json", "got a ranked-only audit, which has no mask. Label its sheet.html"
    document.write_text(json.dumps({"state": "ranked only"}))
    for path in (tmp_path, tmp_path / "mask.npz"):
        with pytest.raises(InputError, match=refused):
            read_known_pairs(path)
    with pytest.raises(InputError, match=r"maks\.npz must be the pairs of an audit; it must exist"):
        read_known_pairs(tmp_path / "maks.npz")
    for state in ({"state": "calibrated"}, {}):
        document.write_text(json.dumps(state))
        with pytest.raises(InputError, match=r"mask\.npz must be the pairs of an audit; it must exist"):
            read_known_pairs(tmp_path)


def test_a_file_without_texts_is_taken_by_its_ids(tmp_path: Path) -> None:
    """For an audit of a dump, or of an earlier version."""
    split = train_split(tiny.SCENES)
    KnownPairs(*PAIR, tuple(split.image_ids), tuple(split.caption_ids)).write(tmp_path / "mask.npz")
    read_known_pairs(tmp_path).require_items(split.image_ids, split.caption_ids, split.texts_by_id)
