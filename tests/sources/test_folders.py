"""Does a path alone open folders of other programs: Hugging Face, sentence-transformers, FAISS?"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from lossscope.errors import InputError
from lossscope.registry import build
from lossscope.sources.base import load
from lossscope.text.subwords import Subwords
from tests.each import each

SMALL = "scenes:train=12,val=6,test=6,size=16"
TOWER = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2}
ENDS = {"bos_token_id": 2, "eos_token_id": 3, "pad_token_id": 0}


def words() -> Subwords:
    return Subwords.train(build("datasets", SMALL).split("train").captions, 200, max_length=40)


def clip(path: Path) -> Path:
    transformers = pytest.importorskip("transformers")
    text = {**TOWER, **ENDS, "vocab_size": len(words()), "max_position_embeddings": 40}
    vision = {**TOWER, "image_size": 16, "patch_size": 8}
    config = transformers.CLIPConfig(text_config=text, vision_config=vision, projection_dim=12)
    transformers.CLIPModel(config).save_pretrained(path)
    (path / "tokenizer.json").write_text(words().content, encoding="utf-8")
    return path


def siglip(path: Path) -> Path:
    transformers = pytest.importorskip("transformers")
    text = {**TOWER, **ENDS, "vocab_size": len(words()), "max_position_embeddings": 40, "projection_size": 16}
    config = transformers.SiglipConfig(text_config=text, vision_config={**TOWER, "image_size": 16, "patch_size": 8})
    transformers.SiglipModel(config).save_pretrained(path)
    (path / "tokenizer.json").write_text(words().content, encoding="utf-8")
    (path / "tokenizer_config.json").write_text('{"pad_token": "[PAD]"}', encoding="utf-8")
    return path


def texts(path: Path) -> Path:
    """Write a sentence-transformers folder by hand, as the library saves it."""
    pytest.importorskip("sentence_transformers")
    transformers = pytest.importorskip("transformers")
    config = transformers.BertConfig(**TOWER, vocab_size=len(words()), max_position_embeddings=48)
    transformers.BertModel(config).save_pretrained(path)
    special = dict(
        zip(("pad", "unk", "cls", "sep", "mask"), ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"), strict=True)
    )
    (path / "tokenizer.json").write_text(words().content, encoding="utf-8")
    tokens = {f"{kind}_token": token for kind, token in special.items()}
    more = {"tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": 40}
    (path / "tokenizer_config.json").write_text(json.dumps(tokens | more))
    modules = [
        ("0", "", "sentence_transformers.models.Transformer"),
        ("1", "1_Pooling", "sentence_transformers.models.Pooling"),
    ]
    entries = [{"idx": int(name), "name": name, "path": subfolder, "type": kind} for name, subfolder, kind in modules]
    (path / "modules.json").write_text(json.dumps(entries))
    (path / "1_Pooling").mkdir()
    pooling = {"word_embedding_dimension": 16, "pooling_mode_mean_tokens": True}
    (path / "1_Pooling" / "config.json").write_text(json.dumps(pooling))
    return path


def indices(path: Path) -> Path:
    faiss = pytest.importorskip("faiss")
    path.mkdir()
    rng = np.random.default_rng(0)
    for name, rows in (("images", 8), ("captions", 40)):
        vectors = rng.normal(size=(rows, 16)).astype("f")
        index = faiss.IndexFlatIP(16)
        index.add(vectors / np.linalg.norm(vectors, axis=1, keepdims=True))
        faiss.write_index(index, str(path / f"{name}.faiss"))
    return path


def run(*arguments: str) -> Any:
    from lossscope_cli import app

    return CliRunner().invoke(app, list(arguments))


@each("make, objective", [(clip, "infonce"), (siglip, "siglip"), (texts, "ntxent:tau=0.05")])
def test_a_folder_is_probed_by_its_path_alone(tmp_path: Path, make: Callable[[Path], Path], objective: str) -> None:
    folder = make(tmp_path / "model")
    result = run("cocos", str(folder), "--split", "test", "--format", "json")
    assert result.exit_code == 0, result.output
    assert "names no data: using the built-in scenes" in result.stderr
    rows = json.loads(result.stdout)["rows"]
    assert all(row["objective"].startswith(objective) for row in rows)
    embedded = load(folder, split="test", data=SMALL)
    assert len(embedded.image_ids) == 6
    assert run("eval", str(folder), "--data", SMALL).exit_code == 0


def test_a_text_model_compares_captions(tmp_path: Path) -> None:
    from sentence_transformers import SentenceTransformer

    folder = texts(tmp_path / "model")
    embedded = load(folder, split="test", data=SMALL)
    split = build("datasets", SMALL).split("test")
    assert embedded.images is not None and embedded.captions is not None
    assert (len(embedded.images), len(embedded.captions)) == (6, 24)
    direct = SentenceTransformer(str(folder), device="cpu").encode(split.captions[5:7], convert_to_tensor=True)
    direct = torch.nn.functional.normalize(direct, dim=1)
    torch.testing.assert_close(embedded.images[1], direct[0], atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(embedded.captions[4], direct[1], atol=1e-5, rtol=1e-5)
    assert embedded.caption_image[4] == 1


@each("text, fragment", [
    ("[]", "must name at least one module"),
    ("{}", r"modules\.json, the modules, must be a list; got \{\}"),
    ("[5]", r"each module of .*modules\.json must be an object; got 5"),
    ('[{"path": ""}]', "must be sentence_transformers' own; got None, not run"),
    ('[{"type": "os.system"}]', "must be sentence_transformers' own; got 'os.system', not run"),
    ("[", r"modules\.json must be whole JSON"),
    (100_000 * "[", r"modules\.json must be JSON of ordinary depth"),
    *(
        (f'[{{"type": "sentence_transformers.models.Transformer", "path": {path}}}]', "must lie in its folder; got")
        for path in ('"/etc"', '"../other"', '"a/../../other"', "5")
    ),
])  # fmt: skip
def test_modules_that_are_not_the_librarys_are_refused(tmp_path: Path, text: str, fragment: str) -> None:
    (tmp_path / "modules.json").write_text(text)
    with pytest.raises(InputError, match=fragment):
        load(tmp_path)


def test_code_in_a_folder_is_refused_without_a_question(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, mark = texts(tmp_path / "model"), tmp_path / "ran"
    (folder / "own.py").write_text(f"open({str(mark)!r}, 'w')\n")
    config = json.loads((folder / "config.json").read_text()) | {"model_type": "of_its_own"}
    names = {"AutoConfig": "own.Config", "AutoModel": "own.Model"}
    (folder / "config.json").write_text(json.dumps(config | {"auto_map": names}))

    def fail(*_: object) -> str:
        raise AssertionError("a question on the terminal")

    monkeypatch.setattr("builtins.input", fail)
    with pytest.raises(InputError, match="must be a whole sentence-transformers folder"):
        load(folder, split="test", data=SMALL)
    assert not mark.exists()


def test_flat_indices_are_a_dump(tmp_path: Path) -> None:
    faiss = pytest.importorskip("faiss")
    folder = indices(tmp_path / "dump")
    embedded = load(folder)
    assert embedded.images is not None
    assert embedded.images.shape == (8, 16)
    assert embedded.caption_image.tolist() == np.repeat(np.arange(8), 5).tolist()
    result = run("cocos", str(folder), "--format", "json")
    assert result.exit_code == 0
    objectives = {row["objective"].partition(":")[0] for row in json.loads(result.stdout)["rows"]}
    assert objectives == {"triplet", "triplet_sh", "ntxent"}
    faiss.write_index(faiss.index_factory(16, "HNSW4"), str(folder / "images.faiss"))
    with pytest.raises(InputError, match=r"must be a flat FAISS index, .* got IndexHNSWFlat"):
        load(folder)
    (folder / "images.faiss").write_bytes(b"no index")
    with pytest.raises(InputError, match="must be a whole FAISS index"):
        load(folder)


@each("suffix", ["npy", "txt"])
def test_image_rows_of_captions_can_be_given_in_a_file(tmp_path: Path, suffix: str) -> None:
    rng = np.random.default_rng(0)
    np.savez(tmp_path / "dump.npz", images=rng.normal(size=(6, 4)), captions=rng.normal(size=(11, 4)))
    with pytest.raises(InputError, match="Give a file of those rows: --caption-image"):
        load(tmp_path / "dump.npz")
    rows, file = np.arange(11) % 6, tmp_path / f"rows.{suffix}"
    np.save(file, rows) if suffix == "npy" else np.savetxt(file, rows, fmt="%d")
    assert load(tmp_path / "dump.npz", caption_image=file).caption_image.tolist() == rows.tolist()
    result = run("cocos", str(tmp_path / "dump.npz"), "--caption-image", str(file), "--format", "json")
    assert result.exit_code == 0, result.output
    file.write_text("one\ntwo\n")
    with pytest.raises(InputError, match="with one whole number per caption"):
        load(tmp_path / "dump.npz", caption_image=file)
