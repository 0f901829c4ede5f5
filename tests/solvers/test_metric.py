"""The metric of the proximal term: axes along which slopes of blocks differ, and what they save."""

import numpy as np
import pytest

from helpers import problems
from structsvm_papk import CuttingPlane, EmpiricalRisk, make_surrogate
from structsvm_papk.data.ranking_data import RankingData
from structsvm_papk.solvers import metric as metric_module
from structsvm_papk.solvers.cutting_plane import Bundle, Proximal, Step
from structsvm_papk.solvers.metric import StepMetric, blocks_of_metric
from structsvm_papk.solvers.oracle import BlockOracle


def test_axes_are_those_along_which_slopes_differ():
    rng = np.random.default_rng(0)
    turn, _ = np.linalg.qr(rng.normal(size=(5, 5)))
    slopes = rng.normal(size=(4000, 5)) * [100.0, 10.0, 3.0, 1.0, 0.0] @ turn.T + 7.0
    metric = StepMetric.of(slopes)
    np.testing.assert_allclose(metric.axes.T @ metric.axes, np.eye(5), atol=1e-12)
    np.testing.assert_allclose(np.abs(metric.axes[:, ::-1].T @ turn), np.eye(5), atol=0.02)
    largest_first = metric.sizes[::-1]
    np.testing.assert_allclose(largest_first, [1.0, 1e-1**1.5, 3e-2**1.5, 1e-3, 1e-3], rtol=0.1)


def test_points_come_back_and_other_variables_stay():
    rng = np.random.default_rng(0)
    z = rng.normal(size=5)
    for metric in (StepMetric(), StepMetric.of(rng.normal(size=(40, 3)))):
        turned = metric.along_axes(z)
        np.testing.assert_allclose(metric.of_features(turned), z, atol=1e-14)
        np.testing.assert_array_equal(turned[3:], z[3:])
        np.testing.assert_allclose(metric.along_axes(np.stack([z, 2 * z]))[1], 2 * turned)


@pytest.mark.parametrize(
    "slopes", [np.ones((9, 3)), np.full((9, 3), 1e200) * np.arange(9)[:, None]]
)
def test_slopes_that_say_nothing_have_no_axes(slopes):
    assert StepMetric.of(slopes).axes is None


def test_few_data_and_many_features_have_none():
    assert blocks_of_metric(100, 10**6) >= 200
    assert blocks_of_metric(10, 10**5) == 0
    assert blocks_of_metric(800, 10**6) == 0
    assert blocks_of_metric(2000, 10**12) == 0


@pytest.fixture
def of_few_data(monkeypatch):
    """Data as small as a test has them have a metric, too."""
    monkeypatch.setattr(metric_module, "_FEWEST", 0)


@pytest.mark.usefixtures("of_few_data")
@pytest.mark.parametrize("name", ["avg", "max", "ts", "pauc"])
def test_it_is_the_same_optimum(name, monkeypatch):
    risk = problems.risk(name, n_users=60)
    solver = CuttingPlane(1e-3, tol=1e-9)
    result = solver.solve(risk)
    assert result._warm_start.metric.axes is not None
    monkeypatch.setattr(Proximal, "metric", Step.metric)
    without = solver.solve(risk)
    assert result.objective == pytest.approx(without.objective, rel=2e-9)
    assert max(result.lower_bound, without.lower_bound) <= result.objective * (1 + 1e-12)


@pytest.mark.usefixtures("of_few_data")
def test_a_loose_solution_needs_none():
    result = CuttingPlane(1e-3, tol=1e-2).solve(problems.risk("avg", n_users=60))
    assert result._warm_start.metric.axes is None


@pytest.mark.usefixtures("of_few_data")
def test_columns_that_say_nearly_the_same_take_fewer_passes_to_the_same_optimum(monkeypatch):
    rng = np.random.default_rng(0)
    data = problems.ranking_data(n_users=3000, n_items=12, n_features=20)
    mixed = data.X[data.rows] * rng.uniform(0.01, 3.0, 20) @ rng.normal(size=(20, 20))
    risk = EmpiricalRisk(make_surrogate("avg", 3), RankingData(mixed, data.labels, data.indptr))
    solver = CuttingPlane(1e-5, tol=1e-6)
    result = solver.solve(risk)
    monkeypatch.setattr(Proximal, "metric", Step.metric)
    without = solver.solve(risk)
    assert result.converged and without.converged
    assert result.data_passes <= 0.85 * without.data_passes
    assert result.objective == pytest.approx(without.objective, rel=2e-6)
    assert max(result.lower_bound, without.lower_bound) <= result.objective


@pytest.mark.usefixtures("of_few_data")
def test_a_warm_start_has_the_metric_already():
    risk = problems.risk("avg", n_users=60)
    solver = CuttingPlane(1e-2, tol=1e-8)
    first = solver.solve(risk)
    assert first._warm_start.metric.axes is not None
    again = solver.solve(risk, warm_start=first)
    assert again.data_passes == 0 or again.data_passes < first.data_passes
    assert again._warm_start.metric is first._warm_start.metric


@pytest.mark.usefixtures("of_few_data")
def test_signs_of_weights_leave_no_metric_of_a_warm_start():
    risk = problems.risk("avg", n_users=60)
    free = CuttingPlane(1e-2, tol=1e-8).solve(risk)
    signed = CuttingPlane(1e-2, tol=1e-8, positive=True)
    warm = signed.solve(risk, warm_start=free)
    assert free._warm_start.metric.axes is not None and warm._warm_start.metric.axes is None
    assert warm.converged and (warm.w >= 0.0).all()
    assert warm.objective == pytest.approx(signed.solve(risk).objective, rel=2e-8)


class Distances(BlockOracle):
    """Sums of distances in a division of its own; it changes the w that it is given."""

    n_features = 3
    n_entries = 10**6

    def __init__(self, n_blocks):
        rng = np.random.default_rng(0)
        self.n_blocks = n_blocks
        self.rows = rng.normal(size=(n_blocks, 3))
        self.places = rng.normal(size=n_blocks)
        self.calls = 0

    def blocks(self, w):
        self.calls += 1
        self.rows_scored += 100
        away = self.rows @ w - self.places
        w[:] = 7.0
        return np.abs(away), np.sign(away)[:, None] * self.rows


def test_an_oracle_that_changes_w_and_counts_rows_has_them_counted_once_and_w_as_it_was():
    risk = Distances(40)
    result = CuttingPlane(0.1, tol=1e-9, max_iter=1).solve(risk, w_init=np.array([1.0, 2.0, 3.0]))
    assert result._warm_start.metric.axes is not None
    assert result.data_passes == risk.calls == 3
    assert result.history[-1].rows_scored == 300
    value = np.abs(risk.rows @ result.w - risk.places).sum()
    assert result.objective == pytest.approx(0.05 * result.w @ result.w + value, rel=1e-12)


def test_fewer_blocks_than_a_metric_needs_are_not_asked_for_their_slopes():
    risk = Distances(5)
    result = CuttingPlane(0.1, max_iter=1).solve(risk)
    assert result.data_passes == risk.calls == 2


def test_no_evaluation_for_a_metric_begins_after_the_time():
    risk = Distances(40)
    CuttingPlane(0.1, time_limit=1e-9).solve(risk)
    assert risk.calls == 1


def test_the_proximal_term_follows_what_the_model_promised(monkeypatch):
    """The looser the more of it a step kept, as it was after steps that kept little."""
    followed = []
    of_step = Proximal.try_point

    def watched(self: Proximal, bundle: Bundle, w: np.ndarray, predicted: float) -> None:
        prox = bundle.prox
        best = bundle.best
        of_step(self, bundle, w, predicted)
        if bundle.best < best:
            followed.append(((best - bundle.best) / predicted, bundle.prox / prox))

    monkeypatch.setattr(Proximal, "try_point", watched)
    for name in ("avg", "max", "ts"):
        CuttingPlane(1e-2, tol=1e-9).solve(problems.risk(name, n_users=60))
    serious = np.array([pair for pair in followed if pair[0] >= 0.1])
    kept, factor = serious[np.argsort(serious[:, 0])].T
    assert (np.diff(factor) <= 1e-12).all()
    assert (factor[kept > 0.3] < 1.0).all() and (factor[kept < 0.3] == 1.0).all()
    assert kept.min() < 0.3 and kept.max() > 0.8 and factor.min() == 0.25
