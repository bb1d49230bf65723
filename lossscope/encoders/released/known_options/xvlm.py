"""X-VLM: its files hold the YAML of a fine-tuning for retrieval, or of pretraining. Zeng et al. 2022."""

from __future__ import annotations

from ..option_table import OptionTable, Refusal

_DATA = "data come from --data"
_TRAINING = "training only"
_PRETRAINING = "pretraining only"

OPTIONS = OptionTable(
    done={
        "image_res": "side of the pictures, compared with the masks of windows in the file",
        "k_test": "k_test",
        "max_tokens": "max_tokens",
        "embed_dim": "dim, which the tensors must have",
    },
    refused={
        "use_swin": Refusal((True,), "Other image towers than a Swin are not built here"),
        "use_roberta": Refusal((False,), "A RoBERTa as text tower is not built here"),
        "use_clip_vit": Refusal((False,), "CLIP's vision transformer as image tower is not built here"),
        "patch_size": Refusal((32,), "It is 32 for a Swin; other image towers are not built here"),
    },
    without_effect={
        "max_words": f"{_PRETRAINING}: retrieval cuts captions to 30 words whatever it says",
        "vision_config": "a path: sizes of the Swin are those of the tensors",
        "text_config": "a path: sizes of the BERT are those of the tensors",
        "text_encoder": "a path: the tokeniser is beside the file, or named by --vocabulary",
        "train_file*": _DATA,
        "val_file": _DATA,
        "test_file": _DATA,
        "image_root": _DATA,
        "batch_size_test*": "memory",
        "batch_size_train": _TRAINING,
        "temp": "where training began: the tensor `temp` is what it came to",
        "optimizer*": _TRAINING,
        "schedular*": _TRAINING,
        **dict.fromkeys((
            "train_dataset_size", "images*", "regions*", "load_bertL_by_sep", "calc_image_bbox_loss", "mask_prob",
            "max_masks", "mask_whole_word", "skipgram_prb", "skipgram_size", "ckpt_frequent*", "accelerator*",
            "start_epoch", "mixed_in_batch", "careful_hflip",
        ), _PRETRAINING),
    },
)  # fmt: skip
