import numpy as np
import pytest
from sklearn.datasets import load_digits

from structsvm_papk.datasets.digits import digit_queries
from structsvm_papk.errors import InputError


def test_features_are_those_of_the_pair():
    difference, y, groups = digit_queries("train", n_queries=5, n_shown=20, seed=3)
    product, same_y, _ = digit_queries("train", 5, 20, features="product", seed=3)
    assert difference.shape == product.shape == (100, 64)
    assert np.array_equal(groups, np.repeat(np.arange(5), 20))
    assert np.array_equal(y, same_y)
    squares = 2 * product - difference  # a^2 + b^2 for grey values a and b in [0, 1]
    assert squares.min() >= 0
    assert squares.max() <= 2


def test_labels_and_parts_are_those_of_the_data():
    images, digits = load_digits(return_X_y=True)
    images = images / 16
    seen = {}
    for part, size in (("train", 900), ("test", 897)):
        X, y, _ = digit_queries(part, n_queries=1, n_shown=size - 1, seed=1)
        # every image of the part but the query is shown: find the query, then all of them
        for query in range(digits.size):
            differences = -((images[query] - images) ** 2)
            if (differences == X[0]).all(axis=1).any():
                places = {row.tobytes(): i for i, row in enumerate(differences)}
                rows = [places.get(row.tobytes()) for row in X]
                if None not in rows:
                    break
        assert np.array_equal(digits[rows] == digits[query], y)
        seen[part] = {query, *rows}
    assert not seen["train"] & seen["test"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"part": "validation"}, "choose one of train, test"),
        ({"features": "raw"}, "choose one of difference, product"),
        ({"n_queries": 901}, "900 images"),
        ({"part": "test", "n_shown": 897}, "897 images"),
    ],
)
def test_impossible_requests_are_refused(arguments, message):
    with pytest.raises(InputError, match=message):
        digit_queries(**arguments)
