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


MISREAD = {  # and where
    "dates": (np.full((4, 2), DAY), "row 0, column 0"),
    "durations": (np.full((4, 2), DAY - DAY), "row 0, column 0"),
    "pandas NaT": (two([DAY, DAY, DAY, None], frame(pd)), "row 0, column 'b'"),
    "polars dates": (two([datetime.date(2020, 1, 1)] * 4, frame(pl)), "row 0, column 'b'"),
    "objects": (two([DAY - DAY, 1, 2, 3], objects), "row 0, column 1"),
    "text": (np.full((4, 2), "1"), "row 0, column 0"),
    "text in objects": (two([1, "1_0", 2, 3], objects), "row 1, column 1"),
    "text in lists": ([[1.0, "1"]] * 4, "row 0, column 1"),
    "large": (np.array([[1, 2], [1, 2], [2, LARGE], [3, LARGE]]), "row 2, column 1"),
    "large in lists": ([[1.0, LARGE]] * 4, "row 0, column 1"),
    "large unsigned": (np.full((4, 2), 2**64 - 1, dtype=np.uint64), "row 0, column 0"),
    "large polars": (two([1, 2, 3, LARGE], frame(pl)), "row 3, column 'b'"),
    "large CSC": (sparse.csc_array([[0, 1], [0, LARGE], [1, 1], [2, 1]]), "row 1, column 1"),
}


@pytest.mark.parametrize(("X", "place"), MISREAD.values(), ids=MISREAD)
def test_what_numbers_would_misread_is_refused_with_its_place(X, place):
    for door in DOORS.values():
        with pytest.raises(InputError, match=rf"X holds .* at {place} .*(give|encode)"):
            door(X)


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
