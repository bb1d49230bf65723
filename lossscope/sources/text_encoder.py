"""A Hugging Face folder of a text encoder, such as BERT, that reads queries and documents."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from lossscope.core.embedded import SplitEmbeddings
from lossscope.core.request import Request
from lossscope.core.sides import plural
from lossscope.errors import InputError
from lossscope.io.files import fingerprint
from lossscope.io.reading import reading
from lossscope.registry import build

from ._text_folder import is_text_encoder
from ._text_model import EncodedTexts, TextModel
from ._text_network import TextNetwork, open_text_network

_OBJECTIVE = "ntxent:tau=0.05"  # what most text encoders are trained with
_POOLING = ("mean", "cls", "last")
_LENGTH = 512  # tokens of a text, where no other number is typed and the network takes as many
_OPTIONS = {"pooling": "mean", "query_prefix": "", "document_prefix": "", "max_length": ""}
_DATA = "texts:file=train.jsonl"
_CONTENT = (".json", ".safetensors", ".txt", ".model")


@dataclass(frozen=True)
class TextEncoderFolder:
    """a Hugging Face folder of a text encoder (config.json, tokenizer.json, model.safetensors; extra [hf])

    A text is the mean of its tokens' last states, scaled to unit length; S is the cosine. --encoder-option
    pooling=cls|last|mean, query_prefix=TEXT, document_prefix=TEXT and max_length=N say otherwise: the folder does not
    know what its model was trained with. --data names the texts. Only safetensors are read, no code in the folder is
    run.
    """

    path: Path  # the folder

    @classmethod
    def accepts(cls, path: Path) -> bool:
        return is_text_encoder(path)

    def trained_with(self, request: Request) -> str | None:
        return _OBJECTIVE

    def read(self, request: Request) -> SplitEmbeddings:
        options = _options(request.encoder)
        if request.data is None:
            raise InputError(f"--data is needed: {self.path} names no data, e.g. --data {_DATA}")
        data = build("datasets", request.data)
        network = open_text_network(self.path, request.device)
        length = _max_length(options["max_length"], network.longest, self.path)

        def encode(texts: Sequence[str], side: str) -> EncodedTexts:
            prefix = options.get(f"{side}_prefix", "")
            return self._encode([prefix + text for text in texts], side, network, request, options["pooling"], length)

        content = sorted(file for file in self.path.iterdir() if file.suffix in _CONTENT and file.is_file())
        stated = [f"{name}={value}" for name, value in {**options, "max_length": str(length)}.items()]
        notice = f"texts are pooled by {options['pooling']}: {self.path} does not say how its model was trained"
        notices = () if any(given.startswith("pooling=") for given in request.encoder) else (notice,)
        model = TextModel(self.path, encode, [*map(fingerprint, content), *stated], _OBJECTIVE)
        return model.split(data.split(request.split_of(data)), notices)

    def _encode(
        self, texts: Sequence[str], side: str, network: TextNetwork, request: Request, pooling: str, length: int
    ) -> EncodedTexts:
        """Return the unit vectors of texts, and a notice where some were cut."""
        parts, cut = [], 0
        for start in range(0, len(texts), request.batch_size):
            part = texts[start : start + request.batch_size]
            with reading(self.path, "a folder that transformers can run"):
                states, mask, too_long = network.states(part, length)
                parts.append(torch.nn.functional.normalize(pool_tokens(states, mask, pooling), dim=1).cpu())
            cut += too_long
            if request.progress:
                request.progress(f"encoding {plural(side)}", start + len(part), len(texts))
        notice = f"{cut} of {len(texts)} {plural(side)} were cut to {length} tokens"
        return torch.cat(parts).clone(), (notice,) if cut else ()


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
            raise InputError(f"--encoder-option of a text encoder must be of {', '.join(_OPTIONS)}; got {text!r}")
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
