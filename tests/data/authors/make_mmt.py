"""Write mmt.npz and mmt.json: similarities, ranks and recalls of MMT's own model on its own data files.

    python tests/data/authors/make_mmt.py CHECKOUT      (gabeur/mmt; needs torch, h5py, transformers)

The model is small and its weights follow from tests/authors/rule.py. The text tower is transformers' BERT.
"""

from __future__ import annotations

import json
import pickle
import sys
import tempfile
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import h5py
import numpy as np
import torch
import transformers

sys.path.insert(0, str(Path(__file__).parents[3]))
from tests.authors.expert_videos import CAPTIONS, EXPERTS, WORDS, write_mmt_videos
from tests.authors.rule import network_by_rule

FRAMES, LENGTH, POSITIONS = 5, 12, 8
VIDEO_BERT = {
    "vocab_size_or_config_json_file": 10, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 4,
    "intermediate_size": 24, "hidden_act": "gelu", "hidden_dropout_prob": 0.1, "attention_probs_dropout_prob": 0.1,
    "max_position_embeddings": POSITIONS, "type_vocab_size": 19, "initializer_range": 0.02, "layer_norm_eps": 1e-12,
}  # fmt: skip
ARCHITECTURE = {
    "keep_missing_modalities": True, "test_caption_mode": "indep", "txt_inp": "bertftn", "txt_agg": "bertftn",
    "txt_wgh": "emb", "vid_wgh": "none", "vid_cont": "bert", "vid_inp": "both", "pos_enc": "tint", "out_tok": "mxp",
    "l2renorm": False, "txt_pro": "gbn", "same_dim": 16, "vid_bert_params": VIDEO_BERT,
    "txt_bert_params": {"hidden_dropout_prob": 0.1, "attention_probs_dropout_prob": 0.1},
}  # fmt: skip
_NOT_NEEDED = (
    "ipdb", "humanize", "gensim", "gensim.models", "gensim.models.keyedvectors", "gensim.scripts",
    "gensim.scripts.glove2word2vec", "tensorboardX", "dominate", "dominate.tags", "matplotlib", "matplotlib.pyplot",
    "psutil", "GPUtil", "zsvision", "mergedeep",
)  # fmt: skip


class SmallBert(transformers.BertModel):  # type: ignore[misc]
    """A BERT of one layer of width 64 that stands for bert-base-cased."""

    @classmethod
    def from_pretrained(cls, name: str, **options: Any) -> SmallBert:
        return cls(
            transformers.BertConfig(
                vocab_size=len(WORDS),
                hidden_size=64,
                num_hidden_layers=1,
                num_attention_heads=1,
                intermediate_size=256,
                **options,
            )
        )


def main() -> None:
    checkout = Path(sys.argv[1])
    sys.path.insert(0, str(checkout))
    for name in _NOT_NEEDED:
        sys.modules[name] = MagicMock(spec_set=None)
    sys.modules["transformers.modeling_bert"] = MagicMock(BertModel=SmallBert)
    sys.modules["typeguard"] = MagicMock(typechecked=lambda function: function)
    h5py.Dataset.value = property(lambda self: self[()])  # as in older h5py
    answers: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        write_mmt_videos(Path(folder))
        numbers = json.loads((Path(folder) / "feats" / "jsfusion_val_caption_idx.json").read_text())
        (Path(folder) / "feats" / "jsfusion_val_caption_idx.pkl").write_bytes(pickle.dumps(numbers))
        for keep in (True, False):
            S, shapes = score(Path(folder), {**ARCHITECTURE, "keep_missing_modalities": keep})
            answers[f"keep={keep}"] = S
    from model.metric import t2v_metrics, v2t_metrics

    metrics = {
        case: {name: {k: float(v) for k, v in f(S.copy()).items() if np.isscalar(v)} for name, f in
               (("t2i", t2v_metrics), ("i2t", v2t_metrics))}
        for case, S in answers.items()
    }  # fmt: skip
    file = Path(__file__).with_suffix("").with_name("mmt")
    np.savez_compressed(file.with_suffix(".npz"), **answers)
    content = {
        "frames": FRAMES, "length": LENGTH, "arch": {"type": "CENet", "args": ARCHITECTURE},
        "shapes": shapes, "metrics": metrics,
    }  # fmt: skip
    file.with_suffix(".json").write_text(json.dumps(content, indent=1) + "\n")


def score(root: Path, architecture: dict[str, Any]) -> tuple[Any, dict[str, list[int]]]:
    """Return (captions, videos) of the authors' model over the authors' data set, and the shapes of its weights."""
    from data_loader.msrvtt_dataset import MSRVTT
    from model.model import CENet
    from utils.util import compute_dims

    (root / "vocab.txt").write_text("\n".join(WORDS) + "\n", "utf-8")
    tokenizer = transformers.BertTokenizer(str(root / "vocab.txt"), do_lower_case=True)
    types = dict(compute_dims({"experts": {"modalities": list(EXPERTS), "face_dim": 6}}))
    dims = {name: {"dim": width, "idx": types[name]["idx"]} for name, width in EXPERTS.items()}
    model = CENet(expert_dims=dims, tokenizer=tokenizer, **architecture).eval()
    state = model.state_dict()
    floats = {name: list(tensor.shape) for name, tensor in state.items() if tensor.is_floating_point()}
    model.load_state_dict({**state, **network_by_rule(floats)})
    data = MSRVTT(
        cut_name="jsfusion", split_name="test", data_dir=str(root / "feats"), raw_input_dims=EXPERTS,
        max_text_words=LENGTH, max_expert_tokens=FRAMES, tokenizer=tokenizer, training=False, loaded_data={},
    )  # fmt: skip
    batch = data.collate_data([data[row] for row in range(len(CAPTIONS))])
    inputs = {name: _tensors(value) for name, value in batch.items() if isinstance(value, dict | np.ndarray)}
    with torch.no_grad():
        result = model(**inputs, out="conf", device="cpu")
    return result["cross_view_conf_matrix"].numpy(), floats


def _tensors(value: Any) -> Any:
    return {k: torch.from_numpy(v) for k, v in value.items()} if isinstance(value, dict) else torch.from_numpy(value)


if __name__ == "__main__":
    main()
