import json
from pathlib import Path

import numpy as np
import pytest
from sklearn import config_context
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupKFold, cross_val_score

from structsvm_papk import metrics, plots
from structsvm_papk.errors import InputError
from structsvm_papk.metrics import evaluate_frame

pytestmark = pytest.mark.portable

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")
RECTOOLS = json.loads((Path(__file__).parent / "rectools_lists.json").read_text())["cases"]
LIBRARIES = pytest.mark.parametrize("library", ["pandas", "polars"])
NAMES = ["pap@2", "auc", "ndcg@3"]


def frame(library, columns):
    return pd.DataFrame(columns) if library == "pandas" else pl.DataFrame(columns)


def long_rows(n_users=40, n=12, text=False):
    rng = np.random.default_rng(0)
    users, items = np.repeat(np.arange(n_users) * 3, n), np.tile(np.arange(n), n_users)
    order = rng.permutation(users.size)
    users, items = users[order], items[order]
    return {
        "user_id": [f"u{u:03d}" for u in users] if text else users,
        "item_id": [f"i{i}" for i in items] if text else items,
        "score": rng.permutation(users.size) / 7.0,
        "label": (rng.random(users.size) < 0.4).astype(int),
        "tier": np.where(users < 30, "new", "old"),
    }


@LIBRARIES
@pytest.mark.parametrize("text", [False, True], ids=["numbers", "text"])
def test_long_frame_is_the_arrays(library, text):
    columns = long_rows(text=text)
    found = evaluate_frame(frame(library, columns), NAMES, item="item_id")
    groups = np.asarray(columns["user_id"])
    expected = metrics.evaluate(NAMES, columns["score"], columns["label"], groups)
    np.testing.assert_array_equal(found.values, expected.values)
    assert list(found.users) == list(np.unique(groups))
    rank = {"rank": ranks_of(columns), "score": np.zeros(480)}
    by_rank = evaluate_frame(frame(library, columns | rank), NAMES, rank="rank")
    np.testing.assert_array_equal(by_rank.values, expected.values)


def recommended(shown, liked, metrics, **how):
    return evaluate_frame(shown, metrics, item="item_id", rank="rank", relevant=liked, **how)


def ranks_of(columns):
    order = np.lexsort((-columns["score"], columns["user_id"]))
    ranks = np.empty(order.size, dtype=int)
    ranks[order] = np.tile(np.arange(1, 13), 40)
    return ranks


@pytest.mark.parametrize(
    ("change", "how", "told"),
    [
        ({}, {"item": "item_id"}, "item 5 of user b occurs in row 0 and in row 2"),
        ({}, {"user": "user"}, "no column 'user'; the frame has user_id, item_id"),
        ({"user_id": [], "item_id": [], "score": [], "label": []}, {}, "empty"),
        ({"rank": [1, 1, 3]}, {"rank": "rank"}, "user b has the rank 3 in row 2"),
        ({"rank": [1, 1, 1]}, {"rank": "rank"}, "user b has the rank 1 in row 2"),
        ({"rank": [1.0, 1, np.inf]}, {"rank": "rank"}, "user b has the rank inf in row 2"),
        ({"rank": [1.0, 1, np.nan]}, {"rank": "rank"}, "user b has the rank nan in row 2"),
        ({"rank": ["a", "b", "c"]}, {"rank": "rank"}, "must hold whole numbers"),
    ],
)
def test_bad_long_frames(change, how, told):
    rows = {"user_id": ["b", "a", "b"], "item_id": [5, 5, 5], "score": [1.0, 2, 3]}
    for library in ("pandas", "polars"):
        with pytest.raises(InputError, match=told):
            evaluate_frame(frame(library, rows | {"label": [0, 1, 1]} | change), ["ap"], **how)


def doc_example():
    shown = {
        "user_id": [1, 1, 2, 2, 2, 3, 3],
        "item_id": [1, 2, 3, 1, 2, 3, 2],
        "rank": [1, 2, 1, 2, 3, 1, 2],
    }
    liked = {"user_id": [1, 1, 2, 2, 3, 3], "item_id": [1, 2, 1, 3, 1, 2]}
    return pd.DataFrame(shown), pd.DataFrame(liked)


@LIBRARIES
@pytest.mark.parametrize("text", [False, True], ids=["numbers", "text"])
def test_recommendations_are_truncated_lists(library, text):
    columns = long_rows(text=text)
    users, rank = np.asarray(columns["user_id"]), ranks_of(columns)
    shown, liked = rank <= 5, columns["label"] == 1
    pick = lambda mask, names: {c: np.asarray(columns[c])[mask] for c in names}  # noqa: E731
    found = recommended(
        frame(library, pick(shown, ["user_id", "item_id"]) | {"rank": rank[shown]}),
        frame(library, pick(liked, ["user_id", "item_id"])),
        ["pap@3", "recall@4", "ap"],
        population="either",
    )
    expected = metrics.evaluate(
        ["pap@3", "recall@4", "ap"], columns["score"], columns["label"], users,
        preset="rectools", list_length=5,
    )  # fmt: skip
    np.testing.assert_array_equal(found.values, expected.values)
    assert list(found.users) == list(expected.users)


def test_users_of_one_table_only():
    shown, liked = doc_example()
    with pytest.raises(InputError, match="user 3 has relevant items but no list"):
        recommended(shown[shown.user_id < 3], liked, "pap@1")
    unknown = recommended(shown, liked[liked.user_id < 3], "pap@1")
    assert unknown.summary("pap@1").by_rule["no_positives"] == 1 == unknown.relevance.n_unjudged
    counted = recommended(
        shown[shown.user_id != 1], liked[liked.user_id != 3], "pap@1", population="either"
    )
    np.testing.assert_array_equal(counted.values[:, 0], [0, 1, np.nan])
    assert counted.summary("pap@1").by_rule["no_positives"] == 1


@pytest.mark.parametrize(
    ("change", "more", "how", "told"),
    [
        ({"item_id": [1, 1, 3, 1, 2, 3, 2]}, 0, {}, "item 1 of user 1 occurs in row 0 and in row"),
        ({}, 1, {}, "item 1 of user 1 occurs in row 0 and in row 6"),
        ({}, 0, {"population": "drop"}, "choose one of raise, listed"),
        ({}, 0, {"metrics": "auc"}, "complete lists"),
    ],
)
def test_bad_recommendations(change, more, how, told):
    shown, liked = doc_example()
    liked = pd.concat([liked, liked.head(more)])
    with pytest.raises(InputError, match=told):
        recommended(shown.assign(**change), liked, **{"metrics": "pap@1"} | how)


@LIBRARIES
@pytest.mark.parametrize("case", RECTOOLS, ids=range(len(RECTOOLS)))
def test_hits_are_those_of_rectools(case, library):
    names = ("user_id", "item_id", "rank")
    frames = []
    for part in ("reco", "interactions"):
        columns = dict(zip(names, map(list, zip(*case[part], strict=True)), strict=False))
        if library == "polars":
            columns["item_id"] = [f"i{value:02d}" for value in columns["item_id"]]
        frames.append(frame(library, columns))
    table = recommended(*frames, [f"hit@{k}" for k in case["k"]])
    for k, expected in case["k"].items():
        np.testing.assert_allclose(table[f"hit@{k}"], expected["hit"], rtol=0, atol=1e-12)


# --- rows by keyword ------------------------------------------------------------------------------


RNG = np.random.default_rng(0)
SCORES = RNG.normal(size=200)
LABELS = (SCORES + RNG.normal(size=200) > 1).astype(int)
USERS = np.repeat(np.arange(10), 20)
ROWS = {"y_true": LABELS, "y_score": SCORES, "groups": USERS}


@pytest.mark.parametrize("name", ["ndcg@5", "ndcg", "ap", "pap@5"])
@pytest.mark.parametrize("threshold", [None, 0.5])
def test_scores_in_the_place_of_labels_are_refused(name, threshold):
    for scores in (SCORES, SCORES.round(2), SCORES[:20]):
        users = USERS[: scores.size]
        with pytest.raises(InputError, match=r"are scores and labels swapped\?|not binary"):
            metrics.evaluate(
                name, LABELS[: scores.size], scores - scores.min(), users,
                relevance_threshold=threshold,
            )  # fmt: skip


def test_ratings_and_gains_that_are_meant_are_taken():
    ratings = RNG.integers(2, 11, 200) / 2
    table = metrics.evaluate("ndcg@5", SCORES, ratings, USERS)
    assert 0 < table.mean("ndcg@5") < 1
    gains = np.abs(SCORES)
    with pytest.raises(InputError, match="gains='linear'"):
        metrics.evaluate("ndcg@5", SCORES, gains, USERS)
    assert metrics.evaluate("ndcg@5", gains, gains, USERS, gains="linear").mean("ndcg@5") == 1


def test_rows_are_taken_by_keyword():
    pytest.importorskip("matplotlib").use("Agg")
    plots.PAPDisplay.from_predictions(**ROWS, ks=[1], n_resamples=20)
    with pytest.raises(TypeError, match="positional"):
        plots.PAPDisplay.from_predictions(LABELS, SCORES, groups=USERS)


def test_a_scorer_of_scikit_learn_passes_groups_on():
    X = np.column_stack([SCORES, RNG.normal(size=200)])
    with config_context(enable_metadata_routing=True):
        scoring = metrics.scorer("ndcg@5", preset="sklearn")
        values = cross_val_score(
            LogisticRegression(), X, LABELS, scoring=scoring, params={"groups": USERS},
            cv=GroupKFold(5),
        )  # fmt: skip
    expected = []
    for train, test in GroupKFold(5).split(X, LABELS, USERS):
        scores = LogisticRegression().fit(X[train], LABELS[train]).decision_function(X[test])
        table = metrics.evaluate("ndcg@5", scores, LABELS[test], USERS[test], preset="sklearn")
        expected.append(table.mean("ndcg@5"))
    np.testing.assert_allclose(values, expected)
    with pytest.raises(InputError, match="there is no metric 'mapp'"):
        metrics.scorer("mapp")
