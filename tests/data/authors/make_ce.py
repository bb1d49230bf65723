"""Write ce.npz and ce.json: similarities, ranks and recalls of CE's own model on its own data files.

    python tests/data/authors/make_ce.py CHECKOUT      (albanie/collaborative-experts; needs torch)

The model is small and its weights follow from tests/authors/rule.py.
"""

from __future__ import annotations

import json
import logging
import os
import pickle
import sys
import tempfile
from collections import OrderedDict
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).parents[3]))
from tests.authors.expert_videos import CE_EXPERTS, WORD_WIDTH, write_ce_videos
from tests.authors.rule import weights_by_rule

DIM, SCALE = 16, 0.3
POOLED = ("audio", "ocr", "speech")
AGGREGATION = {
    "face": {"temporal": "avg", "type": "embed", "feat_dims": {"embed": 6}, "flaky": True, "binarise": False},
    **{name: {"temporal": "vlad", "type": "embed", "flaky": True, "binarise": False} for name in POOLED},
}
CONFIG: dict[str, Any] = {
    "experts": {
        "modalities": sorted(CE_EXPERTS), "drop_feats": "", "ce_shared_dim": DIM, "text_dim": WORD_WIDTH,
        "face_dim": 6, "text_feat": "openai", "text_agg": "vlad",
    },
    "arch": {
        "type": "CENet",
        "args": {
            "keep_missing_modalities": False, "test_caption_mode": "indep", "use_ce": "pairwise", "l2renorm": False,
            "randomise_feats": "", "include_self": 1, "use_mish": 1, "use_bn_reason": 1, "num_h_layers": 0,
            "num_g_layers": 3, "mimic_ce_dims": False,
            "vlad_clusters": {"audio": 2, "ocr": 3, "speech": 2, "text": 3},
            "ghost_clusters": {"audio": 1, "ocr": 1, "speech": 1, "text": 1},
        },
    },
    "data_loader": {
        "type": "ExpertDataLoader",
        "args": {
            "dataset_name": "MSRVTT", "split_name": "jsfusion", "num_test_captions": 1, "fuse_captions": False,
            "feat_aggregation": AGGREGATION, "max_tokens": {"audio": 5, "ocr": 4, "speech": 3, "text": 6},
            "trn_cat": 0, "text_dropout": 0.0, "restrict_train_captions": 0,
        },
    },
    "loss": {"type": "MaxMarginRankingLoss", "args": {"margin": 0.2, "fix_norm": True}},
}  # fmt: skip


def main() -> None:
    here = Path(__file__).absolute()
    os.chdir(sys.argv[1])  # the original reads files of its own by relative paths
    sys.path.insert(0, ".")
    for name in ("ipdb", "zsvision", "zsvision.zs_data_structures", "typeguard", "psutil", "humanize", "mergedeep"):
        sys.modules[name] = MagicMock(typechecked=lambda function: function)
    for name in ("tensorboardX", "dominate", "dominate.tags", "gensim", "GPUtil", "zsvision.zs_beartype", "beartype"):
        sys.modules.setdefault(name, MagicMock())
    read = lambda path: pickle.loads(Path(path).read_bytes())  # noqa: E731
    sys.modules["zsvision.zs_utils"] = MagicMock(memcache=read)
    answers, metrics = {}, {}
    with tempfile.TemporaryDirectory() as folder:
        write_ce_videos(Path(folder))
        for keep in (False, True):
            answers[f"keep={keep}"], shapes = score(Path(folder), keep)
    from model.metric import t2v_metrics, v2t_metrics

    for case, S in answers.items():
        directions = {"t2i": t2v_metrics, "i2t": v2t_metrics}
        metrics[case] = {
            name: {key: float(value) for key, value in measure(S.copy()).items() if np.isscalar(value)}
            for name, measure in directions.items()
        }
    file = here.with_name("ce.npz")
    np.savez_compressed(file, **answers)
    content = {"scale": SCALE, "config": CONFIG, "shapes": shapes, "metrics": metrics}
    file.with_suffix(".json").write_text(json.dumps(content, indent=1) + "\n")


def score(root: Path, keep: bool) -> tuple[Any, dict[str, list[int]]]:
    """Return (captions, videos) of the authors' model over the authors' data set, and the shapes of its weights."""
    import data_loader.DiDeMo_dataset  # noqa: F401 which the original expects to be there
    from data_loader.MSRVTT_dataset import MSRVTT
    from model.model import CENet
    from utils.util import compute_dims

    models = root / "text_models.json"
    models.write_text(json.dumps({"openai": {"dim": WORD_WIDTH}}))
    config = {**CONFIG, "text_embedding_model_configs": str(models)}
    expert_dims, raw_input_dims, _ = compute_dims(config, logger=logging.getLogger())
    arch = {**CONFIG["arch"]["args"], "keep_missing_modalities": keep}
    model = CENet(
        task="retrieval", text_dim=WORD_WIDTH, expert_dims=expert_dims, disable_nan_checks=False,
        feat_aggregation=AGGREGATION, ce_shared_dim=DIM, trn_config={}, trn_cat=0, **arch,
    ).eval()  # fmt: skip
    state = model.state_dict()
    shapes = {name: list(tensor.shape) for name, tensor in state.items() if tensor.is_floating_point()}
    model.load_state_dict({**state, **weights_by_rule(shapes, scale=SCALE)})
    loader = CONFIG["data_loader"]["args"]
    data = MSRVTT(
        data_dir=root, fuse_captions=False, spatial_feats=False, challenge_mode=False, eval_only=True,
        use_zeros_for_missing=False, task="retrieval", text_agg="vlad", text_feat="openai", split_name="jsfusion",
        cls_partition="train", root_feat_folder="", challenge_test_root_feat_folder="", text_dim=WORD_WIDTH,
        num_test_captions=1, restrict_train_captions=0, max_tokens=loader["max_tokens"], text_dropout=0.0,
        logger=logging.getLogger(), raw_input_dims=raw_input_dims, feat_aggregation=AGGREGATION, distil_params=None,
        training_file=None, caption_masks=None, ce_shared_dim=DIM,
    )  # fmt: skip
    inputs, _ = data.get_retrieval_data()
    with torch.no_grad():
        result = model(**{**inputs, "experts": OrderedDict(inputs["experts"])})
    return result["cross_view_conf_matrix"].numpy(), shapes


if __name__ == "__main__":
    main()
