"""The order of the content: what permutes, rescales or stores the same lists otherwise."""

import numpy as np
import pytest
from scipy import sparse

from structsvm_papk.data import RankingData
from structsvm_papk.data.content import digests_of, digests_of_lists, fingerprint_of
from structsvm_papk.oracles.empirical_risk import EmpiricalRisk
from structsvm_papk.surrogates.losses import Avg, ClippedRamp, Max

RNG = np.random.default_rng(0)
N_LISTS = 30
X = np.round(RNG.normal(size=(300, 5)), 2)
X[RNG.random(X.shape) < 0.4] = 0.0
Y = RNG.random(300) < 0.3
GROUPS = np.repeat(np.arange(N_LISTS), 10)
SHUFFLED = RNG.permutation(300)
STORED = sparse.csr_matrix((X.ravel(), np.tile(range(5), 300), np.arange(301) * 5))

FORMS = {
    "rows": (X[SHUFFLED], Y[SHUFFLED], GROUPS[SHUFFLED]),
    "lists": (X, Y, (7 * GROUPS) % N_LISTS),
    "columns": (X[:, ::-1], Y, GROUPS),
    "units": (X * [3, 0.1, 1, 7, 1e9] + [0, 0, 2.5, -3, 0], Y, GROUPS),
    "storage": (sparse.csr_matrix(X), Y, GROUPS),
    "stored zeros": (STORED, Y, GROUPS),
    "single precision": (X.astype(np.float32), Y, GROUPS),
}  # fmt: skip


def data_of(form, **options):
    return RankingData.from_groups(*form, **options)


@pytest.mark.parametrize("form", FORMS)
def test_digests_do_not_depend_on_the_form(form):
    first = digests_of(data_of((X, Y, GROUPS)))
    other = digests_of(data_of(FORMS[form]))
    for one, two in zip(first, other, strict=True):
        np.testing.assert_array_equal(np.sort(one), np.sort(two))
    assert len(set(first.lists)) == N_LISTS
    assert len(set(first.columns)) == 5
    assert len(set(first.rows)) >= 295


@pytest.mark.parametrize("change", ["value", "label", "list", "weight"])
def test_digests_depend_on_the_content(change):
    values, labels, groups = X.copy(), Y.copy(), GROUPS.copy()
    weights = np.ones(N_LISTS)
    if change == "value":
        values[3, 2] = 11.0
    elif change == "label":
        labels[3] = not labels[3]
    elif change == "list":
        groups[[3, 13]] = groups[[13, 3]]
    else:
        weights[4] = 2.0
    lists = [
        data_of((X, Y, GROUPS), user_weight=np.ones(N_LISTS)),
        data_of((values, labels, groups), user_weight=weights),
    ]
    one, two = map(digests_of, lists)
    assert set(one.lists) != set(two.lists)
    one, two = map(digests_of_lists, lists)
    assert (set(one) != set(two)) == (change != "weight")


@pytest.mark.parametrize("form", ["rows", "lists", "storage", "stored zeros", "single precision"])
def test_digests_of_many_lists(form):
    values = X.astype(np.float32).astype(float)
    first = digests_of_lists(data_of((values, Y, GROUPS)))
    rows, labels, groups = FORMS[form]
    other = digests_of_lists(data_of((rows.astype(np.float32), labels, groups)))
    np.testing.assert_array_equal(np.sort(first), np.sort(other))
    assert len(set(first)) == N_LISTS


def test_some_lists_are_chosen_by_content():
    data = data_of((X, Y, GROUPS))
    some = data.some_of(4)
    assert 3 <= some.n_users <= 13
    assert set(data_of(FORMS["lists"]).some_of(4).users) == set((7 * some.users) % N_LISTS)
    first = data.subset(np.arange(N_LISTS) < 12)
    assert set(first.one_of(4).users) == set(some.users[some.users < 12])
    assert data.some_of(10**6).n_users > 0


# --- fingerprints ---------------------------------------------------------------------------------


pytestmark = pytest.mark.portable


def make(change=None, order="C", dtype=np.float64):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    y = np.tile([1, 0, 0, 0, 0], 12)
    if change == "X":
        X[59, 2] = np.nextafter(X[59, 2], 1)
    if change == "y":
        y[:2] = 0, 1
    groups = np.repeat(np.arange(6), 5 if change == "groups" else 10)
    groups = np.append(groups, np.full(60 - groups.size, 6))
    return RankingData.from_groups(np.asarray(X, dtype, order), y, groups)


def test_the_same_data_has_the_same_fingerprint_whatever_its_memory_order():
    assert make().fingerprint() == make(order="F").fingerprint()
    X = np.random.default_rng(1).normal(size=(40, 2))
    y = np.arange(40) < 10
    one_list = EmpiricalRisk(Max(3), RankingData.from_groups(X, y))
    for risk in (EmpiricalRisk(Avg(2), make()), one_list):
        assert risk.with_blocks(3).fingerprint() == risk.fingerprint()


def test_every_change_changes_the_fingerprint():
    data = make()
    risks = [Avg(2), Avg(3), Max(2)]
    others = [*map(make, ("X", "y", "groups")), make(dtype=np.float32)]
    others += [data.subset(np.arange(6) < 5), data.weighted(np.arange(1.0, data.n_users + 1))]
    fingerprints = {EmpiricalRisk(surrogate, data).fingerprint() for surrogate in risks}
    fingerprints |= {EmpiricalRisk(Avg(2), other).fingerprint() for other in others}
    ramp = EmpiricalRisk(ClippedRamp(2), data)
    fingerprints |= {ramp.majorant(w).fingerprint() for w in np.eye(3)}
    assert len(fingerprints) == len(risks) + len(others) + 3


def test_pieces_do_not_show_and_parts_do_not_run_together():
    matrix = sparse.random_array((50, 7), density=0.3, rng=1, format="csr")
    array = np.arange(60.0).reshape(20, 3)
    assert fingerprint_of(array, matrix, chunk_bytes=50) == fingerprint_of(array, matrix)
    assert fingerprint_of("ab", "c") != fingerprint_of("a", "bc")
    assert fingerprint_of(np.arange(4)) != fingerprint_of(np.arange(4).reshape(2, 2))
    assert fingerprint_of(np.empty((0, 3))) != fingerprint_of(np.empty((3, 0)))
