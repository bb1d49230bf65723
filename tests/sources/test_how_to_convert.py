"""When a file is no source, does the message have lines that convert it, and do these lines work?"""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from lossscope.errors import InputError
from lossscope.sources.base import find_source, load
from tests.each import each

Q = np.random.default_rng(0).normal(size=(6, 4)).astype(np.float32)
D = Q + 0.1


FILES: dict[str, Callable[[Path], Any]] = {
    "a.csv": lambda path: pd.DataFrame(Q).to_csv(path, index=False),
    "a.tsv": lambda path: pd.DataFrame(Q).to_csv(path, index=False, sep="\t"),
    "a.parquet": lambda path: pd.DataFrame(Q, columns=list("abcd")).to_parquet(path),
    "a.npy": lambda path: np.save(path, Q),
    "a.pkl": lambda path: path.write_bytes(pickle.dumps(Q)),
    "one.pt": lambda path: torch.save(torch.tensor(Q).half(), path),
    "one.pth": lambda path: torch.save({"vectors": torch.tensor(Q)}, path),
    "others.pt": lambda path: torch.save({"a": torch.tensor(Q), "b": torch.tensor(D).bfloat16()}, path),
}


@each("name", list(FILES))
def test_the_lines_of_the_message_make_a_dump_that_is_read(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A list of formats, or `must be a lossscope checkpoint`, was the answer to each of these files."""
    monkeypatch.chdir(tmp_path)
    if name.endswith(".parquet"):
        pytest.importorskip("pyarrow")
    FILES[name](Path(name))
    with pytest.raises(InputError) as error:
        load(name)
    _, _, lines = str(error.value).partition("in Python: ")
    lines = lines.partition(", or their similarities")[0]
    assert lines, error.value
    exec(lines.replace("x[...]", "x").replace("=...", "=np.roll(arrays[0], 1, 0)"), {"arrays": [D]})
    split = load(f"{Path(name).stem}.npz")
    assert split.images is not None and np.allclose(split.images, Q / np.linalg.norm(Q, axis=1, keepdims=True), 1e-2)
    assert not split.sides.is_one_set and not split.sides.is_image_text


def test_one_array_may_be_similarities_or_belong_to_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    np.save("S.npy", Q @ np.concatenate([D, D]).T)  # a square one is read as it is
    with pytest.raises(InputError) as error:
        load("S.npy")
    exec("import numpy as np; " + str(error.value).partition("similarities: ")[2], {})
    assert load("S.npz").similarity is not None
    Path("dump").mkdir()
    for name, rows in (("images", Q), ("captions", D)):
        np.save(f"dump/{name}.npy", rows)
    with pytest.raises(InputError, match=r"one array of a folder that is a dump. Give the folder: dump$"):
        find_source("dump/images.npy")


@each("name", ["rows.jsonl", "rows.csv", "saved", "saved_splits"])
def test_rows_of_text_are_data_of_a_model(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    if name.startswith("saved"):
        path.mkdir()
        (path / ("dataset_dict.json" if name == "saved_splits" else "state.json")).write_text("{}")
        wanted = f"--data saved:root={path}; without a model: lossscope doctor {path}"
    else:
        path.write_text(json.dumps({"query": "a", "positive": "b"}))
        wanted = f"--data texts:file={path}; without a model: lossscope doctor {path}"
    with pytest.raises(InputError) as error:
        find_source(path)
    assert wanted in str(error.value)


@each(
    "content", [{"encoder.weight": torch.ones(2, 2)}, {"a": torch.ones(2, 2), "epoch": 1}, [1, 2], {"n": torch.ones(2)}]
)
def test_weights_and_other_content_get_no_such_lines(content: Any, tmp_path: Path) -> None:
    torch.save(content, tmp_path / "a.pt")
    with pytest.raises(InputError) as error:
        load(tmp_path / "a.pt")
    assert "np.savez" not in str(error.value)


@each("suffix, module", [
    (".faiss", "faiss"),
    (".index", "faiss"),
    (".usearch", "usearch.index"),
    (".hnsw", "hnswlib"),
    (".lance", "lance"),
])  # fmt: skip
def test_an_index_of_one_side_is_named_with_the_lines_that_read_it(suffix: str, module: str, tmp_path: Path) -> None:
    """The list of formats was the answer."""
    path = tmp_path / f"a{suffix}"
    path.write_bytes(b"IxFI")
    with pytest.raises(InputError, match=r"it is one index, of one side\. Save both sides, in Python: ") as error:
        find_source(path)
    assert f"import numpy as np, {module}; " in str(error.value) and "np.savez(" in str(error.value)


def test_the_lines_for_a_flat_index_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    faiss = pytest.importorskip("faiss")
    monkeypatch.chdir(tmp_path)
    index = faiss.IndexFlatIP(4)
    index.add(Q)
    faiss.write_index(index, "a.faiss")
    with pytest.raises(InputError) as error:
        find_source("a.faiss")
    exec(str(error.value).partition("in Python: ")[2].replace("=...", "=D"), {"D": D})
    assert load("a.npz").images is not None
