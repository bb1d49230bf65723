"""Do sentence-transformers folders give the vectors of the library's encode, and are other chains refused?"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from PIL import Image
from torch import Tensor

from lossscope.errors import InputError
from lossscope.registry import build
from lossscope.sources.base import load
from tests.authors.answers import TOLERANCE
from tests.authors.clip_files import CAPTIONS, PER_PICTURE, SIDES, write_data
from tests.authors.test_hugging_face import SHORT, TEXT, VISION, write_model, write_tokeniser
from tests.each import each
from tests.sources.test_folders import texts


def library() -> Any:
    """Return sentence_transformers; its import takes seconds."""
    return pytest.importorskip("sentence_transformers")


def pooling(mode: str) -> Any:
    from sentence_transformers.sentence_transformer.modules.pooling import Pooling

    return Pooling(16, mode)


def dense(width: int = 5) -> Any:
    from sentence_transformers.base.modules.dense import Dense

    return Dense(16, width, activation_function=torch.nn.Tanh())


def normalize() -> Any:
    from sentence_transformers.base.modules.normalize import Normalize

    return Normalize()


def layer_norm() -> Any:
    from sentence_transformers.sentence_transformer.modules.layer_norm import LayerNorm

    return LayerNorm(16)


CHAINS: dict[str, tuple[Callable[[], list[Any]], dict[str, Any], dict[str, Any]]] = {
    **{mode: (lambda mode=mode: [pooling(mode)], {}, {}) for mode in ("mean", "cls", "max", "lasttoken")},  # type: ignore[misc]
    "several": (lambda: [pooling("mean_sqrt_len_tokens"), layer_norm(), dense(), normalize()], {}, {}),
    "short": (lambda: [pooling("mean")], {"max_seq_length": 6}, {}),
    "lower": (lambda: [pooling("mean")], {"do_lower_case": True}, {}),
    "prompt": (lambda: [pooling("mean")], {}, {"prompts": {"q": "the man: "}, "default_prompt_name": "q"}),
    "truncated": (lambda: [pooling("mean")], {}, {"truncate_dim": 7}),
}


def write_chain(folder: Path, case: str) -> Path:
    """Write a folder with the modules of a case."""
    modules, settings, options = CHAINS[case]
    first = library().SentenceTransformer(str(texts(folder / "first")), device="cpu")[0]
    torch.manual_seed(1)
    library().SentenceTransformer(modules=[first, *modules()], device="cpu", **options).save(str(folder / "model"))
    changed = folder / "model" / "sentence_bert_config.json"
    changed.write_text(json.dumps({**json.loads(changed.read_text()), **settings}))
    stored = folder / "model" / "config_sentence_transformers.json"
    stored.write_text(json.dumps({**json.loads(stored.read_text()), **options}))
    return folder / "model"


def unit(vectors: Tensor) -> Tensor:
    return torch.nn.functional.normalize(vectors.float(), dim=1)


@each("case", CHAINS)
def test_vectors_of_a_chain_are_those_of_the_library(case: str, tmp_path: Path) -> None:
    folder, data = write_chain(tmp_path, case), write_data(tmp_path / "data")
    embedded = load(folder, split="test", data=data, cache=False, batch_size=5)
    options = CHAINS[case][2]
    model = library().SentenceTransformer(str(folder), device="cpu", truncate_dim=options.get("truncate_dim"))
    expected = unit(model.encode(CAPTIONS, convert_to_tensor=True))
    first = torch.arange(0, len(CAPTIONS), PER_PICTURE)
    rest = torch.tensor([row for row in range(len(CAPTIONS)) if row % PER_PICTURE])
    assert embedded.images is not None and embedded.captions is not None
    assert embedded.images.shape == (len(first), expected.shape[1])
    assert float((embedded.images - expected[first]).abs().max()) <= TOLERANCE
    assert float((embedded.captions - expected[rest]).abs().max()) <= TOLERANCE
    split = build("datasets", data).split("test")
    assert embedded.caption_image.tolist() == split.caption_image[rest.numpy()].tolist()


def write_clip(folder: Path) -> Path:
    """Write a folder with CLIP as its only module."""
    transformers = pytest.importorskip("transformers")
    tokeniser = write_tokeniser(folder)
    ends = {"eos_token_id": tokeniser.eos_token_id, "bos_token_id": tokeniser.bos_token_id, "pad_token_id": 1}
    config = transformers.CLIPConfig(text_config={**TEXT, **ends}, vision_config=VISION, projection_dim=16)
    write_model(folder, transformers.CLIPModel(config))
    (folder / "preprocessor_config.json").write_text(
        json.dumps({**SHORT, "image_processor_type": "CLIPImageProcessor"})
    )
    write_chain_file(folder, "CLIPModel")
    return folder


def write_chain_file(folder: Path, *kinds: str) -> None:
    entries = [
        {
            "idx": k,
            "name": str(k),
            "path": "" if k == 0 else f"{k}_{kind}",
            "type": f"sentence_transformers.models.{kind}",
        }
        for k, kind in enumerate(kinds)
    ]
    (folder / "modules.json").write_text(json.dumps(entries))


def test_vectors_of_a_clip_are_those_of_the_library(tmp_path: Path) -> None:
    folder, data = write_clip(tmp_path / "model"), write_data(tmp_path / "data")
    embedded = load(folder, split="test", data=data, cache=False)
    model = library().SentenceTransformer(str(folder), device="cpu")
    pictures = [Image.open(tmp_path / "data" / "images" / f"{k}.png") for k in range(len(SIDES))]
    assert embedded.images is not None and embedded.captions is not None
    images, captions = (unit(model.encode(items, convert_to_tensor=True)) for items in (pictures, CAPTIONS))
    assert float((embedded.images - images).abs().max()) <= TOLERANCE
    assert float((embedded.captions - captions).abs().max()) <= TOLERANCE


@each("kinds, settings, message", [
    (("CLIPModel", "Dense"), {}, "must be a CLIP, then Normalize or none; got CLIPModel, Dense"),
    (("Asym",), {}, "must be a CLIP, then Normalize or none; got Asym"),
    (("CLIPModel",), {"similarity_fn_name": "dot"}, "similarity_fn_name of .* must be cosine; got 'dot'"),
    (("CLIPModel",), {"truncate_dim": 8}, "truncate_dim of .* must be null for a CLIP; got 8"),
    (("CLIPModel",), {"default_prompt_name": "q"}, "default_prompt_name of .* must be null for a CLIP; got 'q'"),
])  # fmt: skip
def test_what_is_not_done_with_a_clip_is_refused_by_name(
    kinds: tuple[str, ...], settings: dict[str, Any], message: str, tmp_path: Path
) -> None:
    folder = write_clip(tmp_path / "model")
    write_chain_file(folder, *kinds)
    (folder / "config_sentence_transformers.json").write_text(json.dumps(settings))
    with pytest.raises(InputError, match=message):
        load(folder, split="test", data=write_data(tmp_path / "data"), cache=False)


@each("content", ["5", "[]", 100_000 * "["])
def test_a_configuration_that_is_no_object_is_refused(content: str, tmp_path: Path) -> None:
    folder = write_chain(tmp_path, "mean")
    (folder / "config.json").write_text(content)
    with pytest.raises(InputError, match="must be a whole sentence-transformers folder"):
        load(folder, split="test", data=write_data(tmp_path / "data"), cache=False)


def test_a_text_model_of_another_similarity_is_refused(tmp_path: Path) -> None:
    folder = write_chain(tmp_path, "mean")
    (folder / "config_sentence_transformers.json").write_text('{"similarity_fn_name": "euclidean"}')
    with pytest.raises(InputError, match=r"similarity_fn_name of .* must be cosine; got 'euclidean'"):
        load(folder, split="test", data=write_data(tmp_path / "data"), cache=False)
