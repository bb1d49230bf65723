"""How a released model reads its pictures, as the configuration of its image processor states it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lossscope.errors import InputError
from lossscope.io.json_files import shorten

CLIP_MEAN, CLIP_STD = (0.48145466, 0.4578275, 0.40821073), (0.26862954, 0.26130258, 0.27577711)
_NORMALISATIONS = {  # open_clip's names
    "openai": (CLIP_MEAN, CLIP_STD),
    "imagenet": ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)),
    "inception": ((0.5, 0.5, 0.5), (0.5, 0.5, 0.5)),
}
PROCESSOR, PREPROCESS = "preprocessor_config", "preprocess_cfg"  # options: of Hugging Face, of open_clip
_RESAMPLE = {2: "bilinear", 3: "bicubic"}  # Pillow's numbers, which Hugging Face stores
_OPEN_CLIP_FIT = {"shortest": "short-side", "squash": "squeeze"}


def reading_of(options: Mapping[str, Any], side: int, default: Mapping[str, str]) -> dict[str, str]:
    """Return fit, resample and rgb of the data sets of pictures with which a model reads what its authors' code reads.

    Raises InputError for a way of reading pictures that data sets do not have.

    Args:
        options: of the file.
        side: of the model's pictures.
        default: where the options say nothing.
    """
    if isinstance(options.get(PREPROCESS), Mapping):
        return {**default, **_read_preprocess(options[PREPROCESS])}
    processor = options.get(PROCESSOR)
    if not isinstance(processor, Mapping):
        return dict(default)
    if processor.get("do_resize", True) is not True:
        raise _refuse("do_resize", processor["do_resize"], "true")
    number = processor.get("resample", 3)
    if not isinstance(number, int) or number not in _RESAMPLE:
        raise _refuse("resample", number, "2 (bilinear) or 3 (bicubic)")
    fit, rgb = _read_fit(processor, side, default["fit"]), _read_rgb(processor)
    return {**default, "fit": fit, "resample": _RESAMPLE[number], "rgb": rgb}


def normalisation_of(options: Mapping[str, Any]) -> dict[str, list[float]]:
    """Return `image_mean` and `image_std` of a configuration where they are not those of CLIP.

    Raises InputError when they are not three numbers, the deviations positive.
    """
    open_clip, processor = options.get(PREPROCESS), options.get(PROCESSOR)
    stated: Mapping[str, Any] = {}
    if isinstance(open_clip, Mapping):
        stated = {"image_mean": open_clip.get("mean"), "image_std": open_clip.get("std")}
    elif isinstance(processor, Mapping):
        if processor.get("do_normalize", True) is not True:
            raise _refuse("do_normalize", processor["do_normalize"], "true")
        if processor.get("do_rescale", True) is not True:
            raise _refuse("do_rescale", processor["do_rescale"], "true")
        if abs(_number(processor.get("rescale_factor", 1 / 255)) - 1 / 255) > 1e-9:
            raise _refuse("rescale_factor", processor["rescale_factor"], "1/255")
        stated = {name: processor.get(name) for name in ("image_mean", "image_std")}
    return require_normalisation({name: value for name, value in stated.items() if value is not None})


def require_normalisation(stated: Mapping[str, Any]) -> dict[str, list[float]]:
    """Return mean and deviation of the channels, {} for those of CLIP. Raises InputError for anything else."""
    usual = {"image_mean": CLIP_MEAN, "image_std": CLIP_STD}
    mean, std = (_read_channels(stated.get(name, value), name) for name, value in usual.items())
    if min(std) <= 0:
        raise InputError(f"image_std must be three numbers > 0; got {std}")
    return {} if (tuple(mean), tuple(std)) == (CLIP_MEAN, CLIP_STD) else {"image_mean": mean, "image_std": std}


def named_normalisation(name: str) -> dict[str, list[float]]:
    """Return mean and deviation of open_clip's name, {} for those of CLIP. Raises InputError for other names."""
    if name not in _NORMALISATIONS:
        raise InputError(f"mean_std must be one of {', '.join(_NORMALISATIONS)}; got {name!r}")
    mean, std = _NORMALISATIONS[name]
    return require_normalisation({"image_mean": mean, "image_std": std})


def _read_preprocess(config: Mapping[str, Any]) -> dict[str, str]:
    """Return what preprocess_cfg of open_clip_config.json states."""
    mode, kernel = config.get("resize_mode") or "shortest", config.get("interpolation") or "bicubic"
    if not isinstance(mode, str) or mode not in _OPEN_CLIP_FIT:
        raise _refuse("resize_mode", mode, "shortest or squash")
    if kernel not in ("bicubic", "bilinear", "random"):
        raise _refuse("interpolation", kernel, "bicubic or bilinear")
    return {"fit": _OPEN_CLIP_FIT[mode], "resample": "bilinear" if kernel == "bilinear" else "bicubic"}


def _read_fit(processor: Mapping[str, Any], side: int, usual: str) -> str:
    """Return whether the whole picture is squeezed, or its short side resized and the middle cut out."""
    crops = processor.get("do_center_crop", usual != "squeeze")
    size, crop = processor.get("size", side), processor.get("crop_size", side)
    short = size.get("shortest_edge") if isinstance(size, Mapping) else size
    if _sides(crop) != (side, side) and crops:
        raise _refuse("crop_size", crop, str(side))
    if isinstance(size, Mapping) and _sides(size) == (side, side):
        return "squeeze"
    if short == side and crops:
        return "short-side-floor"
    if short == side and isinstance(size, Mapping):
        raise _refuse("do_center_crop", processor.get("do_center_crop"), "true where size is its shortest_edge")
    if short == side and usual == "squeeze" and not isinstance(size, Mapping):
        return "squeeze"
    raise _refuse("size", size, f"{side}, the side of the model's pictures")


def _read_rgb(processor: Mapping[str, Any]) -> str:
    """Return on-white where the processor makes pictures RGB, as by default; else first, of a caller who does."""
    converts = processor.get("do_convert_rgb", True)
    if converts is not None and not isinstance(converts, bool):
        raise _refuse("do_convert_rgb", converts, "true, false or null")
    return "on-white" if converts else "first"


def _sides(size: Any) -> tuple[Any, Any]:
    return (size.get("height"), size.get("width")) if isinstance(size, Mapping) else (size, size)


def _read_channels(value: Any, name: str) -> list[float]:
    if not isinstance(value, Sequence) or isinstance(value, str) or len(value) != 3:
        raise InputError(f"{name} must be three numbers; got {shorten(value)}")
    return [_number(number) for number in value]


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < 1e6:
        raise InputError(f"numbers of an image processor must be finite; got {shorten(value)}")
    return float(value)


def _refuse(name: str, value: Any, expected: str) -> InputError:
    return InputError(f"{name} of the file's image processor must be {expected}; got {shorten(value)}")
