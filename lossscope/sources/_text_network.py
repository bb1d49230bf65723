"""The tokeniser and the network of a Hugging Face folder of texts, read offline, without running code or pickles."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from lossscope.core.float32_products import float32_products
from lossscope.errors import InputError, needing
from lossscope.io.files import require_file
from lossscope.io.json_files import read_json, shorten
from lossscope.io.reading import shorten_message

from ._loaded_weights import quiet, require_loaded

_CONFIGURATIONS = ("config.json", "sentence_bert_config.json")
_INDEX = "model.safetensors.index.json"
_OFFLINE: dict[str, Any] = {"local_files_only": True, "trust_remote_code": False}
_UNLIMITED = 1 << 24  # tokens: what tokenisers without a length state is far above
_PADDING = ("eos_token", "sep_token", "unk_token", "bos_token")  # what stands for a padding token; it is masked out


@dataclass(frozen=True)
class TextNetwork:
    """A network that gives every token of a text a state."""

    tokeniser: Any
    open: Callable[[], Any]  # reads the network onto the device, in eval mode
    longest: int  # tokens that it takes, at most
    device: torch.device

    @cached_property
    def network(self) -> Any:
        """The network, which is read where a text must be encoded."""
        return self.open()

    @float32_products()
    def states(self, texts: Sequence[str], max_length: int) -> tuple[Tensor, Tensor, Tensor]:
        """Return the last states of the tokens (n, L, d), their mask (n, L), and which texts were cut (n,).

        Args:
            texts: n.
            max_length: tokens of a text, at most.
        """
        network = self.network
        tokens = self.tokeniser(list(texts), padding=True, truncation=True, max_length=max_length, return_tensors="pt")
        cut = self._cut(texts, tokens, max_length)
        takes = inspect.signature(network.forward).parameters
        given = {name: tensor.to(self.device) for name, tensor in tokens.items() if name in takes}
        with torch.inference_mode():
            states: Tensor = network(**given).last_hidden_state.float()
        return states, tokens["attention_mask"].to(self.device), cut

    def _cut(self, texts: Sequence[str], tokens: Any, max_length: int) -> Tensor:
        """Return which texts were cut; tokenisers that are not fast do not say it, and are asked for all tokens."""
        if tokens.encodings is not None:
            return torch.tensor([bool(encoding.overflowing) for encoding in tokens.encodings])
        cut: Tensor = tokens["attention_mask"].sum(1) >= max_length
        full = [text for text, is_full in zip(texts, cut.tolist(), strict=True) if is_full]
        if full:
            ids = self.tokeniser(full, verbose=False)["input_ids"]
            cut[cut.clone()] = torch.tensor([len(row) > max_length for row in ids])
        return cut


def count_tokens(tokeniser: Any, texts: Sequence[str], most: int | None) -> Sequence[int]:
    """Return the number of tokens of each text; of letters, where the tokeniser is not one of transformers.

    Args:
        tokeniser: of the model.
        texts: n.
        most: tokens that the model reads of a text.
    """
    if not hasattr(tokeniser, "model_max_length"):
        return [len(text) for text in texts]
    cut = {} if most is None else {"truncation": True, "max_length": most}
    return [len(ids) for ids in tokeniser(list(texts), verbose=False, **cut)["input_ids"]]


def open_text_network(folder: Path, device: str, dtype: torch.dtype = torch.float32) -> TextNetwork:
    """Return the network of a folder, in eval mode; of an encoder-decoder its encoder. It is read when it is needed.

    Raises InputError without transformers, for a folder that is damaged or lacks weights, and for one that refers to
    files elsewhere.
    """
    with needing("hf", f"{folder} needs transformers"):
        from transformers import AutoConfig, AutoTokenizer
    require_own_files(folder)
    target = torch.device(device)
    with _whole(folder), quiet():
        tokeniser = AutoTokenizer.from_pretrained(str(folder), **_OFFLINE)
        config = AutoConfig.from_pretrained(str(folder), **_OFFLINE)
    require_words(tokeniser, folder)
    _require_padding(tokeniser, folder)
    tokeniser.padding_side = "right"  # positions that are counted from the first token are then those of the text
    longest = _longest(tokeniser, getattr(config, "encoder", config) if config.is_encoder_decoder else config)
    return TextNetwork(tokeniser, lambda: _open(folder, dtype).to(target), longest, target)


def _open(folder: Path, dtype: torch.dtype) -> Any:
    """Return the network of a folder, in eval mode."""
    from transformers import AutoModel

    with _whole(folder), quiet():
        model, loading = AutoModel.from_pretrained(
            str(folder), use_safetensors=True, dtype=dtype, output_loading_info=True, **_OFFLINE
        )
    network = model.get_encoder() if model.config.is_encoder_decoder else model
    require_loaded(loading["missing_keys"], model, network, folder)
    if hasattr(network.config, "use_cache"):
        network.config.use_cache = False
    return network.eval()


@contextlib.contextmanager
def _whole(folder: Path) -> Iterator[None]:
    try:
        yield
    except Exception as error:  # a damaged folder can raise anything; code in it is refused
        raise InputError(f"{folder} must be a whole folder of a text encoder; {shorten_message(error)}") from error


def require_own_files(folder: Path) -> None:
    """Raise InputError for a pipe in a folder, and where its model would come from files or repositories elsewhere."""
    for file in folder.iterdir():
        if not file.is_dir():
            require_file(file)  # a pipe would make the library wait without end
    if (folder / "adapter_config.json").exists():
        raise InputError(f"{folder} must hold a whole model; got an adapter. Merge it into its model and save that")
    require_no_repository(folder)
    if not (folder / _INDEX).exists():
        return
    files = read_json(folder / _INDEX).get("weight_map")
    shards = list(files.values()) if isinstance(files, Mapping) else [files]
    for shard in shards:
        if not isinstance(shard, str) or not shard.endswith(".safetensors") or Path(shard).name != shard:
            raise InputError(f"{folder / _INDEX} must name .safetensors files beside it; got {shorten(shard)}")


def require_no_repository(folder: Path) -> None:
    """Raise InputError where a configuration names code of a repository, which transformers would fetch and run."""
    for file in (folder / name for name in _CONFIGURATIONS if (folder / name).exists()):
        stated = read_json(file)
        tables = [stated, *(value for value in stated.values() if isinstance(value, Mapping))]
        for name, value in (entry for table in tables for entry in table.items()):
            if str(name).endswith("_implementation") and "/" in str(value):
                raise InputError(f"{name} of {file} must be one that transformers has; got {shorten(value)}, not run")


def require_words(tokeniser: Any, folder: Path) -> None:
    """Raise InputError for a folder without the words of its tokeniser, in whose place transformers makes an empty one.

    Args:
        tokeniser: as transformers read it.
        folder: of its files.
    """
    names = sorted(set(getattr(tokeniser, "vocab_files_names", {}).values()))
    if names and not any((folder / name).is_file() for name in names):
        raise InputError(f"{folder} must hold the words of its tokeniser; it has none of {', '.join(names)}")


def _require_padding(tokeniser: Any, folder: Path) -> None:
    """Let another token stand for padding where a tokeniser has none, as those of decoders."""
    if tokeniser.pad_token is not None:
        return
    token = next((token for name in _PADDING if (token := getattr(tokeniser, name, None)) is not None), None)
    if token is None:
        raise InputError(f"the tokeniser of {folder} must have a padding token; it has no special token")
    tokeniser.pad_token = token


def _longest(tokeniser: Any, config: Any) -> int:
    """Return the number of tokens that a text may have: of the tokeniser, and of the network's positions."""
    positions = getattr(config, "max_position_embeddings", None)
    lengths = [length for length in (tokeniser.model_max_length, positions) if isinstance(length, int) and length > 0]
    return min([*lengths, _UNLIMITED])
