"""Does a path look like a released model? Its signs, which no reader is imported for."""

from __future__ import annotations

from pathlib import Path

from lossscope.io.pickles.texts import texts_of
from lossscope.io.pickles.torch_zip import is_torchscript

OPEN_CLIP_CONFIG = "open_clip_config.json"
_OPEN_CLIP_WEIGHTS = ("open_clip_model.safetensors", "open_clip_pytorch_model.bin")
_CONTENT = (".json", ".safetensors", ".bin", ".txt", ".gz")
_HUGGING_FACE_WEIGHTS = ("model*.safetensors", "pytorch_model*.bin")
_MARKS = (
    "state_dict", "Eiters", "best_rsum", "text_encoder.", "vision_model.", "visual.", "vid_bert.", "config",
    "argparse Namespace",
)  # fmt: skip


def looks_released(path: Path, ours: str) -> bool:
    """Return whether a torch file seems to be of another program: it names e.g. `state_dict`, and not `own`."""
    if path.suffix not in (".tar", ".pth", ".pt", ".bin", ".th"):
        return False
    texts = texts_of(path)
    if not texts or ours in texts:
        return False
    return path.suffix == ".tar" or is_torchscript(path) or any(mark in text for text in texts for mark in _MARKS)


def is_configured(path: Path) -> bool:
    """Return whether a path is a folder of Hugging Face or open_clip, or weights beside an open_clip_config.json."""
    return (path.is_dir() and (path / "config.json").is_file()) or find_open_clip_weights(path) is not None


def content_files(path: Path) -> list[Path]:
    """Return the files that say what a released file or folder holds: weights, configurations and words."""
    if path.is_dir():
        return sorted(file for file in path.iterdir() if file.suffix in _CONTENT)
    config = path.parent / OPEN_CLIP_CONFIG
    return [path, config] if is_configured(path) else [path]


def find_open_clip_weights(path: Path) -> Path | None:
    """Return the weights that open_clip_config.json describes: the file itself, or those of a folder without others.

    A folder that has Hugging Face's weights too is one of Hugging Face; its other file is named to open that.
    """
    if path.name in _OPEN_CLIP_WEIGHTS and (path.parent / OPEN_CLIP_CONFIG).is_file():
        return path
    if not (path / OPEN_CLIP_CONFIG).is_file():
        return None
    if (path / "config.json").is_file() and any(any(path.glob(name)) for name in _HUGGING_FACE_WEIGHTS):
        return None
    return next((path / name for name in _OPEN_CLIP_WEIGHTS if (path / name).is_file()), None)
