import numpy as np
import pytest
from sklearn.datasets import load_digits

from structsvm_papk.datasets.digits import digit_queries
from structsvm_papk.errors import InputError


def test_features_labels_and_parts_are_those_of_the_data():
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
        product, same, groups = digit_queries(part, 1, size - 1, features="product", seed=1)
        assert np.array_equal(product, images[query] * images[rows])
        assert np.array_equal(same, y) and not groups.any()
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
