"""A Hugging Face folder of a text encoder, such as BERT, that reads queries and documents."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from lossscope.core.embedded import SplitEmbeddings
from lossscope.core.sides import plural
from lossscope.errors import InputError
from lossscope.io.files import fingerprint, require_file
from lossscope.io.reading import reading, shorten_message
from lossscope.registry import build

from ._text_folder import is_text_encoder
from ._text_model import TextModel
from .base import Request

_OBJECTIVE = "ntxent:tau=0.05"  # what most text encoders are trained with
_POOLING = ("mean", "cls", "last")
_OPTIONS = {"pooling": "mean", "query_prefix": "", "document_prefix": "", "max_length": "512"}
_DATA = "texts:file=train.jsonl"


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

    def read(self, request: Request) -> SplitEmbeddings:
        options = _options(request.encoder)
        if request.data is None:
            raise InputError(f"--data is needed: {self.path} names no data, e.g. --data {_DATA}")
        for file in self.path.rglob("*"):
            if not file.is_dir():
                require_file(file)  # a pipe would make the library wait without end
        encode = partial(self._encode, model=self._open(request), request=request, options=options)
        kinds = (".json", ".safetensors", ".txt")
        files = [fingerprint(file) for file in sorted(self.path.rglob("*")) if file.suffix in kinds and file.is_file()]
        stated = [f"{name}={value}" for name, value in options.items()]
        model = TextModel(self.path, encode, [*files, *stated], _OBJECTIVE)
        notice = f"texts are pooled by {options['pooling']}: {self.path} does not say how its model was trained"
        return model.split(build("datasets", request.data).split(request.split), (notice,))

    def _encode(
        self, texts: Sequence[str], side: str, model: tuple[Any, Any], request: Request, options: dict[str, str]
    ) -> Tensor:
        """Return the vectors of texts, (n, d)."""
        tokeniser, network = model
        prefix = options.get(f"{side}_prefix", "")
        parts = []
        for start in range(0, len(texts), request.batch_size):
            part = [prefix + text for text in texts[start : start + request.batch_size]]
            with reading(self.path, "a folder that transformers can run"), torch.inference_mode():
                tokens = tokeniser(
                    part, padding=True, truncation=True, max_length=int(options["max_length"]), return_tensors="pt"
                ).to(request.device)
                states = network(**tokens).last_hidden_state.float()
                parts.append(pool_tokens(states, tokens["attention_mask"], options["pooling"]).cpu())
            if request.progress:
                request.progress(f"encoding {plural(side)}", start + len(part), len(texts))
        return torch.cat(parts).clone()

    def _open(self, request: Request) -> tuple[Any, Any]:
        """Return the tokeniser and the network, on the device."""
        try:
            from transformers import AutoModel, AutoTokenizer
            from transformers.utils.logging import disable_progress_bar
        except ImportError as error:
            raise InputError(f"{self.path} needs transformers; install lossscope[hf]") from error
        disable_progress_bar()  # type: ignore[no-untyped-call]
        folder = str(self.path)
        try:
            tokeniser = AutoTokenizer.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
            model = AutoModel.from_pretrained(
                folder, local_files_only=True, trust_remote_code=False, use_safetensors=True
            )
        except Exception as error:  # a damaged folder can raise anything; code in it is refused
            raise InputError(
                f"{self.path} must be a whole folder of a text encoder; {shorten_message(error)}"
            ) from error
        return tokeniser, model.eval().to(torch.device(request.device))


def pool_tokens(states: Tensor, mask: Tensor, pooling: str) -> Tensor:
    """Return one vector a text, (n, d): the mean of its tokens, its first token, or its last one.

    Args:
        states: (n, L, d).
        mask: (n, L), 1 where a token is present.
        pooling: mean, cls or last.
    """
    if pooling == "cls":
        return states[:, 0]
    present = mask.to(states.dtype)
    if pooling == "last":
        last = (torch.arange(mask.shape[1], device=mask.device) * mask).argmax(1)
        return states[torch.arange(len(states), device=states.device), last]
    mean: Tensor = (states * present[:, :, None]).sum(1) / present.sum(1, keepdim=True)
    return mean


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
    if not options["max_length"].isdecimal() or int(options["max_length"]) < 1:
        raise InputError(f"max_length must be a number of tokens, at least 1; got {options['max_length']!r}")
    return options
