"""Fits on folds: in the span of the rows, from which start, with which pairs."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

from structsvm_papk import RankingData, make_surrogate
from structsvm_papk._cholesky import factor_of
from structsvm_papk.data.columns.pairs import ColumnPair, PairCuts
from structsvm_papk.data.content import digests_of
from structsvm_papk.rankers import candidates
from structsvm_papk.rankers.candidates import Candidate, Training
from structsvm_papk.rankers.in_columns import TrainingColumns
from structsvm_papk.rankers.settings import Setting
from structsvm_papk.solvers.solver import Status

N_ROWS = 60


def one_list(seed=0, n_rows=N_ROWS, n_columns=6, n_lists=1):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, n_columns))
    score = X[:, 0] * X[:, 1] + X[:, 2] + rng.normal(size=n_rows)
    return RankingData.from_groups(X, score > 0.5, np.arange(n_rows) % n_lists)


def setting(surrogate="avg", pieces=4, alpha=0.1):
    return Setting(make_surrogate(surrogate, 3, 0.9), "uniform", alpha, pieces)


def with_all_pairs(columns, of):
    """A candidate in columns with every pair, of more weights than rows."""
    pairs = [ColumnPair(*cuts) for cuts in combinations(columns.cuts_for_pairs, 2)]
    alone = Candidate(of, columns.of(of))
    return alone.with_pairs(len(pairs)).of_pairs(pairs, columns)


@pytest.mark.parametrize("rank", [1, 7, 20])
def test_rows_of_a_factor_have_the_inner_products_and_coordinates(rank):
    rng = np.random.default_rng(rank)
    vectors = rng.normal(size=(20, rank)) @ rng.normal(size=(rank, 30))
    factor = factor_of(vectors @ vectors.T)
    assert factor.rows.shape == (20, rank)
    np.testing.assert_allclose(factor.rows @ factor.rows.T, vectors @ vectors.T, atol=1e-9)
    v = rng.normal(size=rank)
    np.testing.assert_allclose(factor.coordinates(factor.rows @ v), v, rtol=1e-6)


@pytest.mark.parametrize("surrogate", ["avg", "pauc", "ts"])
def test_in_the_span_of_the_rows_it_is_the_same_problem(surrogate, monkeypatch):
    columns = TrainingColumns(one_list(), None, "auto")
    candidate = with_all_pairs(columns, setting(surrogate))
    span = candidate.columns.span
    assert span is not None and span.lists.n_features <= N_ROWS < candidate.lists.n_features / 5
    monkeypatch.setattr(candidates, "TOL", 1e-8)
    monkeypatch.setattr(candidates, "SMALL", 0.0)
    positions = np.arange(N_ROWS) % 5 > 0
    within = Training().solved(candidate, positions)
    written = replace(candidate, columns=replace(candidate.columns))
    written.columns.__dict__["span"] = None
    outside = Training().solved(written, positions)
    assert np.abs(within.scores()).max() > 0.1
    assert within.result.objective == pytest.approx(outside.result.objective, rel=2e-8)
    assert within.result.lower_bound <= outside.result.objective * (1 + 1e-12)
    np.testing.assert_allclose(within.scores(), outside.scores(), atol=2e-3)
    again = Training().solved(candidate, positions, within)
    assert again.result.objective == pytest.approx(outside.result.objective, rel=2e-8)


def test_weights_in_the_span_give_the_scores_of_a_fit_outside():
    columns = TrainingColumns(one_list(), None, "auto")
    lines = Candidate(setting(pieces=None), columns.of(setting(pieces=None)))
    paired = with_all_pairs(columns, setting())
    before = Training().solved(lines)
    w = before.weights_for(paired)
    np.testing.assert_allclose(paired.columns.span.lists.scores(w), before.scores(), atol=1e-7)
    assert Training().solved(paired).weights_for(lines) is None


@pytest.mark.parametrize("case", ["few weights", "signs", "several lists"])
def test_few_weights_those_with_signs_and_several_lists_are_not_in_the_span_of_the_rows(case):
    n_lists = 2 if case == "several lists" else 1
    data = one_list(n_rows=400 if case == "few weights" else N_ROWS, n_lists=n_lists)
    columns = TrainingColumns(data, None, "auto", positive=case == "signs")
    plain = columns.of(replace(setting(), pieces=16 if case == "few weights" else 200))
    assert plain.lists.n_features > 5 * N_ROWS or case == "few weights"
    assert plain.span is None


def test_a_path_of_alphas_has_its_pairs_in_common(monkeypatch):
    data = one_list(n_rows=200)
    columns = TrainingColumns(data, None, "auto")
    alone = [
        Candidate(setting(alpha=alpha), columns.of(setting(alpha=alpha)))
        for alpha in (10.0, 1.0, 0.1)
    ]
    asked = []
    found = candidates.CandidateFit.pairs_left

    def watched(self, *given):
        asked.append(self.candidate.setting)
        return found(self, *given)

    monkeypatch.setattr(candidates.CandidateFit, "pairs_left", watched)
    cuts = []
    of_pairs = PairCuts.of_pairs
    monkeypatch.setattr(PairCuts, "of_pairs", lambda pairs: cuts.append(pairs) or of_pairs(pairs))
    (fold, *_) = candidates.folds_of_rows(5, data, digests_of(data))
    paired = [each.with_pairs(n) for n in (2, 4) for each in alone]
    values = candidates.values_on(fold, [*alone, *paired], columns, Training())
    assert all(of is not None for of in values.of_candidates)
    assert asked == [alone[0].for_pairs.setting]
    assert [len(pairs) for pairs in cuts] == [2, 4] and cuts[1][:2] == cuts[0]


def test_of_lists_pairs_are_those_that_the_same_alpha_leaves():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3))
    data = RankingData.from_groups(X, X[:, 0] > 0.0, np.repeat(np.arange(4), 10))
    columns = TrainingColumns(data, None, "auto")
    candidate = Candidate(setting(), columns.of(setting())).with_pairs(2)
    assert candidate.for_pairs.setting == setting()


def test_a_small_objective_is_solved_to_a_share_of_the_risk_at_zero():
    data = one_list(n_rows=30)  # as many weights as rows: separable
    columns = TrainingColumns(data, None, "auto")
    nearly_free = setting(alpha=1e-4)
    result = Training().solved(Candidate(nearly_free, columns.of(nearly_free))).result
    assert result.objective < candidates.SMALL
    assert result.status is Status.STOPPED
    assert result.gap > candidates.TOL
    assert result.objective - result.lower_bound <= candidates.TOL * candidates.SMALL
