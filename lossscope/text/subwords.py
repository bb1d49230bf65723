"""Captions -> parts of words: WordPiece (BERT) and byte pairs (CLIP) through the tokenizers library."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lossscope.errors import InputError
from lossscope.io.files import require_file

if TYPE_CHECKING:
    from tokenizers import Tokenizer

SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
_CLIP_ENDS = ("<|startoftext|>", "<|endoftext|>")
_CLIP_WORDS = r"'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+"
_LONGEST = 1_000_000  # model_max_length of configurations that know none is far above


@dataclass(frozen=True)
class Subwords:
    """A tokeniser of the tokenizers library with its ids; 0 pads, start and end are part of what encode gives.

    content: the library's JSON. max_length: ids of the longest caption, start and end included, the rest cut off;
    None cuts nothing. Raises InputError without the library, or when the content is not what it writes.
    """

    content: str
    max_length: int | None = None

    def __post_init__(self) -> None:
        if self.max_length is not None and self.max_length < 3:
            raise InputError(f"max_length must be at least 3; got {self.max_length}")
        if not self.encode("a"):
            raise InputError("a tokeniser must give at least one id for a caption; this one gives none for 'a'")

    @classmethod
    def from_folder(cls, path: Path | str, max_length: int | None = None, lower: bool | None = None) -> Subwords:
        """The tokeniser of a Hugging Face folder: tokenizer.json, vocab.txt (BERT) or vocab.json + merges.txt (CLIP).

        max_length, lower: instead of what tokenizer_config.json says (else 512 and 77; lower-case); lower is for
        vocab.txt. Raises InputError when the folder has none of them, or a damaged one.
        """
        folder = Path(path).expanduser()
        told = _configuration(folder)
        most = told.get("model_max_length")
        known = most if isinstance(most, int) and 2 < most < _LONGEST else None
        if (folder / "tokenizer.json").is_file():
            return cls(require_file(folder / "tokenizer.json").read_text(encoding="utf-8"), max_length or known)
        if (folder / "vocab.txt").is_file():
            rows = (folder / "vocab.txt").read_text(encoding="utf-8").rstrip("\n").split("\n")
            small = lower if lower is not None else told.get("do_lower_case", True) is True
            return cls(_wordpiece({word: row for row, word in enumerate(rows)}, small), max_length or known or 512)
        if (folder / "vocab.json").is_file() and (folder / "merges.txt").is_file():
            return cls(_byte_pairs(folder), max_length or known or 77)
        raise InputError(f"{folder} must hold tokenizer.json, vocab.txt, or vocab.json and merges.txt; it holds none")

    @classmethod
    def train(
        cls, captions: Iterable[str], size: int = 8000, min_count: int = 2, max_length: int | None = 512
    ) -> Subwords:
        """A lower-case WordPiece of at most `size` parts, learnt from captions; the first five ids are SPECIAL."""
        library = _library()
        tokeniser = library.Tokenizer.from_str(_wordpiece({word: row for row, word in enumerate(SPECIAL)}, True))
        captions = list(captions)
        letters = sorted({c for caption in captions for c in tokeniser.normalizer.normalize_str(caption)} - {" "})
        # the library numbers letters inside words in an order that differs by run, which decides ties, unless they
        # are there from the start
        first = [*SPECIAL, *letters, *(f"##{letter}" for letter in letters)]
        trainer = library.trainers.WordPieceTrainer(
            vocab_size=size, min_frequency=min_count, special_tokens=first, show_progress=False
        )
        tokeniser.train_from_iterator(captions, trainer)
        if tokeniser.get_vocab_size() > size:
            raise InputError(f"size must be at least the number of letters and special tokens; got {size}")
        return cls(_wordpiece(tokeniser.get_vocab(), True), max_length)

    @classmethod
    def from_json(cls, text: str) -> Subwords:
        """What `to_json` wrote. Raises InputError when it is something else."""
        try:
            found = json.loads(text)
            content, most = found["tokeniser"], found["max_length"]
        except (ValueError, TypeError, KeyError) as error:
            raise InputError(f"a stored tokeniser must be JSON with tokeniser and max_length; got {error!r}") from error
        if not isinstance(content, str) or not (most is None or type(most) is int):
            raise InputError("a stored tokeniser must hold text, and a whole number or null as max_length")
        return cls(content, most)

    def to_json(self) -> str:
        """All of it as text, for checkpoints."""
        return json.dumps({"tokeniser": self.content, "max_length": self.max_length})

    def __len__(self) -> int:
        return int(self._tokeniser.get_vocab_size())

    def encode(self, caption: str) -> list[int]:
        """Ids of a caption, start and end included, cut to max_length before the end."""
        return list(self._tokeniser.encode(caption).ids)

    def id_of(self, token: str) -> int | None:
        """The id of a token, None when there is no such one."""
        found = self._tokeniser.token_to_id(token)
        return None if found is None else int(found)

    @cached_property
    def continuing(self) -> tuple[int, ...]:
        """Ids of parts that go on with a word (`##ing`); none in a tokeniser that does not mark them."""
        prefix = json.loads(self.content)["model"].get("continuing_subword_prefix")
        vocabulary = self._tokeniser.get_vocab()
        return tuple(sorted(i for token, i in vocabulary.items() if prefix and token.startswith(prefix)))

    @cached_property
    def _tokeniser(self) -> Tokenizer:
        library = _library()
        try:
            tokeniser: Tokenizer = library.Tokenizer.from_str(self.content)
        except Exception as error:  # the library raises plain Exception
            raise InputError(f"a tokeniser must be the tokenizers library's JSON; {error}") from error
        tokeniser.no_padding()
        tokeniser.no_truncation()
        if self.max_length is not None:
            tokeniser.enable_truncation(self.max_length)
        return tokeniser


def _configuration(folder: Path) -> dict[str, Any]:
    """tokenizer_config.json of a folder, {} when it has none."""
    path = folder / "tokenizer_config.json"
    if not path.is_file():
        return {}
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise InputError(f"{path} must be a readable JSON file; {error}") from error
    return found if isinstance(found, dict) else {}


def _wordpiece(vocabulary: dict[str, int], lower: bool) -> str:
    """BERT's tokeniser on these parts, as JSON."""
    missing = [token for token in SPECIAL if token not in vocabulary]
    if missing:
        raise InputError(f"a WordPiece vocabulary must hold {', '.join(SPECIAL)}; got none of {', '.join(missing)}")
    library = _library()
    tokeniser = library.Tokenizer(library.models.WordPiece(vocabulary, unk_token="[UNK]"))
    tokeniser.normalizer = library.normalizers.BertNormalizer(lowercase=lower)
    tokeniser.pre_tokenizer = library.pre_tokenizers.BertPreTokenizer()
    ends = [(token, vocabulary[token]) for token in ("[CLS]", "[SEP]")]
    tokeniser.post_processor = library.processors.TemplateProcessing(single="[CLS] $A [SEP]", special_tokens=ends)
    tokeniser.add_special_tokens(list(SPECIAL))
    return str(tokeniser.to_str())


def _byte_pairs(folder: Path) -> str:
    """CLIP's tokeniser from its two files, as JSON."""
    library = _library()
    try:
        model = library.models.BPE.from_file(
            str(folder / "vocab.json"), str(folder / "merges.txt"), unk_token=_CLIP_ENDS[1], end_of_word_suffix="</w>"
        )
    except Exception as error:  # the library raises plain Exception
        raise InputError(f"{folder} must hold a readable vocab.json and merges.txt; {error}") from error
    tokeniser = library.Tokenizer(model)
    names, before = library.normalizers, library.pre_tokenizers
    spaces = names.Replace(library.Regex(r"\s+"), " ")
    tokeniser.normalizer = names.Sequence([names.NFC(), spaces, names.Lowercase()])
    words = before.Split(library.Regex(_CLIP_WORDS), behavior="removed", invert=True)
    tokeniser.pre_tokenizer = before.Sequence([words, before.ByteLevel(add_prefix_space=False)])
    ends = [(token, tokeniser.token_to_id(token)) for token in _CLIP_ENDS]
    if None in dict(ends).values():
        raise InputError(f"{folder / 'vocab.json'} must hold {' and '.join(_CLIP_ENDS)}")
    single = f"{_CLIP_ENDS[0]} $A {_CLIP_ENDS[1]}"
    tokeniser.post_processor = library.processors.TemplateProcessing(single=single, special_tokens=ends)
    tokeniser.add_special_tokens(list(_CLIP_ENDS))
    return str(tokeniser.to_str())


def _library() -> Any:
    try:
        import tokenizers
    except ImportError as error:
        raise InputError("parts of words need tokenizers; install lossscope[hf]") from error
    return tokenizers
