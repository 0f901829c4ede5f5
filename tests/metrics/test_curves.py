import numpy as np
import pytest
from sklearn.metrics import (
    average_precision_score,
    precision_recall_curve,
    roc_auc_score,
    roc_curve,
)

from structsvm_papk.errors import InputError
from structsvm_papk.metrics import curves


def tied_rows(seed=0, n=300):
    rng = np.random.default_rng(seed)
    labels = (rng.random(n) < 0.2).astype(int)
    return np.round(rng.normal(size=n) + labels, 1), labels


@pytest.mark.parametrize("seed", range(5))
def test_area_is_the_share_of_ordered_pairs(seed):
    scores, labels = tied_rows(seed)
    expected = roc_auc_score(labels, scores)
    assert curves.curve(scores, labels).auroc() == pytest.approx(expected, abs=1e-12)


def test_confusion_matrix_example():
    labels = np.repeat([1, 1, 0, 0], [78, 22, 100, 300])
    scores = np.repeat([0.9, 0.1, 0.8, 0.2], [78, 22, 100, 300])
    found = curves.curve(scores, labels)
    assert found.thresholds.tolist() == [np.inf, 0.9, 0.8, 0.2, 0.1]
    assert (found.tp.tolist(), found.fp.tolist()) == ([0, 78, 78, 78, 100], [0, 0, 100, 400, 400])
    np.testing.assert_allclose([found.tpr[2], found.fpr[2]], [0.78, 0.25])
    assert found.precision[2] == pytest.approx(0.438, abs=5e-4) and found.precision[0] == 1.0


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
    np.testing.assert_allclose(
        thinned.precision, found.precision_at(thinned.positive_rate), rtol=0, atol=1e-12
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


def test_a_class_is_missing():
    with pytest.raises(InputError, match="0 positives and 2 negatives"):
        curves.curve([1.0, 2.0], [0, 0])
