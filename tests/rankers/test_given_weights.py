"""Weights of users from `sample_weight`: what is refused, and what models say of them."""

import numpy as np
import pytest

from helpers.commands import run
from structsvm_papk import PAPKRanker, RankingData
from structsvm_papk.errors import InputError
from structsvm_papk.files import load_model

RNG = np.random.default_rng(0)
GROUPS = np.repeat(np.arange(30), 20)
X = RNG.normal(size=(600, 3))
Y = X[:, 0] + RNG.normal(size=600) > 1
WEIGHTS = 1.0 + GROUPS % 3


@pytest.mark.parametrize("wrong", [1e-320, 1e-200, 0.0, -1.0, 1e200])
def test_weights_whose_shares_would_lose_digits_are_refused(wrong):
    weights = np.where(GROUPS == 4, wrong, 1.0)
    with pytest.raises(InputError, match="sample_weight of user 4 is"):
        PAPKRanker(k=2).fit(X, Y, GROUPS, sample_weight=weights)
    with pytest.raises(InputError, match="the weight of user 4 is"):
        RankingData.from_groups(X, Y, GROUPS).weighted(weights[::20])


@pytest.mark.parametrize("low_high", [(1e-100, 1e-100), (1e100, 1e100), (1e-100, 1e100)])
def test_the_largest_and_smallest_weights_that_are_taken_give_a_certificate(low_high):
    ranker = PAPKRanker(k=2, policy="cap")
    ranker.fit(X, Y, GROUPS, sample_weight=np.where(GROUPS % 2, *low_high))
    assert ranker.result_.status == "converged"
    assert ranker.result_.gap <= 1e-6


def test_a_model_says_that_its_weights_were_given(tmp_path, capsys):
    ranker = PAPKRanker(k=2, policy="cap").fit(X, Y, GROUPS, sample_weight=WEIGHTS)
    path = tmp_path / "given.model"
    ranker.save(path)
    assert load_model(path).user_weight == "given"
    assert ranker.export_weights()["user_weight"] == "given"
    (tmp_path / "rows.csv").write_text("user,label,a,b,c\n1,1,1,2,3\n1,0,0,1,2\n")
    assert run("bound", "new-users", path, tmp_path / "rows.csv") == 2
    assert "weights of users that the file does not hold" in capsys.readouterr().err
    ranker.fit(X, Y, GROUPS)
    assert ranker.to_model().user_weight == "equal"
