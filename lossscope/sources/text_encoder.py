"""A Hugging Face folder of a text encoder, such as BERT, that reads queries and documents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from torch import Tensor

from lossscope.core.embedded import SplitEmbeddings
from lossscope.core.request import Request
from lossscope.errors import InputError
from lossscope.io.file_states import FileState, not_rewritten, unchanged_since
from lossscope.io.files import fingerprint
from lossscope.io.reading import reading
from lossscope.registry import build

from ._row_cache import open_row_cache
from ._text_folder import is_text_encoder
from ._text_model import TextModel
from ._text_network import TextNetwork, count_tokens, open_text_network
from ._text_precision import take_precision
from ._text_vectors import EncodedTexts, TextVectors

_OBJECTIVE = "ntxent:tau=0.05"  # what most text encoders are trained with
_POOLING = ("mean", "cls", "last")
_LENGTH = 512  # tokens of a text, where no other number is typed and the network takes as many
_OPTIONS = {"pooling": "mean", "query_prefix": "", "document_prefix": "", "max_length": ""}
_DATA = "texts:file=train.jsonl"
_CONTENT = (".json", ".safetensors", ".txt", ".model", ".spm", ".tiktoken", ".vocab")


@dataclass(frozen=True)
class TextEncoderFolder:
    """a Hugging Face folder of a text encoder (config.json, tokenizer.json, model.safetensors; extra [hf])

    A text is the mean of its tokens' last states, scaled to unit length; S is the cosine. --encoder-option
    pooling=cls|last|mean, query_prefix=TEXT, document_prefix=TEXT and max_length=N say otherwise: the folder does not
    know what its model was trained with. precision=bfloat16 computes in bfloat16. --data names the texts. Only
    safetensors are read, no code in the folder is run.
    """

    path: Path  # the folder

    @classmethod
    def accepts(cls, path: Path) -> bool:
        return is_text_encoder(path)

    def trained_with(self, request: Request) -> str | None:
        return _OBJECTIVE

    def read(self, request: Request) -> SplitEmbeddings:
        precision, others = take_precision(request.encoder)
        options = _options(others)
        if request.data is None:
            raise InputError(f"--data is needed: {self.path} names no data, e.g. --data {_DATA}")
        data = build("datasets", request.data)
        content = sorted(file for file in self.path.iterdir() if file.suffix in _CONTENT and file.is_file())
        states = [FileState.of(file) for file in content]
        network = open_text_network(self.path, request.device, precision.dtype or torch.float32)
        network = replace(network, open=unchanged_since(*states)(network.open))  # when a text must be encoded
        files = {file.name: fingerprint(file) for file in content}
        length = _max_length(options["max_length"], network.longest, self.path)
        stated = [f"{name}={value}" for name, value in {**options, "max_length": str(length)}.items()]
        stated += precision.stated
        pooling = options["pooling"]
        rows = TextVectors(
            not_rewritten(*states)(
                lambda texts, side: self._encode(_with_prefix(texts, side, options), network, pooling, length)
            ),
            lambda texts: count_tokens(network.tokeniser, texts, length),
            lambda side: options.get(f"{side}_prefix", ""),
            open_row_cache(self.path, " ".join(("text encoder", *precision.stated)), files, stated, (), request.cache),
            request,
        )
        notice = f"texts are pooled by {options['pooling']}: {self.path} does not say how its model was trained"
        notices = () if any(given.startswith("pooling=") for given in request.encoder) else (notice,)
        model = TextModel(self.path, rows, [*files.values(), *stated], _OBJECTIVE, length)
        return model.split(data.split(request.split_of(data)), (*notices, *precision.notices))

    def _encode(self, texts: Sequence[str], network: TextNetwork, pooling: str, length: int) -> EncodedTexts:
        """Return the unit vectors of a batch, and which texts were cut."""
        with reading(self.path, "a folder that transformers can run"):
            states, mask, cut = network.states(texts, length)
            vectors = torch.nn.functional.normalize(pool_tokens(states, mask, pooling), dim=1).cpu()
        return vectors.clone(), cut


def _with_prefix(texts: Sequence[str], side: str, options: Mapping[str, str]) -> Sequence[str]:
    prefix = options.get(f"{side}_prefix", "")
    return [prefix + text for text in texts]


def pool_tokens(states: Tensor, mask: Tensor, pooling: str) -> Tensor:
    """Return one vector a text, (n, d): the mean of its tokens, its first token, or its last one.

    Args:
        states: (n, L, d).
        mask: (n, L), 1 where a token is present; padding is before or behind.
        pooling: mean, cls or last.
    """
    if pooling == "mean":
        present = mask.to(states.dtype)
        mean: Tensor = (states * present[:, :, None]).sum(1) / present.sum(1, keepdim=True)
        return mean
    positions = torch.arange(1, mask.shape[1] + 1, device=mask.device)
    chosen = (mask * (positions if pooling == "last" else positions.flip(0))).argmax(1)
    return states[torch.arange(len(states), device=states.device), chosen]


def _options(given: Sequence[str]) -> dict[str, str]:
    """Return the options of --encoder-option over the usual ones. Raises InputError for others."""
    options = dict(_OPTIONS)
    for text in given:
        name, _, value = text.partition("=")
        if name not in _OPTIONS:
            known = ", ".join((*_OPTIONS, "precision"))
            raise InputError(f"--encoder-option of a text encoder must be of {known}; got {text!r}")
        options[name] = value
    if options["pooling"] not in _POOLING:
        raise InputError(f"pooling must be one of {', '.join(_POOLING)}; got {options['pooling']!r}")
    length = options["max_length"]
    if length and not (length.isdecimal() and int(length) >= 1):
        raise InputError(f"max_length must be a number of tokens, at least 1; got {length!r}")
    return options


def _max_length(typed: str, longest: int, path: Path) -> int:
    """Return the number of tokens of a text: as typed, or 512, or what the network takes. Raises InputError."""
    length = int(typed) if typed else min(_LENGTH, longest)
    if length > longest:
        raise InputError(f"max_length must be at most {longest}, the tokens that {path} takes; got {typed}")
    return length
