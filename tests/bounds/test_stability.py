import json
from dataclasses import replace

import numpy as np
import pytest

from helpers import sources
from helpers.catalogue import WITH_SHARES
from helpers.columns import knots_at_quantiles
from helpers.commands import invoke
from helpers.marks import slow
from helpers.reference_theory import top_risk
from helpers.sources import read_lists
from structsvm_papk import (
    CuttingPlane,
    EmpiricalRisk,
    PAPKRanker,
    RankingData,
    bounds,
    make_surrogate,
)
from structsvm_papk import SubgradientDescent as Descent
from structsvm_papk.bounds.stability import _largest_slopes
from structsvm_papk.datasets import engagement_lists, linear_lists
from structsvm_papk.errors import InputError
from structsvm_papk.oracles.partitioned import PartitionedRisk
from structsvm_papk.oracles.streamed import StreamedRisk
from structsvm_papk.rankers.in_columns import TrainingColumns

K = 3


def small_risk(name, depth, seed, weight=None, n_users=10):
    lists = engagement_lists(n_users, 5, mean_items=20, min_neg=6, seed=seed)
    data = RankingData.from_groups(lists.X, lists.y, lists.groups).weighted(weight)
    return EmpiricalRisk(make_surrogate(name, K, depth), data, "cap")


def pap_risk(scores, n_pos, k=K):
    return top_risk(scores[:n_pos], scores[n_pos:], k, k)


@pytest.mark.parametrize(
    ("seed", "name"),
    [
        *((seed, WITH_SHARES[seed % len(WITH_SHARES)]) for seed in range(5)),
        *(slow(seed, WITH_SHARES[(seed + 2) % len(WITH_SHARES)]) for seed in range(5)),
    ],
)
def test_refits_without_each_user_stay_within_the_bound(name, seed):
    depth, weight = [(None, None), (5, None), (0.5, "positives"), (0.9, None), (5, "positives")][
        seed
    ]
    alpha, tol = [1.0, 0.3, 3.0, 1.0, 10.0][seed], [1e-9, 1e-2][seed % 2]
    risk = small_risk(name, depth, seed, weight)
    v = np.ones(risk.n_users) if weight is None else risk.data.user_weight
    result = CuttingPlane(alpha=alpha, tol=tol).solve(risk)
    found = bounds.stability(risk, result)
    assert found.bound == pytest.approx(found.values.mean())
    assert found.from_gap >= np.sqrt(2 * (result.objective - result.lower_bound) / alpha)
    ratios = []
    for u in range(risk.n_users):
        others = np.arange(risk.n_users) != u
        data = risk.data
        rest = EmpiricalRisk(risk.surrogate, data.subset(others), "cap")
        refit = CuttingPlane(alpha=alpha * v.sum() / v[others].sum(), tol=1e-11).solve(rest)
        own = np.sqrt(2 * max(refit.objective - refit.lower_bound, 0) / refit.alpha)
        distance = np.linalg.norm(refit.w - result.w)
        assert distance <= found.distances[u] + own
        scores = data.subset(~others).scores(refit.w)
        assert pap_risk(scores, data.n_pos[u]) <= found.values[u]
        ratios.append(distance / found.distances[u])
    if tol < 1e-3:
        assert max(ratios) > 0.15  # a bound several times smaller would fail


@pytest.mark.parametrize(
    ("name", "depth"), [("avg", 0.9), ("pauc", None), ("max", 5), ("ts", 0.9), ("ts", None)]
)
def test_no_slope_of_a_user_is_larger(name, depth):
    risk = small_risk(name, depth, 7, n_users=30)
    result = CuttingPlane(alpha=1.0, tol=1e-10).solve(risk)
    found = bounds.stability(risk, result)
    largest = (found.distances - found.from_gap) * risk.n_users
    data, rng, ratio = risk.data, np.random.default_rng(0), 0.0
    for _ in range(100):
        w = rng.normal(size=risk.n_features) * 10.0 ** rng.uniform(-3, 1)
        _, coef = risk.user_values(risk.scores(w))
        parts = np.split(coef[:, None] * data.X[data.rows], data.indptr[1:-1])
        slopes = np.linalg.norm([part.sum(axis=0) for part in parts], axis=1)
        assert (slopes <= largest).all()
        ratio = max(ratio, (slopes / largest).max())
    assert ratio > 0.8


def test_worst_scores_are_those_of_the_worst_weights_near_by_and_the_users_for_a_target():
    risk = small_risk("avg", 0.9, 3)
    result = CuttingPlane(alpha=3.0, tol=1e-9).solve(risk)
    found, data = bounds.stability(risk, result), risk.data
    assert found.risk < found.bound < 1
    for u in range(risk.n_users):
        rows = data.X[data.rows[data.indptr[u] : data.indptr[u + 1]]]
        moves = found.distances[u] * np.linalg.norm(rows - rows.mean(axis=0), axis=1)
        moves[: data.n_pos[u]] *= -1
        worst = pap_risk(rows @ result.w + moves, data.n_pos[u])
        assert found.values[u] == pytest.approx(worst)
    target = (found.risk + found.bound) / 2
    n_users = found.users_for(target)
    assert found.at(n_users) <= target < found.at(0.97 * n_users)
    assert found.at(found.n_users) == pytest.approx(found.bound)
    assert found.users_for(found.risk / 2) == np.inf
    # what a larger gap of the certificate adds to each distance does not shrink with more users
    loose = bounds.stability(risk, replace(result, lower_bound=result.lower_bound - 0.1))
    assert loose.from_gap == pytest.approx(np.sqrt(2 * (result.gap * result.objective + 0.1) / 3))
    parts = [each.distances - each.from_gap for each in (loose, found)]
    np.testing.assert_allclose(*parts, rtol=1e-9)
    assert loose.at(1e12) > found.at(1e12)


def test_slopes_are_bounded_by_the_largest_over_all_sums_of_weights():
    rng = np.random.default_rng(0)
    apart = rng.exponential(size=200) * (rng.random(200) < 0.7)
    sides = [(rng.exponential(size=200), rng.uniform(0.05, 1.0, 200)) for _ in range(2)]
    t = np.linspace(0, 1, 5001)[:, None]
    exact = t * apart
    for var, share in sides:
        exact = exact + np.sqrt(var * np.maximum(t / share - t**2, 0.0))
    exact = exact.max(axis=0)
    bound = _largest_slopes(apart, *sides)
    assert (exact <= bound * (1 + 1e-12)).all() and (bound <= 1.05 * exact).all()


def test_files_and_divided_columns_give_the_same(tmp_path):
    X, y, groups = sources.lists()
    surrogate = make_surrogate("ts", 4, 0.9)
    dense = EmpiricalRisk(surrogate, RankingData.from_groups(X, y, groups).standardized())
    result = CuttingPlane(alpha=0.3, tol=1e-9).solve(dense)
    expected = bounds.stability(dense, result)
    assert expected.note == "the columns' scale"
    on_file = StreamedRisk(surrogate, sources.npy_source(tmp_path, X, y, groups), X.nbytes)
    divided = RankingData.from_groups(X / dense.units.scale, y, groups)
    for risk in (
        PartitionedRisk(surrogate, on_file.partitions.standardized()),
        EmpiricalRisk(surrogate, divided),
    ):
        found = bounds.stability(risk, result)
        np.testing.assert_allclose(found.distances, expected.distances, rtol=1e-9)
        np.testing.assert_allclose(found.values, expected.values, atol=1e-12)
    assert found.note == ""
    curved = EmpiricalRisk(
        surrogate, divided.with_curves(knots_at_quantiles(divided.X, divided.rows, 4))
    )
    found = bounds.stability(curved, CuttingPlane(alpha=0.3).solve(curved))
    assert found.note == "the knots of the curves"


def test_what_the_bound_is_not_for():
    risk = small_risk("avg", 0.9, 0)
    result = CuttingPlane(alpha=1.0).solve(risk)
    with pytest.raises(InputError, match="no certificate"):
        bounds.stability(risk, Descent(alpha=1.0, max_iter=5).solve(risk))
    for name in ("clipped_ramp", "ts_alg2"):
        with pytest.raises(InputError, match="for convex surrogates"):
            bounds.stability(small_risk(name, 0.9, 0), result)
    with pytest.raises(InputError, match="not of this risk: its objective"):
        bounds.stability(small_risk("avg", 0.9, 1), result)
    with pytest.raises(InputError, match="5 weights, the risk 6"):
        lists = linear_lists(4, 20, 6, seed=0)
        data = RankingData.from_groups(lists.X, lists.y, lists.groups)
        bounds.stability(EmpiricalRisk(risk.surrogate, data), result)
    grades = RankingData.from_groups(
        np.eye(6), [0, 1, 2] * 2, [0] * 3 + [1] * 3, label_gain="linear"
    )
    with pytest.raises(InputError, match="for binary labels"):
        bounds.stability(EmpiricalRisk(risk.surrogate, grades), result)
    with pytest.raises(InputError, match="needs several users"):
        bounds.stability(small_risk("avg", 0.9, 0, n_users=1), result)


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("trained")
    truth = None
    for name, seed in (("train", 1), ("new", 2)):
        lists = linear_lists(40, 20, 4, w_true=truth, seed=seed)
        truth = lists.w_true
        sources.write_csv(folder / f"{name}.csv", lists.X, lists.y, lists.groups)
    shown = invoke("fit", folder / "train.csv", "--k", 3, "--alpha", 1, "-o", folder / "model")
    assert shown.exit_code == 0, shown.output
    return folder


def test_the_command_gives_the_bound_of_python(trained):
    train, new = trained / "train.csv", trained / "new.csv"
    call = ["bound", "new-users", trained / "model", train, "--held-out", new, "--target", 0.5]
    answer = json.loads(invoke(*call, "--json").stdout)
    data = read_lists(train)
    ranker = PAPKRanker(k=3, alpha=1.0).fit_lists(data)
    model = ranker.to_model()
    columns = TrainingColumns(data, None, "auto").of(ranker._setting).lists
    risk = EmpiricalRisk(ranker.make_surrogate(), columns)
    expected = bounds.stability(risk, ranker.result_)
    assert answer["bound"] == expected.bound
    assert answer["users_for_target"] == pytest.approx(expected.users_for(0.5))
    people, own = read_lists(new), answer["held_out"]
    scores = np.split(model.predict(people.X)[people.rows], people.indptr[1:-1])
    risks = [pap_risk(s, n) for s, n in zip(scores, people.n_pos, strict=True)]
    interval = bounds.many_users(risks)
    assert own["n_users"] == len(risks) == 40
    ends = interval.value, interval.lower, interval.upper
    assert [own[name] for name in ("value", "lower", "upper")] == pytest.approx(ends)
    shown = " ".join(invoke(*call).output.split())
    assert f"at most │ {expected.bound:.4f}" in shown and "assumed: users are drawn" in shown
    assert "depth, curves and pairs were not chosen by these users" in shown


def test_a_bound_that_says_nothing_is_called_vacuous(tmp_path, trained):
    train, model = trained / "train.csv", tmp_path / "model"
    invoke("fit", train, "--k", 3, "--alpha", 1e-6, "-o", model)
    answer = json.loads(invoke("bound", "new-users", model, train, "--json").stdout)
    assert answer["vacuous"] and answer["bound"] == 1.0
    shown = " ".join(invoke("bound", "new-users", model, train).output.split())
    assert "in expectation, at most │ vacuous: says nothing" in shown and "1.0000" not in shown
    risk = small_risk("avg", 0.9, 0)
    found = bounds.stability(risk, CuttingPlane(1.0).solve(risk))
    assert not found.vacuous and "array" not in repr(found) and len(repr(found)) < 300


def test_the_command_refuses_other_data_and_lost_options(trained):
    shown = invoke("bound", "new-users", trained / "model", trained / "new.csv")
    assert "not of this risk" in str(shown.exception)
