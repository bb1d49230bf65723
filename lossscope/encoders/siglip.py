"""SigLIP, from a Hugging Face folder."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from lossscope.core.similarity import normalise
from lossscope.errors import InputError, needing
from lossscope.text.subwords import Subwords
from lossscope.text.tokenizer import Tokeniser

from .base import Encoder, EncoderSpec, require_fit
from .released.containers import PADDING, TOKENISER, read_container
from .released.image_processor import PROCESSOR, normalisation_of, reading_of
from .released.known_options.siglip import OPTIONS
from .released.option_table import OptionTable
from .released.transformer_config import build_config, parse_stored_config, read_scalar, select_configs
from .types import EncodedBatch, Items, ItemShape, OpenedModel, ReleasedFile

_POSITION_IDS = ".position_ids"
_READING = {
    "fit": "squeeze",
    "resample": "bicubic",
    "rgb": "on-white",
}  # of transformers, where the folder says nothing


@dataclass(frozen=True)
class SigLIP(EncoderSpec):
    """v = norm(attention pooling of the patches), t = norm(head of the last position), S = v · t.

    Captions are padded to the full context with the padding token of the folder's tokeniser, as by the authors'
    processor; text_config.pad_token_id may be another. tokenizer.json is read and spiece.model is not: of decomposed
    Hangul the two can give other parts. Items are pictures of exactly the model's size; they are scaled to -1..1 here.
    logit_scale and logit_bias are stored but not trained: the objective siglip learns them. The parameter group
    `siglip` of a recipe's lr_groups and freeze is the whole model.

    Source: Zhai et al. 2023.
    """

    path: Path | None = None  # Hugging Face folder; none in a converted checkpoint, which holds its configuration

    released_options: ClassVar[OptionTable] = OPTIONS

    def build(self, item_shape: ItemShape, vocabulary_size: int) -> Encoder:
        """Return the folder's model. Raises InputError for items of another size, or a folder that does not fit."""
        released = self._read_folder()
        settings, weights = _build_config(_read_configuration(released)), _select_weights(released)
        with torch.device("meta"):
            require_fit(_Towers(settings, item_shape).state_dict(), weights, f"the folder {self.path}")
        model = _Towers(settings, item_shape)
        model.load_state_dict(weights)
        return model

    def rebuild(self, item_shape: ItemShape, vocabulary_size: int, stored_files: Mapping[str, str]) -> Encoder:
        return _Towers(_build_config(parse_stored_config(stored_files, "SigLIP")), item_shape)

    def stored_files(self) -> Mapping[str, str]:
        if self.path is None:
            return {}
        return {"config": json.dumps(_read_configuration(self._read_folder()))}

    def reading(self) -> Mapping[str, str]:
        if self.path is None:
            return {}
        released = self._read_folder()
        return _read_reading(released, _build_config(released.options).vision_config.image_size)

    def build_tokeniser(self, captions: Sequence[str], min_count: int) -> Tokeniser:
        released = self._read_folder()
        context = _build_config(released.options).text_config.max_position_embeddings
        return Subwords.from_folder(released.path, max_length=context)

    def _read_folder(self) -> ReleasedFile:
        """Return the folder it begins with. Raises InputError without one, and for options that are not done here."""
        if self.path is None:
            raise InputError("siglip needs the folder of its first weights: siglip:path=FOLDER")
        released = read_container(self.path)
        OPTIONS.require_known(released.options, (), released.path)
        _ = _read_reading(released, _build_config(released.options).vision_config.image_size)
        return released

    @classmethod
    def from_released(cls, released: ReleasedFile) -> OpenedModel | None:
        tower = released.towers[0]
        if len(released.towers) != 1 or "vision_model.head.probe" not in tower or "logit_bias" not in tower:
            return None
        weights, config = _select_weights(released), _read_configuration(released)
        settings = _build_config(config)
        side = settings.vision_config.image_size
        with torch.device("meta"):
            require_fit(_Towers(settings, (3, side, side)).state_dict(), weights, f"the SigLIP in {released.path}")
        scale, bias = math.exp(read_scalar(weights, "logit_scale", 1)), read_scalar(weights, "logit_bias", 1)
        return OpenedModel(
            cls(),
            weights,
            (3, side, side),
            settings.text_config.vocab_size,
            objective=f"siglip:scale={scale:.9g},bias={bias:.9g},learn=false",
            ignored=tuple(name for name in tower if name.endswith(_POSITION_IDS)),
            stored_files={"config": json.dumps(config)},
            context_length=settings.text_config.max_position_embeddings,
            reading=_read_reading(released, side),
        )


class _Towers(Encoder):
    def __init__(self, settings: Any, shape: ItemShape) -> None:
        super().__init__()
        from transformers import SiglipModel

        side = settings.vision_config.image_size
        if shape != (3, side, side):
            raise InputError(f"pictures must be (3, {side}, {side}) for this SigLIP; the data set has {shape}")
        model = SiglipModel(settings)
        self.vision_model, self.text_model = model.vision_model, model.text_model
        self.logit_scale = nn.Parameter(model.logit_scale.detach().clone(), requires_grad=False)
        self.logit_bias = nn.Parameter(model.logit_bias.detach().clone(), requires_grad=False)
        self._context = settings.text_config.max_position_embeddings
        self._fill = settings.text_config.pad_token_id

    def encode_images(self, images: Items) -> EncodedBatch:
        assert isinstance(images, Tensor)
        pixels = images.float() / 127.5 - 1 if images.dtype == torch.uint8 else images
        return EncodedBatch(normalise(self.vision_model(pixel_values=pixels).pooler_output.float()))

    def encode_texts(self, ids: Tensor, lengths: Tensor) -> EncodedBatch:
        padded = ids.new_full((len(ids), self._context), self._fill)
        padded[:, : ids.shape[1]] = ids[:, : self._context]
        absent = torch.arange(self._context, device=ids.device)[None] >= lengths.to(ids.device)[:, None]
        pooled = self.text_model(input_ids=padded.masked_fill(absent, self._fill)).pooler_output
        return EncodedBatch(normalise(pooled.float()))

    def parameter_groups(self) -> Mapping[str, Iterable[nn.Parameter]]:
        return {"siglip": self.parameters()}


def _read_reading(released: ReleasedFile, side: int) -> dict[str, str]:
    """Return how pictures are read. Raises InputError for another scale than -1..1, which the model has built in."""
    stated = released.options.get(PROCESSOR)
    half = [0.5, 0.5, 0.5]
    if isinstance(stated, Mapping):
        got = normalisation_of({PROCESSOR: {"image_mean": half, "image_std": half, **stated}})
        if got != {"image_mean": half, "image_std": half}:
            raise InputError(f"image_mean and image_std of a SigLIP must be 0.5; got {got}")
    return {**reading_of(released.options, side, _READING), "size": str(side)}


def _read_configuration(released: ReleasedFile) -> dict[str, Any]:
    """Return the configuration, with the padding token of the tokeniser as its pad_token_id. Raises InputError."""
    config = select_configs(released.options, "SigLIP")
    tokeniser = released.options.get(TOKENISER)
    if not isinstance(tokeniser, Mapping) or PADDING not in tokeniser:
        raise InputError(
            f"{released.path} must hold tokenizer.json, and tokenizer_config.json with a pad_token; got none "
            "with a pad_token. lossscope does not read spiece.model: save the tokeniser by AutoTokenizer"
        )
    return {**config, "text_config": {**config["text_config"], PADDING: tokeniser[PADDING]}}


def _select_weights(released: ReleasedFile) -> dict[str, Tensor]:
    """Return the parameters of the model."""
    return {name: tensor for name, tensor in released.towers[0].items() if not name.endswith(_POSITION_IDS)}


def _build_config(config: Mapping[str, Any]) -> Any:
    """Return the configuration with all defaults. Raises InputError without transformers, or for an invalid one."""
    with needing("hf", "siglip needs transformers"):
        from transformers import SiglipConfig
    filled = build_config(SiglipConfig, select_configs(config, "SigLIP"), "SigLIP")
    fill = filled.text_config.pad_token_id
    if fill >= filled.text_config.vocab_size:
        raise InputError(f"pad_token_id of a SigLIP must be below its vocab_size; got {fill}")
    return filled
