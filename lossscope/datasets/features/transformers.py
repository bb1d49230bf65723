"""The last hidden states of a vision model in a local transformers folder."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import torch

from lossscope.core.float32_products import float32_products
from lossscope.errors import InputError, needing
from lossscope.io.file_states import FileState, not_rewritten, unchanged_since
from lossscope.io.files import fingerprint, fingerprint_of
from lossscope.io.json_files import member, read_json

from .base import IMAGENET, Extract, Features, Pixels, normalise_pixels, to_regions

_GREATEST = 1e6  # bound of a mean or a deviation of pixels from 0 to 1


@dataclass(frozen=True)
class TransformersFolder:
    """x[r] = the model's last hidden state at token or map cell r; nothing is downloaded, no code of the folder is run.

    Of a model with two towers the vision tower is used. Pictures should have the size that the model was made for (the
    data set's size=). Raises InputError when the folder or its model cannot be used. Needs transformers (extra [hf]).
    """

    path: Path  # folder with config.json and weights
    drop: int = 0  # number of leading tokens to leave out, 1 for the [CLS] of a ViT
    normalise: Literal["folder", "imagenet"] = "folder"  # by preprocessor_config.json, or as for ImageNet

    def __post_init__(self) -> None:
        if self.drop < 0:
            raise InputError(f"transformers:drop must be at least 0; got {self.drop}")

    @property
    def identity(self) -> str:
        return f"{self!r} {fingerprint_of(*(f'{path.name} {fingerprint(path)}' for path in self._files))}"

    @property
    def _files(self) -> list[Path]:
        return sorted(path for path in self._folder.iterdir() if path.suffix in (".json", ".safetensors", ".bin"))

    def open(self, device: str) -> Extract:
        """Load the model on the device, in eval mode."""
        states = [FileState.of(file) for file in self._files]
        with unchanged_since(*states):
            model = self._load_model().eval().to(device)
        mean, deviation = self._mean_and_deviation()

        @not_rewritten(*states)  # the weights may be mapped into memory
        @float32_products()
        def extract(pixels: Pixels) -> Features:
            try:
                with torch.inference_mode():
                    states = model(pixel_values=normalise_pixels(pixels, mean, deviation, device)).last_hidden_state
            except Exception as problem:  # pictures of a wrong size can raise anything
                got = f"{tuple(pixels.shape[1:])}, for which it raises: {problem}"
                raise InputError(f"pictures must be what the model in {self.path} takes; got {got}") from problem
            if states.ndim == 3 and states.shape[1] <= self.drop:
                raise InputError(f"transformers:drop must be below {states.shape[1]} tokens; got {self.drop}")
            return to_regions(states[:, self.drop :] if states.ndim == 3 else states)

        return extract

    @property
    def _folder(self) -> Path:
        folder = Path(self.path).expanduser()
        if not (folder / "config.json").is_file():
            raise InputError(f"transformers:path must be a folder with config.json; got {str(self.path)!r}")
        return folder

    def _load_model(self) -> Any:
        with needing("hf", "models in folders need transformers"):
            from transformers import AutoModel
        try:
            model, loading = AutoModel.from_pretrained(
                self._folder, local_files_only=True, trust_remote_code=False, output_loading_info=True
            )
        except Exception as problem:  # a damaged folder can raise anything; code in it is refused
            got = f"{type(problem).__name__}: {problem}"
            raise InputError(f"{self.path} must hold a model that transformers knows; got {got}") from problem
        missing = sorted(name for name in loading["missing_keys"] if "pooler" not in name)
        if missing:
            raise InputError(f"{self.path} must hold every weight of its model; missing {missing[:3]} ({len(missing)})")
        return getattr(model, "vision_model", model)

    def _mean_and_deviation(self) -> tuple[tuple[float, ...], tuple[float, ...]]:
        if self.normalise == "imagenet":
            return IMAGENET
        file = self._folder / "preprocessor_config.json"
        if not file.is_file():
            raise InputError(
                f"{file} must have image_mean and image_std; got no such file: add it, or take normalise=imagenet"
            )
        document = read_json(file)
        mean, deviation = (member(document, key, list, str(file)) for key in ("image_mean", "image_std"))
        numbers = [x for x in (*mean, *deviation) if isinstance(x, int | float) and abs(x) < _GREATEST]
        if (len(mean), len(deviation), len(numbers)) != (3, 3, 6) or min(deviation) <= 0:
            raise InputError(f"image_mean and image_std of {file} must be three numbers; got {mean} and {deviation}")
        return tuple(mean), tuple(deviation)
