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
    assert (plain.lower, plain.upper) == pytest.approx(tuple(ends), abs=0.3 * error)
    assert str(plain).endswith("(95% bootstrap, 80 users)")
    for method in ("kl", "hoeffding", "bernstein"):
        found = metrics.interval(table, "auc", method=method)
        assert found.guaranteed and found.lower < plain.lower < plain.upper < found.upper
        risk = metrics.interval(tables(gain=False)[0], "auc", method=method)
        np.testing.assert_allclose([1 - risk.upper, 1 - risk.lower], [found.lower, found.upper])
    weighted, _ = tables(mean="positives")
    found = metrics.interval(weighted, "auc")
    assert found.value == pytest.approx(weighted.mean("auc")) and found.lower < found.value
    assert found.value < found.upper
    with pytest.raises(InputError, match="needs mean='user'"):
        metrics.interval(weighted, "auc", method="kl")


def test_bootstrap_covers_about_its_level():
    inside = 0
    for seed in range(60):
        scores, labels = np.random.default_rng(seed).normal(size=360), np.tile([1] + [0] * 5, 60)
        table = metrics.evaluate(["auc"], scores, labels, np.repeat(np.arange(60), 6))
        found = metrics.interval(table, "auc", n_resamples=400, level=0.9)
        inside += found.lower <= 0.5 <= found.upper
    assert 46 <= inside <= 60


def test_paired_comparison_finds_the_better_scorer_and_no_difference_of_equals():
    better, worse = tables()
    for found in metrics.compare(better, worse, n_resamples=999, level=0.9):
        assert found.first - found.second == pytest.approx(found.difference)
        assert 0 < found.lower < found.difference < found.upper
        assert found.p_value == pytest.approx(2 / 1000)
        assert found.p_adjusted >= found.p_value
        cells = found.cells()
        assert cells["difference"] == f"{found.difference:.4f}" and "90% interval" in cells
        assert all(f"<td>{cell}</td>" in found._repr_html_() for cell in cells.values())
    same = metrics.compare(better, better, ["auc"], n_resamples=99)[0]
    assert (same.difference, same.p_value) == (0.0, 1.0)


def test_permutation_p_values_are_uniform_without_a_difference():
    rng = np.random.default_rng(0)
    p_values = np.array([sign_flip_p_value(rng.normal(size=25), 199, s) for s in range(200)])
    assert np.mean(p_values <= 0.1) < 0.16
    assert np.mean(p_values) == pytest.approx(0.5, abs=0.08)


@pytest.mark.parametrize("n", [3, 9, 12])
def test_exact_permutation_test_is_scipys(n):
    differences = np.random.default_rng(n).normal(0.4, 1.0, n)
    found = sign_flip_p_value(differences, 9999, 0)
    expected = stats.permutation_test(
        (differences,), lambda x, axis=-1: x.sum(axis=axis), permutation_type="samples",
        vectorized=True, n_resamples=np.inf,
    )  # fmt: skip
    assert found == pytest.approx(expected.pvalue, abs=1e-12)


def test_random_permutation_test_agrees_with_the_normal_limit():
    differences = np.random.default_rng(0).normal(0.02, 1.0, 5000)
    found = sign_flip_p_value(differences, 4000, 1)
    z = differences.sum() / np.sqrt((differences**2).sum())
    assert found == pytest.approx(2 * stats.norm.sf(abs(z)), abs=0.03)
    assert sign_flip_p_value(np.zeros(4), 99, 0) == 1.0


def test_corrections():
    p = np.array([0.01, 0.04, 0.03, 0.5])
    np.testing.assert_array_equal(significance.adjust(p, "none"), p)
    np.testing.assert_allclose(significance.adjust(p, "bh"), [0.04, 0.16 / 3, 0.16 / 3, 0.5])
    pytest.importorskip("statsmodels")
    np.testing.assert_allclose(significance.adjust(p, "bonferroni"), np.minimum(4 * p, 1))
    np.testing.assert_allclose(significance.adjust(p, "holm"), [0.04, 0.09, 0.09, 0.5])
    with pytest.raises(InputError, match="not known"):
        significance.adjust(p, "tukey!")


NAMES = [
    "pap@2", "pauc@2", "auc", "auc@3", "precision@2", "recall@2", "hit@1", "ap", "ndcg@3", "rr",
]  # fmt: skip


def tied_lists(seed, n_users=40):
    """Two scorers full of ties; users of 1 to 7 rows, some without positives or negatives."""
    rng = np.random.default_rng(seed)
    groups = np.repeat(np.arange(n_users), rng.integers(1, 8, n_users))
    scores = rng.integers(0, 4, (2, groups.size)).astype(float)
    return scores, rng.integers(0, 2, groups.size), groups


@pytest.mark.parametrize(
    ("mean", "how"),
    [
        ("user", {}),
        ("positives", {"gain": False}),
        ("pairs", {"ties": "half", "no_positives": "zero"}),
        ("positives", {"ties": "win", "few_negatives": "normalise", "ideal": "all_places"}),
        ("user", {"ties": "threshold", "few_negatives": "as_wins", "no_positives": "one"}),
        ("pairs", {"list_length": 2, "insufficient_handling": "exclude"}),
    ],
)
def test_which_scorer_comes_first_does_not_matter(mean, how):
    (one, two), labels, groups = tied_lists(1)
    names = [name for name in NAMES if name != "auc" or "list_length" not in how]
    tables = [metrics.evaluate(names, s, labels, groups, mean=mean, **how) for s in (one, two)]
    ahead = metrics.compare(*tables, n_resamples=199)
    behind = metrics.compare(*tables[::-1], n_resamples=199)
    for first, second, name in zip(ahead, behind, names, strict=True):
        mirrored = [-second.difference, second.second, -second.upper, -second.lower]
        found = [first.difference, first.first, first.lower, first.upper]
        np.testing.assert_allclose(found, mirrored, atol=1e-15, err_msg=name)
        assert (first.p_value, first.p_adjusted, first.note) == (
            second.p_value, second.p_adjusted, second.note
        )  # fmt: skip
        both = tables[0].used(name) & tables[1].used(name)
        means = [table.mean_over(name, both) for table in tables]
        np.testing.assert_allclose([first.first, first.second], means, atol=1e-15)


def recommended(seed, shortest, longest):
    rng = np.random.default_rng(seed)
    lists = [rng.permutation(20)[: rng.integers(shortest, longest)] for _ in range(30)]
    users, ranks = zip(
        *[(u, r + 1) for u, items in enumerate(lists) for r in range(items.size)], strict=True
    )
    frame = {"user_id": users, "item_id": np.concatenate(lists), "rank": ranks}
    return {name: np.asarray(column) for name, column in frame.items()}


def test_tables_that_weigh_users_differently_are_not_compared():
    """Longer lists show more negatives, so that pairs weigh their users otherwise."""
    liked = {name: recommended(0, 1, 6)[name] for name in ("user_id", "item_id")}
    one, two = (
        metrics.evaluate_recommendations(recommended(*how), liked, ["pap@3"], mean="pairs")
        for how in ((1, 3, 6), (2, 3, 8))
    )
    u = np.flatnonzero(one.weights() != two.weights())[0]
    words = rf"user {u} weighs {one.weights()[u]:g} .* {two.weights()[u]:g} .*mean='pairs'"
    with pytest.raises(InputError, match=words):
        metrics.compare(one, two)
    kept = one.weights() == two.weights()
    both = metrics.compare(one.take(kept), two.take(kept))[0]
    assert both.difference == pytest.approx(
        one.mean_over("pap@3", kept) - two.mean_over("pap@3", kept)
    )


def rare_hits(seed, n_users=20, rate=0.05):
    """hit@1 of users whose value is 1 with this probability."""
    hit = np.random.default_rng(seed).random(n_users) < rate
    scores = np.where(hit[:, None], [2.0, 1.0], [1.0, 2.0]).ravel()
    return metrics.evaluate("hit@1", scores, np.tile([1, 0], n_users), np.repeat(range(n_users), 2))


def test_an_interval_that_rests_on_few_users_says_so_and_the_exact_one_covers():
    covered = dict.fromkeys(("bootstrap", "exact", "kl"), 0)
    for seed in range(200):
        table = rare_hits(seed)
        for method in covered:
            found = metrics.interval(table, "hit@1", method=method, n_resamples=200)
            covered[method] += found.lower <= 0.05 <= found.upper
            assert ("'exact' is guaranteed" in found.note) == (method == "bootstrap")
            assert found.note in str(found)
    assert covered["bootstrap"] < 140 and min(covered["exact"], covered["kl"]) >= 190
    test = stats.binomtest(int(table["hit@1"].sum()), 20).proportion_ci(0.95, method="exact")
    found = metrics.interval(table, "hit@1", method="exact")
    assert (found.lower, found.upper) == pytest.approx(tuple(test), abs=1e-15)


def test_which_intervals_carry_a_note():
    plenty, table = rare_hits(0, 200, 0.5), tables()[0]
    assert metrics.interval(plenty, "hit@1").note == metrics.interval(table, "auc").note == ""
    one, few = rare_hits(0, 20), rare_hits(1, 20)
    apart = int((one["hit@1"] != few["hit@1"]).sum())
    assert metrics.compare(one, few)[0].note == f"rests on {apart} user" + "s" * (apart > 1)
    same = metrics.interval(replace(table, values=np.full_like(table.values, 0.5)), "ap")
    assert same.lower == same.upper and same.note == "rests on 0 users; 'kl' is guaranteed"


def test_what_cannot_be_compared_or_has_no_interval():
    better, worse = tables()
    nobody, nan = (
        metrics.evaluate("rr", [1.0, 2, 3], labels, [0, 1, 1], mean=mean, no_positives=rule)
        for labels, mean, rule in (([0, 1, 1], "pairs", "zero"), ([0, 1, 1], "user", "nan"))
    )
    assert np.isnan(nobody.mean("rr"))
    text = replace(worse, users=np.sort(worse.users.astype(str)))
    near = replace(worse, users=worse.users + 2.0**53)
    for first, second, words in (
        (better, worse.take(worse.users > 1), r"2 users are only in the first table \(0, 1\)"),
        (better.take(better.users > 1), worse, r"2 users are only in the second table \(0, 1\)"),
        (*tables(mean="pooled"), "pooled mean is not made of users' values"),
        (better, tables(gain=False)[1], "one table holds gains and the other risks"),
        (better, tables(mean="pairs")[1], "different means, 'user' and 'pairs'"),
        (better, text, "numbers in one table and text in the other"),
        (better, replace(worse, users=worse.users[::-1]), "different order"),
        (replace(better, users=better.users + 2**53), near, "users are only in the first table"),
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


@pytest.mark.parametrize("n_users", [1, 9, 10])
def test_few_users_have_no_bootstrap_interval(n_users):
    better, worse, labels, groups = two_scorers(n_users=n_users)
    one, two = (metrics.evaluate(["auc"], s, labels, groups) for s in (better, worse))
    found = metrics.compare(one, two, n_resamples=199)[0]
    assert 0 < found.p_value <= 1
    calls = (
        lambda: metrics.interval(one, "auc"),
        lambda: bounds.many_users(1 - one["auc"], method="bootstrap"),
    )
    if n_users >= 10:
        assert found.lower < found.difference < found.upper
        assert significance.no_interval(one, "auc") is None
        for call in calls:
            assert call().lower < call().upper
        return
    assert np.isnan([found.lower, found.upper]).all()
    assert "at least 10 users" in significance.no_interval(one, "auc")
    for call in calls:
        with pytest.raises(InputError, match=f"at least 10 users, here there are {n_users}"):
            call()


@pytest.mark.parametrize("n_counted", [9, 10])
def test_users_of_weight_zero_are_not_resampled(n_counted):
    """Only some users have negatives: a resample of all users may hold none of these."""
    rng = np.random.default_rng(0)
    groups, labels = np.repeat(np.arange(14), 5), np.ones(70, dtype=int)
    labels[: 5 * n_counted : 5] = 0
    one, two = (
        metrics.evaluate("ap", rng.normal(size=70), labels, groups, mean="pairs") for _ in range(2)
    )
    (compared,) = metrics.compare(one, two, n_resamples=199)
    assert compared.n_users == 14
    counted = np.arange(14) < n_counted
    assert compared.difference == pytest.approx((one["ap"] - two["ap"])[counted].mean())
    if n_counted >= 10:
        assert compared.lower < compared.difference < compared.upper
        found = metrics.interval(one.take(counted), "ap")
        assert metrics.interval(one, "ap").lower == found.lower < found.upper
        return
    assert np.isnan([compared.lower, compared.upper]).all()
    with pytest.raises(InputError, match=f"at least 10 users, here there are {n_counted}"):
        metrics.interval(one, "ap")


def test_segments_by_user_and_by_item_column():
    better, _, labels, groups = two_scorers(n_users=20)
    rng = np.random.default_rng(1)
    order = rng.permutation(groups.size)
    better, labels, groups = better[order], labels[order], groups[order]
    genre, names = rng.choice(["a", "b", "c"], groups.size), ["auc", "pap@3"]
    segments = {"tier": np.where(np.arange(20) < 5, "new", "old"), "genre": genre}
    segments["of rows"] = segments["tier"][groups]
    table = metrics.evaluate(names, better, labels, groups, segments=segments)
    parts = {(s.column, s.value): s for s in table.segments}
    users = [(column, tier) for column in ("tier", "of rows") for tier in ("new", "old")]
    assert [*parts] == users[:2] + [("genre", value) for value in "abc"] + users[2:]
    for place, segment in parts.items():
        assert segment.kind == ("user" if place in users else "item")
        kept = genre == segment.value
        if place in users:
            kept = segments["of rows"] == segment.value
            mine = (np.arange(20) < 5) == (segment.value == "new")
            np.testing.assert_array_equal(segment.table.values, table.values[mine])
        again = metrics.evaluate(names, better[kept], labels[kept], groups[kept])
        np.testing.assert_array_equal(segment.table.values, again.values)
        assert (segment.n_rows, segment.n_pos) == (kept.sum(), labels[kept].sum())
    assert metrics.interval(parts["tier", "old"].table, "auc").n_users == 15
    rows = ["ap"], [3.0, 2, 1, 0], [1, 0, 0, 1], [0, 0, 1, 1]
    for column, how, words in (
        ([1, 2, 3], {}, r"'x' has shape \(3,\)"),
        ([1, 2, 1, 2], {"list_length": 1}, "truncated"),
    ):
        with pytest.raises(InputError, match=words):
            metrics.evaluate(*rows, segments={"x": column}, **how)
