"""One rule for scores, labels and ids, at every door."""

import re

import numpy as np
import pytest

from structsvm_papk import PAPKRanker, RankingData, bounds, margins, metrics
from structsvm_papk.data import validation as _validation
from structsvm_papk.errors import InputError
from structsvm_papk.integrations import hooks
from structsvm_papk.metrics.frames import evaluate_frame, evaluate_recommendations
from structsvm_papk.plots import page

pytestmark = pytest.mark.portable

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")

N = 24
SCORES = np.random.default_rng(0).permutation(N).astype(float)
Y = np.tile([0, 1, 0], N // 3)
USERS = np.repeat(np.arange(2), N // 2)
X = np.column_stack([Y + np.random.default_rng(1).normal(size=N), SCORES / N])


def _hook(y):
    return hooks.lightgbm_eval_metric("auc", ties="half")(y, SCORES, None, [N])[1]


# every door that takes labels, as a function of them alone; all give numbers that can be compared
LABEL_DOORS = {
    "RankingData": lambda y: RankingData(X, y, [0, N]).n_pos,
    "from_groups": lambda y: RankingData.from_groups(X, y, USERS).n_pos,
    "fit": lambda y: PAPKRanker(k=2, surrogate="ts").fit(X, y, USERS).coef_,
    "evaluate": lambda y: metrics.evaluate(["auc", "ap", "ndcg"], SCORES, y, USERS).values,
    "exponential": lambda y: metrics.per_user("ndcg@3", SCORES, y, USERS, gains="exponential"),
    "mean_score": lambda y: metrics.mean_score(y, SCORES, groups=USERS, metric="pap@2"),
    "bounds.held_out": lambda y: bounds.held_out(SCORES, y, 3).upper,
    "margins": lambda y: margins.check_scores(SCORES, y, 2).delta_weak,
    "whole_list": lambda y: page.report(SCORES, y).auroc,
    "hook": _hook,
}


def refusing(doors, error, match, *arguments):
    """Names of the doors that refuse these arguments in such words."""
    names = set()
    for name, door in doors.items():
        try:
            door(*arguments)
        except error as refusal:
            if re.search(match, str(refusal)):
                names.add(name)
    return names


@pytest.mark.parametrize(
    "labels",
    [
        Y == 1,
        2 * Y - 1,
        2.0 * Y - 1,
        Y.astype(np.float32),
        Y.astype(np.uint8),
        (Y == 1).astype(object),
        (2 * Y - 1).astype(object),
        pd.Series(Y, dtype="Int64"),
        pl.Series(Y == 1),
        np.ma.array(Y, mask=np.zeros(N, dtype=bool)),
    ],
    ids=[
        "bool", "-1/1", "float -1/1", "float32", "uint8", "object bool", "object", "pandas Int64",
        "polars", "unmasked",
    ],
)  # fmt: skip
def test_binary_labels_mean_the_same_everywhere(labels):
    for name, door in LABEL_DOORS.items():
        np.testing.assert_array_equal(door(labels), door(Y), err_msg=name)


def _with(value, at=4):
    labels = Y.astype(object if value is None or isinstance(value, str) else float)
    labels[at] = value
    return labels


@pytest.mark.parametrize(
    ("labels", "but"),
    [
        (_with(np.nan), None),
        (_with(np.inf), None),
        (_with(None), None),
        (_with(0.5), "exponential"),  # a grade
        (Y - 1, None),
        (np.array([-1, 0, 1] * (N // 3)), None),
        (Y.astype(str), None),
        (np.ma.array(Y, mask=np.arange(N) == 4), None),
        (pd.array([None, *Y[1:]], dtype="Int64"), None),
        (Y[1:], None),
        (Y[:, None], "fit"),  # scikit-learn ravels a column, with a warning
    ],
    ids=[
        "NaN", "inf", "None", "half", "-1 and 0", "-1 to 1", "text", "masked", "NA", "short", "2-d",
    ],
)  # fmt: skip
@pytest.mark.filterwarnings("ignore:A column-vector y:sklearn.exceptions.DataConversionWarning")
def test_labels_that_are_refused_are_refused_everywhere(labels, but):
    assert refusing(LABEL_DOORS, ValueError, r"\S", labels) == set(LABEL_DOORS) - {but}


def test_missing_labels_are_not_irrelevant_under_a_threshold():
    ranker = PAPKRanker(k=2, surrogate="ts", relevance_threshold=0.5).fit(X, Y, USERS)
    for call in (
        lambda: ranker.score(X, _with(np.nan), USERS),
        lambda: metrics.evaluate(["ap"], SCORES, _with(np.nan), relevance_threshold=0.5),
    ):
        with pytest.raises(InputError, match="NaN or infinite in row 4"):
            call()
    with pytest.raises(InputError, match="must be a"):
        metrics.evaluate(["ap"], SCORES, Y, relevance_threshold=np.nan)


# --- scores -----------------------------------------------------------------------------------

SCORE_DOORS = {
    "evaluate": lambda s, y: metrics.per_user("auc", s, y)[0],
    "whole_list": lambda s, y: page.report(s, y).auroc,
    "held_out": lambda s, y: 1 - bounds.held_out(s, y, 2).value,
    "margins": lambda s, y: float(margins.check_scores(s, y, 2).weak),
    "hook": lambda s, y: hooks.xgboost_eval_metric("auc")(np.asarray(y), s),
}
BIG = 2**53


@pytest.mark.parametrize(
    "scores",
    [
        np.array([BIG + 1, BIG, BIG + 3, BIG - 9]),
        np.array([BIG + 1, BIG, BIG + 3, BIG - 9], dtype=np.uint64),
        [2**70 + 1, 2**70, 2**70 - 1, 0],
        [-(2**63), 2**63 + 1, 2**63, 5],
        np.array([1, 1 + np.finfo(np.longdouble).eps, 2, 3], dtype=np.longdouble),
        [0.1, 0.2, np.nan, 0.3],
        [0.1, 0.2, None, 0.3],
        ["0.1", "0.2", "0.3", "0.4"],
        np.ma.array([0.1, 0.2, 0.3, 0.4], mask=[0, 1, 0, 0]),
    ],
    ids=["int64", "uint64", "ints", "both signs", "longdouble", "NaN", "None", "text", "masked"],
)
def test_scores_that_would_tie_or_vanish_are_refused(scores):
    if np.finfo(np.longdouble).nmant == 52 and getattr(scores, "dtype", None) == np.longdouble:
        pytest.skip("long double is double here")
    assert refusing(SCORE_DOORS, InputError, "scores", scores, [1, 0, 1, 0]) == set(SCORE_DOORS)


def test_large_whole_scores_that_stay_apart_are_taken():
    apart, small = np.array([2**60, -(2**62), 2**61, 0]), [2.0, 0.0, 3.0, 1.0]
    for name, door in SCORE_DOORS.items():
        assert door(apart, [1, 0, 1, 0]) == door(small, [1, 0, 1, 0]), name


@pytest.mark.parametrize("sign", [1, -1])
def test_infinite_scores_tie_in_every_view_of_the_pooled_auc(sign):
    rng = np.random.default_rng(2)
    labels = rng.integers(0, 2, 60)
    levels = rng.integers(0, 3, 60)
    scores = np.array([0.0, 1.0, sign * np.inf])[levels]
    finite = np.array([0.0, 1.0, sign * 9.0])[levels]
    for value in (
        lambda s: page.report(s, labels).auroc,
        lambda s: page.report(s, labels).average_precision,
        lambda s: metrics.evaluate("auc", s, labels, ties="half").mean("auc"),
    ):
        assert value(scores) == value(finite)


# --- ids --------------------------------------------------------------------------------------

ID_DOORS = {
    "RankingData": lambda g: RankingData.from_groups(np.ones((len(g), 1)), [1] * len(g), g).users,
    "evaluate": lambda g: metrics.evaluate("ap", np.arange(len(g)), [1] * len(g), g).users,
    "frame": lambda g: (
        evaluate_frame(
            {"user_id": g, "score": np.arange(len(g)), "label": [1] * len(g)}, "ap"
        ).users
    ),
    "pandas": lambda g: (
        evaluate_frame(
            pd.DataFrame({"user_id": g, "score": np.arange(len(g)), "label": [1] * len(g)}), "ap"
        ).users
    ),
}


@pytest.mark.parametrize(
    "ids",
    [
        np.array(["2026-01-01", "NaT", "2026-01-02"], dtype="datetime64[ns]"),
        np.array([np.timedelta64(1, "s"), np.timedelta64("NaT", "s")]),
        np.array(["a", None], dtype=object),
        np.array(["a", pd.NA], dtype=object),
        np.array([pd.Timestamp(0), pd.NaT], dtype=object),
        np.array([1.0, np.nan]),
        np.array([1, "1"], dtype=object),
        np.array([b"1", "1"], dtype=object),
        np.array([2.0**53, 2.0]),
        np.array([2.0**24, 2.0], dtype=np.float32),
        np.array([2.0**53, 3], dtype=object),
    ],
    ids=[
        "NaT", "no duration", "None", "NA", "object NaT", "NaN", "1 and '1'", "bytes and text",
        "rounded", "rounded single", "rounded object",
    ],
)  # fmt: skip
def test_users_that_are_missing_mixed_or_rounded_are_refused(ids):
    words = r"missing|mix types|floating-point"
    assert refusing(ID_DOORS, InputError, words, ids) == set(ID_DOORS)


@pytest.mark.parametrize(
    "ids",
    [
        np.array([BIG + 1, BIG, BIG + 2]),
        np.array([2**64 - 1, 2**64 - 2, 2**63], dtype=np.uint64),
        np.array([2**64 - 1, 2**64 - 2], dtype=np.uint64),
        np.array([2**63, -1, 2**63 + 1], dtype=object),
        np.array([2**70, 2**70 + 1], dtype=object),
        np.array(["a", "A", "a ", ""], dtype=object),
        np.array(["1", "01", "1.0"]),
        np.array([0.5, 0.25, -1.0]),
        np.array([-100, 100, 27], dtype=np.int8),
    ],
    ids=str,
)
def test_different_users_stay_different(ids):
    for name, door in ID_DOORS.items():
        found = door(np.concatenate([ids, ids]))
        assert [type(v)(v) for v in found.tolist()] == sorted(ids.tolist()), name


def test_lists_of_mixed_types_do_not_become_text_or_floats():
    for ids in ([1, "1"], [1, "a"]):
        with pytest.raises(InputError, match="mix types that have no order: int, str"):
            metrics.evaluate("ap", [1.0, 2.0], [1, 1], ids)
    found = metrics.evaluate("ap", [1.0, 2.0, 3.0], [1, 1, 1], [2**63, -1, 2**63 + 1])
    assert found.users.tolist() == [-1, 2**63, 2**63 + 1]
    with pytest.raises(InputError, match="masked values in row 1"):
        metrics.evaluate("ap", [1.0, 2.0], [1, 1], np.ma.array([1, 2], mask=[0, 1]))


def recommended(user, item, liked_user, liked_item, library):
    make = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "dict": dict}[library]
    shown = make({"user_id": user, "item_id": item, "rank": np.ones(len(user), dtype=int)})
    liked = make({"user_id": liked_user, "item_id": liked_item})
    return evaluate_recommendations(shown, liked, "recall@1", unmatched="count")


LIBRARY = pytest.mark.parametrize("library", ["pandas", "polars", "dict"])


@LIBRARY
@pytest.mark.parametrize("other", [np.int64, np.uint64, object])
def test_ids_of_two_tables_are_compared_exactly(library, other):
    if library == "polars" and other is object:
        pytest.skip("polars makes objects of a type of their own")
    ids = np.array([BIG + 1, BIG + 3, 7])
    near = np.array([BIG, BIG + 2, 7]).astype(other)
    users = np.arange(3)
    assert recommended(users, ids, users, near, library)["recall@1"].tolist() == [0, 0, 1]
    same = recommended(users, ids, users, ids.astype(other), library)
    assert same["recall@1"].tolist() == [1, 1, 1]
    assert recommended(ids, users, near, users, library).users.size == 5


@LIBRARY
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.uint8])
def test_small_numbers_of_another_type_are_the_same_ids(library, dtype):
    users, items = np.arange(3), np.array([5, 6, 7])
    found = recommended(users, items, users.astype(dtype), items.astype(dtype), library)
    assert found["recall@1"].tolist() == [1, 1, 1]
    halves = recommended(users, items, users, items + np.array([0, 0.5, 0]), library)
    assert halves["recall@1"].tolist() == [1, 0, 1]


@LIBRARY
def test_rounded_ids_are_refused_since_they_may_be_others(library):
    users, items = np.arange(2), np.array([BIG + 1, BIG + 3])
    with pytest.raises(InputError, match="read the ids as whole numbers or as text"):
        recommended(users, items, users, items.astype(float), library)


@pytest.mark.parametrize("library", ["pandas", "dict"])
def test_objects_of_two_kinds_do_not_merge(library):
    users, items = np.arange(2), np.array([1, "1"], dtype=object)
    with pytest.raises(InputError, match="mix types"):
        recommended(users, items, users, items[::-1], library)
    with pytest.raises(InputError, match="numbers in one table and text in the other"):
        recommended(users, items[:1].repeat(2), users, items[1:].repeat(2), library)


def test_random_numbers_of_every_type_are_encoded_exactly():
    rng = np.random.default_rng(5)
    pool = [0, 1, -1, 7, BIG - 1, BIG, BIG + 1, 2**63 - 1, 2**63, 2**64 - 1, -(2**63), 0.5, 3.0]
    types = (np.int64, np.uint64, np.float64, np.float32, np.int8, bool, object)
    for _ in range(600):
        columns, exact = [], []
        for dtype in rng.choice(np.array(types, dtype=object), rng.integers(1, 4)):
            fits = [v for v in pool if _fits(v, dtype)]
            column = np.array([fits[i] for i in rng.integers(len(fits), size=4)], dtype=dtype)
            columns.append(_validation.check_ids(column, 4))
            exact += column.tolist()
        users, codes = _validation.encode(_validation.joined(*columns))
        assert users[codes].tolist() == exact
        assert users.size == len(set(exact))


def _fits(value, dtype):
    if isinstance(value, float):
        return dtype in (np.float64, np.float32, object)
    if dtype in (np.float64, np.float32):
        return abs(value) < 2 ** (np.finfo(dtype).nmant + 1)
    if dtype is bool:
        return value in (0, 1)
    if dtype is object:
        return True
    return np.iinfo(dtype).min <= value <= np.iinfo(dtype).max


def test_missing_segments_are_a_segment_of_their_own():
    tier = np.array(["new", None] * (N // 2), dtype=object)
    found = metrics.evaluate("auc", SCORES, Y, segments={"tier": tier}).segments
    assert [s.value for s in found] == ["new", "missing"]
    numbers = np.where(np.arange(N) % 2, np.nan, 3.0)
    found = metrics.evaluate("auc", SCORES, Y, segments={"tier": numbers}).segments
    assert [s.value for s in found] == [3.0, "missing"]
    with pytest.raises(InputError, match="mix types"):
        metrics.evaluate("auc", SCORES, Y, segments={"a": np.array([1, "1"] * (N // 2), object)})


def test_the_users_of_a_pool_for_catboost():
    with pytest.raises(InputError, match="missing in row 1"):
        hooks.CatBoostMetric("auc", [[1.0, np.nan]])
    with pytest.raises(InputError, match="mix types"):
        hooks.CatBoostMetric("auc", [[1, "1"]])
