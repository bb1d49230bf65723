"""Six small videos of four experts with captions, in the files of MMT and of CE."""

from __future__ import annotations

import json
import pickle
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import numpy.typing as npt

EXPERTS: Mapping[str, int] = {"face": 6, "ocr": 7, "rgb": 5, "s3d": 8}
"""Expert -> width of its features."""
FRAMES: Mapping[str, tuple[int, ...]] = {
    "face": (2, 0, 1, 3, 0, 4), "ocr": (3, 1, 0, 0, 9, 2), "rgb": (4, 12, 7, 5, 1, 30), "s3d": (6, 3, 2, 11, 5, 1),
}  # fmt: skip
"""Expert -> number of its frames in each video; 0 where a video lacks it."""
CAPTIONS = (
    "a man doesn't wear a t-shirt",
    "Two dogs run. They're wet",
    "the SIGN reads 'stop' !",
    "A café, in the street: it's 3,000 m away; a very long caption of a man with two wet dogs that run and run away",
    "someone sings",
    "men - women & children?",
)
WORDS = (
    "[PAD] [UNK] [CLS] [SEP] [MASK] a man does ##n ' t wear - shirt two dog ##s run . they re wet the sign reads "
    "stop ! cafe , in street : it s 3 000 m away ; very long caption of with that and some ##one sing men women & "
    "children ? doe ##t read "
).split()
"""Parts of words of a small BERT."""


CE_EXPERTS: Mapping[str, int] = {"audio": 128, "face": 6, "ocr": 300, "speech": 300}
"""Expert -> width of its features; the original's NetVLAD takes no others for audio, ocr and speech."""
CE_FRAMES: Mapping[str, tuple[int, ...]] = {
    "audio": (3, 0, 1, 7, 2, 5), "face": (1, 0, 1, 1, 0, 1), "ocr": (3, 1, 0, 0, 9, 2), "speech": (0, 2, 7, 5, 1, 3),
}  # fmt: skip
WORD_WIDTH = 5
CE_PICKLES: Mapping[str, str] = {
    "audio": "aggregated_audio_feats/Audio_MSRVTT_new.pickle", "face": "aggregated_face_feats/facefeats-avg.pickle",
    "ocr": "aggregated_ocr_feats/ocr-raw.pickle", "speech": "aggregated_speech/speech-w2v.pickle",
}  # fmt: skip


def features(expert: str, video: int) -> npt.NDArray[np.float32]:
    """Return the frames of an expert, (T, d)."""
    random = np.random.RandomState(100 * video + EXPERTS[expert])
    return random.standard_normal((FRAMES[expert][video], EXPERTS[expert])).astype(np.float32)


def write_ce_videos(root: Path) -> None:
    """Write the pickles of CE: features, NaN where missing, word vectors, captions, and the lists of 1k-a."""
    names = [f"video{row}" for row in range(len(CAPTIONS))]
    for expert, file in CE_PICKLES.items():
        (root / file).parent.mkdir(parents=True, exist_ok=True)
        values = {name: _ce_features(expert, row) for row, name in enumerate(names)}
        (root / file).write_bytes(pickle.dumps(values))
    words = {
        name: [word_vectors(row, 2), word_vectors(row, len(CAPTIONS[row].split()))] for row, name in enumerate(names)
    }
    (root / "aggregated_text_feats").mkdir()
    (root / "aggregated_text_feats" / "w2v_MSRVTT_openAIGPT.pickle").write_bytes(pickle.dumps(words))
    captions = {name: [["not", "this"], CAPTIONS[row].split()] for row, name in enumerate(names)}
    (root / "raw-captions.pkl").write_bytes(pickle.dumps(captions))
    (root / "jsfusion_val_caption_idx.pkl").write_bytes(pickle.dumps(dict.fromkeys(names, 1)))
    for split in ("train", "val"):
        (root / f"{split}_list_jsfusion.txt").write_text("\n".join(names) + "\n", "utf-8")


def word_vectors(row: int, words: int) -> npt.NDArray[np.float32]:
    """Return the vectors of a caption's words, (W, d)."""
    return np.random.RandomState(500 + row).standard_normal((words, WORD_WIDTH)).astype(np.float32)


def _ce_features(expert: str, video: int) -> Any:
    """Return the frames of an expert, one vector for face, or NaN."""
    count = CE_FRAMES[expert][video]
    random = np.random.RandomState(900 + 10 * video + CE_EXPERTS[expert] % 7)
    values = random.standard_normal((count, CE_EXPERTS[expert])).astype(np.float32)
    return (values[0] if expert == "face" else values) if count else float("nan")


def write_mmt_videos(root: Path) -> None:
    """Write `vid_feat_files/mult_h5/v/i/d/videoK.h5`, and the lists of 1k-a beside each other in `feats`."""
    lists = root / "feats"
    lists.mkdir()
    names = [f"video{row}" for row in range(len(CAPTIONS))]
    for row, name in enumerate(names):
        folder = root / "vid_feat_files" / "mult_h5" / "/".join(name[:3])
        folder.mkdir(parents=True, exist_ok=True)
        with h5py.File(folder / f"{name}.h5", "w") as file:
            for number, caption in enumerate((f"not this one {row}", CAPTIONS[row])):
                file[f"raw_captions.{number}"] = np.array([word.encode() for word in caption.split()])
            for expert in EXPERTS:
                values = features(expert, row)
                starts = 2.5 * np.arange(len(values))
                file[f"features.{expert}"] = values if len(values) else np.full((1, EXPERTS[expert]), np.nan, "f4")
                file[f"features_t.{expert}"] = np.stack([starts, starts + 1], axis=1)
    (lists / "val_list_jsfusion.txt").write_text("\n".join(names) + "\n", "utf-8")
    (lists / "jsfusion_val_caption_idx.json").write_text(json.dumps(dict.fromkeys(names, 1)), "utf-8")
