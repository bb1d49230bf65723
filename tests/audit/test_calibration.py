"""Are weights after labels those of the posterior? Compared with scikit-learn, importance sampling and limits."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit

from lossscope.audit.estimate import calibration as module
from lossscope.audit.estimate import default_weights
from lossscope.audit.estimate.accuracy import calibration_error
from lossscope.audit.estimate.calibration import Calibration, interval, posterior_draws, posterior_mode, prior_sd
from lossscope.audit.estimate.default_weights import Fit, default_calibration
from lossscope.core.sides import Sides
from lossscope.errors import InputError
from lossscope.io.json_files import read_json


def planted(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    Z = random.normal(size=(n, 2))
    return Z, random.random(n) < expit(-1 + 2 * Z[:, 0] - Z[:, 1])


def test_the_mode_under_a_weak_prior_is_that_of_logistic_regression(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PRIOR_SD", 1e3)
    monkeypatch.setattr(module, "INTERCEPT_SD", 1e3)
    Z, y = planted(400)
    mode, _ = posterior_mode(Z, y, np.zeros(3), prior_sd(3))
    from sklearn.linear_model import LogisticRegression  # takes a second

    other = LogisticRegression(C=1e6, tol=1e-8, max_iter=1000).fit(Z, y)
    np.testing.assert_allclose(mode, [other.intercept_[0], *other.coef_[0]], atol=2e-3)


def test_the_mode_has_no_slope_and_its_covariance_is_the_inverse_curvature() -> None:
    Z, y = planted(60)
    mean = np.array([-2.0, 0.5, 0.1])
    mode, covariance = posterior_mode(Z, y, mean, prior_sd(3))
    X = np.c_[np.ones(60), Z]

    def slope(b: np.ndarray) -> np.ndarray:
        gradient: np.ndarray = X.T @ (expit(X @ b) - y) + (b - mean) / prior_sd(3) ** 2
        return gradient

    np.testing.assert_allclose(slope(mode), 0, atol=1e-3)
    curvature = np.stack([(slope(mode + h) - slope(mode - h)) / 2e-4 for h in 1e-4 * np.eye(3)])
    np.testing.assert_allclose(np.linalg.inv(covariance), curvature, rtol=1e-4, atol=1e-5)


def test_without_labels_the_posterior_is_the_prior() -> None:
    mean = np.array([-3.0, 1.0])
    draws = posterior_draws(np.zeros((0, 1)), np.zeros(0, bool), mean, prior_sd(2), mean, np.random.default_rng(0))
    np.testing.assert_array_less(np.abs(draws.mean(0) - mean), 0.2 * prior_sd(2))
    np.testing.assert_allclose(draws.std(0), prior_sd(2), rtol=0.15)


@pytest.mark.parametrize("n", [12, 80])
def test_draws_of_the_slice_sampler_are_those_of_importance_sampling(n: int) -> None:
    Z, y = planted(n)
    mean = np.array([-1.0, 0.5, 0.0])
    mode, covariance = posterior_mode(Z, y, mean, prior_sd(3))
    draws = posterior_draws(Z, y, mean, prior_sd(3), mode, np.random.default_rng(0))
    random = np.random.default_rng(1)
    wide = 1.5 * covariance
    proposals = random.multivariate_normal(mode, wide, 100_000)
    z = np.c_[np.ones(n), Z] @ proposals.T
    offset = proposals - mode
    log_weight = y @ z - np.logaddexp(0, z).sum(0) - 0.5 * (((proposals - mean) / prior_sd(3)) ** 2).sum(1)
    log_weight += 0.5 * np.einsum("ij,jk,ik->i", offset, np.linalg.inv(wide), offset)
    weight = np.exp(log_weight - log_weight.max())
    weight /= weight.sum()
    expected = weight @ proposals
    spread = np.sqrt(weight @ (proposals - expected) ** 2)
    np.testing.assert_array_less(np.abs(draws.mean(0) - expected), 0.25 * spread)
    np.testing.assert_allclose(draws.std(0), spread, rtol=0.2)


def test_many_labels_take_the_normal_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    Z, y = planted(500)
    start = Calibration(("a", "b"), np.zeros(3))
    slice_sampled = start.fit(Z, y, "x")
    monkeypatch.setattr(module, "_MANY", 500)
    normal = start.fit(Z, y, "x")
    assert slice_sampled.draws is not None
    assert normal.draws is not None
    spread = normal.draws.std(0)
    np.testing.assert_array_less(np.abs(slice_sampled.weights - normal.weights), 0.5 * spread)
    np.testing.assert_allclose(slice_sampled.draws.std(0), spread, rtol=0.25)


def test_labels_pull_the_weights_to_the_truth_and_narrow_them() -> None:
    start = Calibration(("a", "b"), np.array([-5.0, 0.0, 0.0]))
    few, many = start.fit(*planted(20), "x"), start.fit(*planted(2000), "x")
    assert few.draws is not None
    assert many.draws is not None
    np.testing.assert_allclose(many.weights, [-1, 2, -1], atol=0.3)
    assert (many.draws.std(0) < few.draws.std(0) / 3).all()
    assert (few.labels, few.origin) == (20, "x")
    assert start.labels == 0


def test_labels_of_a_planted_truth_give_its_interval_the_rate_in_it() -> None:
    """Coverage: the interval of the mean probability holds the truth in about 95 of 100 sheets."""
    Z, _ = planted(4000, 99)
    truth = expit(-1 + 2 * Z[:, 0] - Z[:, 1]).mean()
    inside = 0
    for seed in range(12):
        fitted = Calibration(("a", "b"), np.zeros(3)).fit(*planted(60, seed), "x")
        assert fitted.draws is not None
        low, high = interval([float(fitted.probability(Z, b).mean()) for b in fitted.draws])
        inside += low <= truth <= high
    assert inside >= 9


def test_the_interval_is_the_middle_95_percent() -> None:
    assert interval(np.arange(1001.0)) == pytest.approx((25, 975))


@given(st.integers(0, 1000), st.floats(-3, 3))
@settings(max_examples=30)
def test_a_probability_grows_with_a_signal_of_positive_weight(seed: int, step: float) -> None:
    Z = np.random.default_rng(seed).normal(size=(5, 2))
    fitted = Calibration(("a", "b"), np.array([-1.0, 2.0, 0.0]))
    moved = fitted.probability(Z + np.array([step, 0]))
    assert ((moved - fitted.probability(Z)) * step >= 0).all()
    assert ((moved >= 0) & (moved <= 1)).all()


def test_the_calibration_error_is_0_of_the_truth_and_half_of_coins_that_are_certain() -> None:
    answers = np.arange(100) % 2 == 0
    assert calibration_error(answers.astype(float), answers) == 0
    assert calibration_error(np.ones(100), answers) == pytest.approx(0.5)
    assert calibration_error(np.full(3, 0.5), np.array([True, False, True])) <= 0.51


STORED = read_json(default_weights.FILE)
SIDES = {"photos": Sides(), "texts": Sides("query", "document")}
FITS = [(kind, group) for kind in SIDES for group in STORED[kind]["fits"]]


@pytest.mark.parametrize(("kind", "group"), FITS)
def test_the_default_weights_of_all_signals_are_those_that_are_stored(kind: str, group: str) -> None:
    stored = STORED[kind]["fits"][group]
    names = tuple(stored["weights"])
    fitted = default_calibration(names, SIDES[kind])
    np.testing.assert_allclose(fitted.weights, [stored["intercept"], *stored["weights"].values()])
    assert fitted.labels == 0
    assert fitted.origin == STORED[kind]["origin"]
    turned = default_calibration(names[::-1], SIDES[kind])
    np.testing.assert_array_equal(turned.weights[1:], fitted.weights[:0:-1])


@pytest.mark.parametrize("group", STORED["photos"]["fits"])
def test_weights_of_photos_have_draws_and_those_of_texts_deviations_between_kinds(group: str) -> None:
    """Draws are the uncertainty of weights; their differences between kinds of texts are the prior of labels."""
    photos, texts = (default_calibration(tuple(STORED[kind]["fits"][group]["weights"]), SIDES[kind]) for kind in SIDES)
    assert photos.draws is not None
    np.testing.assert_allclose(photos.draws.mean(0), photos.weights, atol=0.1)
    assert photos.deviations is None
    assert texts.draws is None
    assert texts.deviations is not None
    variances = np.diag(np.array(STORED["texts"]["fits"][group]["covariance"]))
    np.testing.assert_allclose(texts.deviations[1:], np.sqrt(variances)[1:])
    assert texts.deviations[0] == prior_sd(1)[0]


@pytest.mark.parametrize(
    ("sides", "more", "kind"),
    [
        (Sides(), (), "photos"),
        (Sides("item", None), (), "photos"),
        (Sides("item", None), ("text_direct",), "photos"),
        (Sides(), ("text_direct",), "texts"),
        (Sides("query", "document"), (), "texts"),
        (Sides("query", "document"), ("text_direct",), "texts"),
        (Sides("code", "comment"), ("text_direct",), "texts"),
    ],
)
@pytest.mark.parametrize("signals", [("text_cosine", "text_items"), ("similarity", "density"), ("text_items", "rank")])
def test_two_texts_take_the_weights_of_texts_and_images_and_a_set_those_of_photos(
    sides: Sides, more: tuple[str, ...], kind: str, signals: tuple[str, ...]
) -> None:
    assert default_calibration((*signals, *more), sides).origin.startswith(STORED[kind]["origin"])


@pytest.mark.parametrize("name", list(STORED["photos"]["fits"]["both"]["weights"]))
def test_a_signal_alone_speaks_for_a_match(name: str) -> None:
    """`--signal similarity` took its weight beside the neighbours, -0.7: less similar pairs were more probable."""
    alone = default_calibration([name], Sides())
    assert alone.weights[1] > 0
    assert ", without " in alone.origin
    assert alone.draws is not None
    np.testing.assert_allclose(alone.draws.mean(0), alone.weights, atol=0.3)


def test_leaving_out_a_signal_is_the_fit_without_it_where_the_likelihood_is_a_parabola() -> None:
    """The comparison uses least squares, and signals that cannot trade with an intercept."""
    random = np.random.default_rng(0)
    X = random.normal(size=(5000, 3))
    X[:, 2] = X[:, 0] + 0.5 * X[:, 2]
    X -= X.mean(0)
    y = X @ [1.0, 2.0, 3.0]
    design = np.c_[np.ones(5000), X]
    H = design.T @ design
    whole = Fit(("a", "b", "c"), np.r_[0.0, np.linalg.lstsq(X, y, rcond=None)[0]], np.linalg.inv(H))
    rest = whole.without(["c"])
    np.testing.assert_allclose(rest.weights[1:], np.linalg.lstsq(X[:, :2], y, rcond=None)[0], rtol=1e-8)
    np.testing.assert_allclose(rest.covariance, np.linalg.inv(H[:3, :3]), rtol=1e-8)
    assert whole.without([]) is whole


def test_a_signal_of_the_user_has_no_weight_before_there_are_labels() -> None:
    for kind, sides in SIDES.items():
        names = [*STORED[kind]["fits"]["texts"]["weights"], "text_mine"]
        assert default_calibration(names, sides).weights[-1] == 0
        for only in ([], ["text_mine"]):
            with pytest.raises(InputError, match="no weight yet"):
                default_calibration(only, sides)


def test_of_a_set_of_texts_the_words_of_both_have_the_weight_of_those_of_captions() -> None:
    calibration = default_calibration(["text_direct"], Sides("item", None))
    np.testing.assert_array_equal(calibration.weights, default_calibration(["text_cosine"], Sides()).weights)


def test_labels_of_texts_start_from_deviations_between_kinds() -> None:
    """A weight that is equal in all kinds stays; a weight that differs is free."""
    Z, y = planted(40)
    start = Calibration(("a", "b"), np.zeros(3), deviations=np.array([5.0, 0.01, 5.0]))
    wide = replace(start, deviations=np.full(3, 5.0))
    held, free = start.fit(Z, y, "x").weights[1:], wide.fit(Z, y, "x").weights
    assert abs(held[0]) < 0.05 < abs(held[1])
    assert free[1] > 0.5
