"""PAPKReranker in RecTools' own two-stage model, and the factors of its recommenders."""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from structsvm_papk import PAPKRanker
from structsvm_papk.datasets.generators import interaction_pairs
from structsvm_papk.errors import InputError
from structsvm_papk.integrations.rectools import PAPKReranker

pytest.importorskip("rectools")
from implicit.nearest_neighbours import CosineRecommender
from rectools import Columns
from rectools.dataset import Dataset
from rectools.model_selection import RandomSplitter
from rectools.models import EASEModel, ImplicitItemKNNWrapperModel, PopularModel, PureSVDModel
from rectools.models.ranking import (
    CandidateGenerator,
    CandidateRankingModel,
    PerUserNegativeSampler,
)

pytestmark = [
    pytest.mark.portable,
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),  # of RecTools and implicit
    pytest.mark.filterwarnings("ignore::FutureWarning"),
]
K = 5


@pytest.fixture(scope="module")
def interactions():
    return interaction_pairs(150, 80, seed=3)


@pytest.fixture(scope="module")
def dataset(interactions):
    frame = pd.DataFrame(interactions[0], columns=Columns.UserItem)
    days = np.random.default_rng(0).permutation(len(frame)) % 40
    frame[Columns.Datetime] = pd.Timestamp("2026-01-01") + pd.to_timedelta(days, unit="D")
    return Dataset.construct(frame.assign(**{Columns.Weight: 1.0}))


def two_stage(ranker, n=30, keep_scores=True):
    recommenders = (
        EASEModel(100.0),
        ImplicitItemKNNWrapperModel(CosineRecommender(K=20)),
        PureSVDModel(8),
        PopularModel(),
    )
    return CandidateRankingModel(
        [CandidateGenerator(model, n, False, keep_scores) for model in recommenders],
        RandomSplitter(0.3, random_state=0),
        PAPKReranker(ranker),
        PerUserNegativeSampler(n_negatives=25, random_state=0),
    )


def recall(recommended, test):
    """Hits among the recommended pairs over the test pairs."""
    pairs = set(map(tuple, recommended[Columns.UserItem].to_numpy().tolist()))
    return sum(tuple(pair) in pairs for pair in test.tolist()) / len(test)


@pytest.mark.parametrize(
    "ranker",
    [
        PAPKRanker(k=K, depth=0.9, policy="cap"),
        make_pipeline(StandardScaler(), PAPKRanker(k=K, depth=0.9, policy="cap")),
    ],
    ids=["ranker", "pipeline"],
)
def test_end_to_end_beats_popularity(ranker, dataset, interactions):
    train, test = interactions
    model = two_stage(ranker).fit(dataset)
    users = np.unique(train[:, 0])
    reco = model.recommend(users, dataset, k=K, filter_viewed=True)
    popular = PopularModel().fit(dataset).recommend(users, dataset, k=K, filter_viewed=True)
    assert recall(reco, test) > 1.2 * recall(popular, test)
    assert (reco.groupby(Columns.User).size() == K).all()
    certificate = model.reranker.certificate_
    assert certificate["status"] == "converged"
    assert certificate["lower_bound"] <= certificate["objective"] < 1
    assert any(curve.deviation > 0 for curve in model.reranker.ranker_.curves_)


def test_users_are_the_groups_and_the_scores_those_of_the_ranker(dataset):
    ranker = PAPKRanker(k=K, depth=0.9, policy="cap", tol=1e-9, curves=None)
    model = two_stage(ranker)
    rows, reranker = model.get_train_with_targets_for_reranker(dataset), model.reranker
    how = reranker.prepare_fit_kwargs(rows)
    np.testing.assert_array_equal(how["groups"], rows[Columns.User])
    np.testing.assert_array_equal(how["y"], rows[Columns.Target])
    reranker.fit(rows)
    plain = clone(ranker).fit(**how)
    np.testing.assert_array_equal(reranker.ranker_.coef_, plain.coef_)
    scores = reranker.predict_scores(rows.drop(columns=Columns.Target))
    np.testing.assert_allclose(scores, how["X"] @ plain.coef_, atol=1e-9)


def test_items_that_a_model_did_not_put_forward_are_last_for_it():
    rows = pd.DataFrame({
        Columns.User: [1, 1, 1, 2, 2], Columns.Item: range(5), Columns.Target: [1, 0, 0, 1, 0],
        "a_1_score": [0.5, None, 0.2, None, None], "a_1_rank": [1, None, 2, None, None],
    })  # fmt: skip
    reranker = PAPKReranker(PAPKRanker(k=1, policy="cap"), standardize=False)
    X = reranker.prepare_fit_kwargs(rows)["X"]
    assert X["a_1_score"].tolist() == [0.5, 0.2, 0.2, 0, 0]
    assert X["a_1_rank"].tolist() == [1, 2, 2, 0, 0]
    assert X["a_1_score is there"].tolist() == X["a_1_rank is there"].tolist() == [1, 0, 1, 0, 0]
    reranker.standardize = True
    X = reranker.prepare_fit_kwargs(rows)["X"].to_numpy()
    np.testing.assert_allclose(X[:3, :2], [[1, -1], [-1, 1], [-1, 1]], atol=1e-12)
    assert not X[3:].any()
    later = rows.iloc[[0, 2]].drop(columns=Columns.Target)  # without holes
    assert list(reranker._features(later.drop(columns=Columns.UserItem), later[Columns.User])) == [
        "a_1_score", "a_1_rank", "a_1_score is there", "a_1_rank is there"
    ]  # fmt: skip
    with pytest.raises(InputError, match="'price' is missing for an item of user 2"):
        reranker.prepare_fit_kwargs(rows.assign(price=[1, 2, 3, 4, None]))


def test_fewer_candidates_than_k(dataset):
    """Where some users have k negatives the others are capped; where none has, that is said."""
    model = two_stage(PAPKRanker(k=22, depth=0.9, policy="cap"), n=10).fit(dataset)
    assert model.reranker.ranker_.exclusions_.n_used > 0
    reco = model.recommend(np.arange(20), dataset, k=40, filter_viewed=True)
    sizes = reco.groupby(Columns.User).size()
    assert sizes.max() < 40 and sizes.min() >= 10
    with pytest.raises(InputError, match=r"k=40 .* more than 2[0-9] negatives .*n_negatives"):
        two_stage(PAPKRanker(k=40), n=10).fit(dataset)


def test_wrong_input(dataset):
    with pytest.raises(InputError, match="not StandardScaler"):
        PAPKReranker(StandardScaler())
    with pytest.raises(InputError, match="no feature: set keep_scores"):
        two_stage(PAPKRanker(k=K), keep_scores=False).fit(dataset)


def test_the_blocks_of_the_page_run(dataset, interactions, capsys):
    page = Path(__file__).parents[2] / "docs" / "howto" / "recommend.md"
    if not page.exists():
        pytest.skip("the documentation is not here")
    use, prepare = re.findall(r"^```py\n(.*?)^```$", page.read_text(), re.DOTALL | re.MULTILINE)
    names = {"dataset": dataset, "users": np.unique(interactions[0][:, 0])}
    prepare = prepare.replace("PureSVDModel(64)", "PureSVDModel(8)")  # of 80 items
    exec(prepare, names)
    exec(use, names)
    assert capsys.readouterr().out in ("converged (1500, 4)\n", "critical (1500, 4)\n")
