from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from structsvm_papk import bounds, metrics
from structsvm_papk.errors import InputError
from structsvm_papk.metrics import significance
from structsvm_papk.metrics.significance import sign_flip_p_value


def two_scorers(n_users=80, n=30, seed=0, shift=0.8):
    rng = np.random.default_rng(seed)
    groups = np.repeat(np.arange(n_users), n)
    labels = (rng.random(groups.size) < 0.25).astype(int)
    labels[::n], labels[1::n] = 1, 0
    better = rng.normal(size=groups.size) + shift * labels
    worse = rng.normal(size=groups.size) + 0.2 * labels
    return better, worse, labels, groups


def tables(**how):
    better, worse, labels, groups = two_scorers()
    names = ["pap@3", "auc", "ap"]
    return (
        metrics.evaluate(names, better, labels, groups, **how),
        metrics.evaluate(names, worse, labels, groups, **how),
    )


def test_intervals_of_every_method():
    """Percentiles near the normal limit; guaranteed ones wider, turned with the sign; weights."""
    table, _ = tables()
    plain = metrics.interval(table, "auc")
    error = table["auc"].std(ddof=1) / np.sqrt(table.users.size)
    assert plain.value == table.mean("auc") and not plain.guaranteed
    ends = plain.value + 1.96 * error * np.array([-1, 1])
    assert (plain.lower, plain.upper) == pytest.approx(tuple(ends), abs=0.15 * error)
    assert str(plain).endswith("(95% bootstrap, 80 users)")
    for method in ("kl", "hoeffding", "bernstein"):
        found = metrics.interval(table, "auc", method=method)
        assert found.guaranteed and found.lower < plain.lower < plain.upper < found.upper
        risk = bounds.many_users(1 - table["auc"], 0.05, method)
        np.testing.assert_allclose([1 - risk.upper, 1 - risk.lower], [found.lower, found.upper])
    weighted, _ = tables(mean="positives")
    found = metrics.interval(weighted, "auc")
    assert found.value == pytest.approx(weighted.mean("auc")) and found.lower < found.value
    assert found.value < found.upper
    with pytest.raises(InputError, match="needs mean='user'"):
        metrics.interval(weighted, "auc", method="kl")


def test_paired_comparison_finds_the_better_scorer_and_no_difference_of_equals():
    better, worse = tables()
    for found in metrics.compare(better, worse, n_resamples=999, level=0.9):
        assert found.first - found.second == pytest.approx(found.difference)
        assert 0 < found.lower < found.difference < found.upper
        assert found.p_value == pytest.approx(2 / 1000)
        assert found.p_adjusted >= found.p_value
    same = metrics.compare(better, better, ["auc"], n_resamples=99)[0]
    assert (same.difference, same.p_value) == (0.0, 1.0)


def test_interval_and_test_give_one_verdict():
    """Of few users resampling alone sees a difference more often than the test does."""
    extended = 0
    for seed in range(60):
        better, worse, labels, groups = two_scorers(n_users=14, seed=seed, shift=0.5)
        pair = (metrics.evaluate("auc", scores, labels, groups) for scores in (better, worse))
        (found,) = metrics.compare(*pair, n_resamples=499)
        assert (found.p_value > 0.05) <= (found.lower <= 0.0 <= found.upper)
        extended += found.lower == 0.0 or found.upper == 0.0
    assert extended


@pytest.mark.parametrize("n", [3, 9, 12])
def test_exact_permutation_test_is_scipys(n):
    differences = np.random.default_rng(n).normal(0.4, 1.0, n)
    found = sign_flip_p_value(differences, 9999, 0)
    expected = stats.permutation_test(
        (differences,), lambda x, axis=-1: x.sum(axis=axis), permutation_type="samples",
        vectorized=True, n_resamples=np.inf,
    )  # fmt: skip
    assert found == pytest.approx(expected.pvalue, abs=1e-12)
    assert found == sign_flip_p_value(-differences, 9999, 0)


def test_random_permutation_test_agrees_with_the_normal_limit():
    differences = np.random.default_rng(0).normal(0.02, 1.0, 5000)
    found = sign_flip_p_value(differences, 4000, 1)
    z = differences.sum() / np.sqrt((differences**2).sum())
    assert found == pytest.approx(2 * stats.norm.sf(abs(z)), abs=0.03)
    assert sign_flip_p_value(np.zeros(4), 99, 0) == 1.0


def test_correction():
    few = np.arange(80) < 8  # of whom differences may be chance
    pairs = metrics.compare(*(table.take(few) for table in tables()), n_resamples=199)
    p = np.array([pair.p_value for pair in pairs])
    order = np.argsort(p)
    of_rank = p[order] * p.size / np.arange(1, p.size + 1)
    expected = np.minimum.accumulate(of_rank[::-1])[::-1]
    assert p.size > 1 and (expected > p[order]).any()
    np.testing.assert_allclose([pairs[i].p_adjusted for i in order], expected)


def test_tables_that_weigh_users_differently_are_not_compared():
    _, worse, labels, groups = two_scorers()
    labels[2:30:4] = 1 - labels[2:30:4]  # user 0 has other pairs
    one = tables(mean="pairs")[0]
    two = metrics.evaluate(one.metrics, worse, labels, groups, mean="pairs")
    weights = one.weights()[0], two.weights()[0]
    with pytest.raises(
        InputError, match=r"user 0 weighs {:g} .* {:g} .*mean='pairs'".format(*weights)
    ):
        metrics.compare(one, two)
    rest = np.arange(80) > 0
    both = metrics.compare(one.take(rest), two.take(rest))[0]
    expected = one.take(rest).mean("pap@3") - two.take(rest).mean("pap@3")
    assert both.difference == pytest.approx(expected)


def rare_hits(seed, n_users=20, rate=0.05):
    """hit@1 of users whose value is 1 with this probability."""
    hit = np.random.default_rng(seed).random(n_users) < rate
    scores = np.where(hit[:, None], [2.0, 1.0], [1.0, 2.0]).ravel()
    return metrics.evaluate("hit@1", scores, np.tile([1, 0], n_users), np.repeat(range(n_users), 2))


def test_an_interval_that_rests_on_few_users_says_so_and_the_exact_one_is_scipys():
    table = rare_hits(0)
    for method in ("bootstrap", "exact", "kl"):
        found = metrics.interval(table, "hit@1", method=method, n_resamples=200)
        assert ("'exact' is guaranteed" in found.note) == (method == "bootstrap")
        assert found.note in str(found)
    test = stats.binomtest(int(table["hit@1"].sum()), 20).proportion_ci(0.95, method="exact")
    found = metrics.interval(table, "hit@1", method="exact")
    assert (found.lower, found.upper) == pytest.approx(tuple(test), abs=1e-15)
    plenty, table = rare_hits(0, 200, 0.5), tables()[0]
    assert metrics.interval(plenty, "hit@1").note == metrics.interval(table, "auc").note == ""
    one, few = rare_hits(0, 20), rare_hits(1, 20)
    apart = int((one["hit@1"] != few["hit@1"]).sum())
    assert metrics.compare(one, few)[0].note == f"rests on {apart} list" + "s" * (apart > 1)
    same = metrics.interval(replace(table, values=np.full_like(table.values, 0.5)), "ap")
    assert same.lower == same.upper and same.note == "rests on 0 lists; 'kl' is guaranteed"


def test_what_cannot_be_compared_or_has_no_interval():
    better, worse = tables()
    nobody, nan = (
        metrics.evaluate("rr", [1.0, 2, 3], labels, [0, 1, 1], mean=mean, no_positives=rule)
        for labels, mean, rule in (([0, 1, 1], "pairs", "zero"), ([0, 1, 1], "user", "nan"))
    )
    assert np.isnan(nobody.mean("rr"))
    text = replace(worse, users=np.sort(worse.users.astype(str)))
    for first, second, words in (
        (better, worse.take(worse.users > 1), r"2 users are only in the first table \(0, 1\)"),
        (better.take(better.users > 1), worse, r"2 users are only in the second table \(0, 1\)"),
        (*tables(mean="pooled"), "pooled mean is not made of users' values"),
        (better, tables(mean="pairs")[1], "different rules, mean='user' and 'pairs'"),
        (better, tables(ties="win")[1], "different rules, ties='loss' and 'win'"),
        (better, text, "numbers in one table and text in the other"),
        (better, replace(worse, users=worse.users[::-1]), "different order"),
        (nan, nan, "NaN for some users by the rule"),
        (nobody, nobody, "mean='pairs' each of the 2 users .* weight 0"),
    ):
        with pytest.raises(InputError, match=words):
            metrics.compare(first, second)
    for table, method, words in (
        (nan, "kl", "NaN for some users by the rule"),
        (nobody, "bootstrap", "mean='pairs' each of the 2 users .* weight 0"),
        (nobody, "kl", "mean='pairs' each of the 2 users .* weight 0"),
        (tables(mean="pooled")[0], "bootstrap", "a pooled mean has no user values"),
        (better, "exact", "for values 0 and 1, and pap@3 has others"),
        (better, "student", "method='student' is not known"),
    ):
        with pytest.raises(InputError, match=words):
            metrics.interval(table, table.metrics[0], method=method)
    with pytest.raises(InputError, match="for values 0 and 1 only"):
        bounds.many_users([0.5, 1.0], method="exact")
    for call in (metrics.interval, metrics.compare):
        with pytest.raises(InputError, match="level must be a number above 0 and below 1"):
            call(better, "auc" if call is metrics.interval else worse, level=95)
        with pytest.raises(TypeError, match="must be a MetricTable"):
            call({}, "auc")


@pytest.mark.parametrize("n_counted", [1, 9, 10])
def test_few_users_are_not_resampled_and_those_of_weight_zero_do_not_count(n_counted):
    """Only some users have negatives: a resample of all users may hold none of these."""
    rng = np.random.default_rng(0)
    groups, labels = np.repeat(np.arange(14), 5), np.ones(70, dtype=int)
    labels[: 5 * n_counted : 5] = 0
    one, two = (
        metrics.evaluate("ap", rng.normal(size=70), labels, groups, mean="pairs") for _ in range(2)
    )
    (compared,) = metrics.compare(one, two, n_resamples=199)
    assert compared.n_users == 14 and 0 < compared.p_value <= 1
    counted = np.arange(14) < n_counted
    means = [table["ap"][counted].mean() for table in (one, two)]
    assert [compared.first, compared.second] == pytest.approx(means)
    assert compared.difference == pytest.approx(means[0] - means[1])
    if n_counted >= 10:
        assert compared.lower < compared.difference < compared.upper
        found = metrics.interval(one.take(counted), "ap")
        assert metrics.interval(one, "ap").lower == found.lower < found.upper
        assert significance.no_interval(one, "ap") is None
        return
    assert np.isnan([compared.lower, compared.upper]).all()
    assert "at least 10 users" in significance.no_interval(one, "ap")
    for call in (
        lambda: metrics.interval(one, "ap"),
        lambda: bounds.many_users(one["ap"][counted], method="bootstrap"),
    ):
        with pytest.raises(InputError, match=f"at least 10 users, here there are {n_counted}"):
            call()
