"""Real lists that need no download: search by example on scikit-learn's handwritten digits."""

import numpy as np

from structsvm_papk._types import Array
from structsvm_papk.datasets.synthetic import check_sizes, generator
from structsvm_papk.errors import InputError, check_choice

_N_TRAIN = 900  # of the 1,797 images
_FEATURES = {
    "difference": lambda query, images: -((query - images) ** 2),
    "product": lambda query, images: query * images,
}


def digit_queries(
    part: str = "train",
    n_queries: int = 200,
    n_shown: int = 60,
    features: str = "difference",
    seed: int = 0,
) -> tuple[Array, Array, Array]:
    """Lists of images, to be ranked by likeness to a query image.

    Every user holds up one image and is shown `n_shown` others; those of the same digit are
    relevant, about one in ten. A row has one feature for each of the 64 pixels, from the grey
    values in [0, 1] of the query and of the image shown.

    Parameters
    ----------
    part : {'train', 'test'}
        The two share no image.
    n_queries : int
        Users; at most 900 for 'train' and 897 for 'test'.
    n_shown : int
        Items of each user, drawn at random from the other images of the part.
    features : {'difference', 'product'}
        'difference': ``-(query - image)^2``; equal weights rank by Euclidean distance.
        'product': ``query * image``, the product of user and item features that the paper uses.
    seed : int

    Returns
    -------
    X : ndarray of shape (n_queries * n_shown, 64)
    y : ndarray of bool, shape (n_queries * n_shown,)
    groups : ndarray of int, shape (n_queries * n_shown,)

    Raises
    ------
    InputError
        An unknown part or kind of features, or more queries or items than there are images.

    References
    ----------
    E. Alpaydin and C. Kaynak, "Optical Recognition of Handwritten Digits", UCI Machine Learning
    Repository (1998); the test part of it, as `sklearn.datasets.load_digits` gives it.
    """
    from sklearn.datasets import load_digits  # scikit-learn takes a second to import

    check_choice("part", part, ("train", "test"))
    check_choice("features", features, _FEATURES)
    check_sizes(n_queries=n_queries, n_shown=n_shown)
    images, digits = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(digits.size)  # the parts do not move with `seed`
    pool = order[:_N_TRAIN] if part == "train" else order[_N_TRAIN:]
    if not 1 <= n_queries <= pool.size or not 2 <= n_shown < pool.size:
        raise InputError(
            f"n_queries={n_queries}, n_shown={n_shown}: the part {part!r} has {pool.size} images"
        )
    rng = generator(seed)
    queries = np.repeat(rng.choice(pool, n_queries, replace=False), n_shown)
    shown = np.concatenate(
        [rng.choice(pool[pool != query], n_shown, replace=False) for query in queries[::n_shown]]
    )
    X = _FEATURES[features](images[queries] / 16, images[shown] / 16)
    return X, digits[queries] == digits[shown], np.repeat(np.arange(n_queries), n_shown)
