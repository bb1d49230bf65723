"""Does every family open its authors' files whole, or refuse them with an error that says why?"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor

from lossscope.encoders.base import EncoderSpec, encoder_spec
from lossscope.encoders.released.checkpoint_file import read_released
from lossscope.encoders.types import OpenedModel, ReleasedFile
from lossscope.errors import InputError
from lossscope.registry import build, load, names, spec_of
from tests.each import each
from tests.encoders.examples import captions, each_but_large, is_built_in, items_of
from tests.encoders.released.files import Release
from tests.encoders.released.refusals import FOREIGN, REFUSALS, Refusal
from tests.encoders.released.releases import RELEASES, release_of

pytest.importorskip("transformers")

FAMILIES = sorted({release.name for release in RELEASES})
FIRST = [next(release for release in RELEASES if release.name == family) for family in FAMILIES]
BARE = [release for release in RELEASES if not release.options and release.renames]  # sizes follow from shapes alone
COUNTER = "num_batches_tracked"  # of a batch norm: torch before 0.4.1 wrote none


every_release = each_but_large("release", RELEASES)


def opened_by(file: ReleasedFile) -> dict[str, OpenedModel]:
    """Return family -> model of the families that open a file."""
    models = {name: load("encoders", name).from_released(file) for name in names("encoders")}
    return {name: model for name, model in models.items() if model is not None}


def open_file(family: str, file: ReleasedFile) -> OpenedModel | None:
    spec = load("encoders", family)
    model: OpenedModel | None = spec.from_released(file)
    if model is not None:
        spec.released_options.require_known(file.options, (), file.path)
    return model


def outputs(encoder: torch.nn.Module, release: Release) -> list[Tensor]:
    """Return the outputs of the two towers, and S."""
    with torch.no_grad():
        images = encoder.encode_images(items_of(release.shape))  # type: ignore[operator]
        texts = encoder.encode_texts(*captions(encoder_spec(release.spec)))  # type: ignore[operator]
        return [*images.tensors.values(), *texts.tensors.values(), encoder.score(images, texts)]  # type: ignore[operator]


def with_tensor(file: ReleasedFile, tower: int, name: str, tensor: Tensor | None) -> ReleasedFile:
    """Return the file with another tensor under a name, or without the tensor."""
    changed = {k: v for k, v in file.towers[tower].items() if k != name}
    if tensor is not None:
        changed[name] = tensor
    return replace(file, towers=(*file.towers[:tower], changed, *file.towers[tower + 1 :]))


def last_of_each_kind(tower: Mapping[str, Tensor]) -> list[str]:
    """Return the names without those that differ from a later one in numbers alone: one tensor of two layers."""
    return list({re.sub(r"\d+", "0", name): name for name in tower}.values())


def our_name(release: Release, name: str) -> str:
    assert release.renames is not None
    return name.replace(*release.renames)


def test_every_family_that_opens_files_has_a_release() -> None:
    base = EncoderSpec.from_released.__func__  # type: ignore[attr-defined]
    opening = [name for name in names("encoders") if is_built_in(name)]
    opening = [name for name in opening if load("encoders", name).from_released.__func__ is not base]
    assert opening == FAMILIES, "state a released file of it in tests/encoders/released/releases.py"


@every_release
def test_a_file_opens_whole_as_the_model_in_it(release: Release, tmp_path: Path) -> None:
    file = replace(read_released(release.write(tmp_path)), choices=release.choices)
    assert file.epoch == release.epoch
    models = opened_by(file)
    assert list(models) == [release.name], "a file is of one family"
    opened = models[release.name]
    assert opened.encoder == encoder_spec(release.spec) == build("encoders", spec_of(opened.encoder))
    assert opened.item_shape == (release.open_shape or release.shape)
    assert opened.vocabulary_size == release.vocabulary_size
    assert (opened.objective, opened.context_length) == (release.objective, release.context_length)
    again = opened.encoder.rebuild(opened.item_shape, opened.vocabulary_size, opened.stored_files).eval()
    again.load_state_dict(opened.weights)
    expected = release.build()
    state = expected.state_dict()
    assert [name for name, tensor in again.state_dict().items() if not torch.equal(tensor, state[name])] == []
    for x, y in zip(outputs(again, release), outputs(expected, release), strict=True):
        assert torch.equal(x, y)


@every_release
def test_the_user_is_told_what_is_left_out_and_what_to_know(release: Release) -> None:
    file = release.file()
    opened = open_file(release.name, file)
    assert opened is not None
    all_names = [name for tower in file.towers for name in tower]
    assert sorted(opened.ignored) == sorted(n for n in all_names if release.ignored and re.search(release.ignored, n))
    assert len(opened.notices) == len(release.notices)
    for notice, pattern in zip(opened.notices, release.notices, strict=True):
        assert re.search(pattern, notice)


@every_release
def test_batch_counters_that_a_file_lacks_are_zero(release: Release) -> None:
    file = release.file()
    towers = tuple({k: v for k, v in tower.items() if not k.endswith(COUNTER)} for tower in file.towers)
    opened = open_file(release.name, replace(file, towers=towers))
    assert opened is not None
    expected = {k: torch.zeros_like(v) if k.endswith(COUNTER) else v for k, v in release.build().state_dict().items()}
    assert opened.weights.keys() == expected.keys()
    assert [name for name, tensor in opened.weights.items() if not torch.equal(tensor, expected[name])] == []


@every_release
def test_a_file_with_another_number_of_state_dicts_is_of_no_family(release: Release) -> None:
    file = release.file()
    assert opened_by(replace(file, towers=(*file.towers, {}))) == {}
    for count in range(1, len(file.towers)):
        assert opened_by(replace(file, towers=file.towers[:count])) == {}


@every_release
def test_a_further_tensor_is_named(release: Release) -> None:
    file = release.file()
    for index, tower in enumerate(file.towers):
        name = f"{next(name for name in tower if not re.search(release.ignored or '$^', name))}_odd"
        ours = re.escape(name if release.renames is None else our_name(release, name))
        with pytest.raises(InputError, match=rf"left over \['(\w+\.)?{ours}'\]|names of a CLIP file .* got '{ours}'"):
            open_file(release.name, with_tensor(file, index, name, torch.zeros(2)))


@each("release", FIRST)
def test_a_tensor_that_is_missing_or_of_another_shape_is_named(release: Release) -> None:
    require_named(release, step=3)


@pytest.mark.thorough
@each("release", FIRST)
def test_every_tensor_that_is_missing_or_of_another_shape_is_named(release: Release) -> None:
    require_named(release, step=1)


def require_named(release: Release, step: int) -> None:
    """Open a file without a tensor, and with one of another shape: every `step`-th tensor, and every deciding one."""
    file, decide = release.file(), "|".join(filter(None, (release.family, release.sizes, *release.implied)))
    for index, tower in enumerate(file.towers):
        for number, name in enumerate(last_of_each_kind(tower)):
            if (number % step and not re.search(decide, name)) or re.search(release.ignored or "$^", name):
                continue
            with pytest.raises(InputError, match=_other_shape(release, name, tower[name])):
                open_file(release.name, with_tensor(file, index, name, tower[name][None]))
            changed = with_tensor(file, index, name, None)
            if release.family and re.search(release.family, name):
                assert opened_by(changed) == {}, name
            elif not name.endswith(COUNTER):
                with pytest.raises(InputError, match=_missing(release, name)):
                    open_file(release.name, changed)


def _missing(release: Release, name: str) -> str:
    """Return the pattern of the message about a tensor that is missing."""
    for pattern, named in release.implied.items():
        if re.search(pattern, name):
            return re.escape(re.sub(pattern, named, name))
    ours = re.escape(our_name(release, name))
    return rf"missing \['(\w+\.)?{ours}'\]|{ours} of the file must be a tensor of \d dimensions; got none"


def _other_shape(release: Release, name: str, tensor: Tensor) -> str:
    """Return the pattern of the message about a tensor with one more dimension."""
    ours, shape = re.escape(our_name(release, name)), re.escape(str(tuple(tensor[None].shape)))
    expected = rf"{ours} must be {re.escape(str(tuple(tensor.shape)))}; got {shape}"
    sized = rf"{ours} of the file must be a tensor of {tensor.ndim} dimensions; got one of shape {shape}"
    return f"{expected}|{sized}|{ours} of the file must be one number"


DAMAGES: dict[str, Callable[[Tensor], Tensor]] = {
    "scalar": lambda t: torch.tensor(1.0) if t.ndim else t[None],
    "empty": lambda t: torch.empty(0),
    "table": lambda t: torch.zeros(0, 0),
    "whole": lambda t: t.long(),
    "complex": lambda t: t.to(torch.complex64),
    "sparse": lambda t: t.to_sparse(),
}


@pytest.mark.filterwarnings("ignore:Initializing zero-element tensors")
@each("release", [*FIRST, *BARE, release_of("vse_infty:bert")])
def test_no_family_opens_a_file_whose_sizes_cannot_be_read(release: Release) -> None:
    require_unopened(release, every_damage=False)


@pytest.mark.thorough
@pytest.mark.filterwarnings("ignore:Initializing zero-element tensors")
@each("release", [*FIRST, *BARE, release_of("vse_infty:bert"), release_of("vsepp:image=resnet18")])
def test_no_family_opens_a_file_with_any_damage(release: Release) -> None:
    require_unopened(release, every_damage=True)


def require_unopened(release: Release, every_damage: bool) -> None:
    """Damage each tensor that sizes are read from, in one way after the other or in each."""
    file, ways = release.file(), list(DAMAGES)
    for index, tower in enumerate(file.towers):
        for number, name in enumerate(name for name in tower if re.search(release.sizes, name)):
            if release.ignored and re.search(release.ignored, name):
                continue
            for damage in ways if every_damage else (ways[number % 6], ways[(number + 3) % 6]):
                try:
                    models = opened_by(with_tensor(file, index, name, DAMAGES[damage](tower[name])))
                except InputError:
                    continue
                assert models == {}, (name, damage)


@each("refusal", REFUSALS)
def test_a_file_that_does_not_fit_is_refused_by_name(refusal: Refusal) -> None:
    with pytest.raises(InputError, match=refusal.message):
        open_file(refusal.release.partition(":")[0], refusal.file())


@each("foreign", FOREIGN)
def test_a_file_of_another_family_is_not_opened(foreign: Refusal) -> None:
    assert open_file(foreign.release.partition(":")[0], foreign.file()) is None
