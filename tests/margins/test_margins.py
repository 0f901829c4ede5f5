import json
from dataclasses import replace
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import linprog

from helpers.commands import invoke
from helpers.functions import lines
from helpers.marks import slow
from helpers.reference_theory import exists_by_subsets, margins_by_subsets
from helpers.sources import write_csv
from structsvm_papk import datasets, margins
from structsvm_papk.data import RankingData
from structsvm_papk.errors import InputError
from structsvm_papk.files.model import Model, save_model
from structsvm_papk.margins.conditions import CONDITIONS, check_users
from structsvm_papk.margins.proofs import exact_margins


def test_given_scores_against_subset_enumeration_on_200_lists():
    rng = np.random.default_rng(0)
    for _ in range(200):
        p, q = (rng.integers(-4, top, rng.integers(1, top + 1)) / 2 for top in (5, 3))
        k = int(rng.integers(1, len(q) + 1))
        labels = np.repeat([1, 0], [len(p), len(q)])
        order = rng.permutation(len(labels))
        found = margins.check_scores(np.r_[p, q][order], labels[order], k, delta=0.5)
        for condition, delta in margins_by_subsets(p, q, k).items():
            assert getattr(found, condition) == (delta is not None and delta >= Fraction(1, 2))
            shown = getattr(found, f"delta_{condition}")
            assert shown == (-np.inf if delta is None else pytest.approx(float(delta), abs=1e-12))


def test_comparisons_do_not_round():
    # 0.1 + 0.2 > 0.3 in floats, and the exact sum of the two floats is above the float 0.3
    found = margins.check_scores([0.3, 0.1], [1, 0], 1, delta=0.2)
    assert found.strong == (Fraction(0.3) - Fraction(0.1) >= Fraction(0.2))
    tiny = 2.0**-60
    assert margins.check_scores([1.0, 1.0, 0.0], [1, 1, 0], 1, delta=1.0).beta
    assert not margins.check_scores([1.0, tiny], [1, 0], 1, delta=1.0).strong


def test_users_and_jointly():
    scores, labels, groups = [3.0, 0, 1, 5, 4, 0], [1, 0, 0, 1, 1, 0], list("aaabbb")
    users, joint = check_users(scores, labels, groups, 1)
    assert users["a"].delta_strong == 2 and users["b"].delta_strong == 4
    assert joint.delta_strong == 2 and joint.strong
    assert not check_users(scores, labels, groups, 1, delta=3)[1].weak
    with pytest.raises(InputError, match="user 'b'"):
        check_users(scores, [1, 0, 0, 0, 0, 0], groups, 1)


@pytest.mark.parametrize("n", [10, slow(60)])
def test_existence_against_subset_enumeration(n):
    answers, rng = {c: {"yes": 0, "no": 0} for c in CONDITIONS}, np.random.default_rng(1)
    for _ in range(n):  # data with and without the conditions, ties and copies among them
        n_pos, n_neg, d = rng.integers(1, 6), rng.integers(1, 5), rng.integers(1, 4)
        X = rng.integers(-3, 4, (n_pos + n_neg, d)).astype(float)
        X[:n_pos] += rng.integers(0, 4, d)
        if rng.random() < 0.3:
            X[0] = X[-1]
        y, k = np.arange(len(X)) < n_pos, int(rng.integers(1, n_neg + 1))
        truth = exists_by_subsets(X[y], X[~y], k)
        for condition, expected in truth.items():
            found = margins.find_scorer(X, y, k, condition, largest_margin=False)
            assert found.answer == ("yes" if expected else "no"), (condition, X, y, k)
            assert found.exact and found.verify(X, y)
            answers[condition][found.answer] += 1
    assert min(n for counts in answers.values() for n in counts.values()) >= n / 10


@pytest.mark.parametrize("condition", CONDITIONS)
def test_largest_margin_is_between_its_bounds_and_beats_random_directions(condition):
    lists = datasets.margin_lists(
        condition, n_users=2, n_pos=6, n_neg=10, n_features=3, k=2, seed=5
    )
    found = margins.find_scorer(lists.X, lists.y, 2, condition, lists.groups)
    assert found.answer == "yes" and found.verify(lists.X, lists.y, lists.groups)
    assert found.margin <= found.margin_bound <= found.margin * (1 + 1e-5)
    data = RankingData.from_groups(lists.X, lists.y, lists.groups)
    rng = np.random.default_rng(0)
    order = 2 if found.norm == "l2" else np.inf
    for step in rng.standard_normal((25, 3)):
        w = found.w + 0.05 * step
        each = exact_margins(data, w, 2, condition)
        if None not in each:
            assert float(min(each)) / np.linalg.norm(w, order) <= found.margin_bound * (1 + 1e-9)


def largest_moderate_margin(X, y, k):
    """By a linear programme for every choice of beta positives, over ``|w_j| <= 1``."""
    apart = X[~y] - X[y][:, None]
    below = np.pad(apart.reshape(-1, X.shape[1]), ((0, 0), (0, 1)))  # w.q <= w.p; variables w, m
    best = 0.0
    for chosen in combinations(range(y.sum()), min(int(y.sum()), k)):
        rows = apart[list(chosen)].reshape(-1, X.shape[1])
        rules = np.vstack([below, np.pad(rows, ((0, 0), (0, 1)), constant_values=1)])
        bounds = [(-1, 1)] * X.shape[1] + [(0, None)]
        cost = [0.0] * X.shape[1] + [-1.0]
        found = linprog(cost, A_ub=rules, b_ub=np.zeros(len(rules)), bounds=bounds)
        best = max(best, -found.fun)
    return best


@pytest.mark.parametrize("n", [6, slow(60)])
def test_largest_moderate_margin_against_every_choice_of_positives(n):
    """The optimum often lies on ``min p = max q``, which the solver breaks by rounding."""
    rng = np.random.default_rng(4)
    n_yes = 0
    for _ in range(n):
        n_pos, n_neg, d = rng.integers(2, 6), rng.integers(2, 8), rng.integers(2, 5)
        k = int(rng.integers(1, 3))
        X = rng.integers(-3, 4, (n_pos + n_neg, d)).astype(float)
        X[:n_pos] += rng.integers(0, 4, d)
        y = np.arange(len(X)) < n_pos
        found = margins.find_scorer(X, y, k, "moderate")
        assert found.margin == pytest.approx(largest_moderate_margin(X, y, k), rel=1e-4)
        n_yes += found.answer == "yes" and found.verify(X, y)
    assert n_yes > n / 3


@pytest.mark.parametrize("condition", [slow("weak"), "moderate"])
def test_small_units_change_nothing_but_the_unit(condition):
    """The tolerances of an integer solver are absolute."""
    n_yes = 0
    for seed in (0, 8, 12, 14, 15, 39):
        rng = np.random.default_rng(seed)
        y, users, k = np.array([1, 1, 0, 0, 1, 0] * 2), np.repeat([0, 1], 6), 1 + seed % 2
        X = rng.integers(-3, 4, (12, 2)) + 2.0 * y[:, None]
        found = margins.find_scorer(X, y, k, condition, users)
        unit = 2.0**-24
        small = margins.find_scorer(X * unit, y, k, condition, users)
        assert small.answer == found.answer
        assert small.margin == pytest.approx(found.margin * unit, rel=1e-9)
        assert small.margin_bound == pytest.approx(found.margin_bound * unit, rel=1e-9)
        n_yes += found.answer == "yes"
    assert n_yes >= 2


def test_margins_that_force_exact_ties():
    # the low positive is the middle of two negatives, so w must be orthogonal to their difference
    X = np.array([[3.0, 1.0, 0.5], [0.5, 0.25, 0.75], [0.5, 0.0, 0.5], [0.5, 0.5, 1.0]])
    y = [1, 1, 0, 0]
    found = margins.find_scorer(X, y, 1, "moderate")
    assert found.answer == "yes" and found.verify(X, y)
    assert found.margin == pytest.approx(found.margin_bound, rel=1e-4)
    assert margins.find_scorer(X, y, 1, "strong").answer == "no"


def test_one_scorer_for_all_users_is_harder_than_one_each():
    # the users' positives lie left and right of their negatives, spread evenly up and down
    spread = np.array([[0.0, 0.1], [0.0, 0.0], [0.0, -0.1]])
    right, left = np.add(spread, [1, 0]), np.add(spread, [-1, 0])
    X = np.vstack([right, np.zeros((2, 2)), left, np.zeros((2, 2))])
    y, groups = [1, 1, 1, 0, 0] * 2, np.repeat([0, 1], 5)
    for condition in ("strong", "beta", "moderate", "weak"):
        shared = margins.find_scorer(X, y, 2, condition, groups)
        assert shared.answer == "no" and shared.verify(X, y, groups)
        for user in (groups == 0, groups == 1):
            alone = margins.find_scorer(X[user], np.array(y)[user], 2, condition)
            assert alone.answer == "yes"


@pytest.mark.parametrize("condition", ["weak", slow("moderate")])
def test_a_no_to_one_of_many_users_is_one_to_all(condition):
    """Every tenth user has its positives on both sides of its negatives."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 40, 3))
    X[:, :4] += 6.0 * rng.normal(size=(30, 1, 3))
    X[::10, :4] = 0.01 * rng.normal(size=(3, 4, 3))
    X = X.reshape(-1, 3)
    y = np.tile(np.arange(40) < 4, 30)
    groups = np.repeat(np.arange(30), 40)
    found = margins.find_scorer(X, y, 3, condition, groups)
    assert found.answer == "no" and found.exact and found.verify(X, y, groups)
    assert len(found.proof.needed) == 30
    others = groups % 10 != 0
    assert not found.verify(X[others], y[others], groups[others])


def test_large_lists_with_certificates():
    easy = datasets.generators.two_gaussians(100, 10_000, 20, 9.0, seed=1)
    hard = datasets.generators.two_gaussians(100, 10_000, 20, 2.0, seed=1)
    for condition in ("strong", "beta"):
        found = margins.find_scorer(easy.X, easy.y, 20, condition)
        assert found.answer == "yes" and found.margin_bound <= found.margin * (1 + 1e-6)
        found = margins.find_scorer(hard.X, hard.y, 20, condition)
        assert found.answer == "no" and found.exact and found.verify(hard.X, hard.y)


def test_time_limit_gives_the_third_answer():
    lists = datasets.generators.two_gaussians(40, 200, 8, 0.3, seed=0)
    found = margins.find_scorer(lists.X, lists.y, 15, "weak", time_limit=1e-9)
    assert found.answer == "undecided"


def test_forged_certificates_are_rejected():
    lists = datasets.generators.two_gaussians(6, 30, 2, 0.2, seed=0)
    found = margins.find_scorer(lists.X, lists.y, 3, "strong")
    assert found.answer == "no"
    moved = lists.X.copy()
    rows = set(found.proof.pos_weights) | set(found.proof.neg_weights)
    moved[next(iter(rows))] += 1e-9  # the proof is about the numbers, not their neighbours
    assert found.verify(lists.X, lists.y) and not found.verify(moved, lists.y)
    assert not found.verify(lists.X, 1 - lists.y)
    # a proof about the lowest positive says nothing about the mean of the lowest three
    assert not replace(found, condition="beta").verify(lists.X, lists.y)
    longer = replace(found.proof, n_lowest=(3,))  # some weigh more than a third of it
    assert not replace(found, condition="beta", proof=longer).verify(lists.X, lists.y)
    wrong = replace(found.proof, pos_weights={r: 2 * v for r, v in found.proof.pos_weights.items()})
    assert not replace(found, proof=wrong).verify(lists.X, lists.y)
    assert not replace(found, answer="undecided").verify(lists.X, lists.y)


def test_few_of_many_users_enter_the_programmes():
    lists = datasets.margin_lists("beta", n_users=25, n_pos=6, n_neg=10, k=2, exclude="any", seed=1)
    for condition, answer in (("beta", "yes"), ("strong", "no")):
        for X in (lists.X, sparse.csr_array(lists.X)):
            found = margins.find_scorer(X, lists.y, 2, condition, lists.groups)
            assert found.answer == answer and found.verify(lists.X, lists.y, lists.groups)
            assert found.margin_bound <= found.margin * (1 + 1e-5)
    for scale in (1e-9, 1e9):
        found = margins.find_scorer(scale * lists.X, lists.y, 2, "beta", lists.groups)
        assert found.answer == "yes" and found.margin_bound <= found.margin * (1 + 1e-5)
    opposed = lists.X * np.where(lists.groups == 24, -1, 1)[:, None]
    found = margins.find_scorer(opposed, lists.y, 2, "beta", lists.groups)
    assert found.answer == "no" and found.verify(opposed, lists.y, lists.groups)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: margins.check_scores([1.0, 0.0], [1, 0], 2), "k = 2"),
        (lambda: margins.check_scores([1.0, 0.0], [0, 0], 1), "no positives"),
        (lambda: margins.find_scorer(np.eye(2), [1, 0], 1, "tight"), "is not known"),
        (lambda: margins.find_scorer(np.diag([1, 5e-324]), [1, 0], 1, "weak"), "column 1 .from 0"),
        (lambda: margins.find_scorer(np.eye(2), [1, 0], 2, "strong"), "k=2"),
        (lambda: margins.find_scorer(np.eye(2), [1, 0], 1, "weak", time_limit=0), "time_limit"),
    ],
)
def test_bad_input(call, words):
    with pytest.raises(InputError, match=words):
        call()


# ----------------------------------------------------------------- the command


@pytest.fixture
def files(tmp_path):
    lists = datasets.margin_lists("beta", n_users=2, n_pos=6, n_neg=10, k=2, exclude="any", seed=3)
    data, model = tmp_path / "lists.csv", tmp_path / "model"
    write_csv(data, lists.X, lists.y, lists.groups)
    names = tuple("abcdefgh"[: lists.X.shape[1]])
    known = {"objective": 1.0, "lower_bound": 1.0, "gap": 0.0, "status": "converged"}
    known |= {"converged": True, "n_iter": 1}
    function = lines(lists.w_true, names)
    save_model(model, Model(function, 2, "ts", 1.0, "cutting_plane", known, feature_names=names))
    return data, model


def test_margins_command(files, tmp_path):
    data, model = files
    result = invoke("margins", data, "--k", 2, "--model", model, "--per-user", "--json")
    assert result.exit_code == 0, result.output
    told = json.loads(result.stdout)
    assert told["scores"]["joint"]["beta"] and not told["scores"]["joint"]["moderate"]
    assert {c: told["shared"][c]["answer"] for c in CONDITIONS} == {
        "weak": "yes", "beta": "yes", "moderate": "no", "strong": "no"
    }  # fmt: skip
    assert told["per_user"]["strong"] == {"yes": 0, "no": 2, "undecided": 0}
    shown = invoke("margins", data, "--k", 2, "--condition", "beta")
    assert shown.exit_code == 0 and "exact" in shown.stdout and "moderate" not in shown.stdout
    for args in (("--k", 50), ("--condition", "tight"), ("--model", data)):
        result = invoke("margins", data, "--k", 2, *args)
        assert isinstance(result.exception, InputError)


def test_bound_command(files):
    data, model = files
    held_out = ("bound", "held-out", data, "--k", 2, "--model", model, "--json")
    told = json.loads(invoke(*held_out).stdout)
    assert told["kind"] == "mean over users" and told["guaranteed"]
    assert json.loads(invoke(*held_out, "--one-list").stdout)["method"] == "shift"
    sizes = ("--n-pos", 500, "--n-neg", 2000, "--k", 100, "--n-features", 5)
    told = json.loads(invoke("bound", "uniform", *sizes, "--gamma", "paper", "--json").stdout)
    assert not told["guaranteed"] and "verify --check theorem2" in told["note"]
    shown = invoke("bound", "uniform", *sizes)
    assert "vacuous" in shown.stdout and str(told["raw"])[:5] not in shown.stdout
    assert json.loads(invoke("bound", "sizes", 0.1, "--json").stdout)["users"]["kl"] > 100
    for wrong in (
        ("uniform", *sizes, "--rho", 0.7),
        ("held-out", data, "--k", 0, "--model", model),
    ):
        assert isinstance(invoke("bound", *wrong).exception, InputError)


def test_users_whose_share_of_a_proof_is_lost_in_rounding():
    """Columns of users are up to 1e12 apart: of some users a weight is left, but no share."""
    users = [
        ([(1, 0), (0, -1), (1, -1), (-1, 2), (-1, -1), (1, 1)], (1e-6, 1e-5), 2),
        ([(0, 1), (-1, -1), (1, 2), (-2, -2), (1, -1), (0, -2), (2, 0), (2, 1), (1, -1), (1, -2)],
         (10, 0.1), 3),
        ([(2, -2), (1, 0), (2, -1), (2, 1), (2, -2), (1, 2), (-2, -1), (1, -2), (0, 1), (1, 2),
          (0, 0)], (1, 1e6), 7),
    ]  # fmt: skip
    X = np.vstack([np.array(rows) * scale for rows, scale, _ in users])
    y = np.concatenate([np.arange(len(rows)) < n_pos for rows, _, n_pos in users])
    groups = np.repeat([0, 1, 2], [len(rows) for rows, _, _ in users])
    found = margins.find_scorer(X, y, 2, "beta", groups, largest_margin=False)
    assert found.answer == "no" and found.verify(X, y, groups)


def test_columns_far_apart_leave_an_exact_proof():
    rows = [(1, 1), (-1, -1), (-2, 0), (-1, 2), (-2, 2), (1, -1), (0, 2)]
    X, y = np.array(rows) * (1e-5, 1e6), [1, 1, 1, 1, 0, 0, 0]
    found = margins.find_scorer(X, y, 3, "beta", largest_margin=False)
    assert found.answer == "no" and found.verify(X, y)
    rows = [
        (3, -1, 4, -5), (-2, -3, 5, -2), (1, -3, 2, 1), (2, 0, 1, 0),
        (-2, -1, 1, -1), (-1, -3, -1, 3), (-3, -3, 3, -2), (3, 1, 1, -2),
    ]  # fmt: skip
    found = margins.find_scorer(np.array(rows) * (1e-3, 1e-5, 10, 0.1), np.arange(8) < 2, 3, "beta")
    assert found.answer == "yes" and found.margin_bound <= found.margin * (1 + 1e-6)


def test_a_vertex_without_an_exact_proof_gets_a_second_chance():
    rows = [
        (-3, -1, -6, -4), (-4, -3, -4, -1), (-1, 2, -2, -1), (-3, 3, -2, -1), (-3, 3, 0, -1),
        (2, 3, 1, -1), (-2, -1, 0, -2), (-2, -1, -2, 1), (-3, 1, 2, -1), (3, 0, 0, -3),
        (1, 3, -2, 2), (0, 3, 1, 0), (0, -2, -1, -2), (-2, -3, -1, 0), (-2, 1, 0, -4),
        (0, 3, 0, 0), (-2, 3, -4, 0), (-4, 2, -5, -1), (-1, -2, -2, -3), (-1, -3, 1, 0),
        (-3, -2, 3, 1), (1, 1, -2, -2), (1, -2, -1, 3), (0, -1, -1, 2), (2, -2, -1, 0),
    ]  # fmt: skip
    X, groups = np.array(rows) * 1e-9, np.repeat([0, 1], [13, 12])
    y = np.repeat([1, 0, 1, 0], [4, 9, 5, 7])
    found = margins.find_scorer(X, y, 3, "strong", groups, largest_margin=False)
    assert found.answer == "no" and found.verify(X, y, groups)


def test_nothing_is_printed_by_the_solver_of_integer_programmes(capfd):
    """Which is no Python: what it writes to the process's own output counts."""
    rng = np.random.default_rng(8)
    for rows in (7, 9):
        groups = np.repeat([0, 1], rows)
        for _ in range(6):
            labels = np.tile(np.arange(rows) < 4, 2)
            X = rng.normal(size=(2 * rows, 2)).round(1) + labels[:, None]
            margins.find_scorer(X, labels, 2, "weak", groups)
    assert capfd.readouterr() == ("", "")
