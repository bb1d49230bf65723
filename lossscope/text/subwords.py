"""Captions -> parts of words: WordPiece (BERT) and byte pairs (CLIP) through the tokenizers library."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lossscope.errors import InputError, needing
from lossscope.io.json_files import parse_json
from lossscope.io.reading import naming, shorten_message
from lossscope.io.text_files import read_utf8

from .byte_pairs import MERGES_FILE, build_from_folder, build_from_merges
from .caption_cleaning import CLEANINGS, clean
from .clip_captions import SPECIAL_WORDS, encode_special_words, prepare_for_clip
from .tokeniser_folder import find_case, find_cleaning, find_length, read_settings

if TYPE_CHECKING:
    from tokenizers import Tokenizer

SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
TOKENISER_FILES = ("tokenizer.json", "vocab.txt", "vocab.json")
_CLIP_LENGTH = 77


@contextlib.contextmanager
def _library_errors(what: str) -> Iterator[None]:
    """Raise InputError for what the tokenizers library raises: plain Exception, and PanicException, which is none."""
    try:
        yield
    except (InputError, KeyboardInterrupt, SystemExit, GeneratorExit):
        raise
    except BaseException as error:
        raise InputError(f"a tokeniser must be the tokenizers library's {what}; {shorten_message(error)}") from error


@dataclass(frozen=True)
class Subwords:
    """A tokeniser of the tokenizers library with its ids; 0 is padding, and encode adds the start and the end.

    Raises InputError without the library, or when the content is not what it writes.
    """

    content: str  # the library's JSON
    max_length: int | None = None  # ids of the longest caption, start and end included; the rest is cut off
    cleaning: str = ""  # of captions before they are cut into parts, one of CLEANINGS

    def __post_init__(self) -> None:
        if self.max_length is not None and self.max_length < 3:
            raise InputError(f"max_length must be at least 3; got {self.max_length}")
        if self.cleaning not in CLEANINGS:
            raise InputError(f"cleaning of a tokeniser must be one of {CLEANINGS}; got {self.cleaning!r}")
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
        settings = read_settings(folder)
        default_length = find_length(settings, folder)
        if (folder / "tokenizer.json").exists():
            content = read_utf8(folder / "tokenizer.json")
            with naming(folder / "tokenizer.json"):
                return cls(content, max_length or default_length, find_cleaning(settings, folder))
        if (folder / "vocab.txt").exists():
            rows = read_utf8(folder / "vocab.txt").rstrip("\n").split("\n")
            lower_case = lower if lower is not None else find_case(settings, folder)
            with naming(folder / "vocab.txt"):
                content = _build_wordpiece({word: row for row, word in enumerate(rows)}, lower_case)
                return cls(content, max_length or default_length or 512)
        if (folder / "vocab.json").is_file() and (folder / "merges.txt").is_file():
            return cls(build_from_folder(folder, require_tokenizers()), max_length or default_length or _CLIP_LENGTH)
        if (folder / MERGES_FILE).is_file():
            return cls.from_merges(folder / MERGES_FILE, max_length)
        raise InputError(
            f"{folder} must hold tokenizer.json, vocab.txt, or vocab.json and merges.txt; got none of them"
        )

    @classmethod
    def from_merges(cls, path: Path, max_length: int | None = None) -> Subwords:
        """Return CLIP's tokeniser from its packed merges, bpe_simple_vocab_16e6.txt.gz."""
        return cls(build_from_merges(path, require_tokenizers()), max_length or _CLIP_LENGTH)

    @classmethod
    def train(
        cls, captions: Iterable[str], size: int = 8000, min_count: int = 2, max_length: int | None = 512
    ) -> Subwords:
        """Return a lower-case WordPiece of at most `size` parts learnt from captions; the first five are SPECIAL."""
        library = require_tokenizers()
        tokeniser = library.Tokenizer.from_str(_build_wordpiece({word: row for row, word in enumerate(SPECIAL)}, True))
        captions = list(captions)
        letters = sorted({c for caption in captions for c in tokeniser.normalizer.normalize_str(caption)} - {" "})
        # without these the library numbers letters inside words in another order in each run, which decides ties
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
            stored: Any = parse_json(text, "a stored tokeniser")
        except InputError as error:
            raise InputError(f"{error}; it must have tokeniser and max_length") from error
        try:
            content, max_length, cleaning = stored["tokeniser"], stored["max_length"], stored.get("cleaning", "")
        except (TypeError, KeyError, AttributeError) as error:
            raise InputError(f"a stored tokeniser must be JSON with tokeniser and max_length; got {error!r}") from error
        if not isinstance(content, str) or not (max_length is None or type(max_length) is int):
            raise InputError("a stored tokeniser must hold text, and a whole number or null as max_length")
        return cls(content, max_length, cleaning)

    def to_json(self) -> str:
        """Return the content, max_length and cleaning as text, for checkpoints."""
        cleaning = {"cleaning": self.cleaning} if self.cleaning else {}
        return json.dumps({"tokeniser": self.content, "max_length": self.max_length, **cleaning})

    def __len__(self) -> int:
        return int(self._tokeniser.get_vocab_size())

    def encode(self, caption: str) -> list[int]:
        """Return the ids of a caption, start and end included, cut to max_length before the end."""
        text, special = clean(caption, self.cleaning), SPECIAL_WORDS.get(self.cleaning, ())
        if any(word in text for word in special):
            return encode_special_words(self._tokeniser, text, special, self.max_length, require_tokenizers())
        with _library_errors("own, which reads every caption"):
            return list(self._tokeniser.encode(text).ids)

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
        with _library_errors("JSON"):
            tokeniser: Tokenizer = library.Tokenizer.from_str(self.content)
        if self.cleaning in SPECIAL_WORDS:
            prepare_for_clip(tokeniser, library)
        tokeniser.no_padding()
        tokeniser.no_truncation()
        if self.max_length is not None:
            tokeniser.enable_truncation(self.max_length)
        return tokeniser


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


def require_tokenizers() -> Any:
    """Return the tokenizers library. Raises InputError when it is not installed."""
    with needing("hf", "parts of words need tokenizers"):
        import tokenizers
    return tokenizers
