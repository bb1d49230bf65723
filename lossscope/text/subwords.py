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
_MAX_MODEL_LENGTH = 1_000_000  # configurations without a limit have a model_max_length far above


@dataclass(frozen=True)
class Subwords:
    """A tokeniser of the tokenizers library with its ids; 0 is padding, and encode adds the start and the end.

    Raises InputError without the library, or when the content is not what it writes.
    """

    content: str  # the library's JSON
    max_length: int | None = None  # ids of the longest caption, start and end included; the rest is cut off

    def __post_init__(self) -> None:
        if self.max_length is not None and self.max_length < 3:
            raise InputError(f"max_length must be at least 3; got {self.max_length}")
        if not self.encode("a"):
            raise InputError("a tokeniser must give at least one id for a caption; this one gives none for 'a'")

    @classmethod
    def from_folder(cls, path: Path | str, max_length: int | None = None, lower: bool | None = None) -> Subwords:
        """Return the tokeniser of a folder: tokenizer.json, vocab.txt (BERT) or vocab.json with merges.txt (CLIP).

        Raises InputError when the folder holds none of them, or a damaged one.

        Args:
            path: the folder, as Hugging Face writes it.
            max_length: instead of model_max_length in tokenizer_config.json (without either 512 for BERT, 77 for CLIP).
            lower: for vocab.txt, instead of do_lower_case in tokenizer_config.json (without either True).
        """
        folder = Path(path).expanduser()
        settings = _read_configuration(folder)
        stored_length = settings.get("model_max_length")
        default_length = (
            stored_length if isinstance(stored_length, int) and 2 < stored_length < _MAX_MODEL_LENGTH else None
        )
        if (folder / "tokenizer.json").is_file():
            return cls(
                require_file(folder / "tokenizer.json").read_text(encoding="utf-8"), max_length or default_length
            )
        if (folder / "vocab.txt").is_file():
            rows = (folder / "vocab.txt").read_text(encoding="utf-8").rstrip("\n").split("\n")
            lower_case = lower if lower is not None else settings.get("do_lower_case", True) is True
            return cls(
                _build_wordpiece({word: row for row, word in enumerate(rows)}, lower_case),
                max_length or default_length or 512,
            )
        if (folder / "vocab.json").is_file() and (folder / "merges.txt").is_file():
            return cls(_build_byte_pairs(folder), max_length or default_length or 77)
        raise InputError(
            f"{folder} must hold tokenizer.json, vocab.txt, or vocab.json and merges.txt; got none of them"
        )

    @classmethod
    def train(
        cls, captions: Iterable[str], size: int = 8000, min_count: int = 2, max_length: int | None = 512
    ) -> Subwords:
        """Return a lower-case WordPiece of at most `size` parts learnt from captions; the first five are SPECIAL."""
        library = require_tokenizers()
        tokeniser = library.Tokenizer.from_str(_build_wordpiece({word: row for row, word in enumerate(SPECIAL)}, True))
        captions = list(captions)
        letters = sorted({c for caption in captions for c in tokeniser.normalizer.normalize_str(caption)} - {" "})
        # without these the library numbers letters inside words in an order that differs between runs, which
        # decides ties
        first = [*SPECIAL, *letters, *(f"##{letter}" for letter in letters)]
        trainer = library.trainers.WordPieceTrainer(
            vocab_size=size, min_frequency=min_count, special_tokens=first, show_progress=False
        )
        tokeniser.train_from_iterator(captions, trainer)
        if tokeniser.get_vocab_size() > size:
            raise InputError(f"size must be at least the number of letters and special tokens; got {size}")
        return cls(_build_wordpiece(tokeniser.get_vocab(), True), max_length)

    @classmethod
    def from_json(cls, text: str) -> Subwords:
        """Return the tokeniser that `to_json` wrote. Raises InputError for anything else."""
        try:
            stored = json.loads(text)
            content, max_length = stored["tokeniser"], stored["max_length"]
        except (ValueError, TypeError, KeyError) as error:
            raise InputError(f"a stored tokeniser must be JSON with tokeniser and max_length; got {error!r}") from error
        if not isinstance(content, str) or not (max_length is None or type(max_length) is int):
            raise InputError("a stored tokeniser must hold text, and a whole number or null as max_length")
        return cls(content, max_length)

    def to_json(self) -> str:
        """Return the content and max_length as text, for checkpoints."""
        return json.dumps({"tokeniser": self.content, "max_length": self.max_length})

    def __len__(self) -> int:
        return int(self._tokeniser.get_vocab_size())

    def encode(self, caption: str) -> list[int]:
        """Return the ids of a caption, start and end included, cut to max_length before the end."""
        return list(self._tokeniser.encode(caption).ids)

    def id_of(self, token: str) -> int | None:
        """Return the id of a token, None when there is no such token."""
        row = self._tokeniser.token_to_id(token)
        return None if row is None else int(row)

    @cached_property
    def continuing(self) -> tuple[int, ...]:
        """Ids of parts that continue a word (`##ing`); none in a tokeniser that does not mark them."""
        prefix = json.loads(self.content)["model"].get("continuing_subword_prefix")
        vocabulary = self._tokeniser.get_vocab()
        return tuple(sorted(i for token, i in vocabulary.items() if prefix and token.startswith(prefix)))

    @cached_property
    def _tokeniser(self) -> Tokenizer:
        library = require_tokenizers()
        try:
            tokeniser: Tokenizer = library.Tokenizer.from_str(self.content)
        except Exception as error:  # the library raises plain Exception
            raise InputError(f"a tokeniser must be the tokenizers library's JSON; {error}") from error
        tokeniser.no_padding()
        tokeniser.no_truncation()
        if self.max_length is not None:
            tokeniser.enable_truncation(self.max_length)
        return tokeniser


def _read_configuration(folder: Path) -> dict[str, Any]:
    """Return tokenizer_config.json of a folder, {} when it has none."""
    path = folder / "tokenizer_config.json"
    if not path.is_file():
        return {}
    try:
        settings = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise InputError(f"{path} must be a readable JSON file; {error}") from error
    return settings if isinstance(settings, dict) else {}


def _build_wordpiece(vocabulary: dict[str, int], lower: bool) -> str:
    """Return BERT's tokeniser with these parts, as JSON."""
    missing = [token for token in SPECIAL if token not in vocabulary]
    if missing:
        raise InputError(f"a WordPiece vocabulary must hold {', '.join(SPECIAL)}; got none of {', '.join(missing)}")
    library = require_tokenizers()
    tokeniser = library.Tokenizer(library.models.WordPiece(vocabulary, unk_token="[UNK]"))
    tokeniser.normalizer = library.normalizers.BertNormalizer(lowercase=lower)
    tokeniser.pre_tokenizer = library.pre_tokenizers.BertPreTokenizer()
    ends = [(token, vocabulary[token]) for token in ("[CLS]", "[SEP]")]
    tokeniser.post_processor = library.processors.TemplateProcessing(single="[CLS] $A [SEP]", special_tokens=ends)
    tokeniser.add_special_tokens(list(SPECIAL))
    return str(tokeniser.to_str())


def _build_byte_pairs(folder: Path) -> str:
    """Return CLIP's tokeniser from its two files, as JSON."""
    library = require_tokenizers()
    try:
        model = library.models.BPE.from_file(
            str(folder / "vocab.json"), str(folder / "merges.txt"), unk_token=_CLIP_ENDS[1], end_of_word_suffix="</w>"
        )
    except Exception as error:  # the library raises plain Exception
        raise InputError(f"{folder} must hold a readable vocab.json and merges.txt; {error}") from error
    tokeniser = library.Tokenizer(model)
    names, splitters = library.normalizers, library.pre_tokenizers
    spaces = names.Replace(library.Regex(r"\s+"), " ")
    tokeniser.normalizer = names.Sequence([names.NFC(), spaces, names.Lowercase()])
    words = splitters.Split(library.Regex(_CLIP_WORDS), behavior="removed", invert=True)
    tokeniser.pre_tokenizer = splitters.Sequence([words, splitters.ByteLevel(add_prefix_space=False)])
    ends = [(token, tokeniser.token_to_id(token)) for token in _CLIP_ENDS]
    if None in dict(ends).values():
        raise InputError(f"{folder / 'vocab.json'} must hold {' and '.join(_CLIP_ENDS)}")
    single = f"{_CLIP_ENDS[0]} $A {_CLIP_ENDS[1]}"
    tokeniser.post_processor = library.processors.TemplateProcessing(single=single, special_tokens=ends)
    tokeniser.add_special_tokens(list(_CLIP_ENDS))
    return str(tokeniser.to_str())


def require_tokenizers() -> Any:
    """Return the tokenizers library. Raises InputError when it is not installed."""
    try:
        import tokenizers
    except ImportError as error:
        raise InputError("parts of words need tokenizers; install lossscope[hf]") from error
    return tokenizers
