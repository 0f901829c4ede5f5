import numpy as np
import pytest
from sklearn.metrics import average_precision_score, roc_auc_score

from structsvm_papk.errors import InputError
from structsvm_papk.plots import page


def test_the_articles_four_models_as_recomputed():
    random = np.random.RandomState(42)
    labels = random.binomial(1, 0.03, 10_000)
    models = [random.rand(10_000)] + [d * labels + random.randn(10_000) for d in (1, 2, 3)]
    reports = [page.report(scores, labels) for scores in (*models, np.round(models[1], 1))]
    for report, scores in zip(reports, (*models, np.round(models[1], 1)), strict=True):
        expected = roc_auc_score(labels, scores), average_precision_score(labels, scores)
        assert (report.auroc, report.average_precision) == pytest.approx(expected, abs=1e-12)
    assert reports[3].lift == pytest.approx(0.801658920765 / 0.0264, abs=1e-9)
    assert [len(report.warnings) for report in reports] == [1, 0, 0, 1, 0]
    assert "hardly better than random" in str(reports[0]) and "leak" in str(reports[3])
    constant = page.report(np.ones(100), np.repeat([1, 0], [2, 98]))
    assert constant.average_precision == constant.positive_rate == 0.02
    assert (constant.auroc, constant.p_value) == (0.5, 1.0)
    with pytest.raises(InputError, match="0 positives and 2 negatives"):
        page.report([1.0, 2.0], [0, 0])
