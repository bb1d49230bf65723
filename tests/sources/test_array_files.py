"""Are a lone matrix, tensors in a torch file and tables of numbers read as a dump of the same arrays is?"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from lossscope.core.embedded import SplitEmbeddings
from lossscope.doctor.examination.examine import examine
from lossscope.errors import InputError
from lossscope.sources.base import find_source, load
from tests.each import each

RNG = np.random.default_rng(0)
Q = RNG.normal(size=(12, 4)).astype(np.float32)
D = (Q + 0.3 * RNG.normal(size=(12, 4))).astype(np.float32)
LABELS = np.arange(12) // 3
TABLE = pd.DataFrame(Q, columns=[f"d{column}" for column in range(4)]).assign(label=[f"c{label}" for label in LABELS])
LISTS = pd.DataFrame({"embedding": list(Q), "label": LABELS, "text": ["x"] * 12})
PAIRS = pd.DataFrame({"document_embedding": list(D), "query_embedding": list(Q)})

SIDES = {"queries": torch.tensor(Q), "documents": torch.tensor(D)}
TORCH: dict[str, tuple[Any, dict[str, Any]]] = {
    "sides": (SIDES, {"queries": Q, "documents": D}),
    "tuple": ((torch.tensor(Q), torch.tensor(D)), {"queries": Q, "documents": D}),
    "list": ([torch.tensor(Q), torch.tensor(D)], {"queries": Q, "documents": D}),
    "images": ({"images": torch.tensor(Q), "captions": torch.tensor(D), "epoch": 3}, {"images": Q, "captions": D}),
    "set": ({"embeddings": torch.tensor(Q), "labels": torch.tensor(LABELS)}, {"embeddings": Q, "labels": LABELS}),
    "texts": ({"embeddings": torch.tensor(Q), "labels": list(TABLE.label)}, {"embeddings": Q, "labels": LABELS}),
    "gradients": (
        {"queries": torch.nn.Parameter(torch.tensor(Q)), "documents": torch.tensor(D)},
        {"queries": Q, "documents": D},
    ),
    "similarity": ({"similarity": torch.tensor(Q @ D.T)}, {"similarity": Q @ D.T}),
    "nested": ({"val": SIDES}, {"queries": Q, "documents": D}),
}
TABLES: dict[str, tuple[Callable[[Path], Any], dict[str, Any]]] = {
    "set.csv": (lambda path: TABLE.to_csv(path, index=False), {"embeddings": Q, "labels": LABELS}),
    "index.csv": (TABLE.to_csv, {"embeddings": Q, "labels": LABELS}),
    "set.tsv": (lambda path: TABLE.to_csv(path, index=False, sep="\t"), {"embeddings": Q, "labels": LABELS}),
    "set.parquet": (TABLE.to_parquet, {"embeddings": Q, "labels": LABELS}),
    "lists.parquet": (LISTS.to_parquet, {"embeddings": Q, "labels": LABELS}),
    "pairs.parquet": (PAIRS.to_parquet, {"queries": Q, "documents": D}),
}


def as_dump(folder: Path, arrays: dict[str, Any]) -> SplitEmbeddings:
    np.savez(folder / "expected.npz", **arrays)
    return load(folder / "expected.npz")


def require_equal(split: SplitEmbeddings, expected: SplitEmbeddings) -> None:
    for name in ("images", "captions", "similarity"):
        ours, theirs = getattr(split, name), getattr(expected, name)
        assert (ours is None) == (theirs is None)
        assert ours is None or np.allclose(ours, theirs, atol=1e-6), name
    assert split.sides == expected.sides
    assert np.array_equal(split.relations.positives, expected.relations.positives)
    if expected.relations.labels is not None:
        assert np.array_equal(split.relations.labels, expected.relations.labels)


@each("name", list(TORCH), "suffix", [".pt", ".pth"])
def test_tensors_of_a_torch_file_are_a_dump(name: str, suffix: str, tmp_path: Path) -> None:
    """A message told people to convert them by hand."""
    content, arrays = TORCH[name]
    torch.save(content, tmp_path / f"a{suffix}")
    require_equal(load(tmp_path / f"a{suffix}"), as_dump(tmp_path, arrays))


def test_a_split_is_taken_of_a_dict_of_splits_and_it_says_so(tmp_path: Path) -> None:
    path = tmp_path / "a.pt"
    torch.save({"train": SIDES, "test": {name: rows[:5] for name, rows in SIDES.items()}}, path)
    train, test = load(path, split="train"), load(path, split="test")
    assert (len(train.image_ids), train.split, len(test.image_ids), test.split) == (12, "train", 5, "test")
    assert test.notices[0] == f"{path} is read for its 'test'; train is not read"
    assert train.fingerprint != test.fingerprint
    with pytest.raises(InputError, match=r"--split of .*a\.pt must be one of train, test; got val"):
        load(path, split="val")
    with pytest.raises(InputError, match="must be one of train, test; got none"):
        load(path)


@each("content", [
    {"model.weight": torch.ones(2, 2), "queries": torch.ones(2, 2), "documents": torch.ones(2, 2)},
    {"state_dict": {}, "queries": torch.ones(2, 2), "documents": torch.ones(2, 2)},
    {"queries": torch.ones(2, 2)},
])  # fmt: skip
def test_a_model_is_no_dump(content: Any, tmp_path: Path) -> None:
    torch.save(content, tmp_path / "a.pt")
    assert type(find_source(tmp_path / "a.pt")).__name__ != "Dump"


def test_code_in_a_torch_file_is_never_run(tmp_path: Path) -> None:
    class Evil:
        def __reduce__(self) -> Any:
            return (Path.touch, (tmp_path / "ran",))

    torch.save({"queries": torch.tensor(Q), "documents": Evil()}, tmp_path / "a.pt")
    with pytest.raises(InputError, match="must hold plain data"):
        load(tmp_path / "a.pt")
    assert not (tmp_path / "ran").exists()


@each("name", list(TABLES))
def test_a_table_of_numbers_is_a_dump_and_says_which_columns_it_took(name: str, tmp_path: Path) -> None:
    write, arrays = TABLES[name]
    write(tmp_path / name)
    split = load(tmp_path / name)
    require_equal(split, as_dump(tmp_path, arrays))
    assert "its embedding is" in split.notices[0] or "is two sides: its 'query_embedding' and" in split.notices[0]
    assert ("'' is not read" in split.notices[0]) == (name == "index.csv")
    assert ("'text' is not read" in split.notices[0]) == (name == "lists.parquet")


@each("header, row", [
    ("query,positive,label", "a,b,1"),
    ("sentence1,sentence2,score,label", "a,b,0.5,1"),
    ("d0,d1", "0.1,0.2"),
    ("d0,label", "0.1,1"),
    ("d0,d1,text,label", "0.1,0.2,x,1"),
])  # fmt: skip
def test_rows_of_text_and_tables_without_a_label_are_no_dump(header: str, row: str, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(f"{header}\n{row}\n")
    with pytest.raises(InputError, match="it is a table"):
        find_source(tmp_path / "a.csv")


def test_values_that_are_no_numbers_are_named(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("d0,d1,label\n0.1,0.2,a\n0.1,x,a\n")
    with pytest.raises(InputError, match=r"column 'd1' of .*a\.csv must be numbers; .*'x'"):
        load(tmp_path / "a.csv")
    pd.DataFrame({"embedding": [[0.1, 0.2], [0.1]], "label": [0, 0]}).to_parquet(tmp_path / "a.parquet")
    with pytest.raises(InputError, match=r"column 'embedding' of .* must be lists of one length; got \[1, 2\]"):
        load(tmp_path / "a.parquet")


def test_a_square_matrix_is_similarities_and_says_so(tmp_path: Path) -> None:
    np.save(tmp_path / "S.npy", Q @ D.T)
    split = load(tmp_path / "S.npy")
    require_equal(split, as_dump(tmp_path, {"similarity": Q @ D.T}))
    assert split.notices[0].endswith("S.npy is read as 12 x 12 similarities, one row per query or image")
    assert load(tmp_path / "S.npy", sides="query/document").sides.text == "query/document"


def test_a_matrix_with_the_image_of_each_caption_is_similarities(tmp_path: Path) -> None:
    np.save(tmp_path / "S.npy", Q @ np.concatenate([D, D]).T)
    np.save(tmp_path / "rows.npy", np.tile(np.arange(12), 2))
    split = load(tmp_path / "S.npy", caption_image=tmp_path / "rows.npy")
    assert split.relations.caption_image.tolist() == [*range(12), *range(12)]


@each("shape", [(4, 8), (8, 4), (8,), (2, 2, 2)])
def test_any_other_array_is_one_side_and_refused(shape: tuple[int, ...], tmp_path: Path) -> None:
    """4 x 8 could be two captions of each image: an embedding must not be read so."""
    np.save(tmp_path / "a.npy", RNG.normal(size=shape))
    with pytest.raises(InputError, match=r"it is one array\. Save both sides"):
        load(tmp_path / "a.npy")


def test_a_square_matrix_of_unit_rows_may_be_embeddings_and_is_refused(tmp_path: Path) -> None:
    rows = RNG.normal(size=(8, 8))
    np.save(tmp_path / "a.npy", rows / np.linalg.norm(rows, axis=1, keepdims=True))
    with pytest.raises(InputError, match=r"rows of unit length, as embeddings have: it is one array\. Save both sides"):
        load(tmp_path / "a.npy")


def test_the_doctor_reads_a_table_of_numbers_as_embeddings(tmp_path: Path) -> None:
    TABLE.to_csv(tmp_path / "a.csv", index=False)
    (examination,) = examine(tmp_path / "a.csv").examinations
    assert any("is a labelled set" in notice for notice in examination.notices)
