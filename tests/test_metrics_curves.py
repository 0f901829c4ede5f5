import numpy as np
import pytest
from sklearn.calibration import calibration_curve as sklearn_calibration
from sklearn.metrics import (
    average_precision_score,
    brier_score_loss,
    precision_recall_curve,
    roc_auc_score,
    roc_curve,
)

from structsvm_papk.errors import InputError
from structsvm_papk.metrics import calibration, curves


def tied_rows(seed=0, n=300):
    rng = np.random.default_rng(seed)
    labels = (rng.random(n) < 0.2).astype(int)
    return np.round(rng.normal(size=n) + labels, 1), labels


@pytest.mark.parametrize("seed", range(5))
def test_five_views_are_one_number(seed):
    scores, labels = tied_rows(seed)
    views = curves.five_views(scores, labels)
    assert set(views) == {"sweep", "concordance", "integral", "distributions", "rank_sum"}
    np.testing.assert_allclose(
        list(views.values()), roc_auc_score(labels, scores), rtol=0, atol=1e-12
    )


def test_concordance_example():
    scores = [0.92, 0.71, 0.45, 0.83, 0.62, 0.38, 0.21]
    views = curves.five_views(scores, [1, 1, 1, 0, 0, 0, 0])
    np.testing.assert_allclose(list(views.values()), 9 / 12, rtol=0, atol=1e-15)


def test_confusion_matrix_example():
    labels = np.repeat([1, 1, 0, 0], [78, 22, 100, 300])
    scores = np.repeat([0.9, 0.1, 0.8, 0.2], [78, 22, 100, 300])
    found = curves.curve(scores, labels).confusion(0.5)
    assert found == curves.Confusion(78, 22, 100, 300)
    np.testing.assert_allclose([found.tpr, found.fpr], [0.78, 0.25])
    assert found.precision == pytest.approx(0.438, abs=5e-4)
    assert curves.curve(scores, labels).confusion(0.8).tp == 78
    assert curves.curve(scores, labels).confusion(2.0).precision == 1.0


def test_points_are_those_of_scikit_learn():
    scores, labels = tied_rows()
    found = curves.curve(scores, labels)
    fpr, tpr, thresholds = roc_curve(labels, scores, drop_intermediate=False)
    np.testing.assert_allclose(found.fpr, fpr)
    np.testing.assert_allclose(found.tpr, tpr)
    np.testing.assert_allclose(found.thresholds, thresholds)
    precision, recall, _ = precision_recall_curve(labels, scores)
    np.testing.assert_allclose(found.precision[::-1], np.append(precision[:-1], 1.0))
    np.testing.assert_allclose(found.tpr[::-1], recall)


def test_average_precision_is_the_step_sum():
    scores, labels = tied_rows()
    found = curves.curve(scores, labels)
    assert found.average_precision() == pytest.approx(
        average_precision_score(labels, scores), abs=1e-12
    )
    constant = curves.curve(np.ones(100), np.repeat([1, 0], [2, 98]))
    assert constant.average_precision() == pytest.approx(0.02, abs=1e-15)
    assert constant.trapezoid_auprc() == pytest.approx(0.51, abs=1e-15)


def test_positive_rate_reweights_precision_and_leaves_the_roc_alone():
    scores, labels = tied_rows(n=2000)
    found = curves.curve(scores, labels)
    assert found.average_precision(found.positive_rate) == pytest.approx(
        found.average_precision(), abs=1e-12
    )
    copies = np.repeat(np.arange(scores.size), np.where(labels == 1, 1, 9))
    thinned = curves.curve(scores[copies], labels[copies])
    assert thinned.auroc() == pytest.approx(found.auroc(), abs=1e-12)
    assert thinned.average_precision() == pytest.approx(
        found.average_precision(thinned.positive_rate), abs=1e-12
    )
    assert thinned.average_precision() < 0.6 * found.average_precision()
    at = found.confusion(0.5)
    assert thinned.confusion(0.5).precision == pytest.approx(
        at.at_positive_rate(thinned.positive_rate), abs=1e-12
    )
    with pytest.raises(InputError, match="between 0 and 1"):
        found.average_precision(1.0)


def test_the_articles_four_models_as_recomputed():
    random = np.random.RandomState(42)
    labels = random.binomial(1, 0.03, 10_000)
    assert labels.sum() == 264
    models = [random.rand(10_000)] + [d * labels + random.randn(10_000) for d in (1, 2, 3)]
    expected = [
        (0.528626185852, 0.028847455204),
        (0.746177884017, 0.081138996512),
        (0.930699248027, 0.448060179242),
        (0.983719435522, 0.801658920765),
    ]
    reports = [curves.report(scores, labels) for scores in models]
    found = [(report.auroc, report.average_precision) for report in reports]
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)
    assert reports[3].lift == pytest.approx(expected[3][1] / 0.0264, abs=1e-9)
    assert [len(report.warnings) for report in reports] == [1, 0, 0, 1]
    assert "hardly better than random" in str(reports[0])
    assert "leak" in str(reports[3])


def test_segments_and_missing_class():
    scores, labels = tied_rows()
    tier = np.where(np.arange(300) < 100, "new", "old")
    labels[-5:], tier[-5:] = 0, "odd"
    found = curves.segment_reports(scores, labels, tier)
    assert found["odd"] is None
    new = tier == "new"
    assert found["new"].auroc == pytest.approx(roc_auc_score(labels[new], scores[new]), abs=1e-12)
    with pytest.raises(InputError, match="0 positives and 2 negatives"):
        curves.curve([1.0, 2.0], [0, 0])


@pytest.mark.parametrize("strategy", ["uniform", "quantile"])
def test_calibration_is_scikit_learns(strategy):
    rng = np.random.default_rng(0)
    probabilities = rng.random(500)
    labels = (rng.random(500) < probabilities**2).astype(int)
    found = calibration.calibration_curve(probabilities, labels, 8, strategy)
    observed, predicted = sklearn_calibration(labels, probabilities, n_bins=8, strategy=strategy)
    np.testing.assert_allclose(found.observed, observed)
    np.testing.assert_allclose(found.predicted, predicted)
    assert found.count.sum() == 500
    assert found.expected_error() > 0.05
    assert calibration.brier(probabilities, labels) == pytest.approx(
        brier_score_loss(labels, probabilities)
    )
    assert curves.curve(probabilities, labels).auroc() == pytest.approx(
        curves.curve(probabilities**2, labels).auroc()
    )


def test_calibration_refuses_scores():
    with pytest.raises(InputError, match=r"row 1 has the probability 1\.5"):
        calibration.brier([0.5, 1.5], [0, 1])
    with pytest.raises(InputError, match="uniform or quantile"):
        calibration.calibration_curve([0.5], [1], strategy="equal")
    with pytest.raises(InputError, match="not binary: 2 in row"):
        calibration.brier([0.5], [2])
