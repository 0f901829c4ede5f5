"""Block-coordinate ascent on the dual: its polytopes, its certificate, agreement with others."""

import numpy as np
import pytest
from scipy import sparse

from helpers.catalogue import CONVEX
from helpers.marks import slow
from helpers.problems import objective, wide_data
from structsvm_papk import (
    CuttingPlane,
    DualAscent,
    EmpiricalRisk,
    PAPKRanker,
    RankingData,
    make_surrogate,
)
from structsvm_papk.errors import InputError
from structsvm_papk.oracles import empirical_risk
from structsvm_papk.oracles.user_blocks import UserBlocks
from structsvm_papk.solvers.solver import Status
from structsvm_papk.surrogates.losses import Avg


def wide_risk(name="avg", k=3, depth=None, policy="exclude", weight=None, **options):
    data = wide_data(**options)
    data = data if weight is None else data.weighted(weight)
    return EmpiricalRisk(make_surrogate(name, k, depth), data, policy)


class WithLittleRoom(EmpiricalRisk):
    """A risk whose users have to drop rows."""

    def dual_blocks(self, alpha, start=None):
        return UserBlocks(self, alpha, start, room=0)


def agrees(oracle, alpha, tol=1e-7, **start):
    """The ascent's result, which is within the tolerance of the bundle's."""
    bundle = CuttingPlane(alpha, tol=min(1e-9, tol)).solve(oracle)
    result = DualAscent(alpha, tol=tol).solve(oracle, **start)
    assert result.status is Status.CONVERGED
    scale = max(bundle.objective, 1e-3)
    assert abs(result.objective - bundle.objective) <= 2 * tol * scale
    assert all(each.lower_bound <= bundle.objective for each in (result, *result.history))
    assert result.objective == pytest.approx(objective(oracle, alpha, result.w), rel=1e-12)
    return result


def test_every_bound_on_the_way_is_below_the_risk_everywhere():
    oracle, alpha = wide_risk(), 1e-2
    rng = np.random.default_rng(1)
    blocks = oracle.dual_blocks(alpha)
    points = [scale * rng.normal(size=oracle.n_features) for scale in (0.1, 1, 3) for _ in range(5)]
    for full in (True, False, True, True, False, True):
        before = blocks.certificate().lower_bound
        gained = blocks.sweep(rng.permutation(blocks.n_blocks), full)
        point = blocks.certificate()
        assert point.lower_bound - before == pytest.approx(gained, rel=1e-6, abs=1e-12)
        duals = blocks.duals
        for w in [*points, point.w]:
            assert point.lower_bound <= objective(oracle, alpha, w)
            scores = oracle.scores(w)
            values, _ = oracle.user_values(scores)
            planes = np.add.reduceat(duals.coef * scores, oracle.data.indptr[:-1])
            planes += duals.sums
            assert (planes <= values + 1e-12 * (1 + np.abs(planes))).all()
        assert blocks.gaps.sum() == pytest.approx(point.objective - point.lower_bound, abs=1e-12)


def test_the_result_depends_on_the_seed_alone():
    data = wide_data()
    first, again, threads, other = (
        DualAscent(1e-2, tol=1e-5, seed=seed).solve(
            EmpiricalRisk(make_surrogate("avg", 3), data, n_threads=n_threads)
        )
        for seed, n_threads in ((0, 1), (0, 1), (0, 3), (1, 1))
    )
    for same in (again, threads):
        assert np.array_equal(first.w, same.w) and first.lower_bound == same.lower_bound
    assert not np.array_equal(first.w, other.w)


def test_warm_starts():
    oracle = wide_risk()
    cold = DualAscent(1e-2, tol=1e-7).solve(oracle)
    again = DualAscent(1e-2, tol=1e-6).solve(oracle, warm_start=cold)
    assert again.converged and again.n_iter == 1
    next_alpha = DualAscent(8e-3, tol=1e-7).solve(oracle, warm_start=cold)
    assert next_alpha.converged
    near = DualAscent(1e-2, tol=1e-7).solve(oracle, w_init=cold.w)
    assert near.converged and near.history[0].objective <= objective(oracle, 1e-2, cold.w) + 1e-12
    handed = CuttingPlane(1e-2, tol=1e-7).solve(oracle, warm_start=cold)
    assert handed.converged
    assert handed.history[0].objective <= cold.objective * (1 + 1e-12)
    back = DualAscent(1e-2, tol=1e-7).solve(oracle, warm_start=handed)
    assert back.converged


@pytest.mark.parametrize("depths", [(None, 6), (0.9, 4)])
def test_dual_variables_of_another_depth(depths):
    one, other = (wide_risk(depth=depth) for depth in depths)
    agrees(other, 1e-2, warm_start=DualAscent(1e-2, tol=1e-7).solve(one))


def test_dual_variables_of_another_problem_are_refused():
    first = DualAscent(1e-2).solve(wide_risk())
    for other in (wide_risk(k=2), wide_risk(seed=1)):
        with pytest.raises(InputError, match="another problem"):
            DualAscent(1e-2).solve(other, warm_start=first)


def test_surrogates_that_are_not_ours_are_not_taken_for_their_parents():
    class Steeper(Avg):
        def evaluate(self, scores, indptr, n_pos, first, last, values, coef):
            super().evaluate(2.0 * scores, indptr, n_pos, first, last, values, coef)
            coef[indptr[first] : indptr[last]] *= 2.0

    with pytest.raises(InputError, match="offers no dual blocks"):
        DualAscent(1e-2).solve(EmpiricalRisk(Steeper(3), wide_data()))


def test_little_room_is_enough():
    """Slots are dropped, and more are made."""
    agrees(WithLittleRoom(make_surrogate("avg", 3), wide_data(n_items=28)), 1e-2, tol=1e-4)


@pytest.mark.parametrize("name", CONVEX)
def test_it_is_for_avg_and_lists_with_room_for_the_products_of_rows(name, monkeypatch):
    oracle = wide_risk(name)
    if name == "avg":
        monkeypatch.setattr(empirical_risk, "_GRAM_BYTES", 1000)
    with pytest.raises(InputError, match="offers no dual blocks, which Avg has where"):
        DualAscent(1e-2).solve(oracle)
    if name != "avg":
        with pytest.raises(InputError, match=f"solves Avg, not '{name}': use cutting_plane"):
            PAPKRanker(3, name, solver="dual_ascent").check_settings()


@pytest.mark.parametrize(
    ("options", "n_features", "chosen"),
    [
        ({}, 2000, "dual_ascent"),
        slow({"solver": "cutting_plane"}, 2000, "cutting_plane"),
        slow({}, 50, "cutting_plane"),
        slow({"solver": "dual_ascent"}, 50, "dual_ascent"),
        ({"positive": True}, 2000, "cutting_plane"),
        ({"solver": CuttingPlane(1.0, tol=0.1, n_blocks=3)}, 2000, "cutting_plane"),
    ],
)
def test_which_solver_is_chosen(options, n_features, chosen):
    """Sparse with many features and users: the ascent; else, and with options, the bundle."""
    rng = np.random.default_rng(0)
    X = sparse.random_array((600, 2000), density=0.01, rng=rng, format="csr")[:, :n_features]
    y, groups = np.tile([True, False, False], 200), np.repeat(np.arange(30), 20)
    ranker = PAPKRanker(k=2, surrogate="avg", alpha=1.0, tol=0.1, **options)
    assert ranker.fit(X, y, groups=groups).to_model().solver == chosen
    one = EmpiricalRisk(make_surrogate("avg", 2), RankingData(X, y, [0, 600]))
    assert not one.suits_dual_ascent(1e-2)
