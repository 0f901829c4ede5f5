import json
from itertools import combinations

import numpy as np
import pytest

from helpers.commands import invoke
from helpers.reference_theory import top_risk
from structsvm_papk.bounds.planning import sampled_target
from structsvm_papk.errors import InputError


@pytest.mark.parametrize(("n_neg", "n_sampled", "k"), [(6, 3, 2), (7, 2, 1), (8, 5, 3), (5, 5, 2)])
def test_the_mean_over_all_samples(n_neg, n_sampled, k):
    rng, found = np.random.default_rng(n_neg), sampled_target(n_neg, n_sampled, k)
    assert found.weights.sum() == pytest.approx(1) and (np.diff(found.weights) <= 1e-15).all()
    hard = found.effective_k
    for _ in range(20):
        p, q = rng.integers(0, 6, 4), np.sort(rng.integers(0, 6, n_neg))[::-1]
        samples = [
            top_risk(p, q[list(chosen)], k, k) for chosen in combinations(range(n_neg), n_sampled)
        ]
        top = np.sort(p)[::-1][:k]
        soft = (top[:, None] <= q).mean(axis=0) @ found.weights
        assert np.mean(samples) == pytest.approx(soft, abs=1e-12)
        at_hard = (top[:, None] <= q[:hard]).mean()
        assert abs(soft - at_hard) <= found.off + 1e-12
    if n_sampled == n_neg:
        assert found.off == pytest.approx(0) and hard == k


@pytest.mark.parametrize(("n_neg", "n_sampled", "k"), [(10_000, 100, 10), (400, 100, 20)])
def test_the_farthest_list_and_the_closed_bound(n_neg, n_sampled, k):
    found = sampled_target(n_neg, n_sampled, k)
    assert found.effective_k == k * n_neg // n_sampled
    # of a list with all positives behind the first K negatives, before the others
    assert found.off == pytest.approx(1 - found.weights[: found.effective_k].sum(), abs=1e-9)
    assert 0.01 < found.off <= 0.5 * np.sqrt((1 - k / n_sampled) / k)


def test_the_command_and_what_is_refused():
    call = ["bound", "--n-neg", 10_000, "--sampled", 100, "--k", 10]
    answer = json.loads(invoke(*call, "--json").stdout)
    assert answer["effective_k"] == 1000
    assert answer["off"] == sampled_target(10_000, 100, 10).off
    assert "pAp@1000" in invoke(*call).output
    for n_neg, n_sampled, k in ((10, 20, 2), (10, 5, 6), (10, 0, 1), (10, 2.5, 1)):
        with pytest.raises(InputError):
            sampled_target(n_neg, n_sampled, k)
    assert "give --n-neg" in str(invoke("bound", "--sampled", 5).exception)
