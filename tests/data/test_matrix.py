"""What is no number is no feature: at every door, and wherever it stands."""

import datetime

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse

from structsvm_papk import PAPKRanker, RankingData
from structsvm_papk.errors import InputError

pytestmark = pytest.mark.portable

Y, USERS = [1, 0, 0, 1], [1, 1, 2, 2]
FITTED = PAPKRanker(k=1, surrogate="ts").fit(np.array([[1.0, 2], [2, 0], [0, 1], [3, 1]]), Y, USERS)
LARGE = 2**60 + 1
DAY = np.datetime64("2020-01-01")

DOORS = {
    "RankingData": lambda X: RankingData(X, Y, [0, 4]),
    "fit": lambda X: PAPKRanker(k=1).fit(X, Y, USERS),
    "predict": FITTED.predict,
}


def two(values, library=np.column_stack):
    return library([[1.0, 2.0, 3.0, 4.0], values])


def frame(library):
    return lambda columns: library.DataFrame({"a": columns[0], "b": columns[1]})


def objects(columns):
    return np.array(columns, dtype=object).T


MISREAD = {
    "dates": np.full((4, 2), DAY),
    "durations": np.full((4, 2), DAY - DAY),
    "pandas NaT": two([DAY, DAY, DAY, None], frame(pd)),
    "pandas durations": two(pd.to_timedelta([1, 2, 3, None], "D"), frame(pd)),
    "polars dates": two([datetime.date(2020, 1, 1)] * 4, frame(pl)),
    "objects": two([DAY - DAY, 1, 2, 3], objects),
    "text": np.full((4, 2), "1"),
    "text in objects": two(["1_0", 1, 2, 3], objects),
    "text in lists": [[1.0, "1"]] * 4,
    "large": np.array([[1, 2], [1, 2], [2, LARGE], [3, LARGE]]),
    "large in lists": [[1.0, LARGE]] * 4,
    "large unsigned": np.full((4, 2), 2**64 - 1, dtype=np.uint64),
    "large pandas": two([1, 2, 3, LARGE], frame(pd)),
    "large polars": two([1, 2, 3, LARGE], frame(pl)),
    "large CSR": sparse.csr_array(np.array([[0, 1], [0, LARGE], [1, 1], [2, 1]])),
    "large CSC": sparse.csc_array(np.array([[0, 1], [0, LARGE], [1, 1], [2, 1]])),
}


@pytest.mark.parametrize("X", MISREAD.values(), ids=MISREAD)
def test_what_numbers_would_misread_is_refused_with_its_place(X):
    for door in DOORS.values():
        with pytest.raises(InputError, match=r"X holds .* at row \d, column .*(give|encode)"):
            door(X)


def test_the_place_is_right():
    for name, place in {
        "pandas NaT": "row 0, column 'b'", "objects": "row 0, column 1", "large": "row 2, column 1",
        "large polars": "row 3, column 'b'", "large CSC": "row 1, column 1",
    }.items():  # fmt: skip
        with pytest.raises(InputError, match=place):
            RankingData(MISREAD[name], Y, [0, 4])


@pytest.mark.parametrize(
    "second",
    [[2**60, 0, -(2**60), 2**53], [True, False, True, True], np.array([1, 2, 3, 4], dtype=object)],
    ids=["exact", "booleans", "objects"],
)
@pytest.mark.parametrize("library", [np.column_stack, frame(pd), frame(pl), objects])
def test_numbers_that_doubles_hold_are_taken(second, library):
    X = two(np.asarray(second), library)
    data = RankingData(X, Y, [0, 4])
    np.testing.assert_array_equal(data.X[:, 1], np.asarray(second, dtype=float))
