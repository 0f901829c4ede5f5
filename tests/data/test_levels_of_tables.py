"""Tables: which columns are levels, and what becomes of their values later."""

import datetime
import uuid

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse
from sklearn.base import clone

from structsvm_papk import PAPKRanker, RankingData, metrics
from structsvm_papk.data.columns.checks import as_frame
from structsvm_papk.data.columns.tables import in_numbers, levels_of
from structsvm_papk.errors import InputError

TEXT = ["tent", "flat", None, "flat", "house", "tent"]
FLAGS = [True, False, None, True, True, False]
NUMBERS = [3.5, 1.0, None, 2.0, 0.0, -1.0]
PLACES = [2.0, 0.0, np.nan, 0.0, 1.0, 2.0]

COLUMNS = {"kind": TEXT, "pool": FLAGS, "price": NUMBERS}
ORDERED = pd.Categorical(TEXT, ["tent", "castle", "house", "flat"], ordered=True)
ENUM = pl.Enum(["tent", "house", "castle", "flat"])
FRAMES = {
    "objects": lambda: pd.DataFrame(COLUMNS),
    "nullable": lambda: pd.DataFrame(COLUMNS).convert_dtypes(),
    "category": lambda: pd.DataFrame(COLUMNS).astype({"kind": "category", "pool": "boolean"}),
    "other order": lambda: pd.DataFrame(COLUMNS | {"kind": ORDERED}),
    "polars": lambda: pl.DataFrame(COLUMNS),
    "polars category": lambda: pl.DataFrame(COLUMNS, schema_overrides={"kind": pl.Categorical}),
    "polars enum": lambda: pl.DataFrame(COLUMNS, schema_overrides={"kind": ENUM}),
    "arrow": lambda: pa.table(COLUMNS),
    "arrow dictionary": lambda: pa.table(COLUMNS | {"kind": pa.array(TEXT).dictionary_encode()}),
    "arrow types": lambda: pa.table(COLUMNS).to_pandas(types_mapper=pd.ArrowDtype),
}


@pytest.mark.parametrize("kind", FRAMES)
def test_text_categories_and_booleans_are_levels_in_every_frame(kind):
    frame = as_frame(FRAMES[kind]())
    levels = levels_of(frame, "from_dtype")
    assert levels == {0: ("flat", "house", "tent"), 1: (False, True)}
    numbers = in_numbers(frame, levels)
    assert list(numbers.columns) == ["kind", "pool", "price"]
    np.testing.assert_array_equal(numbers["kind"].to_numpy(float), PLACES)
    np.testing.assert_array_equal(numbers["pool"].to_numpy(float), [1, 0, np.nan, 1, 1, 0])
    prices = numbers["price"].astype(float).to_numpy(float, na_value=np.nan)
    np.testing.assert_array_equal(prices, np.array(NUMBERS, dtype=float))


def test_a_table_of_arrow_gives_the_fit_and_the_scores_of_a_frame():
    rows = np.random.default_rng(0).integers(0, 6, 240)
    frame = FRAMES["objects"]().iloc[rows].reset_index(drop=True)
    table = FRAMES["arrow"]().take(rows)
    y = (frame["kind"] == "house") | (np.arange(240) % 7 == 0)
    ranker = PAPKRanker(k=3, alpha=0.1, curves=None, tol=1e-9)
    expected, fitted = (clone(ranker).fit(X, y, np.repeat(range(12), 20)) for X in (frame, table))
    for scorer in (fitted, expected, expected.to_model()):
        np.testing.assert_array_equal(scorer.predict(table), expected.predict(frame))
    assert fitted.terms_[0].levels == ("flat", "house", "tent")
    assert fitted.terms_[0].gap is not None


@pytest.mark.parametrize(
    ("trained", "now"), [(("flat", "house"), [1.0, 2.0]), ((1, 2), ["flat", "house"])]
)
def test_text_in_training_and_numbers_afterwards_or_the_other_way_round(trained, now):
    frame = pd.DataFrame({"kind": now})
    held = "text" if isinstance(trained[0], str) else "numbers"
    with pytest.raises(InputError, match=f"column 'kind' holds .* in training it held {held}"):
        in_numbers(frame, {0: trained})


@pytest.mark.parametrize("kind", ["text", "category", "polars"])
def test_at_most_254_levels(kind):
    def frame(n):
        cities = [f"city {i}" for i in range(n)] * 3
        made = pd.DataFrame({"price": np.arange(3.0 * n), "city": cities})
        if kind == "polars":
            return as_frame(pl.from_pandas(made))
        return made.astype({"city": "category"}) if kind == "category" else made

    assert len(levels_of(frame(254), "from_dtype")[1]) == 254
    with pytest.raises(InputError, match=r"column 'city' has 255 different values.*at most 254"):
        levels_of(frame(255), "from_dtype")
    with pytest.raises(InputError, match="join the rare ones"):
        levels_of(frame(300), "from_dtype")
    ids = pd.DataFrame({"booking": [f"b{i}" for i in range(900)]})
    with pytest.raises(InputError, match=r"'booking' has 900 .*is it an id"):
        levels_of(ids, "from_dtype")
    prices = pd.DataFrame({"price": [f"{i / 2:.1f}" for i in range(900)]})
    with pytest.raises(InputError, match=r"'price' has 900 .*pd.to_numeric\(column\)"):
        levels_of(prices, "from_dtype")
    many = [str(i) for i in range(999)]
    unused = pd.DataFrame({"c": pd.Categorical(["a", "b"], [*many, "a", "b"])})
    assert levels_of(unused, "from_dtype") == {0: ("a", "b")}


@pytest.mark.parametrize("given", [["kind"], [0], [True, False], np.array([0]), "kind"])
def test_columns_that_are_said_to_be_categorical(given):
    frame = pd.DataFrame({"kind": [3, 1, 3], "price": [1.0, 2.0, 3.0]})
    if isinstance(given, str):
        with pytest.raises(InputError, match="categorical_features='kind' must be 'from_dtype'"):
            levels_of(frame, given)
        return
    levels = levels_of(frame, given)
    assert levels == {0: (1, 3)}
    np.testing.assert_array_equal(in_numbers(frame, levels)["kind"], [1.0, 0.0, 1.0])
    if not isinstance(given[0], str):
        array = frame.to_numpy()
        levels = levels_of(array, given)
        np.testing.assert_array_equal(in_numbers(array, levels), [[1, 1], [0, 2], [1, 3]])


def test_arrays_of_numbers_have_levels_only_where_it_is_said():
    X = np.arange(6.0).reshape(3, 2)
    assert levels_of(X, "from_dtype") == {} and levels_of(X, None) == {}
    mixed = np.array([["a", 1.0], ["b", 2.0], [None, np.nan]], dtype=object)
    levels = levels_of(mixed, [0])
    assert levels == {0: ("a", "b")}
    numbers = in_numbers(mixed, levels).astype(np.float64)
    np.testing.assert_array_equal(numbers, [[0, 1], [1, 2], [np.nan, np.nan]])


def test_lists_of_mixed_types_have_levels_as_arrays_of_objects_have():
    rows = [["a", 1, 2.5], ["b", 2, 1.0], ["b", 5, None], ["a", 1, 4.0]]
    assert levels_of(rows, [0, 1]) == {0: ("a", "b"), 1: (1, 2, 5)}
    ranker = PAPKRanker(k=1, curves=None, categorical_features=[0, 1])
    ranker.fit(rows, [0, 1, 0, 1], groups=[0, 0, 1, 1])
    assert (ranker.predict(rows) == ranker.predict(np.array(rows, dtype=object))).all()
    with pytest.raises(InputError, match=r"'x' at row 0, column 2 .*text is no number"):
        ranker.predict([["a", 1, "x"]])
    with pytest.raises(InputError, match="two dimensions"):
        levels_of([1, 2], [0])


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["price", "city"], "names column 'city', which X does not have: it has 'kind', 'price'"),
        ([2], "names column 2"),
        ([-1], "names column -1"),
        ([True, False, True], "has 3 booleans, but X has 2 columns"),
        ([0.5], "names column 0.5"),
    ],
)
def test_columns_that_are_not_there(given, message):
    frame = pd.DataFrame({"kind": ["a", "b"], "price": [1.0, 2.0]})
    with pytest.raises(InputError, match=message):
        levels_of(frame, given)


def test_sparse_matrices_have_no_levels():
    X = sparse.csr_matrix(np.eye(3))
    assert levels_of(X, "from_dtype") == {}
    with pytest.raises(InputError, match="need a table or a dense array"):
        levels_of(X, [0])
    with pytest.raises(InputError, match="sparse"):
        in_numbers(X, {0: ("a", "b")})


def test_dates_and_objects_are_no_levels():
    dates = pd.DataFrame({"day": [datetime.date(2026, 1, 2)] * 4, "a": [1, 2, 3, 4]})
    assert levels_of(dates, "from_dtype") == {}
    mixed = pd.DataFrame({"kind": ["a", 1.5, "b", "a"], "a": [1, 2, 3, 4]})
    with pytest.raises(
        InputError, match=r"'kind' holds text \('a'\) and numbers \(1.5\): make all"
    ):
        levels_of(mixed, "from_dtype")
    infinite = pd.DataFrame({"kind": ["a", "b", "b", "a"], "a": [1, 2, np.inf, 4]})
    with pytest.raises(InputError, match="inf at row 2, column 'a'"):
        PAPKRanker(k=1).fit(infinite, [0, 1, 0, 1], [0, 0, 1, 1])
    with pytest.raises(InputError, match="column 'a' of categories holds inf; replace it, by NaN"):
        levels_of(infinite, ["a"])


def test_numbers_of_a_category_are_found_whatever_type_they_have_later():
    levels = levels_of(pd.DataFrame({"stars": pd.Categorical([1, 2, 5])}), "from_dtype")
    assert levels == {0: (1, 2, 5)}
    for later in ([1.0, 5.0], np.array([1, 5], dtype=np.int8), pd.Categorical([1, 5])):
        numbers = in_numbers(pd.DataFrame({"stars": later}), levels)
        np.testing.assert_array_equal(numbers["stars"], [0.0, 2.0])


def test_names_may_repeat_and_rows_keep_their_index():
    frame = pd.DataFrame([["a", "x", 1.0], ["b", "y", 2.0]], columns=["c", "c", "d"], index=[7, 3])
    levels = levels_of(frame, "from_dtype")
    numbers = in_numbers(frame, levels)
    assert list(numbers.columns) == ["c", "c", "d"] and list(numbers.index) == [7, 3]
    np.testing.assert_array_equal(numbers.to_numpy(float), [[0, 0, 1], [1, 1, 2]])


@pytest.fixture(scope="module")
def of_kinds():
    """A ranker of text and numbers."""
    table = pd.DataFrame({"kind": ["flat", "tent", "tent", "flat"], "stars": [1.0, 2.0, 3.0, 4.0]})
    return PAPKRanker(k=1, curves=None).fit(table, [0, 1, 0, 1], groups=[0, 0, 1, 1])


@pytest.mark.parametrize(
    ("kinds", "message"),
    [
        (["Flat", "FLAT"], "'kind' holds 'Flat', 'FLAT', .*none: each adds 0.* 'flat', 'tent'"),
        (list("abcd"), "'kind' holds 'a', 'b', 'c', .., of which training knew none"),
        ([b"flat", b"tent"], "training knew none"),
        (pd.period_range("2026", periods=2), "'kind' holds '2026-01-01', '2026-01-02', of which"),
        ([None, None], "'kind' is missing in every row, and never was in training: it adds 0"),
    ],
)
def test_a_column_without_one_value_of_training_adds_zero_with_a_warning(kinds, message, of_kinds):
    later = pd.DataFrame({"kind": kinds, "stars": 2.0})
    for scored_by in (of_kinds.contributions, of_kinds.to_model().contributions):
        with pytest.warns(UserWarning, match=message):
            assert not scored_by(later)[:, 0].any()


@pytest.mark.parametrize("kinds", [["flat", "Flat"], ["flat", None]])
def test_a_column_of_which_training_knew_half_needs_no_warning(kinds, of_kinds):
    of_kinds.predict(pd.DataFrame({"kind": kinds, "stars": 2.0}))  # warnings are errors


def test_a_column_of_which_training_knew_little_is_warned_of(of_kinds):
    later = pd.DataFrame({"kind": ["flat", "Flat", None, "FLAT"], "stars": 2.0})
    with pytest.warns(UserWarning, match="'kind' holds 'Flat', 'FLAT' in most of its rows, of wh"):
        assert not of_kinds.contributions(later)[1:, 0].any()
    with pytest.warns(UserWarning, match="column 'kind' is missing in most rows, and never was in"):
        of_kinds.predict(later.assign(kind=["flat", None, None, None]))


@pytest.mark.parametrize("shuffled", ["y", "groups"])
def test_rows_in_another_order_are_taken_by_their_places_with_a_warning(shuffled):
    table = pd.DataFrame({"stars": [1.0, 2.0, 3.0, 4.0]}, index=[7, 3, 5, 2])
    rows = {
        "y": pd.Series([0, 1, 0, 1], index=table.index),
        "groups": pd.Series([0, 0, 1, 1], index=table.index),
    }
    ranker = PAPKRanker(k=1, curves=None).fit(table, **rows)  # warnings are errors
    rows[shuffled] = rows[shuffled].set_axis([3, 2, 5, 7])
    for call in (PAPKRanker(k=1, curves=None).fit, ranker.score):
        with pytest.warns(UserWarning, match=rf"index of {shuffled} .*{shuffled}.loc\[X.index\]"):
            call(table, **rows)
    with pytest.warns(UserWarning, match=rf"index of {shuffled} .*{shuffled}.loc\[X.index\]"):
        RankingData.from_groups(table, **rows)
    labels, groups = rows.values()
    if shuffled == "groups":
        with pytest.warns(UserWarning, match="index of groups has the rows of X in another order"):
            ranker.to_model().top(table, groups)
    with pytest.warns(UserWarning, match="index of groups has the rows of labels in an"):
        metrics.evaluate("auc", [1.0, 2.0, 3.0, 4.0], labels, groups)
    other_names = pd.Series([0, 1, 0, 1], index=[0, 1, 2, 3])
    assert ranker.score(table, other_names, groups=[0, 0, 1, 1]) >= 0.0


def test_what_never_is_a_level_is_refused_later(of_kinds):
    with pytest.raises(InputError, match="column 'kind' holds a list: a value must be one number"):
        of_kinds.predict(pd.DataFrame({"kind": [["flat"], ["tent"]], "stars": 2.0}))


def messages():
    """What is wrong with a table, with the call that is refused."""
    y = [0, 1, 0, 1]
    lists = [0, 0, 1, 1]
    day = pd.Timestamp("2026-01-02")
    table = pd.DataFrame({"kind": ["a", "b", "b", "a"], "stars": [1.0, 2.0, 3.0, 4.0]})

    def fit(frame, **settings):
        return PAPKRanker(k=1, curves=None, **settings).fit(frame, y, lists)

    def later(frame):
        return fit(table).predict(frame)

    many = pd.DataFrame({"id": [f"h{i}" for i in range(300)], "stars": np.arange(300.0)})
    alternating = np.arange(300) % 2
    return {
        "a date": lambda: fit(table.assign(day=day)),
        "a duration": lambda: fit(table.assign(day=pd.Timedelta("2D"))),
        "text among numbers": lambda: fit(table.assign(stars=["1", 2.0, 3.0, 4.0])),
        "text in an array": lambda: fit(table.to_numpy()),
        "text, told to be none": lambda: fit(table, categorical_features=None),
        "text where numbers were": lambda: later(table.assign(stars="three")),
        "numbers where text was": lambda: later(table.assign(kind=3.5)),
        "an id": lambda: PAPKRanker(k=1).fit(many, alternating, np.arange(300) // 30),
        "a gap that training had not": lambda: later(table.assign(stars=np.nan)),
        "a gap, with None": lambda: fit(table.assign(stars=np.nan), missing=None),
    }


@pytest.mark.filterwarnings("ignore:X has columns that are called as ids are")
@pytest.mark.filterwarnings("ignore::structsvm_papk.errors.DegenerateOptimumWarning")
@pytest.mark.parametrize("wrong", list(messages()))
def test_messages_about_tables_name_the_column_and_the_page(wrong):
    with pytest.raises(InputError, match='page "Your table"') as refused:
        messages()[wrong]()
    columns = {"a date": "day", "a duration": "day", "an id": "id"}
    if wrong != "text in an array":
        column = columns.get(wrong, "kind" if "text was" in wrong or "told" in wrong else "stars")
        assert repr(column) in str(refused.value)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (pd.Series([1.0, 2.0]), r"X is one column of a data frame.*X.to_frame\(\)"),
        (pl.DataFrame({"price": [1.0]}).lazy(), r"lazy frame: give X.collect\(\)"),
        (pd.DataFrame({"price": [1.0], 1: [2.0]}), r"names of text and others.*astype\(str\)"),
        (pd.DataFrame({"a": [1.0, 2.0], "b": [1j, 2.0]}), "X must hold real numbers"),
        (pd.DataFrame({"a": [1.0, 2.0], "b": [1j, "x"]}), "row 0, column 'b'.*must hold real"),
        (pl.DataFrame({"a": [1.0, 2.0], "b": [[1.0], [2.0]]}), "X holds a list at row 0, .*'b'"),
        (pd.DataFrame({"a": [1.0, 2.0], "b": [{}, {}]}), "X holds a dict at row 0, column 'b'"),
        (pd.DataFrame({"b": pd.period_range("2026", periods=2)}), "type Period at row 0, .*'b'"),
        (pd.DataFrame({"a": [1.0, 2.0], "b": [None, uuid.uuid4()]}), "type UUID at row 1, .*'b'"),
        (pd.DataFrame({"b": [b"flat", b"tent"]}), "b'flat' at row 0, column 'b'.*str.decode"),
        (pd.DataFrame({("a", "b"): [1.0, 2.0]}), r"several parts, as \('a', 'b'\): make text"),
        (
            pd.DataFrame({"a": ["flat", True]}),
            r"'a' holds text \('flat'\) and True and False \(True\)",
        ),
        (pd.DataFrame({"a": pd.Categorical(["flat", 3])}), "'a' holds text .*and numbers"),
        (pd.DataFrame({"a": ["05/01/2026", "6/1/2026"]}), "'a' holds dates or durations as text"),
        (pd.DataFrame({"a": ["3", "0,5"]}), r"'0,5'\): give numbers, .*\(.,., .\..\)\.astype"),
        (pd.DataFrame({"a": ["3", "1,250,000.5"]}), 'give numbers, .*"" for commas that separate'),
        (pd.DataFrame({"a": ["5%", "10 %"]}), r"a sign or a comma as text \('10 %'\)"),
        (pd.DataFrame({"a": ["$ 3", "-$1,250.5"]}), r"\('\$ 3'|'-\$1.*'\): give numbers, .*regex"),
        (pd.DataFrame({"a": ["3 €", "4"]}), "'a' holds numbers with a sign or a comma as text"),
        (pd.DataFrame({"a": ["3 days", "0 days 10:00:00"]}), "'a' holds dates or durations as"),
        (pd.DataFrame({"a": ["02JAN2026", "3 February 2026"]}), "'a' holds dates or durations as"),
        (
            pd.DataFrame({"a": pd.to_timedelta(["3 days", None])}),
            "X holds 3 days, 0:00:00 at row 0",
        ),
        (pd.DataFrame([[1.0, 2.0]], columns=["a", "a"]), "several columns called 'a': give each"),
        (pd.DataFrame({"a": ["5.1.2026", "6.12.2026"]}), "'a' holds dates or durations as text"),
        (pd.DataFrame({"a": [1.0, -np.inf]}), "-inf at row 1, column 'a'.*by NaN where .*known"),
    ],
)
def test_what_is_no_table_of_numbers_text_and_gaps_is_refused(given, message):
    n_rows = 1 if hasattr(given, "collect") else len(given)
    with pytest.raises(InputError, match=message):
        PAPKRanker(k=1, groups="one_list").fit(given, np.arange(n_rows) % 2)


def test_text_with_a_sign_beside_other_text_is_levels():
    frame = pd.DataFrame({"discount": ["5%", "none", "10%", "none"]})
    ranker = PAPKRanker(k=1, groups="one_list").fit(frame, [0, 1, 0, 1])
    assert ranker.predict(frame)[1] > ranker.predict(frame)[0]


def test_columns_with_numbers_for_names_are_not_confused():
    X = np.random.default_rng(0).normal(size=(40, 2))
    y = X[:, 0] > X[:, 1]
    named = pd.DataFrame(X, columns=[2020, 2021])
    ranker = PAPKRanker(k=1, alpha=0.1, groups="one_list").fit(named, y)
    assert [term.name for term in ranker.terms_][:2] == ["2020", "2021"]
    with pytest.raises(InputError, match="Feature names must be in the same order"):
        ranker.predict(named[[2021, 2020]])
    model = ranker.to_model()
    np.testing.assert_array_equal(model.predict(named[[2021, 2020]]), ranker.predict(named))
    counted = pd.DataFrame(X)
    ranker.fit(counted, y)
    np.testing.assert_array_equal(ranker.predict(X), ranker.predict(counted))
    for scorer in (ranker, ranker.to_model()):
        with pytest.raises(InputError, match=r"numbered, and not in order \(1 is the first\)"):
            scorer.predict(counted[[1, 0]])


def test_versions_are_no_dates():
    assert levels_of(pd.DataFrame({"a": ["1.2.10", "1.10.12"]}), "from_dtype") == {
        0: ("1.10.12", "1.2.10")
    }


@pytest.mark.parametrize("left_out", [0.0, np.nan])
@pytest.mark.parametrize("beside", [False, True])
def test_sparse_columns_of_a_frame_are_as_dense_ones(left_out, beside):
    values = np.where(np.arange(60) % 3 == 0, np.arange(60.0), left_out)
    frame = pd.DataFrame({"a": values, "b": np.where(np.arange(60) % 4, left_out, 1.0)})
    sparse_frame = frame.astype(pd.SparseDtype(float, left_out))
    if beside:
        frame["c"] = sparse_frame["c"] = np.arange(60) % 7.0
    y = np.nan_to_num(values) > 20.0
    how = {"alpha": 0.1, "curves": None, "pairs": None, "standardize": False, "tol": 1e-7}
    ranker = PAPKRanker(2, "avg", groups="one_list", **how)
    scores = ranker.fit(frame, y).predict(frame)
    np.testing.assert_allclose(ranker.fit(sparse_frame, y).predict(sparse_frame), scores, atol=1e-6)


def test_other_columns_than_in_training_are_said_before_their_values():
    frame = FRAMES["objects"]().iloc[np.arange(60) % 6].reset_index(drop=True)
    y = frame["kind"] == "tent"
    ranker = PAPKRanker(k=2, groups="one_list", alpha=0.1, curves=None).fit(frame, y)
    with pytest.raises(InputError, match="Feature names must be in the same order"):
        ranker.predict(frame[["price", "pool", "kind"]])
    with pytest.raises(InputError, match="yet now missing:\n- price"):
        ranker.predict(frame[["kind", "pool"]])
    plain = PAPKRanker(k=2, groups="one_list", alpha=0.1, curves=None, categorical_features=[1])
    X = np.array([[1.0, "a"], [2.0, "b"]] * 30, dtype=object)
    plain.fit(X, np.arange(60) % 2)
    for wrong in (X[:, :1], [1.0, 2.0], [{"a": 1}]):
        for scorer in (plain, plain.to_model()):
            with pytest.raises((InputError, TypeError), match=r"features|1D|dimensions|dict"):
                scorer.predict(wrong)
    rows = X[:3].tolist()
    assert (plain.predict(rows) == plain.to_model().predict(rows)).all()
