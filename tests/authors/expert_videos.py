"""Six small videos of four experts with captions, in the files of MMT and of CE."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

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


def features(expert: str, video: int) -> npt.NDArray[np.float32]:
    """Return the frames of an expert, (T, d)."""
    random = np.random.RandomState(100 * video + EXPERTS[expert])
    return random.standard_normal((FRAMES[expert][video], EXPERTS[expert])).astype(np.float32)


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
