import numpy as np
import pytest
from scipy.integrate import quad

from helpers.commands import invoke
from structsvm_papk.metrics import ndcg_limit
from structsvm_papk.propositions.ndcg import CLAIMS, Lists, Scorer
from structsvm_papk.propositions.running import expanded


@pytest.mark.parametrize("scorer", [Scorer(0.1, 0.7, 2.0), Scorer(0.8, 0.2, 0.5)])
def test_rate_and_slowness_are_their_integrals(scorer):
    p = quad(scorer.relevance, 0, 1)[0]
    assert scorer.rate == pytest.approx(p, abs=1e-9)
    a = -quad(lambda x: scorer.relevance(1 - x) * np.log(x), 0, 1)[0] / p
    assert scorer.slowness == pytest.approx(1 - np.log(p) - a, abs=1e-7)
    scaled = [
        (1 - ndcg_limit("log", None, scorer.relevance, n)) * np.log(n) for n in (10**3, 10**6)
    ]
    apart = np.abs(np.array(scaled) - scorer.slowness)
    assert apart[1] < 0.6 * apart[0] < 0.6


def test_means_of_lists_lie_within_their_noise():
    lists = Lists(Scorer(0.2, 0.6, 1.0), np.random.default_rng(0), 3000)
    for discount, k in (("log", None), ("r^-0.5", None), ("log", 300), ("r^-0.5", 900)):
        share = None if k is None else k / 3000
        expected = ndcg_limit(discount, share, lists.scorer.relevance, 3000)
        means = [lists.ndcg(discount, k).mean() for _ in range(20)]
        off = np.abs(np.array(means) - expected) / lists.noise(discount, k)
        assert off.max() < 1 and off.max() > 0.05


def test_a_group_of_checks_is_named_by_its_beginning():
    assert expanded(["ndcg"]) == [claim.id for claim in CLAIMS]
    assert expanded(["ndcg-no-limit", "ndcg-log"]) == ["ndcg-no-limit", "ndcg-log"]
    shown = invoke("verify", "--check", "ndcg-no-limit", "--effort", "quick", "--jobs", 1)
    assert shown.exit_code == 0 and "scorer: high = 1" in " ".join(shown.output.split())
