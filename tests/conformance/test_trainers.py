"""Has every loss of a library what an entry needs, and do real classes run where the library is installed?"""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest
import torch

from lossscope.conformance.suite import check_trainer
from lossscope.errors import InputError, SpecError
from lossscope.objectives.checks.verdict import Verdict
from lossscope.registry import build, names, spec_of

pytestmark = pytest.mark.usefixtures("typed")
WITH_LOSS = {"grad_cache": ":loss=./loss.py:loss"}
LOSS = """
import torch
from torch.nn.functional import cross_entropy, normalize


def loss(queries, candidates):
    return cross_entropy(normalize(queries) @ normalize(candidates).T / 0.1, torch.arange(len(queries)))
"""


def failed_checks(trainer: str, processes: int = 2, **options: object) -> set[str]:
    found = check_trainer(trainer, processes, **options)  # type: ignore[arg-type]
    return {verdict.name for verdict in found if verdict.outcome == "fail"}


def verdict(found: list[Verdict], name: str) -> Verdict:
    return next(item for item in found if item.name == name)


@pytest.mark.parametrize("name", names("trainers"))
def test_every_trainer_says_what_it_can_before_its_library_is_imported(name: str, tmp_path: Path) -> None:
    (tmp_path / "loss.py").write_text(LOSS)
    trainer = build("trainers", name + WITH_LOSS.get(name, ""))
    assert build("trainers", spec_of(trainer)) == trainer
    flags = [trainer.takes_negatives, trainer.needs_negatives, trainer.is_accumulated]
    assert all(isinstance(flag, bool) for flag in flags)
    assert trainer.takes_negatives or not trainer.needs_negatives


@pytest.mark.parametrize(("name", "library"), [("open_clip", "open_clip_torch"), ("grad_cache", "GradCache")])
def test_a_library_that_is_missing_is_an_error_before_any_process(name: str, library: str, tmp_path: Path) -> None:
    if importlib.util.find_spec(name) is not None:
        pytest.skip(f"{name} is installed")
    (tmp_path / "loss.py").write_text(LOSS)
    with pytest.raises(InputError, match=f"{library} must be installed"):
        check_trainer(name + WITH_LOSS.get(name, ""))


def test_an_option_that_a_loss_does_not_have_is_refused_before_any_process() -> None:
    with pytest.raises(SpecError, match="NTXentLoss cannot be built of tau"):
        check_trainer('pytorch_metric_learning:options="tau=0.1"')


@pytest.mark.parametrize(("options", "expected"), [
    ("", {"gather-without-gradient"}),
    (":local_loss=true", {"gather-without-gradient"}),
    (":gather_with_grad=true", set()),
    (":local_loss=true,gather_with_grad=true", set()),
])  # fmt: skip
@pytest.mark.usefixtures("stand_ins")
def test_layouts_of_open_clip(options: str, expected: set[str]) -> None:
    assert failed_checks(f"open_clip{options}") == expected


@pytest.mark.usefixtures("stand_ins")
def test_grad_cache_is_compared_with_its_loss(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "loss.py").write_text(LOSS)
    monkeypatch.chdir(tmp_path)
    found = check_trainer("grad_cache:loss=./loss.py:loss", 2)
    same = verdict(found, "cached-gradient-differs")
    assert same.outcome == "pass" and same.evidence.startswith("the same in 3 comparisons")
    assert not [item for item in found if item.outcome == "fail"]


ST = pytest.mark.skipif(importlib.util.find_spec("sentence_transformers") is None, reason="needs sentence-transformers")
PML = pytest.mark.skipif(importlib.util.find_spec("pytorch_metric_learning") is None, reason="needs it")


@pytest.mark.parametrize(("trainer", "expected"), [
    pytest.param("sentence_transformers", set(), marks=ST),
    pytest.param("sentence_transformers:loss=GISTEmbedLoss", {"mask-hits-curated-negatives"}, marks=ST),
    pytest.param("pytorch_metric_learning", set(), marks=PML),
    pytest.param("pytorch_metric_learning:efficient=true", {"gather-without-gradient"}, marks=PML),
    pytest.param("pytorch_metric_learning:loss=ContrastiveLoss,one_set=true", set(), marks=PML),
])  # fmt: skip
def test_released_classes(trainer: str, expected: set[str]) -> None:
    assert failed_checks(trainer) == expected


@ST
def test_a_cached_class_is_compared_with_its_plain_one() -> None:
    cached = "sentence_transformers:loss=CachedMultipleNegativesRankingLoss"
    found = check_trainer(cached, 2, plain="sentence_transformers:loss=MultipleNegativesRankingLoss")
    same = verdict(found, "cached-gradient-differs")
    assert same.outcome == "pass" and same.evidence.startswith("the same in 5 comparisons")
    assert verdict(found, "scale").evidence.startswith("a softmax of queries at temperature 0.05, their mean")


@PML
@pytest.mark.filterwarnings("ignore:DistributedLossWrapper is being used")
def test_efficient_wrapper_with_references_has_no_positive_left() -> None:
    """docs/conformance.md says that this can be reported."""
    found = verdict(check_trainer("pytorch_metric_learning:efficient=true", 2), "gather-without-gradient")
    assert found.evidence == "on 2 processes nothing has a gradient, though it has one on one process"


def test_a_gpu_for_each_process_is_required_where_one_is_named() -> None:
    if torch.cuda.device_count() > 1:
        pytest.skip("there are GPUs")
    with pytest.raises(InputError, match="2 processes need as many GPUs; there"):
        check_trainer("pytorch_metric_learning", 2, device="cuda")
