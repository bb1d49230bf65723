"""A sentence-transformers folder: a CLIP inside it is opened as CLIP, a text model reads queries and documents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import torch

from lossscope.core.embedded import SplitEmbeddings
from lossscope.core.float32_products import float32_products
from lossscope.core.request import Request
from lossscope.datasets.base import Split
from lossscope.errors import InputError, needing
from lossscope.io.file_states import FileState, not_rewritten, unchanged_since
from lossscope.io.files import fingerprint, require_file
from lossscope.io.json_files import read_json
from lossscope.io.reading import reading, shorten_message, show_path
from lossscope.registry import build, load

from ._loaded_weights import quiet, require_whole
from ._row_cache import open_row_cache
from ._sentence_modules import read_modules, reads_sides_alike, require_cosine, require_plain_clip
from ._text_model import TextModel
from ._text_network import count_tokens, require_no_repository, require_words
from ._text_precision import AS_STORED, Precision, take_precision
from ._text_vectors import EncodedTexts, TextVectors

_DATA = "scenes"
_CONTENT = (".json", ".safetensors", ".bin", ".txt", ".model", ".jinja", ".spm", ".tiktoken", ".vocab")
_OBJECTIVE = "ntxent:tau=0.05"  # the library's usual loss multiplies cosines by 20


@dataclass(frozen=True)
class SentenceTransformersFolder:
    """a sentence-transformers folder (modules.json; extra [st] for text models)

    The library encodes captions, with the folder's modules and default prompt. S is the cosine; a folder whose
    similarity is another one is refused, as is a CLIP with further modules but Normalize.

    A text model reads queries and documents (--data texts:file=FILE, beir:root=DIR), with its own prompts for them. Of
    images and captions the first caption of each image takes the place of the image, the other captions are the
    candidates. Its objective is the loss it is usually trained with, the library's multiple negatives ranking loss at
    scale 20; --objective overrides it. Without --data it is evaluated on the built-in scenes.
    --encoder-option precision=bfloat16 computes in bfloat16, precision=float32 in float32 whatever the folder says.
    """

    path: Path  # the folder

    @classmethod
    def accepts(cls, path: Path) -> bool:
        return path.is_dir() and (path / "modules.json").is_file()

    def trained_with(self, request: Request) -> str | None:
        first_module = self.path / read_modules(self.path)[0]["path"]
        if not _has_vision_tower(first_module):
            return _OBJECTIVE
        objective: str | None = load("sources", "original")(first_module).trained_with(request)
        return objective

    def read(self, request: Request) -> SplitEmbeddings:
        self._require_ordinary_files()
        modules = read_modules(self.path)
        first_module = self.path / modules[0]["path"]
        if _has_vision_tower(first_module):
            require_plain_clip(self.path, modules)
            embedded: SplitEmbeddings = load("sources", "original")(first_module).read(request)
            return replace(embedded, name=show_path(self.path))
        require_cosine(self.path)
        precision, others = take_precision(request.encoder)
        data = build("datasets", request.data or _DATA)
        split: Split = data.split(request.split_of(data))
        notices = list(precision.notices)
        if request.data is None:
            notices.append(f"{self.path} names no data: using the built-in {_DATA}; --data names others")
        if others:
            notices.append(f"--encoder-option is not used: the modules of {self.path} say how texts are read")
        states = [FileState.of(file) for file in self._files()]
        files = {str(state.path.relative_to(self.path)): fingerprint(state.path) for state in states}
        vectors = self.text_vectors(request, files, precision, states)
        stated = [*files.values(), *precision.stated]
        return TextModel(self.path, vectors, stated, _OBJECTIVE).split(split, tuple(notices))

    def text_vectors(
        self,
        request: Request,
        files: Mapping[str, str],
        precision: Precision = AS_STORED,
        states: Sequence[FileState] = (),
    ) -> TextVectors:
        """Return the vectors of texts, whose model is opened when a text must be encoded.

        Args:
            request: how the folder is read.
            files: name -> fingerprint of its files.
            precision: of the numbers.
            states: of these files, before their fingerprints were taken.
        """
        modules = read_modules(self.path)
        alike = reads_sides_alike(modules, require_cosine(self.path))
        model = cache(unchanged_since(*states)(lambda: self._open(request, self.path / modules[0]["path"], precision)))
        packages, kind = ("sentence-transformers",), " ".join(("sentence-transformers", *precision.stated))
        return TextVectors(
            not_rewritten(*states)(lambda texts, side: self._encode(texts, side, model())),
            lambda texts: self._count_tokens(texts, model()),
            lambda side: "" if alike or side not in ("query", "document") else side,
            open_row_cache(self.path, kind, files, precision.stated, packages, request.cache),
            request,
        )

    def _open(self, request: Request, first_module: Path, precision: Precision) -> Any:
        """Return the model, on the device."""
        with needing("st", f"{self.path} needs sentence-transformers"):
            from sentence_transformers import SentenceTransformer
            from transformers import PreTrainedModel
        try:
            require_no_repository(first_module)
            folder = str(self.path)
            with quiet():
                model = SentenceTransformer(
                    folder, device=request.device, local_files_only=True, trust_remote_code=False
                )
                network = getattr(model[0], "auto_model", None)
                if isinstance(network, PreTrainedModel):
                    require_whole(network, first_module)
                    require_words(model.tokenizer, first_module)
            return model if precision.dtype is None else model.to(precision.dtype)
        except Exception as error:  # a damaged folder can raise anything; code in it is refused
            raise InputError(
                f"{self.path} must be a whole sentence-transformers folder; {shorten_message(error)}"
            ) from error

    @float32_products()
    def _encode(self, texts: Sequence[str], side: str, model: Any) -> EncodedTexts:
        """Return the vectors of a batch; those of queries and documents with the prompts that the model has for them.

        The library cuts texts, and does not say which.
        """
        encode = {"query": model.encode_query, "document": model.encode_document}.get(side, model.encode)
        with reading(self.path, "a folder that sentence-transformers can run"):
            vectors = encode(list(texts), batch_size=len(texts), convert_to_tensor=True, show_progress_bar=False)
        if vectors.dtype == torch.bfloat16:  # whose unit vectors are off by a thousandth
            vectors = torch.nn.functional.normalize(vectors.float(), dim=1)
        return vectors.float().cpu().clone(), torch.zeros(len(texts), dtype=torch.bool)

    def _count_tokens(self, texts: Sequence[str], model: Any) -> Sequence[int]:
        with reading(self.path, "a folder that sentence-transformers can run"):
            return count_tokens(getattr(model[0], "tokenizer", None), texts, model.max_seq_length)

    def _require_ordinary_files(self) -> None:
        """Raise InputError for a pipe or a device in the folder, on which the library would wait without end."""
        for file in self.path.rglob("*"):
            if not file.is_dir():
                require_file(file)

    def _files(self) -> list[Path]:
        return [file for file in sorted(self.path.rglob("*")) if file.suffix in _CONTENT and file.is_file()]


def _has_vision_tower(folder: Path) -> bool:
    """Whether the configuration of a module is that of a model of images and texts."""
    try:
        return "vision_config" in read_json(folder / "config.json")
    except InputError:
        return False  # the library says what is damaged
