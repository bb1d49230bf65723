"""Do ids equal those of transformers' tokenisers, for all forms of files and stored text?"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from lossscope.errors import InputError
from lossscope.text.subwords import SPECIAL, Subwords
from tests.each import each

transformers = pytest.importorskip("transformers")

CAPTIONS = ["A man is running, fast!", "Two red dogs run on the beach.", "the man's café  isn't\topen", "", "zzz 1,000"]
PIECES = [*"abcdefghijklmnopqrstuvwxyz0123456789.,!'", *(f"##{c}" for c in "abcdefghijklmnopqrstuvwxyz0123456789")]
WORDS = [*SPECIAL, *PIECES, "man", "run", "##ning", "##s", "the", "dog", "beach"]
WORDS = list(dict.fromkeys(WORDS))


@pytest.fixture
def bert(tmp_path: Path) -> Path:
    (tmp_path / "vocab.txt").write_text("\n".join(WORDS) + "\n", encoding="utf-8")
    return tmp_path


@pytest.fixture
def clip(tmp_path: Path) -> Path:
    letters = [*"abcdefghijklmnopqrstuvwxyz0123456789.,!'", "Ã", "©", "Â", "ł"]
    merges = [("r", "u"), ("ru", "n</w>"), ("m", "a"), ("ma", "n</w>"), ("t", "h"), ("th", "e</w>"), ("!", ",</w>")]
    known = [*letters, *(f"{c}</w>" for c in letters), *("".join(pair) for pair in merges)]
    known += ["<|startoftext|>", "<|endoftext|>"]
    (tmp_path / "vocab.json").write_text(json.dumps({word: row for row, word in enumerate(known)}))
    (tmp_path / "merges.txt").write_text("#version: 0.2\n" + "\n".join(" ".join(pair) for pair in merges) + "\n")
    return tmp_path


def test_berts_ids_are_those_of_transformers(bert: Path) -> None:
    theirs = transformers.BertTokenizer(vocab=str(bert / "vocab.txt"), do_lower_case=True)
    ours = Subwords.from_folder(bert)
    assert len(ours) == len(WORDS)
    for caption in CAPTIONS:
        assert ours.encode(caption) == theirs(caption)["input_ids"]
    assert ours.encode("Running") == [2, WORDS.index("run"), WORDS.index("##ning"), 3]
    assert ours.encode("") == [2, 3]


def test_clips_ids_are_those_of_transformers(clip: Path) -> None:
    theirs = transformers.CLIPTokenizer(vocab=str(clip / "vocab.json"), merges=str(clip / "merges.txt"))
    ours = Subwords.from_folder(clip)
    assert ours.max_length == 77
    for caption in CAPTIONS:
        assert ours.encode(caption) == theirs(caption)["input_ids"]
    assert ours.encode("The MAN")[1:-1] == [ours.id_of("the</w>"), ours.id_of("man</w>")]


def test_a_saved_tokenizer_json_gives_the_same_ids_without_its_padding(bert: Path, tmp_path: Path) -> None:
    theirs = transformers.BertTokenizer(vocab=str(bert / "vocab.txt"), do_lower_case=True)
    theirs(CAPTIONS, padding="max_length", max_length=30, truncation=True)
    theirs.save_pretrained(tmp_path / "saved")
    ours = Subwords.from_folder(tmp_path / "saved")
    assert (tmp_path / "saved" / "tokenizer.json").is_file()
    for caption in CAPTIONS:
        assert ours.encode(caption) == Subwords.from_folder(bert).encode(caption)


def test_case_is_kept_where_the_folder_says_so(bert: Path) -> None:
    unknown = Subwords.from_folder(bert, lower=False).encode("Man")
    (bert / "tokenizer_config.json").write_text('{"do_lower_case": false, "model_max_length": 40}')
    words = Subwords.from_folder(bert)
    assert words.encode("Man") == unknown == [2, WORDS.index("[UNK]"), 3]
    assert words.max_length == 40


def test_long_captions_are_cut_before_the_end(bert: Path) -> None:
    short = Subwords.from_folder(bert, max_length=5)
    assert short.encode("the man the dog the beach") == [2, *(WORDS.index(w) for w in ("the", "man", "the")), 3]
    assert len(Subwords.from_folder(bert).encode("the " * 600)) == 512
    with pytest.raises(InputError, match="max_length must be at least 3; got 2"):
        Subwords.from_folder(bert, max_length=2)


def test_parts_that_continue_a_word_are_known(bert: Path) -> None:
    ours = Subwords.from_folder(bert)
    assert set(ours.continuing) == {row for row, word in enumerate(WORDS) if word.startswith("##")}
    assert ours.id_of("[MASK]") == 4
    assert ours.id_of("nothing such") is None


def test_byte_pairs_do_not_mark_continuations(clip: Path) -> None:
    assert Subwords.from_folder(clip).continuing == ()


def test_training_learns_whole_words_that_are_frequent() -> None:
    words = Subwords.train(["A man is running.", "the man runs", "a man ran"] * 3, size=60)
    assert [words.id_of(token) for token in SPECIAL] == [0, 1, 2, 3, 4]
    assert words.encode("MAN") == [2, words.id_of("man"), 3]
    assert 0 not in words.encode("a running man zzz")
    assert len(words) <= 60
    with pytest.raises(InputError, match="size must be at least the number of letters and special tokens; got 8"):
        Subwords.train(["A man is running."], size=8)


def test_training_is_the_same_in_every_process() -> None:
    code = (
        "from lossscope.text.subwords import Subwords; import hashlib\n"
        "captions = [f'a {a}{b} on the {b}{c}er' for a in 'kst' for b in ('ing', 'ab', 'or') for c in 'lmn']\n"
        "print(hashlib.sha256(Subwords.train(captions, 80).to_json().encode()).hexdigest())"
    )
    runs = {subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout for _ in range(2)}
    assert len(runs) == 1


def test_a_stored_tokeniser_is_read_back(bert: Path) -> None:
    words = Subwords.from_folder(bert, max_length=9)
    again = Subwords.from_json(words.to_json())
    assert again == words
    assert [again.encode(c) for c in CAPTIONS] == [words.encode(c) for c in CAPTIONS]


@each("text, fragment", [
    ("no json", "a stored tokeniser must be whole JSON; .*; it must have tokeniser and max_length"),
    ('{"tokeniser": "x"}', "must be JSON with tokeniser and max_length"),
    ("[]", "must be JSON with tokeniser and max_length"),
    ('{"tokeniser": 3, "max_length": 4}', "must hold text, and a whole number or null"),
    ('{"tokeniser": "{}", "max_length": 1.5}', "must hold text, and a whole number or null"),
    ('{"tokeniser": "{}", "max_length": 9}', "must be the tokenizers library's JSON"),
])  # fmt: skip
def test_damaged_texts_are_refused(text: str, fragment: str) -> None:
    with pytest.raises(InputError, match=fragment):
        Subwords.from_json(text)


def test_folders_without_a_tokeniser_or_with_a_damaged_one_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"must hold tokenizer.json, vocab.txt, or vocab.json and merges.txt"):
        Subwords.from_folder(tmp_path)
    (tmp_path / "vocab.txt").write_text("[PAD]\n[UNK]\na\n")
    with pytest.raises(InputError, match=r"got none of \[CLS\], \[SEP\], \[MASK\]"):
        Subwords.from_folder(tmp_path)
    (tmp_path / "tokenizer_config.json").write_text("{")
    with pytest.raises(InputError, match=r"tokenizer_config.json must be whole JSON"):
        Subwords.from_folder(tmp_path)
    (tmp_path / "tokenizer_config.json").unlink()
    (tmp_path / "tokenizer.json").write_text("{}")
    with pytest.raises(InputError, match="must be the tokenizers library's JSON"):
        Subwords.from_folder(tmp_path)


def test_a_panic_of_the_library_is_a_message(bert: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rust's PanicException is no Exception, so it passed every reader."""

    class PanicException(BaseException):
        """A stand-in for pyo3's exception."""

    class Panicking:
        def encode(self, text: str) -> None:
            raise PanicException("range end index out of range")

    words = Subwords.from_folder(bert)
    monkeypatch.setitem(words.__dict__, "_tokeniser", Panicking())
    with pytest.raises(InputError, match="range end index out of range"):
        words.encode("a dog")
