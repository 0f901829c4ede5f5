"""The table of metrics is what names, help and messages are read from."""

import numpy as np
import pytest

from helpers.commands import run
from structsvm_papk import metrics
from structsvm_papk.errors import InputError
from structsvm_papk.metrics import _kernels
from structsvm_papk.metrics.conventions import PRESETS
from structsvm_papk.metrics.definitions import METRICS, Metric, by_names, cut_off, parse
from structsvm_papk.metrics.ranked_lists import build
from structsvm_papk.metrics.table import evaluate_lists


def test_every_row_is_found_by_its_names_and_described(capsys):
    assert run("evaluate", "--help") == 0
    shown = "".join(capsys.readouterr().out.split())
    for metric in METRICS:
        assert metric.name in shown
        assert metric.meaning in metrics.__doc__
        assert metric.meaning.endswith(".")
        for name in (metric.name, *metric.also):
            asked = parse(name.replace("@k", "@7"))
            assert asked.metric is metric
            assert asked.k == (7 if metric.cutoff else None)
    with pytest.raises(InputError, match=r"did you mean 'ndcg@3'\?.*auc@k \(auroc@k\)"):
        parse("ndgc@3")
    for name in ("ndcg@3;ap", "ndcg@3 ap", "ndcg@3 | ap"):
        with pytest.raises(InputError, match=r"with commas on the command line: ndcg@3,ap$"):
            parse(name)


def test_a_metric_is_a_kernel_and_a_row():
    """Reciprocal rank, as if it were new, and hit@2, by its kernel with another divisor."""
    first = Metric("first", "1 / place of the first hit.", _kernels.first_hits, cut_off)
    half = Metric("half@k", "Half of hit@k.", _kernels.any_hits, cut_off, lambda *_: 2.0)
    known = by_names((*METRICS, first, half))
    asked = [parse(name, known) for name in ("first", "rr", "half@2", "hit@2")]
    rng = np.random.default_rng(0)
    users = np.repeat(np.arange(6), 10)
    rows = build(rng.normal(size=60), rng.integers(0, 2, 60), users)
    table = evaluate_lists(asked, rows, PRESETS["icml2020"])
    np.testing.assert_array_equal(table["first"], table["rr"])
    np.testing.assert_array_equal(table["half@2"], table["hit@2"] / 2)


def test_a_name_may_have_digits():
    half = Metric("f1@k", "Harmonic mean of precision and recall.", _kernels.any_hits, cut_off)
    known = by_names((*METRICS, half))
    assert parse("f1@5", known).k == 5
    with pytest.raises(InputError, match=r"no metric 'f2@5'; did you mean 'f1@5'\?.*, f1@k$"):
        parse("f2@5", known)
    with pytest.raises(InputError) as error:
        parse("f1@5")
    assert "did you mean 'f1@5'" not in str(error.value)
