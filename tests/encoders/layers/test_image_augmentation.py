"""Augmentations of pictures: which crops occur, that seeds repeat, and the scalings that towers read."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from lossscope.encoders.layers import image_augmentation
from lossscope.errors import InputError
from tests.each import each


def pictures(n: int = 3, height: int = 24, width: int = 32) -> Tensor:
    return torch.randint(0, 256, (n, 3, height, width), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))


def ramp(height: int = 60, width: int = 40) -> Tensor:
    """Return a picture whose channels are the row, the column and a constant, in 0..255."""
    rows = torch.linspace(0, 255, height)[:, None].expand(height, width)
    columns = torch.linspace(0, 255, width)[None, :].expand(height, width)
    return torch.stack([rows, columns, torch.full((height, width), 7.0)]).round().to(torch.uint8)[None]


@each("view", [lambda x: image_augmentation.random_resized_crop(x, 16), image_augmentation.random_crop])
def test_random_crops_keep_type_repeat_with_the_seed_and_differ_within_a_batch(view: object) -> None:
    copies = pictures(1).expand(6, -1, -1, -1)
    torch.manual_seed(3)
    first = view(copies)  # type: ignore[operator]
    torch.manual_seed(3)
    assert torch.equal(first, view(copies))  # type: ignore[operator]
    assert first.dtype == torch.uint8
    assert len({bytes(picture.numpy().tobytes()) for picture in first}) > 3
    assert not torch.equal(first, view(copies))  # type: ignore[operator]


def test_random_resized_crop_has_area_and_ratio_in_range() -> None:
    torch.manual_seed(0)
    views = image_augmentation.random_resized_crop(ramp().expand(300, -1, -1, -1), 20).float()
    height = (views[:, 0].amax((1, 2)) - views[:, 0].amin((1, 2))) / 255
    width = (views[:, 1].amax((1, 2)) - views[:, 1].amin((1, 2))) / 255
    area, ratio = height * width, (width * 40) / (height * 60)
    assert float(area.min()) > 0.03
    assert float(area.min()) < 0.2
    assert float(area.max()) > 0.7
    assert float(ratio.min()) > 0.6
    assert float(ratio.max()) < 1.7
    assert bool((views[:, 2] == 7).all())


def test_a_crop_that_never_fits_falls_back_to_the_largest_of_a_ratio_allowed() -> None:
    strip = ramp(10, 100)
    view = image_augmentation.random_resized_crop(strip, 8, area=(1.0, 1.0), ratio=(1.0, 1.0)).float()
    assert float(view[0, 1].min()) > 255 * 0.44
    assert float(view[0, 1].max()) < 255 * 0.56


def test_random_crop_takes_one_share_of_both_sides() -> None:
    torch.manual_seed(0)
    views = image_augmentation.random_crop(ramp().expand(300, -1, -1, -1)).float()
    height = (views[:, 0].amax((1, 2)) - views[:, 0].amin((1, 2))) / 255
    width = (views[:, 1].amax((1, 2)) - views[:, 1].amin((1, 2))) / 255
    assert views.shape[1:] == (3, 60, 40)
    assert float((height - width).abs().max()) < 0.06
    assert 0.52 < float(height.min()) < 0.66
    assert float(height.max()) > 0.95


def test_the_whole_picture_as_a_crop_is_the_picture() -> None:
    images = pictures()
    assert torch.equal(image_augmentation.random_crop(images, 1.0, 1.0), images)


def test_centre_crop_is_the_middle() -> None:
    images = pictures()
    assert torch.equal(image_augmentation.centre_crop(images, 20), images[..., 2:22, 6:26])
    assert torch.equal(image_augmentation.centre_crop(images[..., :24], 24), images[..., :24])
    with pytest.raises(InputError, match="at least 25 x 25 for this crop; got 24 x 32"):
        image_augmentation.centre_crop(images, 25)


def test_random_flip_flips_about_half() -> None:
    torch.manual_seed(0)
    images = pictures(200)
    flipped = image_augmentation.random_flip(images)
    same = (flipped == images).flatten(1).all(1)
    assert bool(((flipped == images.flip(-1)).flatten(1).all(1) | same).all())
    assert 60 < int(same.sum()) < 140
    assert torch.equal(image_augmentation.random_flip(images, 0.0), images)
    assert torch.equal(image_augmentation.random_flip(images, 1.0), images.flip(-1))


def test_scales() -> None:
    images = torch.tensor([255, 0, 51], dtype=torch.uint8)[None, :, None, None]
    expected = torch.tensor([(1 - 0.485) / 0.229, -0.456 / 0.224, (0.2 - 0.406) / 0.225])
    assert torch.allclose(image_augmentation.normalise_imagenet(images).flatten(), expected)
    assert torch.allclose(image_augmentation.normalise_imagenet(images.float() / 255).flatten(), expected)
    bgr = torch.tensor([51 - 102.9801, 0 - 115.9465, 255 - 122.7717])
    assert torch.allclose(image_augmentation.normalise_detector(images).flatten(), bgr)
    assert torch.allclose(image_augmentation.normalise_detector(images.float() / 255).flatten(), bgr)
