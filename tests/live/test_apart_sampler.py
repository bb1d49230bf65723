"""Do suspects land in different batches: with the samplers alone, and in a real SentenceTransformerTrainer?"""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import lossscope
from lossscope.core.known_pairs import KnownPairs
from lossscope.core.text_digests import PairTexts, digest_texts
from lossscope.errors import InputError
from lossscope.live.apart_batches import apart_batches
from lossscope.live.apart_sampler import apart

library = pytest.importorskip("sentence_transformers")
datasets = pytest.importorskip("datasets")
pytest.importorskip("accelerate")

N, BATCH = 96, 8


def audit_file(folder: Path, pairs: Sequence[tuple[int, int]], n: int = N) -> Path:
    """Write the mask.npz of questions 0..n-1 and answers 0..n-1; some of their pairs are suspects."""
    ids = tuple(f"q{row}" for row in range(n)), tuple(f"d{row}" for row in range(n))
    left, right = np.array(pairs, np.int64).reshape(-1, 2).T
    texts = PairTexts(
        digest_texts(f"question {row}" for row in range(n)), digest_texts(f"answer {row}" for row in range(n)),
        np.zeros(len(left), bool),
    )  # fmt: skip
    KnownPairs(left, right, np.full(len(left), 0.5, np.float32), *ids, texts=texts).write(folder / "mask.npz")
    return folder / "mask.npz"


def data_of(negatives: Sequence[int] | None = None, n: int = N) -> Any:
    columns = {"anchor": [f"Question {row}" for row in range(n)], "positive": [f"answer  {row}" for row in range(n)]}
    if negatives is not None:
        columns["negative"] = [f"answer {row}" for row in negatives]
    return datasets.Dataset.from_dict(columns)


def sampler_of(file: Path, data: Any, drop_last: bool = False, **options: Any) -> Any:
    return apart(file, **options)(
        data, batch_size=BATCH, drop_last=drop_last, valid_label_columns=["label"], generator=torch.Generator(), seed=3
    )


def draw_pairs(seed: int, number: int, n: int = N) -> list[tuple[int, int]]:
    draw = np.random.default_rng(seed)
    return sorted({(i, j) for i, j in draw.integers(0, n, (number, 2)).tolist() if i != j})


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("mined", [False, True])
def test_no_batch_has_two_suspects_and_every_row_comes_once(tmp_path: Path, seed: int, mined: bool) -> None:
    pairs = draw_pairs(seed, 400)
    negatives = np.random.default_rng(seed).permutation(N).tolist() if mined else None
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "[0-9]+ of 96 rows have a mined negative")
        sampler = sampler_of(audit_file(tmp_path, pairs), data_of(negatives))
    batches = list(sampler)
    assert sorted(row for batch in batches for row in batch) == list(range(N))
    assert len(batches) == len(sampler) == N // BATCH
    candidates = [{row} if negatives is None else {row, negatives[row]} for row in range(N)]
    for batch in batches:
        assert not {(a, c) for a in batch for b in batch if a != b for c in candidates[b]} & set(pairs)


@pytest.mark.parametrize("drop_last", [False, True])
def test_without_suspects_the_batches_are_those_of_the_trainers_own_sampler(tmp_path: Path, drop_last: bool) -> None:
    from sentence_transformers.base.sampler import NoDuplicatesBatchSampler

    data = data_of(n=N - 3)
    options: Any = {"batch_size": BATCH, "drop_last": drop_last, "seed": 3}
    theirs = NoDuplicatesBatchSampler(data, generator=torch.Generator(), **options)
    mine = sampler_of(audit_file(tmp_path, []), data, drop_last)
    assert len(mine) == len(theirs)
    assert list(mine) == list(theirs)


def test_batches_follow_from_seed_and_epoch(tmp_path: Path) -> None:
    file = audit_file(tmp_path, draw_pairs(0, 300))
    sampler, again = sampler_of(file, data_of()), sampler_of(file, data_of())
    first = list(sampler)
    sampler.set_epoch(1)
    assert list(sampler) != first == list(again)
    again.set_epoch(1)
    assert list(sampler) == list(again)


def test_rows_of_one_text_are_apart_where_that_is_wanted(tmp_path: Path) -> None:
    file = audit_file(tmp_path, [])
    data = datasets.Dataset.from_dict(
        {"anchor": ["question 0"] * 8 + [f"question {row}" for row in range(8, 64)],
         "positive": [f"answer {row}" for row in range(64)]}
    )  # fmt: skip
    assert all(sum(row < 8 for row in batch) <= 1 for batch in sampler_of(file, data))
    both = sampler_of(file, data, no_duplicates=False)
    assert any(sum(row < 8 for row in batch) > 1 for batch in both)


def test_a_row_whose_own_negative_is_a_suspect_is_reported(tmp_path: Path) -> None:
    negatives = [(row + 1) % N for row in range(N)]
    file = audit_file(tmp_path, [(4, 5), (9, 10), (4, 70)])
    with pytest.warns(UserWarning, match=r"2 of 96 rows have a mined negative .* such as row 4"):
        sampler_of(file, data_of(negatives))
    assert apart(file).own_negatives(data_of(negatives)).tolist() == [4, 9]


@dataclass
class Groups:
    """Rows of one group exclude each other."""

    groups: list[int]

    def keys(self, row: int) -> list[int]:
        return [self.groups[row]]

    def excluded(self, row: int) -> set[int]:
        return {self.groups[row]}


def test_rows_left_over_are_exchanged_with_those_of_earlier_batches() -> None:
    """The last rows are of one group: in their drawn order they would be batches of one row."""
    groups = Groups([*range(10, 19), 1, 1, 1])
    batches = apart_batches(range(12), groups.keys, groups.excluded, 4, 3)
    assert len(batches) == 3
    assert sorted(row for batch in batches for row in batch) == list(range(12))
    assert all(len({groups.groups[row] for row in batch}) == len(batch) for batch in batches)


def test_what_cannot_be_parted_comes_in_further_batches_with_a_warning(tmp_path: Path) -> None:
    everything = [(i, j) for i in range(N) for j in range(40) if i != j]
    sampler = sampler_of(audit_file(tmp_path, everything), data_of())
    with pytest.warns(UserWarning, match=r"batches of 8, not 12: the last [0-9]+ rows come behind those"):
        batches = list(sampler)
    assert sorted(row for batch in batches for row in batch) == list(range(N))
    full = sampler_of(audit_file(tmp_path, everything), data_of(), drop_last=True)
    with pytest.warns(UserWarning, match="further ones repeat rows"):
        batches = list(full)
    assert {len(batch) for batch in batches} == {BATCH}
    assert len(batches) <= len(full)


def test_texts_of_no_audited_item_are_said(tmp_path: Path) -> None:
    file = audit_file(tmp_path, [(0, 1)], n=N)
    data = data_of(n=N + 2)
    with pytest.warns(
        UserWarning, match=r"4 of 196 texts are of no item of .*, such as anchor of row 96, 'Question 96'"
    ):
        sampler_of(file, data)
    with pytest.raises(InputError, match=r"4 of 196 texts .* Audit the data that you train on"):
        sampler_of(file, data, unknown="error")
    assert len(list(sampler_of(file, data, unknown="ignore"))) == 13


@pytest.mark.parametrize(
    ("data", "says"),
    [
        ({"positive": ["answer 1"], "anchor": ["question 1"]}, "they are the other way round"),
        ({"anchor": ["question 1"], "label": [1]}, "must have columns of anchors and positives; got anchor"),
        ({"anchor": ["question 1"], "positive": [1]}, "column positive must be texts; got 1, of type int"),
    ],
)
def test_data_of_other_columns_are_refused(tmp_path: Path, data: Any, says: str) -> None:
    with pytest.raises(InputError, match=says):
        sampler_of(audit_file(tmp_path, []), datasets.Dataset.from_dict(data))


def test_an_audit_without_texts_is_refused_before_training(tmp_path: Path) -> None:
    KnownPairs(np.array([0]), np.array([1]), np.array([0.9], np.float32), ("a", "b"), ("c", "d")).write(
        tmp_path / "mask.npz"
    )
    with pytest.raises(InputError, match="must name the texts of both sides"):
        apart(tmp_path)
    with pytest.raises(InputError, match="unknown must be one of warn, error, ignore"):
        apart(tmp_path, unknown="no")  # type: ignore[arg-type]


def test_it_is_pickled_without_the_texts(tmp_path: Path) -> None:
    batches = apart(audit_file(tmp_path, draw_pairs(0, 300)))
    (tmp_path / "mask.npz").unlink()
    copy = pickle.dumps(batches)
    assert len(copy) < 500
    assert pickle.loads(copy) == batches


@pytest.mark.filterwarnings("ignore")
def test_a_trainer_gets_batches_without_suspects(tmp_path: Path) -> None:
    """Two epochs, with checkpoints of the arguments; it evaluates on texts that no audit saw."""
    from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss

    from tests.live.tiny_sentences import sentence_model

    pairs = draw_pairs(1, 300)
    file = audit_file(tmp_path, pairs)
    model = sentence_model(tmp_path / "model")
    arguments = library.SentenceTransformerTrainingArguments(
        str(tmp_path / "out"), num_train_epochs=2, per_device_train_batch_size=BATCH, report_to=[], use_cpu=True,
        save_strategy="epoch", eval_strategy="epoch", disable_tqdm=True, batch_sampler=apart(file),
    )  # fmt: skip
    seen: list[list[int]] = []

    class Trainer(library.SentenceTransformerTrainer):  # type: ignore[misc, name-defined]
        def training_step(self, model: Any, inputs: Any, *more: Any, **options: Any) -> Any:
            seen.append(inputs["row"].tolist())
            return super().training_step(model, {k: v for k, v in inputs.items() if k != "row"}, *more, **options)

    trainer = Trainer(
        model=model, args=arguments, train_dataset=data_of(), eval_dataset=data_of(n=N + 20).select(range(N, N + 20)),
        loss=MultipleNegativesRankingLoss(model),
    )  # fmt: skip
    collate = trainer.data_collator

    def with_rows(features: list[dict[str, Any]]) -> Any:
        """Return the batch and its row numbers."""
        batch = collate(features)
        return {**batch, "row": torch.tensor([int(feature["anchor"].split()[1]) for feature in features])}

    trainer.data_collator = with_rows
    with_rows.valid_label_columns = collate.valid_label_columns  # type: ignore[attr-defined]
    evaluate = trainer.evaluate

    def plain_evaluate(*given: Any, **options: Any) -> Any:
        trainer.data_collator = collate
        result = evaluate(*given, **options)
        trainer.data_collator = with_rows
        return result

    trainer.evaluate = plain_evaluate
    trainer.train()
    epochs = seen[: N // BATCH], seen[N // BATCH :]
    for epoch in epochs:
        assert sorted(row for batch in epoch for row in batch) == list(range(N))
    assert epochs[0] != epochs[1]
    found = lossscope.suspects(file)
    for batch in seen:
        assert not found.hidden([f"q{row}" for row in batch], [f"d{row}" for row in batch]).any()
