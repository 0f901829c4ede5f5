"""PAPKReranker in RecTools' own two-stage model, and the factors of its recommenders."""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from structsvm_papk import PAPKRanker, PAPKRankerCV, metrics
from structsvm_papk.datasets.synthetic import interaction_pairs
from structsvm_papk.errors import InputError
from structsvm_papk.integrations.rectools import PAPKReranker

pytest.importorskip("rectools")
from implicit.nearest_neighbours import CosineRecommender
from rectools import Columns
from rectools.dataset import Dataset
from rectools.model_selection import RandomSplitter, TimeRangeSplitter, cross_validate
from rectools.models import (
    EASEModel,
    ImplicitItemKNNWrapperModel,
    PopularModel,
    PureSVDModel,
)
from rectools.models.ranking import (
    CandidateFeatureCollector,
    CandidateGenerator,
    CandidateRankingModel,
    PerUserNegativeSampler,
    Reranker,
)

pytestmark = [
    pytest.mark.portable,
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),  # of RecTools and implicit
    pytest.mark.filterwarnings("ignore::FutureWarning"),
]
K = 5
FAST = {"surrogates": ("avg",), "depths": (0.9,), "user_weights": ("equal",), "cv": 2}


def frame_of(pairs):
    frame = pd.DataFrame(pairs, columns=Columns.UserItem)
    frame[Columns.Weight] = 1.0
    frame[Columns.Datetime] = pd.Timestamp("2026-01-01") + pd.to_timedelta(
        np.random.default_rng(0).permutation(len(frame)) % 40, unit="D"
    )
    return frame


@pytest.fixture(scope="module")
def interactions():
    return interaction_pairs(150, 80, seed=3)


@pytest.fixture(scope="module")
def dataset(interactions):
    return Dataset.construct(frame_of(interactions[0]))


def generators(n=30, **more):
    recommenders = (
        EASEModel(100.0),
        ImplicitItemKNNWrapperModel(CosineRecommender(K=20)),
        PureSVDModel(8),
        PopularModel(),
    )
    keep = {"keep_ranks": False, "keep_scores": True, **more}
    return [CandidateGenerator(model, n, **keep) for model in recommenders]


def two_stage(ranker, n=30, collector=None, sampler=None, **more):
    return CandidateRankingModel(
        generators(n, **more),
        RandomSplitter(0.3, random_state=0),
        PAPKReranker(ranker) if not isinstance(ranker, Reranker) else ranker,
        sampler or PerUserNegativeSampler(n_negatives=25, random_state=0),
        collector,
    )


def recall(recommended, test):
    """Hits among the recommended pairs over the test pairs."""
    pairs = set(map(tuple, recommended[Columns.UserItem].to_numpy().tolist()))
    return sum(tuple(pair) in pairs for pair in test.tolist()) / len(test)


@pytest.mark.parametrize(
    "ranker",
    [
        PAPKRanker(k=K, depth=0.9, policy="cap"),
        PAPKRankerCV(k=K, **FAST),
        make_pipeline(StandardScaler(), PAPKRanker(k=K, depth=0.9, policy="cap")),
    ],
    ids=["ranker", "cv", "pipeline"],
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
    assert model.reranker.ranker_.coef_.any()


def test_users_are_the_groups_and_the_scores_those_of_the_ranker(dataset):
    model = two_stage(PAPKRanker(k=K, depth=0.9, policy="cap", tol=1e-9))
    rows = model.get_train_with_targets_for_reranker(dataset)
    reranker = model.reranker
    reranker.fit(rows)
    columns = [name for name in rows if name.endswith("_score")]
    expected = np.empty((len(rows), len(columns)))
    for user in rows[Columns.User].unique():
        mine = (rows[Columns.User] == user).to_numpy()
        for j, name in enumerate(columns):
            values = rows.loc[mine, name].to_numpy(float)
            lowest = 0.0 if np.isnan(values).all() else np.nanmin(values)
            values = np.where(np.isnan(values), lowest, values)
            constant = np.ptp(values) == 0
            expected[mine, j] = 0 if constant else (values - values.mean()) / values.std()
    groups = rows[Columns.User].to_numpy()
    y = rows[Columns.Target].to_numpy()
    plain = PAPKRanker(k=K, depth=0.9, policy="cap", tol=1e-9).fit(expected, y, groups=groups)
    np.testing.assert_allclose(reranker.ranker_.coef_, plain.coef_, rtol=1e-4, atol=1e-6)
    scores = reranker.predict_scores(rows.drop(columns=Columns.Target))
    np.testing.assert_allclose(scores, expected @ reranker.ranker_.coef_, atol=1e-9)
    gain = metrics.evaluate(f"pap@{K}", scores, y, groups).mean(f"pap@{K}")
    assert gain == pytest.approx(plain.score(expected, y, groups=groups), abs=1e-3)


def test_a_ranker_that_scales_users_itself_gets_them(dataset):
    model = two_stage(PAPKRanker(k=K, policy="cap", user_scaling="standardise", tol=1e-9))
    rows = model.get_train_with_targets_for_reranker(dataset)
    scores = []
    for standardise in (True, False):
        reranker = PAPKReranker(model.reranker.model, standardise=standardise)
        reranker.fit(rows)
        scores.append(reranker.predict_scores(rows.drop(columns=Columns.Target)))
    np.testing.assert_allclose(*scores, atol=1e-3)


def test_cross_validation_by_its_splitters(interactions):
    from rectools.metrics import NDCG

    dataset = Dataset.construct(frame_of(interactions[0]))
    answer = cross_validate(
        dataset,
        TimeRangeSplitter("6D", n_splits=2),
        {"NDCG": NDCG(K)},
        {"two stages": two_stage(PAPKRanker(k=K, depth=0.9, policy="cap")), "p": PopularModel()},
        k=K,
        filter_viewed=True,
    )
    values = pd.DataFrame(answer["metrics"]).groupby("model")["NDCG"].mean()
    assert values["two stages"] > values["p"]


def test_ranks_are_features_too(dataset):
    model = two_stage(
        PAPKRanker(k=K, depth=0.9, policy="cap"), keep_ranks=True, keep_scores=False
    ).fit(dataset)
    assert [name for name in model.reranker.ranker_.feature_names_in_ if "rank" in name]
    coef = dict(
        zip(model.reranker.ranker_.feature_names_in_, model.reranker.ranker_.coef_, strict=True)
    )
    assert coef["EASEModel_1_rank"] < 0


def test_a_model_without_scores_for_a_user_gives_level_columns(dataset):
    rows = two_stage(PAPKRanker(k=K)).get_train_with_targets_for_reranker(dataset)
    user = rows[Columns.User].iloc[0]
    rows.loc[rows[Columns.User] == user, "EASEModel_1_score"] = np.nan
    reranker = PAPKReranker(PAPKRanker(k=K, depth=0.9, policy="cap"))
    X = reranker.prepare_fit_kwargs(rows)["X"]
    assert (X.loc[(rows[Columns.User] == user).to_numpy(), "EASEModel_1_score"] == 0).all()
    assert np.isfinite(X.to_numpy()).all()


def test_fewer_candidates_than_k(dataset):
    """Where some users have k negatives the others are capped; where none has, that is said."""
    model = two_stage(PAPKRanker(k=22, depth=0.9, policy="cap"), n=10).fit(dataset)
    assert model.reranker.ranker_.exclusions_.n_used > 0
    reco = model.recommend(np.arange(20), dataset, k=40, filter_viewed=True)
    sizes = reco.groupby(Columns.User).size()
    assert sizes.max() < 40 and sizes.min() >= 10
    with pytest.raises(InputError, match=r"k=40 .* more than 2[0-9] negatives .*n_negatives"):
        two_stage(PAPKRankerCV(k=40, **FAST), n=10).fit(dataset)


class Gap(CandidateFeatureCollector):
    def _get_item_features(self, items, dataset, fold_info):
        return pd.DataFrame({Columns.Item: items[:-1], "price": 1.0})


def test_wrong_input(dataset):
    with pytest.raises(InputError, match="not LogisticRegression"):
        from sklearn.linear_model import LogisticRegression

        PAPKReranker(LogisticRegression())
    with pytest.raises(InputError, match="no feature: set keep_scores"):
        two_stage(PAPKRanker(k=K), keep_scores=False).fit(dataset)
    with pytest.raises(InputError, match="'price' is missing for an item of user"):
        two_stage(PAPKRanker(k=K), collector=Gap()).fit(dataset)


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
