"""Do text models give the vectors of their libraries, run no code of their folders, and report cut texts?"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from click.testing import Result
from lossscope_cli import app
from safetensors.torch import load_file, save_file
from torch import Tensor
from typer.testing import CliRunner

from lossscope.core.embedded import SplitEmbeddings
from lossscope.core.request import Request
from lossscope.datasets.base import Split
from lossscope.errors import InputError
from lossscope.sources import sentence_transformers
from lossscope.sources import text_encoder as text_encoder_source
from lossscope.sources._row_cache import RowCache
from lossscope.sources._text_model import TextModel
from lossscope.sources._text_network import TextNetwork
from lossscope.sources._text_vectors import TextVectors
from lossscope.sources.base import find_source, load
from lossscope.sources.original import OriginalFile
from lossscope.sources.text_encoder import TextEncoderFolder, pool_tokens
from tests.each import each
from tests.rewriting import STAYS, replace, rewrite
from tests.sources import test_folders
from tests.sources.text_folders import DATA, change_config, text_encoder, texts_of, words

transformers = pytest.importorskip("transformers")
CLOSE = 2e-6  # between a text alone and the same text in a padded batch


def read(folder: Path, *options: str, **request: Any) -> SplitEmbeddings:
    return load(folder, **{"split": "val", "data": DATA, "cache": False, "encoder": options, **request})


def states_of(folder: Path, text: str, length: int = 128) -> Tensor:
    """Return the last states of one text alone, (tokens, d), by transformers."""
    tokeniser, model = opened(folder)
    given = {"input_ids": tokeniser(text, truncation=True, max_length=length, return_tensors="pt")["input_ids"]}
    with torch.no_grad():
        return model(**given).last_hidden_state[0]


@cache
def opened(folder: Path) -> tuple[Any, Any]:
    model = transformers.AutoModel.from_pretrained(folder).eval()
    model = model.encoder if model.config.model_type == "t5" else model
    return transformers.AutoTokenizer.from_pretrained(folder), model


POOLINGS: dict[str, Callable[[Tensor], Tensor]] = {
    "mean": lambda states: states.mean(0),
    "cls": lambda states: states[0],
    "last": lambda states: states[-1],
}


def unit(vectors: list[Tensor]) -> Tensor:
    return torch.nn.functional.normalize(torch.stack(vectors).float(), dim=1)


def far(ours: Tensor | None, expected: Tensor) -> float:
    assert ours is not None and ours.shape == expected.shape
    return float((ours - expected).abs().max())


@each("kind", ["bert", "distilbert", "gpt2", "t5"])
def test_vectors_are_those_of_every_text_alone(tmp_path: Path, kind: str) -> None:
    folder = text_encoder(tmp_path / "model", kind)
    states = [[states_of(folder, text) for text in side] for side in texts_of()]
    for name, pool in POOLINGS.items():
        embedded = read(folder, f"pooling={name}", batch_size=5)
        for ours, side in zip((embedded.images, embedded.captions), states, strict=True):
            assert far(ours, unit(list(map(pool, side)))) <= CLOSE
        assert embedded.sides.labels == ("q2d", "d2q")
        assert embedded.objective == "ntxent:tau=0.05"


def test_mean_pooling_is_that_of_sentence_transformers(tmp_path: Path) -> None:
    library = pytest.importorskip("sentence_transformers")
    folder = text_encoder(tmp_path / "model")
    model = library.SentenceTransformer(str(folder), device="cpu")  # without modules.json: mean pooling
    embedded = read(folder)
    for ours, side in zip((embedded.images, embedded.captions), texts_of(), strict=True):
        assert far(ours, unit(list(model.encode(side, convert_to_tensor=True)))) <= CLOSE


def test_prefixes_stand_before_the_texts_of_their_side(tmp_path: Path) -> None:
    folder = text_encoder(tmp_path / "model")
    embedded = read(folder, "query_prefix=the query: ", "document_prefix=it: ")
    for ours, side, prefix in zip(
        (embedded.images, embedded.captions), texts_of(), ("the query: ", "it: "), strict=True
    ):
        assert far(ours, unit([states_of(folder, prefix + text).mean(0) for text in side])) <= CLOSE
    assert embedded.fingerprint != read(folder).fingerprint != read(folder, "query_prefix=the query: ").fingerprint


def test_texts_are_cut_to_max_length_and_it_is_said(tmp_path: Path) -> None:
    folder = text_encoder(tmp_path / "model")
    embedded = read(folder, "max_length=9", "pooling=last")
    lengths = [[len(words().encode(text)) for text in side] for side in texts_of()]
    for ours, side in zip((embedded.images, embedded.captions), texts_of(), strict=True):
        assert far(ours, unit([states_of(folder, text, 9)[-1] for text in side])) <= CLOSE
    cut = [sum(length > 9 for length in side) for side in lengths]
    assert cut[1] == len(lengths[1])
    expected = [f"{n} of {len(side)} {what} were cut to 9 tokens" for n, side, what in
                zip(cut, lengths, ("queries", "documents"), strict=True) if n]  # fmt: skip
    assert list(embedded.notices) == expected


class Echo(torch.nn.Module):
    """A network that returns the numbers of its tokens as states."""

    def forward(self, input_ids: Tensor) -> Any:
        return SimpleNamespace(last_hidden_state=input_ids[:, :, None].float())


def test_texts_that_a_slow_tokeniser_cuts_are_counted_too() -> None:
    """Tokenisers in Python do not report what they cut, and lossscope gave no notice."""
    tokeniser = transformers.CanineTokenizer()
    assert not tokeniser.is_fast
    network = TextNetwork(tokeniser, Echo, 99, torch.device("cpu"))
    cut = [network.states(["a", "abcd", "abcde", "abcdefgh"], length)[2].tolist() for length in (3, 6, 7, 30)]
    assert cut == [[False, True, True, True], [False, False, True, True], [False, False, False, True], [False] * 4]


def test_what_is_known_of_a_split_of_images_is_said_of_its_captions_too() -> None:
    captions = ["a", "b", "c", "d"]
    split = Split("val", Pictures(), captions, np.array([0, 0, 1, 1]), ["0", "1"], captions, "f", notices=("half",))
    rows = TextVectors(
        lambda texts, side: (torch.eye(len(texts)), torch.zeros(len(texts), dtype=torch.bool)),
        lambda texts: [1] * len(texts),
        lambda side: "",
        RowCache("a", "model", "text encoder"),
        Request(),
    )
    model = TextModel(Path("model"), rows, (), None)
    assert model.split(split, ("own",)).notices[:2] == ("own", "half")


class Pictures:
    """Two pictures that no test opens."""

    shape = (3, 4, 4)

    def __len__(self) -> int:
        return 2

    def take(self, rows: Any) -> Any:
        raise NotImplementedError


def test_a_network_of_few_positions_takes_as_many_tokens(tmp_path: Path) -> None:
    """max_length was 512 for each network, and a smaller one ended in an index out of range."""
    folder = text_encoder(tmp_path / "model", positions=12)
    embedded = read(folder)
    assert far(embedded.captions, unit([states_of(folder, text, 12).mean(0) for text in texts_of()[1]])) <= CLOSE
    assert any(notice.endswith("documents were cut to 12 tokens") for notice in embedded.notices)
    with pytest.raises(InputError, match=r"max_length must be at most 12, the tokens that .*model takes; got 13"):
        read(folder, "max_length=13")


def test_pooling_that_is_not_typed_is_said(tmp_path: Path) -> None:
    folder = text_encoder(tmp_path / "model")
    assert read(folder).notices == (f"texts are pooled by mean: {folder} does not say how its model was trained",)
    assert read(folder, "pooling=mean").notices == ()


def test_tokens_are_pooled_wherever_the_padding_is() -> None:
    states = torch.arange(24.0).reshape(2, 4, 3)
    behind, before = torch.tensor([[1, 1, 0, 0]] * 2), torch.tensor([[0, 1, 1, 1]] * 2)
    for mask, first, last in ((behind, 0, 1), (before, 1, 3)):
        assert torch.equal(pool_tokens(states, mask, "cls"), states[:, first])
        assert torch.equal(pool_tokens(states, mask, "last"), states[:, last])
        assert torch.equal(pool_tokens(states, mask, "mean"), states[:, first : last + 1].mean(1))


def test_weights_of_half_precision_are_computed_in_float32(tmp_path: Path) -> None:
    folder = text_encoder(tmp_path / "model")
    model = transformers.AutoModel.from_pretrained(folder).to(torch.bfloat16)
    model.save_pretrained(folder)
    model.float().eval()
    tokeniser = transformers.AutoTokenizer.from_pretrained(folder)
    texts = texts_of()[0]
    with torch.no_grad():
        states = [model(**tokeniser(text, return_tensors="pt")).last_hidden_state[0].mean(0) for text in texts]
    assert far(read(folder).images, unit(states)) <= CLOSE


def test_of_images_the_first_caption_takes_the_place(tmp_path: Path) -> None:
    folder = text_encoder(tmp_path / "model")
    embedded = read(folder, data=test_folders.SMALL)
    split = test_folders.build("datasets", test_folders.SMALL).split("val")
    assert embedded.images is not None and embedded.captions is not None and embedded.caption_image is not None
    assert embedded.sides.labels == ("i2t", "t2i")
    first = [split.captions[list(split.caption_image).index(image)] for image in range(len(split.images))]
    assert far(embedded.images, unit([states_of(folder, text).mean(0) for text in first])) <= CLOSE
    assert len(embedded.captions) == len(split.captions) - len(first)
    assert np.bincount(embedded.caption_image).tolist() == [4] * len(first)
    assert any("the first caption of each image takes its place" in notice for notice in embedded.notices)


@each("options, request_, says", [
    ((), {"data": None}, r"--data is needed: .*model names no data, e\.g\. --data texts:file=train\.jsonl"),
    (("pool=cls",), {}, "--encoder-option of a text encoder must be of pooling, query_prefix, document_prefix"),
    (("pooling",), {}, "pooling must be one of mean, cls, last; got ''"),
    (("pooling=max",), {}, "pooling must be one of mean, cls, last; got 'max'"),
    (("max_length=0",), {}, "max_length must be a number of tokens, at least 1; got '0'"),
    (("max_length=many",), {}, "max_length must be a number of tokens, at least 1; got 'many'"),
    ((), {"data": "pasages"}, "did you mean 'passages'"),
    ((), {"split": "dev"}, "split must be one of train, val, test; got 'dev'"),
])  # fmt: skip
def test_what_is_not_meant_is_one_message(
    tmp_path: Path, options: tuple[str, ...], request_: dict[str, Any], says: str
) -> None:
    with pytest.raises(InputError, match=says):
        read(text_encoder(tmp_path / "model"), *options, **request_)


def drop_weights(folder: Path, part: str) -> None:
    tensors = load_file(folder / "model.safetensors")
    save_file({k: v for k, v in tensors.items() if part not in k}, folder / "model.safetensors", {"format": "pt"})


def as_pickle(folder: Path) -> None:
    torch.save(load_file(folder / "model.safetensors"), folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()


def as_shards(folder: Path, shard: str) -> None:
    tensors = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").rename(folder.parent / "elsewhere.safetensors")
    torch.save(tensors, folder / "pytorch_model.bin")
    index = {"metadata": {"total_size": 1}, "weight_map": dict.fromkeys(tensors, shard)}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))


def picture_model(folder: Path) -> None:
    for file in folder.iterdir():
        file.unlink()
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
    transformers.ViTModel(transformers.ViTConfig(**sizes, image_size=16, patch_size=8)).save_pretrained(folder)


DAMAGES: dict[str, tuple[Callable[[Path], object], str]] = {
    "no weights": (lambda f: (f / "model.safetensors").unlink(), "must be a whole folder of a text encoder; "),
    "cut weights": (lambda f: os.truncate(f / "model.safetensors", 900), "must be a whole folder of a text encoder; "),
    "a weight is missing": (
        lambda f: drop_weights(f, "layer.1.attention.self.query"),
        "must hold every weight of its model; 2 are missing, such as encoder.layer.1.attention.self.query.bias",
    ),
    "pickled weights": (as_pickle, "must be a whole folder of a text encoder; .*model.safetensors"),
    "a pickle as shard": (
        lambda f: as_shards(f, "pytorch_model.bin"),
        "must name .safetensors files beside it; got 'pytorch_model.bin'",
    ),
    "a shard elsewhere": (
        lambda f: as_shards(f, "../elsewhere.safetensors"), "must name .safetensors files beside it; got '../else"
    ),
    "a pipe": (lambda f: os.mkfifo(f / "vocab.txt"), "vocab.txt must be an ordinary file; it is a pipe"),
    "a pipe of weights": (
        lambda f: ((f / "model.safetensors").unlink(), os.mkfifo(f / "model.safetensors")),
        "model.safetensors must be an ordinary file; it is a pipe",
    ),
    "no tokeniser": (
        lambda f: [(f / name).unlink() for name in ("tokenizer.json", "tokenizer_config.json")],
        "must hold the words of its tokeniser; it has none of tokenizer.json",
    ),
    "other sizes": (lambda f: change_config(f, hidden_size=32), "must be a whole folder of a text encoder; "),
    "an adapter": (
        lambda f: (f / "adapter_config.json").write_text("{}"), "must hold a whole model; got an adapter. Merge it"
    ),
    "a kernel of a repository": (
        lambda f: change_config(f, attn_implementation="someone/attention"),
        "attn_implementation of .* must be one that transformers has; got 'someone/attention', not run",
    ),
    "an unknown model": (
        lambda f: change_config(f, model_type="evil"), "must be a whole folder of a text encoder; "
    ),
    "a model of pictures": (lambda f: picture_model(f), "must be a whole folder of a text encoder; "),
    "not a number": (
        lambda f: save_file(
            {k: v * float("nan") for k, v in load_file(f / "model.safetensors").items()},
            f / "model.safetensors", {"format": "pt"},
        ),
        "query vectors of .* must be finite; row 0 is not",
    ),
}  # fmt: skip


@each("case", DAMAGES)
def test_a_damaged_folder_is_one_message(
    tmp_path: Path, case: str, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("socket.socket.connect", _no_network)
    damage, says = DAMAGES[case]
    folder = text_encoder(tmp_path / "model")
    damage(folder)
    capfd.readouterr()
    with pytest.raises(InputError, match=says) as caught:
        read(folder)
    assert str(folder) in str(caught.value) and "\n" not in str(caught.value)
    assert capfd.readouterr() == ("", "")


def _no_network(*_: Any) -> None:
    raise AssertionError("a folder is read without a network")


def test_a_damaged_configuration_is_one_message(tmp_path: Path) -> None:
    folder = text_encoder(tmp_path / "model")
    (folder / "config.json").write_text("{")
    with pytest.raises(InputError, match=r"config\.json must be whole JSON"):
        read(folder)


EVIL = """
open({file!r}, "w").close()
import transformers
class EvilConfig(transformers.BertConfig):
    model_type = "evil"
class EvilModel(transformers.BertModel):
    config_class = EvilConfig
class EvilTokeniser(transformers.BertTokenizerFast):
    pass
"""
CLASSES = {"AutoConfig": "evil.EvilConfig", "AutoModel": "evil.EvilModel"}


@each("model_type", ["evil", "bert"])
def test_code_in_a_folder_is_never_run(tmp_path: Path, model_type: str) -> None:
    """lossscope builds a type that transformers knows from its own class, and refuses any other."""
    folder, ran = text_encoder(tmp_path / "model"), tmp_path / "ran"
    (folder / "evil.py").write_text(EVIL.format(file=str(ran)))
    change_config(folder, auto_map=CLASSES, model_type=model_type)
    settings = json.loads((folder / "tokenizer_config.json").read_text())
    settings |= {"auto_map": {"AutoTokenizer": ["evil.EvilTokeniser", "evil.EvilTokeniser"]}}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    if model_type == "evil":
        with pytest.raises(InputError, match="must be a whole folder of a text encoder"):
            read(folder, trust_code=True)  # trust_code covers Python files of lossscope's own kinds
    else:
        assert read(folder).images is not None
    assert not ran.exists()


class Evil:
    """A pickle that writes a file."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def __reduce__(self) -> Any:
        return open, (str(self.file), "w")


def test_a_pickle_in_a_folder_is_never_loaded(tmp_path: Path) -> None:
    folder, ran = text_encoder(tmp_path / "model"), tmp_path / "ran"
    torch.save({"embeddings.word_embeddings.weight": Evil(ran)}, folder / "pytorch_model.bin")
    assert read(folder).images is not None
    (folder / "model.safetensors").unlink()
    with pytest.raises(InputError, match="must be a whole folder of a text encoder"):
        read(folder)
    assert not ran.exists()


def test_a_tokeniser_without_special_tokens_is_one_message(tmp_path: Path) -> None:
    folder = text_encoder(tmp_path / "model", "gpt2")
    (folder / "tokenizer_config.json").write_text('{"tokenizer_class": "PreTrainedTokenizerFast"}')
    with pytest.raises(InputError, match=r"the tokeniser of .* must have a padding token; it has no special token"):
        read(folder)


def test_folders_of_pictures_and_texts_are_not_text_encoders(tmp_path: Path) -> None:
    for name in ("clip", "siglip"):
        folder = getattr(test_folders, name)(tmp_path / name)
        assert type(find_source(folder)) is OriginalFile
    assert type(find_source(text_encoder(tmp_path / "bert"))) is TextEncoderFolder
    (tmp_path / "bert" / "open_clip_config.json").write_text("{}")
    assert not TextEncoderFolder.accepts(tmp_path / "bert")
    older = change_config(tmp_path / "clip", text_config=None, vision_config=None, vision_config_dict={})
    assert not TextEncoderFolder.accepts(older)
    assert not TextEncoderFolder.accepts(tmp_path / "clip" / "config.json")
    sentences = test_folders.texts(tmp_path / "sentences")
    assert not TextEncoderFolder.accepts(sentences)


FINGERPRINTS: dict[str, Any] = {"text_encoder": text_encoder_source, "sentence_transformers": sentence_transformers}
PROMPTS = {"query": "what is asked: ", "document": "it is known: "}


def sentence_folder(folder: Path, prompts: dict[str, str] | None = None) -> Path:
    """Write a sentence-transformers folder with prompts."""
    library = pytest.importorskip("sentence_transformers")
    text_encoder(folder / "first")
    model = library.SentenceTransformer(str(folder / "first"), device="cpu", prompts=prompts)
    model.save(str(folder / "model"))
    return folder / "model"


@each("prompts", [None, PROMPTS, {"query": PROMPTS["query"]}])
def test_a_sentence_model_reads_both_sides_with_its_prompts(tmp_path: Path, prompts: dict[str, str] | None) -> None:
    folder = sentence_folder(tmp_path, prompts)
    model = pytest.importorskip("sentence_transformers").SentenceTransformer(str(folder), device="cpu")
    embedded = read(folder, batch_size=7)
    queries, documents = texts_of()
    assert far(embedded.images, unit(list(model.encode_query(queries, convert_to_tensor=True)))) <= CLOSE
    assert far(embedded.captions, unit(list(model.encode_document(documents, convert_to_tensor=True)))) <= CLOSE
    plain = unit(list(model.encode(queries, prompt="", convert_to_tensor=True)))
    assert (far(embedded.images, plain) > 1e-3) == bool(prompts)
    split = test_folders.build("datasets", DATA).split("val")
    assert embedded.relations.positives.tolist() == split.relations.positives.tolist()
    assert embedded.relations.negatives is not None
    assert embedded.relations.negatives.tolist() == split.relations.negatives.tolist()


def test_a_sentence_model_says_what_of_the_options_is_not_used(tmp_path: Path) -> None:
    folder = sentence_folder(tmp_path)
    notices = read(folder, "pooling=cls").notices
    assert any("--encoder-option is not used: the modules of" in notice for notice in notices)
    assert not any("--encoder-option" in notice for notice in read(folder).notices)


@each("kind", ["text_encoder", "sentence_transformers"])
def test_a_model_that_is_replaced_after_its_fingerprint_was_taken_is_refused(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The cache would have had its vectors under the fingerprint of the model before."""
    folder = text_encoder(tmp_path / "model") if kind == "text_encoder" else sentence_folder(tmp_path)
    taken = FINGERPRINTS[kind].fingerprint

    def early(path: Path) -> str:
        print_of_file: str = taken(path)
        if path.name == "model.safetensors":
            replace(path)
        return print_of_file

    monkeypatch.setattr(FINGERPRINTS[kind], "fingerprint", early)
    with pytest.raises(InputError, match=STAYS.format(name=r"model\.safetensors", got="was written again")):
        read(folder, cache=True)


@each("kind", ["text_encoder", "sentence_transformers"])
def test_a_model_that_is_rewritten_while_it_encodes_is_refused(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its weights are mapped into memory: they changed with the file, and the cache kept what they gave."""
    folder = text_encoder(tmp_path / "model") if kind == "text_encoder" else sentence_folder(tmp_path)
    source = type(find_source(folder))
    encode = source._encode

    def late(*given: Any) -> Any:
        vectors = encode(*given)
        for file in folder.glob("*.safetensors"):
            rewrite(file)
        return vectors

    monkeypatch.setattr(source, "_encode", late)
    with pytest.raises(InputError, match=STAYS.format(name=r"model\.safetensors", got="was written again")):
        read(folder)


def test_a_sentence_model_that_lacks_weights_is_one_message(tmp_path: Path) -> None:
    """Random weights replaced the missing ones, different in each command."""
    folder = sentence_folder(tmp_path)
    drop_weights(folder, "layer.0.output.dense")
    with pytest.raises(InputError, match=r"every weight of its model; 2 are missing, such as encoder\.layer\.0"):
        read(folder)


@each("damage, says", [
    (
        lambda f: [(f / name).unlink() for name in ("tokenizer.json", "tokenizer_config.json")],
        "must hold the words of its tokeniser; it has none of tokenizer.json",
    ),
    (
        lambda f: change_config(f, attn_implementation="someone/attention"),
        "must be one that transformers has; got 'someone/attention', not run",
    ),
    (
        lambda f: (f / "sentence_bert_config.json").write_text('{"model_args": {"attn_implementation": "a/b"}}'),
        r"attn_implementation of .*sentence_bert_config\.json must be one that .* has; got 'a/b', not run",
    ),
])  # fmt: skip
def test_a_damaged_sentence_model_is_one_message(tmp_path: Path, damage: Callable[[Path], object], says: str) -> None:
    folder = sentence_folder(tmp_path)
    damage(folder)
    with pytest.raises(InputError, match=f"must be a whole sentence-transformers folder; .*{says}"):
        read(folder)


def test_a_sentence_model_of_older_names_is_whole(tmp_path: Path) -> None:
    folder = sentence_folder(tmp_path)
    before = read(folder).images
    file = folder / "model.safetensors"
    older = {f"bert.{k}".replace("LayerNorm.weight", "LayerNorm.gamma"): v for k, v in load_file(file).items()}
    assert any("gamma" in name for name in older)
    save_file(older, file, {"format": "pt"})
    assert before is not None
    assert far(read(folder).images, before) == 0


def lossscope(*words: str) -> Result:
    return CliRunner().invoke(app, list(words))


SMALL = ("--data", "passages:train=60,val=20,test=20", "--format", "json")


@each("kind, command, statistics", [
    ("sentences", ("cocos", "--eps", "0.01", "--batch-size", "16"), {"C_neg", "C_0", "N_eff"}),
    ("bert", ("eval",), {"R@1", "nDCG@10", "MRR@10", "MAP@R"}),
    ("bert", ("probe", "--probes", "all", "--batch-size", "16"), {"C_neg", "MRR"}),
])  # fmt: skip
def test_commands_take_a_model_of_texts(
    kind: str, command: tuple[str, ...], statistics: set[str], tmp_path: Path
) -> None:
    model = str(text_encoder(tmp_path / "model") if kind == "bert" else sentence_folder(tmp_path))
    name, *options = command
    result = lossscope(name, model, *SMALL, *options)
    assert result.exit_code == 0, result.stderr
    report = json.loads(result.stdout)
    assert {row["direction"] for row in report["rows"]} - {"both"} == {"q2d", "d2q"}
    assert {row["sides"] for row in report["rows"]} == {"query/document"}
    found = {row["statistic"] for row in report["rows"]}
    assert statistics <= found, sorted(found)
    assert "caption" not in result.stderr and "LOAD REPORT" not in result.stderr
    if name != "eval":
        assert {row["objective"] for row in report["rows"] if row["objective"]} == {"ntxent:tau=0.05"}


def test_a_text_encoder_without_data_is_one_line(tmp_path: Path) -> None:
    result = lossscope("cocos", str(text_encoder(tmp_path / "model")))
    assert (result.exit_code, result.stdout) == (1, "")
    assert "--data is needed" in result.stderr and "Traceback" not in result.stderr
