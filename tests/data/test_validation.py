"""One rule for scores, labels, ids and features, at every door."""

import datetime
import re
from functools import cache
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import sparse

from helpers.values import values_of
from structsvm_papk import PAPKRanker, RankingData, bounds, margins, metrics
from structsvm_papk.errors import InputError
from structsvm_papk.integrations import hooks
from structsvm_papk.metrics.table import evaluate_frame

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
    "exponential": lambda y: values_of("ndcg@3", SCORES, y, USERS, gains="exponential"),
    "scorer": lambda y: metrics.scorer("pap@2")(
        SimpleNamespace(predict=lambda X: SCORES), X, y, groups=USERS
    ),
    "bounds.held_out": lambda y: bounds.held_out(SCORES, y, 3).upper,
    "margins": lambda y: margins.check_scores(SCORES, y, 2).delta_weak,
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


BINARY = {
    "float -1/1": 2.0 * Y - 1,
    "uint8": Y.astype(np.uint8),
    "object bool": (Y == 1).astype(object),
    "object": (2 * Y - 1).astype(object),
    "pandas Int64": pd.Series(Y, dtype="Int64"),
    "polars": pl.Series(Y == 1),
    "Arrow": pl.Series(Y == 1).to_arrow(),
    "unmasked": np.ma.array(Y, mask=np.zeros(N, dtype=bool)),
}


@pytest.mark.parametrize("labels", BINARY.values(), ids=BINARY)
def test_binary_labels_mean_the_same_everywhere(labels):
    for name, door in LABEL_DOORS.items():
        np.testing.assert_array_equal(door(labels), door(Y), err_msg=name)


def _with(value, row=4):
    labels = Y.astype(object if value is None or isinstance(value, str) else float)
    labels[row] = value
    return labels


REFUSED = {
    "NaN": _with(np.nan),
    "inf": _with(np.inf),
    "None": _with(None),
    "half": _with(0.5),
    "-1 and 0": Y - 1,
    "text": Y.astype(str),
    "masked": np.ma.array(Y, mask=np.arange(N) == 4),
    "NA": pd.array([None, *Y[1:]], dtype="Int64"),
    "short": Y[1:],
    "2-d": Y[:, None],
}
# a grade; scikit-learn ravels a column, with a warning
BUT = {"half": {"exponential"}, "2-d": {"fit"}}


@pytest.mark.parametrize("what", REFUSED)
@pytest.mark.filterwarnings("ignore:A column-vector y:sklearn.exceptions.DataConversionWarning")
def test_labels_that_are_refused_are_refused_everywhere(what):
    refused = refusing(LABEL_DOORS, ValueError, r"\S", REFUSED[what])
    assert refused == set(LABEL_DOORS) - BUT.get(what, set())


def test_missing_labels_are_not_irrelevant_under_a_threshold():
    ranker = PAPKRanker(k=2, surrogate="ts", relevance_threshold=0.5).fit(X, Y, USERS)
    for bad in (_with(np.nan), _with(np.inf)):
        with pytest.raises(InputError, match="NaN or infinite in row 4"):
            ranker.score(X, bad, USERS)
        with pytest.raises(InputError, match="NaN or infinite in row 4"):
            metrics.evaluate(["ap"], SCORES, bad, relevance_threshold=0.5)
    with pytest.raises(InputError, match="must be a"):
        metrics.evaluate(["ap"], SCORES, Y, relevance_threshold=np.nan)


# --- scores -----------------------------------------------------------------------------------

SCORE_DOORS = {
    "evaluate": lambda s, y: values_of("auc", s, y)[0],
    "held_out": lambda s, y: 1 - bounds.held_out(s, y, 2).value,
    "margins": lambda s, y: float(margins.check_scores(s, y, 2).weak),
}
BIG = 2**53


VANISHING = {
    "int64": np.array([BIG + 1, BIG, BIG + 3, BIG - 9]),
    "ints": [2**70 + 1, 2**70, 2**70 - 1, 0],
    "both signs": [-(2**63), 2**63 + 1, 2**63, 5],
    "longdouble": np.array([1, 1 + np.finfo(np.longdouble).eps, 2, 3], dtype=np.longdouble),
    "NaN": [0.1, 0.2, np.nan, 0.3],
    "None": [0.1, 0.2, None, 0.3],
    "text": ["0.1", "0.2", "0.3", "0.4"],
    "masked": np.ma.array([0.1, 0.2, 0.3, 0.4], mask=[0, 1, 0, 0]),
}
if np.finfo(np.longdouble).nmant == 52:  # it is double here
    del VANISHING["longdouble"]


@pytest.mark.parametrize("scores", VANISHING.values(), ids=VANISHING)
def test_scores_that_would_tie_or_vanish_are_refused(scores):
    assert refusing(SCORE_DOORS, InputError, "scores", scores, [1, 0, 1, 0]) == set(SCORE_DOORS)


@pytest.mark.parametrize(
    ("scores", "small", "but"),
    [
        (np.array([2**60, -(2**62), 2**61, 0]), [2.0, 0.0, 3.0, 1.0], set()),
        ([np.inf, np.inf, 1.0, -np.inf], [2.0, 2.0, 1.0, 0.0], {"margins", "held_out"}),
    ],
)
def test_large_whole_scores_and_infinite_ones_are_taken(scores, small, but):
    for name in SCORE_DOORS.keys() - but:
        door = SCORE_DOORS[name]
        assert door(scores, [1, 0, 1, 0]) == door(small, [1, 0, 1, 0]), name


# --- ids --------------------------------------------------------------------------------------

ID_DOORS = {
    "RankingData": lambda g: RankingData.from_groups(np.ones((len(g), 1)), [1] * len(g), g).users,
    "evaluate": lambda g: metrics.evaluate("ap", np.arange(len(g)), [1] * len(g), g).users,
    "frame": lambda g: evaluate_frame(_frame(g), "ap").users,
    "pandas": lambda g: evaluate_frame(pd.DataFrame(_frame(g)), "ap").users,
}


def _frame(ids):
    return {"user_id": ids, "score": np.arange(len(ids)), "label": [1] * len(ids)}


MISSING_OR_MIXED = {
    "NaT": np.array(["2026-01-01", "NaT", "2026-01-02"], dtype="datetime64[ns]"),
    "None": np.array(["a", None], dtype=object),
    "NA": np.array(["a", pd.NA], dtype=object),
    "object NaT": np.array([pd.Timestamp(0), pd.NaT], dtype=object),
    "NaN": np.array([1.0, np.nan]),
    "1 and '1'": np.array([1, "1"], dtype=object),
    "bytes and text": np.array([b"1", "1"], dtype=object),
    "rounded": np.array([2.0**53, 2.0]),
    "rounded single": np.array([2.0**24, 2.0], dtype=np.float32),
    "rounded object": np.array([2.0**53, 3], dtype=object),
    "a list": [1, "1"],
    "masked": np.ma.array([1, 2], mask=[0, 1]),
}


@pytest.mark.parametrize("ids", MISSING_OR_MIXED.values(), ids=MISSING_OR_MIXED)
def test_users_that_are_missing_mixed_or_rounded_are_refused(ids):
    words = r"missing in row 1|mix types|floating-point|masked values in row 1"
    assert refusing(ID_DOORS, InputError, words, ids) == set(ID_DOORS)


@pytest.mark.parametrize(
    "ids",
    [
        np.array([BIG + 1, BIG, BIG + 2]),
        np.array([2**64 - 1, 2**64 - 2, 2**63], dtype=np.uint64),
        np.array([2**63, -1, 2**63 + 1], dtype=object),
        np.array([2**70, 2**70 + 1], dtype=object),
        np.array(["a", "A", "a ", ""], dtype=object),
        np.array(["1", "01", "1.0"]),
        np.array([0.5, 0.25, -1.0]),
    ],
    ids=str,
)
def test_different_users_stay_different(ids):
    for name, door in ID_DOORS.items():
        users = door(np.concatenate([ids, ids]))
        assert [type(user)(user) for user in users.tolist()] == sorted(ids.tolist()), name


def test_lists_of_large_whole_numbers_do_not_become_floats():
    ids = [2**63, -1, 2**63 + 1]
    assert metrics.evaluate("ap", [0, 1, 2], [1, 1, 1], ids).users.tolist() == sorted(ids)


def recommended(user, item, liked_user, liked_item):
    shown = pd.DataFrame({"user_id": user, "item_id": item, "rank": 1})
    liked = {"user_id": liked_user, "item_id": liked_item}
    return evaluate_frame(
        shown, "recall@1", item="item_id", rank="rank", relevant=liked, population="either"
    )


def objects(*values):
    return np.array(values, dtype=object)


WHOLE = np.array([BIG + 1, BIG + 3, 7])
TWO_TABLES = [  # ids, those of the other table, and which are the same
    *((WHOLE, WHOLE.astype(t), [1, 1, 1]) for t in (np.uint64, object)),
    *((WHOLE, (WHOLE & -2).astype(t), [0, 0, 0]) for t in (np.int64, np.uint64, object)),
    *((WHOLE % 9, (WHOLE % 9).astype(t), [1, 1, 1]) for t in (float, np.float32, np.uint8)),
    (np.arange(3), np.array([0, 0.5, 2]), [1, 0, 1]),
    (WHOLE, WHOLE.astype(float), "read the ids as whole numbers or as text"),
    (objects(1, "1", 2), WHOLE, "mix types"),
    (objects(1, 2, 3), objects("1", "2", "3"), "numbers in one table and text in the other"),
]


@pytest.mark.parametrize(("ids", "other", "same"), TWO_TABLES)
def test_ids_of_two_tables_are_compared_exactly(ids, other, same):
    users = np.arange(3)
    for as_users in (False, True):
        both = (ids, users, other, users) if as_users else (users, ids, users, other)
        if isinstance(same, str):
            with pytest.raises(InputError, match=same):
                recommended(*both)
        elif as_users and not any(same):
            with pytest.raises(InputError, match="are they of the same users"):
                recommended(*both)
        elif as_users:
            assert recommended(*both).users.size == 6 - sum(same)
        elif not any(same):
            with pytest.warns(UserWarning, match="none of the 3 items"):
                assert recommended(*both)["recall@1"].tolist() == same
        else:
            assert recommended(*both)["recall@1"].tolist() == same


# --- features ---------------------------------------------------------------------------------

FEW, DAY, LARGE = [1, 0, 0, 1], np.datetime64("2020-01-01"), 2**60 + 1
FEATURE_DOORS = {
    "RankingData": lambda X: RankingData(X, FEW, [0, 4]),
    "fit": lambda X: PAPKRanker(k=1).fit(X, FEW, [1, 1, 2, 2]),
    "predict": lambda X: fitted().predict(X),
}


@cache
def fitted():
    return PAPKRanker(k=2, surrogate="ts").fit(X, Y, USERS)


def two(values, library=np.column_stack):
    return library([[1.0, 2.0, 3.0, 4.0], values])


def frame(library):
    return lambda columns: library.DataFrame({"a": columns[0], "b": columns[1]})


def as_objects(columns):
    return np.array(columns, dtype=object).T


MISREAD = {  # and where
    "dates": (np.full((4, 2), DAY), "row 0, column 0"),
    "durations": (np.full((4, 2), DAY - DAY), "row 0, column 0"),
    "pandas NaT": (two([DAY, DAY, DAY, None], frame(pd)), "row 0, column 'b'"),
    "polars dates": (two([datetime.date(2020, 1, 1)] * 4, frame(pl)), "row 0, column 'b'"),
    "objects": (two([DAY - DAY, 1, 2, 3], as_objects), "row 0, column 1"),
    "text": (np.full((4, 2), "1"), "row 0, column 0"),
    "text in objects": (two([1, "1_0", 2, 3], as_objects), "row 1, column 1"),
    "text in lists": ([[1.0, "1"]] * 4, "row 0, column 1"),
    "large": (np.array([[1, 2], [1, 2], [2, LARGE], [3, LARGE]]), "row 2, column 1"),
    "large in lists": ([[1.0, LARGE]] * 4, "row 0, column 1"),
    "large unsigned": (np.full((4, 2), 2**64 - 1, dtype=np.uint64), "row 0, column 0"),
    "large polars": (two([1, 2, 3, LARGE], frame(pl)), "row 3, column 'b'"),
    "large beside NA": (
        two(pd.array([1, None, 3, LARGE], "Int64"), frame(pd)),
        "row 3, column 'b'",
    ),
    "large beside null": (two([1, None, 3, LARGE], frame(pl)), "row 3, column 'b'"),
    "large beside None": (two([1, None, 3, LARGE], as_objects), "row 3, column 1"),
    "large CSC": (sparse.csc_array([[0, 1], [0, LARGE], [1, 1], [2, 1]]), "row 1, column 1"),
}


@pytest.mark.parametrize(("X", "place"), MISREAD.values(), ids=MISREAD)
def test_what_numbers_would_misread_is_refused_with_its_place(X, place):
    for door in FEATURE_DOORS.values():
        with pytest.raises(InputError, match=rf"X holds .* at {place} .*(give|Your table)"):
            door(X)


@pytest.mark.parametrize(
    "second",
    [[2**60, 0, -(2**60), 2**53], [True, False, True, True], np.array([1, 2, 3, 4], dtype=object)],
    ids=["exact", "booleans", "objects"],
)
@pytest.mark.parametrize("library", [np.column_stack, frame(pd), frame(pl), as_objects])
def test_numbers_that_doubles_hold_are_taken(second, library):
    X = two(np.asarray(second), library)
    data = RankingData(X, FEW, [0, 4])
    np.testing.assert_array_equal(data.X[:, 1], np.asarray(second, dtype=float))
