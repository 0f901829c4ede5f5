"""Seeded data: recommender-like lists, one user, interactions, frames of candidates, digits.

The first return `LabelledRows(X, y, groups, w_true)`: rows, 0/1 labels, the user of each row and
the direction that generated (or realises) the labels. Nothing but numpy is imported before it is
used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from structsvm_papk._types import Array
from structsvm_papk.errors import (
    InputError,
    as_floats,
    check_choice,
    check_number,
)

if TYPE_CHECKING:
    import pandas as pd

_MISLABELLED_SHARE = 0.8
_LENGTH_DEVIATION = 0.8
_SHARE_DEVIATION = 0.1
_MEAN_SIZE = 25
_TEST_SHARE = 0.2
_N_TRAIN = 900  # of the 1,797 images of digits


class LabelledRows(NamedTuple):
    """Labelled rows of many users: X, y, groups (sorted, from 0), and the truth behind them."""

    X: np.ndarray
    y: np.ndarray
    groups: np.ndarray
    w_true: np.ndarray


def linear_lists(
    n_users: int = 600,
    n_items: int = 70,
    n_features: int = 90,
    noise: float = 0.3,
    *,
    relevant_share: float = 0.2,
    df: float | None = None,
    mislabelled_users: float = 0.0,
    w_true: Array | None = None,
    seed: int = 0,
) -> LabelledRows:
    """Lists of equal length, labelled by a noisy linear score.

    ``s = X w*/sqrt(d) + noise * eps``, ``X`` and ``w*`` standard normal, ``eps`` standard normal or
    Student t; the ``round(relevant_share * n_items)`` best items of each user by ``s`` are
    relevant.

    Parameters
    ----------
    n_users, n_items, n_features : int
    noise : float
        Scale of ``eps``; the signal has standard deviation about 1.
    relevant_share : float
        Share of each user's items that is labelled 1; at least one item, at most all but one.
    df : float, optional
        Degrees of freedom of the Student law; None: ``eps`` is normal.
    mislabelled_users : float
        This share of the users (the first ones) has labels exchanged: four fifths of the positives,
        random ones, lose theirs to the items of lowest ``s``.
    w_true : ndarray of shape (n_features,), optional
        The direction ``w*``; drawn when not given. Pass the same one for training and test users.
    seed : int

    Returns
    -------
    LabelledRows
        ``w_true`` is ``w*`` (not divided by ``sqrt(d)``).
    """
    check_sizes(n_users=n_users, n_items=n_items, n_features=n_features)
    if n_items < 2:
        raise InputError(f"n_items = {n_items}: a list needs a positive and a negative, so >= 2")
    check_number("relevant_share", relevant_share, above=0, below=1)
    rng = generator(seed)
    w_true = _direction(w_true, n_features, rng)
    n_pos = int(np.clip(round(relevant_share * n_items), 1, n_items - 1))
    sizes = np.full(n_users, n_items), np.full(n_users, n_pos)
    (X, y, groups, _), scores = _labelled(*sizes, w_true, noise, df, rng)
    y = y.reshape(n_users, n_items)
    scores = scores.reshape(n_users, n_items)
    check_number("mislabelled_users", mislabelled_users, least=0.0, most=1)
    n_bad = round(mislabelled_users * n_users)
    n_exchanged = round(_MISLABELLED_SHARE * n_pos)
    _exchange_labels(y[:n_bad], scores[:n_bad], n_exchanged, rng)
    return LabelledRows(X, y.ravel(), groups, w_true)


def engagement_lists(
    n_users: int = 300,
    n_features: int = 20,
    *,
    mean_items: float = 60.0,
    relevant_share: float = 0.15,
    noise: float = 0.5,
    min_neg: int = 1,
    w_true: Array | None = None,
    seed: int = 0,
) -> LabelledRows:
    """Users of very different activity: long-tailed list lengths and shares of relevant items.

    User u has ``n_u = max(min_neg + 1, floor(mean_items * exp(0.8 z_u - 0.32)))`` items, z_u
    standard normal (log-normal lengths of mean about `mean_items`); a share
    ``r_u ~ Beta(m c, (1 - m) c)`` of them, with ``m = relevant_share`` and
    ``c = 100 m (1 - m) - 1``, of standard deviation 0.1 over users, is relevant, at least 1 and at
    most ``n_u - min_neg``. Labels as in `linear_lists`.

    Parameters
    ----------
    n_users, n_features : int
    mean_items : float
        Mean list length.
    relevant_share : float
        Mean over users of the share of relevant items, from 0.02 to 0.98.
    noise, w_true, seed
        As in `linear_lists`.
    min_neg : int
        Every user has at least this many negatives (use k).
    """
    check_sizes(n_users=n_users, n_features=n_features, min_neg=min_neg)
    rng = generator(seed)
    w_true = _direction(w_true, n_features, rng)
    check_number("mean_items", mean_items, above=0)
    check_number("relevant_share", relevant_share, least=0.02, most=0.98)
    lengths = mean_items * np.exp(
        _LENGTH_DEVIATION * rng.standard_normal(n_users) - _LENGTH_DEVIATION**2 / 2
    )
    n_items = np.maximum(min_neg + 1, lengths.astype(np.int64))
    of_beta = relevant_share * (1 - relevant_share) / _SHARE_DEVIATION**2 - 1
    shares = rng.beta(relevant_share * of_beta, (1 - relevant_share) * of_beta, n_users)
    n_pos = np.clip(np.rint(shares * n_items).astype(np.int64), 1, n_items - min_neg)
    lists, _ = _labelled(n_items, n_pos, w_true, noise, None, rng)
    return lists


def two_gaussians(
    n_pos: int,
    n_neg: int,
    n_features: int,
    separation: float,
    direction: Array | None = None,
    seed: int = 0,
) -> LabelledRows:
    """Draw one user: negatives ``N(0, I)``, positives ``N(separation * u, I)`` for a unit vector u.

    Parameters
    ----------
    n_pos, n_neg, n_features : int
    separation : float
        Distance of the two means, in standard deviations.
    direction : ndarray of shape (n_features,), optional
        Its normalisation is u; a random direction when not given.
    seed : int

    Returns
    -------
    LabelledRows
        ``w_true = u``.
    """
    check_sizes(n_pos=n_pos, n_neg=n_neg, n_features=n_features)
    rng = generator(seed)
    check_number("separation", separation)
    u = _direction(direction, n_features, rng)
    u = u / np.linalg.norm(u)
    X = rng.standard_normal((n_pos + n_neg, n_features))
    X[:n_pos] += separation * u
    y = np.repeat([1, 0], [n_pos, n_neg])
    return LabelledRows(X, y, np.zeros(len(y), dtype=np.int64), u)


def _labelled(
    n_items: Array,
    n_pos: Array,
    w_true: Array,
    noise: float,
    df: float | None,
    rng: np.random.Generator,
) -> tuple[LabelledRows, Array]:
    """Lists of so many items, those with the largest noisy scores labelled 1; and the scores."""
    groups = np.repeat(np.arange(n_items.size), n_items)
    X = rng.standard_normal((groups.size, w_true.size))
    scores = X @ (w_true / np.sqrt(w_true.size)) + _noise(noise, df, len(X), rng)
    rank = np.arange(groups.size) - np.repeat(np.cumsum(n_items) - n_items, n_items)
    y = np.empty(groups.size, dtype=np.int64)
    y[np.lexsort((-scores, groups))] = rank < np.repeat(n_pos, n_items)
    return LabelledRows(X, y, groups, w_true), scores


def _exchange_labels(y: Array, scores: Array, n_exchanged: int, rng: np.random.Generator) -> None:
    """In each row, move `n_exchanged` labels from random positives to the lowest scores."""
    n_exchanged = min(n_exchanged, int((y == 0).sum(axis=1).min(initial=y.shape[1])))
    keys = np.where(y == 1, rng.random(y.shape), np.inf)
    losers = np.argsort(keys, axis=1, kind="stable")[:, :n_exchanged]
    winners = np.argsort(np.where(y == 0, scores, np.inf), axis=1, kind="stable")[:, :n_exchanged]
    np.put_along_axis(y, losers, 0, axis=1)
    np.put_along_axis(y, winners, 1, axis=1)


def _noise(scale: float, df: float | None, size: int, rng: np.random.Generator) -> Array:
    check_number("noise", scale, least=0.0)
    check_number("df", df, above=0, optional=True)
    if df is None:
        return scale * rng.standard_normal(size)
    return scale * rng.standard_t(df, size)


def _direction(w: ArrayLike | None, n_features: int, rng: np.random.Generator) -> Array:
    if w is None:
        return rng.standard_normal(n_features)
    w = as_floats("the direction", w)
    if w.shape != (n_features,) or not np.isfinite(w).all():
        raise InputError(f"the direction has shape {w.shape}, needs {n_features} finite numbers")
    return w


def check_sizes(**sizes: float) -> None:
    """Refuse what is not a positive whole number."""
    for name, value in sizes.items():
        check_number(name, value, least=1)


def generator(seed: int) -> np.random.Generator:
    """Random numbers, the same ones for the same seed."""
    check_number("seed", seed, least=0)
    return np.random.default_rng(int(seed))


def interaction_pairs(
    n_users: int = 300,
    n_items: int = 200,
    n_tastes: int = 6,
    seed: int = 0,
) -> tuple[Array, Array]:
    """Users and items of a training and of a test part.

    A user draws about 25 different items with odds ``popularity_i exp(4 a_u . b_i)``,
    where the popularity falls as ``1/(i + 5)`` in a random order and a, b are points on the unit
    sphere of ``n_tastes`` dimensions; a fifth of each user's items goes to the test part.

    Parameters
    ----------
    n_users, n_items, n_tastes : int
        Every user has at least 5 items.
    seed : int

    Returns
    -------
    train, test : ndarray of int, shape (n_pairs, 2)
        User and item of each pair, counted from 0, ordered by user.

    Raises
    ------
    InputError
        Fewer than 1 user or 10 items.
    """
    check_sizes(n_users=n_users, n_tastes=n_tastes)
    check_number("n_items", n_items, least=10)
    rng = generator(seed)
    taste = _on_sphere(rng.standard_normal((n_users, n_tastes)))
    kind = _on_sphere(rng.standard_normal((n_items, n_tastes)))
    popularity = -np.log(rng.permutation(n_items) + 5.0)
    sizes = np.rint(_MEAN_SIZE * np.exp(0.5 * rng.standard_normal(n_users))).astype(int)
    sizes = np.clip(sizes, 5, n_items // 2)
    parts: list[list[Array]] = [[], []]
    for u, size in enumerate(sizes):
        # the largest of log-odds with Gumbel noise are a draw without replacement
        odds = popularity + 4.0 * kind @ taste[u] + rng.gumbel(size=n_items)
        items = rng.permutation(np.argsort(-odds)[:size])
        n_test = max(1, round(_TEST_SHARE * int(size)))
        for part, chosen in zip(parts, (items[n_test:], items[:n_test]), strict=True):
            part.append(np.column_stack([np.full(chosen.size, u), np.sort(chosen)]))
    train, test = (np.concatenate(part) for part in parts)
    return train, test


def _on_sphere(points: Array) -> Array:
    lengths: Array = np.linalg.norm(points, axis=1, keepdims=True)
    return np.divide(points, lengths)


def recommender_lists(
    n_users: int = 400, n_items: int = 1000, n_candidates: int = 100, seed: int = 0
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Two frames of candidates for the same users: one to learn from, one to test on.

    A user likes the candidates with the largest ``t + 0.6 c + 0.5 p + e``, where taste t, content c
    and noise e are standard normal for each candidate and p, standard normal for each item, is the
    log of its popularity; how many, about a tenth of the user's activity, a log-normal number. Four
    recommenders see different parts of that, with noise of their own, on scales of their own:

        ease         0.1 (t + 0.3 p + noise)
        neighbours   activity * exp((t + p + noise) / 2), a count
        content      between 0 and 1, increasing in c + noise / 2
        popularity   1000 exp(p), a count

    Parameters
    ----------
    n_users, n_items, n_candidates : int
        At most n_items candidates a user, at least 4.
    seed : int

    Returns
    -------
    train, new : DataFrame with columns user, item, ease, neighbours, content, popularity, relevant
        A row for each candidate; `relevant` is 0 or 1.

    Raises
    ------
    InputError
        No users, or candidates that are too few or more than the items.

    Examples
    --------
    >>> from structsvm_papk.datasets import recommender_lists
    >>> train, new = recommender_lists(n_users=50)
    >>> train.shape
    (5000, 7)
    """
    check_sizes(n_users=n_users, n_items=n_items, n_candidates=n_candidates)
    if not 4 <= n_candidates <= n_items:
        raise InputError(
            "recommender_lists needs 4 <= n_candidates <= n_items, got "
            f"n_candidates={n_candidates}, n_items={n_items}"
        )
    rng = generator(seed)
    popularity = rng.standard_normal(n_items)
    activity = 40.0 * np.exp(0.6 * rng.standard_normal((n_users, 1)))
    frames = [_candidates(rng, popularity, activity, n_candidates) for _ in range(2)]
    return frames[0], frames[1]


def _candidates(
    rng: np.random.Generator, popularity: np.ndarray, activity: np.ndarray, n: int
) -> pd.DataFrame:
    import pandas as pd

    shape = activity.size, n
    item = np.argsort(rng.random((activity.size, popularity.size)), axis=1)[:, :n]
    taste, content, noise, first, second, third = rng.standard_normal((6, *shape))
    popular = popularity[item]
    appeal = taste + 0.6 * content + 0.5 * popular + noise
    place = np.argsort(np.argsort(-appeal, axis=1), axis=1)
    columns = {
        "user": np.broadcast_to(np.arange(1, activity.size + 1)[:, None], shape),
        "item": item + 1,
        "ease": np.round(0.1 * (taste + 0.3 * popular + first), 4),
        "neighbours": np.rint(activity * np.exp(0.5 * (taste + popular + second))),
        "content": np.round(1.0 / (1.0 + np.exp(-content - 0.5 * third)), 4),
        "popularity": np.rint(1000.0 * np.exp(popular)),
        "relevant": (place < np.clip(np.rint(activity / 10.0), 1, n // 4)).astype(int),
    }
    return pd.DataFrame({name: values.ravel() for name, values in columns.items()})


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
    check_choice("features", features, ("difference", "product"))
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
    one = images[queries] / 16
    other = images[shown] / 16
    X = -((one - other) ** 2)
    if features == "product":
        X = one * other
    return X, digits[queries] == digits[shown], np.repeat(np.arange(n_queries), n_shown)
