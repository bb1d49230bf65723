"""Released models: checkpoints of the papers' authors and Hugging Face folders."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from lossscope.core.embedded import SplitEmbeddings
from lossscope.core.request import Request
from lossscope.encoders.released.signs import content_files, is_configured, looks_released
from lossscope.io.file_states import unchanged
from lossscope.io.files import fingerprint, fingerprint_of
from lossscope.io.pickles.torch_zip import is_torchscript
from lossscope.io.reading import show_path

from ._checkpoint import embed_checkpoint
from ._text_folder import is_text_encoder
from .checkpoints.checkpoint import Checkpoint
from .checkpoints.schema import FORMAT


@dataclass(frozen=True)
class OriginalFile:
    """a checkpoint of the papers' authors (.pth.tar, .pth, .pt), or a folder of Hugging Face or open_clip

    A folder holds a configuration (config.json, open_clip_config.json) and weights. --data names the data to evaluate
    on; a folder without it is evaluated on the built-in scenes. --vocabulary names the vocabulary it was trained with,
    when that is not beside it. No code in the file is run.
    """

    path: Path  # the file or folder

    @classmethod
    def accepts(cls, path: Path) -> bool:
        if is_configured(path):
            return not ((path / "modules.json").is_file() or is_text_encoder(path))
        return path.is_file() and (is_torchscript(path) or looks_released(path, FORMAT))

    def trained_with(self, request: Request) -> str | None:
        return self._open(request)[0].objective or None

    def _open(self, request: Request) -> tuple[Checkpoint, tuple[str, ...]]:
        """Return the file as a checkpoint, and what there is to say of it."""
        from .checkpoints.conversion import open_released

        return open_released(
            self.path, request.vocabulary, choices=request.encoder, accepted_options=request.accepted_options
        )

    def read(self, request: Request) -> SplitEmbeddings:
        with unchanged(*content_files(self.path)):
            checkpoint, notices = self._open(request)
            origin = self._fingerprint(request)
        if self.path.is_dir() and request.data is None:
            checkpoint = replace(checkpoint, data=_built_in_data(checkpoint))
            notices += (f"{self.path} names no data: using the built-in {checkpoint.data}; --data names others",)
        return embed_checkpoint(
            checkpoint,
            self.path,
            origin,
            checkpoint.objective or None,
            request,
            show_path(self.path),
            notices,
        )

    def _fingerprint(self, request: Request) -> str:
        vocabulary = [] if request.vocabulary is None else [str(request.vocabulary)]
        return fingerprint_of(*(fingerprint(file) for file in content_files(self.path)), *vocabulary)


def _built_in_data(checkpoint: Checkpoint) -> str:
    """Return the spec of the built-in scenes at the picture size of the model; empty for models of features."""
    shape = checkpoint.shape
    if isinstance(shape, tuple) and len(shape) == 3 and shape[0] == 3:
        return f"scenes:size={shape[1]}"
    return ""
