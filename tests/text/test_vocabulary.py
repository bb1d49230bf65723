"""Does a vocabulary keep order, encoding and padding, and does no reader run code of a file?"""

from __future__ import annotations

import copyreg
import json
import os
import pickle
import sys
import types
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lossscope.errors import InputError
from lossscope.text.vocabulary import SPECIAL, Vocabulary, pad
from lossscope.text.vocabulary_files import is_vocabulary, read_vocabulary
from lossscope.text.word_tokenisers import tokenise
from tests.each import each

WORDS = ("<pad>", "<start>", "<end>", "<unk>", "dog", "a")
texts = st.text(max_size=40)


def fields(words: tuple[str, ...] = WORDS) -> dict[str, Any]:
    return {
        "word2idx": {word: row for row, word in enumerate(words)},
        "idx2word": dict(enumerate(words)),
        "idx": len(words),
    }


def write_pickle(path: Path, state: dict[str, Any], module: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Write what the original code wrote: an object of `module`.Vocabulary, protocol 2."""
    home = types.ModuleType(module)
    original = type("Vocabulary", (), {"__module__": module})
    home.__dict__["Vocabulary"] = original
    thing = original()
    thing.__dict__.update(state)
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, module.partition(".")[0], home)
        patch.setitem(sys.modules, module, home)
        path.write_bytes(pickle.dumps(thing, protocol=2))
    return path


def test_words_come_by_count_then_alphabet() -> None:
    built = Vocabulary.build(["b a c", "a b", "a d c", "zebra"], min_count=2)
    assert built.words == (*SPECIAL, "a", "b", "c")
    assert Vocabulary.build(["b a c", "a b"], min_count=3).words == SPECIAL
    assert Vocabulary.build(iter(["a"] * 4)).words == (*SPECIAL, "a")


@settings(deadline=None, max_examples=50)
@given(st.lists(texts, max_size=8), st.integers(1, 3))
def test_build_ignores_the_order_of_captions_and_knows_frequent_words(captions: list[str], least: int) -> None:
    built = Vocabulary.build(captions, least)
    assert built == Vocabulary.build(captions[::-1], least) == Vocabulary.from_list(built.to_list())
    for caption in captions:
        ids = built.encode(caption)
        assert (ids[0], ids[-1], len(ids)) == (1, 2, len(tokenise(caption)) + 2)
        assert all(0 <= row < len(built) for row in ids)
        if least == 1:
            assert 3 not in ids


@settings(deadline=None, max_examples=50)
@given(texts)
def test_tokens_are_lower_case_without_spaces(text: str) -> None:
    for token in tokenise(text):
        assert token
        assert not any(char.isspace() for char in token)
        assert token == token.lower()


def test_tokens_of_hard_cases() -> None:
    assert tokenise("Men's T-shirt, size 38.5 -- 'quoted' don’t!") == [
        *("men", "'s", "t", "shirt", "size", "38.5", "quoted", "don", "'t")
    ]
    assert tokenise("CAFÉ cafe\u0301 snake_case") == ["café", "café", "snake", "case"]
    assert tokenise(" .,!? ") == []


def test_pad_fills_up_and_counts() -> None:
    ids, lengths = pad([[1, 7, 2], [1, 2], []], fill=9)
    assert ids.tolist() == [[1, 7, 2], [1, 2, 9], [9, 9, 9]]
    assert lengths.tolist() == [3, 2, 0]
    assert ids.dtype == lengths.dtype == np.int64
    assert pad([])[0].shape == (0, 0)


@each("words, message", [
    ((*SPECIAL, "a", "a"), "must be unique; got 'a' 2 times"),
    (("<pad>", "<start>", "<end>", "a"), "got none of <unk>"),
])  # fmt: skip
def test_a_vocabulary_must_be_whole(words: tuple[str, ...], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Vocabulary(words)


def test_min_count_must_be_positive() -> None:
    with pytest.raises(InputError, match="min_count must be at least 1; got 0"):
        Vocabulary.build([], min_count=0)


def test_special_words_are_identified_by_name(tmp_path: Path) -> None:
    path = tmp_path / "words.json"
    path.write_text(json.dumps(fields(("dog", "<unk>", "<end>", "<pad>", "<start>"))))
    assert read_vocabulary(path).encode("dog cat") == [4, 0, 1, 2]


@each("module", ["__main__", "vocab", "vsepp.vocab"])
def test_original_pickles_keep_their_ids(module: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_pickle(tmp_path / "f30k_vocab.pkl", fields(), module, monkeypatch)
    assert read_vocabulary(path).words == WORDS


def test_a_pickle_of_python_2_is_read(tmp_path: Path) -> None:
    """Python 2 wrote byte strings (latin-1) and a class called with NEWOBJ."""

    def short(text: bytes) -> bytes:
        return b"U" + bytes([len(text)]) + text

    words = [word.encode("latin1") for word in (*SPECIAL, "café")]
    forth = b"}(" + b"".join(short(word) + b"K" + bytes([row]) for row, word in enumerate(words)) + b"u"
    back = b"}(" + b"".join(b"K" + bytes([row]) + short(word) for row, word in enumerate(words)) + b"u"
    state = b"}(" + short(b"word2idx") + forth + short(b"idx2word") + back + short(b"idx") + b"K\x05u"
    path = tmp_path / "vocab.pkl"
    path.write_bytes(b"\x80\x02c__main__\nVocabulary\n)\x81" + state + b"b.")
    assert read_vocabulary(path).words == (*SPECIAL, "café")


class _Harm:
    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self.path),)


def test_a_pickle_with_another_global_is_refused_and_not_run(tmp_path: Path) -> None:
    path, trace = tmp_path / "vocab.pkl", tmp_path / "trace"
    path.write_bytes(pickle.dumps(_Harm(trace), protocol=2))
    with pytest.raises(InputError, match=rf"no Python object but Vocabulary; got {os.mkdir.__module__}\.mkdir"):
        read_vocabulary(path)
    assert not trace.exists()


@each("harm", [
    b"\x80\x02cbuiltins\neval\n(U\x011tR.",
    b"\x80\x02cvocab\nos.system\n.",
    b"\x80\x04\x8c\x05vocab\x8c\x13Vocabulary.__init__\x93.",
])  # fmt: skip
def test_pickles_by_hand_are_refused(harm: bytes, tmp_path: Path) -> None:
    path = tmp_path / "vocab.pkl"
    path.write_bytes(harm)
    with pytest.raises(InputError, match="no Python object but Vocabulary"):
        read_vocabulary(path)


def test_the_extension_registry_is_no_way_around_the_table(tmp_path: Path) -> None:
    path = tmp_path / "vocab.pkl"
    path.write_bytes(b"\x80\x02\x82\xf0.")
    copyreg.add_extension("os", "getcwd", 0xF0)
    try:
        with pytest.raises(InputError, match=r"os\.getcwd"):
            read_vocabulary(path)
    finally:
        copyreg.remove_extension("os", "getcwd", 0xF0)


def test_references_to_objects_outside_are_refused(tmp_path: Path) -> None:
    (tmp_path / "vocab.pkl").write_bytes(b"Pname\n.")
    with pytest.raises(InputError, match="no Python object but Vocabulary; got a reference to something outside"):
        read_vocabulary(tmp_path / "vocab.pkl")


def test_a_pickle_cannot_change_the_class_of_the_next_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    state = b"N}U\x08word2idxU\x01xs\x86"
    (tmp_path / "harm.pkl").write_bytes(b"\x80\x02cvocab\nVocabulary\n" + state + b"b.")
    with pytest.raises(InputError, match="must hold a Vocabulary; got type"):
        read_vocabulary(tmp_path / "harm.pkl")
    missing = {name: value for name, value in fields().items() if name != "word2idx"}
    with pytest.raises(InputError, match="got no word2idx"):
        read_vocabulary(write_pickle(tmp_path / "next.pkl", missing, "vocab", monkeypatch))


@settings(deadline=None, max_examples=50)
@given(cut=st.integers(0, 200))
def test_a_truncated_pickle_is_an_input_error(cut: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    with pytest.MonkeyPatch.context() as patch:
        path = write_pickle(tmp_path_factory.mktemp("cut") / "vocab.pkl", fields(), "vocab", patch)
    whole = path.read_bytes()
    path.write_bytes(whole[: min(cut, len(whole) - 1)])
    with pytest.raises(InputError, match="must be a whole pickle"):
        read_vocabulary(path)


@each("name, content, message", [
    ("v.pkl", b"just words\n", "must be a whole pickle"),
    ("v.pkl", pickle.dumps({"idx": 1}, 2), "must hold a Vocabulary; got dict"),
    ("v.json", b'{"word2idx": {', "must be whole JSON"),
    ("v.json", b"hello", "must be whole JSON"),
    ("v.json", b"\xff\xfe", "must be UTF-8 text"),
    ("v.json", b"[" * 100_000, "must be"),
    ("v.json", b"[1]", "must be an object; got"),
    ("v.json", b'{"word2idx": {}}', "got no idx2word, idx"),
    ("v.txt", b"", "must end in .pkl or .json"),
])  # fmt: skip
def test_files_that_are_something_else(name: str, content: bytes, message: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=message):
        read_vocabulary(tmp_path / name)


@each("change, message", [
    ({"word2idx": {"a": 0, "b": 2}}, "from 0 to 1 without gaps; got none with 1"),
    ({"word2idx": {"a": 0, "b": 0}}, "must be unique; got 0 for 'a' and for 'b'"),
    ({"word2idx": {"a": 1.0}}, "whole numbers; got 1.0 for 'a'"),
    ({"word2idx": ["a"]}, "must map words to ids; got list"),
    ({"idx2word": []}, "must map ids to words; got list"),
    ({"idx2word": {"0": "dog"}}, "the inverse of word2idx; got 'dog' for id 0"),
    ({"idx": 5}, "must be the number of words, 6; got 5"),
    ({"word2idx": {"a": 0}, "idx2word": {"0": "a"}, "idx": 1}, r"got none of <pad>, <start>, <end>, <unk>"),
])  # fmt: skip
def test_fields_that_do_not_fit(change: dict[str, Any], message: str, tmp_path: Path) -> None:
    path = tmp_path / "v.json"
    path.write_text(json.dumps({**fields(), **change}))
    with pytest.raises(InputError, match=message):
        read_vocabulary(path)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    for name in ("none.pkl", "none.json"):
        with pytest.raises(InputError, match=f"{name} must exist"):
            read_vocabulary(tmp_path / name)


def test_words_and_byte_pairs_in_json_are_told_apart(tmp_path: Path) -> None:
    released = {"word2idx": {"a": 0}, "idx2word": {"0": "a"}, "idx": 1}
    for name, content in (("vocab.json", released), ("merges.json", {"a</w>": 0})):
        (tmp_path / name).write_text(json.dumps(content))
    assert is_vocabulary(tmp_path / "vocab.json")
    assert not is_vocabulary(tmp_path / "merges.json")
    assert not is_vocabulary(tmp_path / "none.json")
