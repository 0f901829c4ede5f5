"""Invented interactions of users and items, in the form of public recommendation data."""

from __future__ import annotations

import numpy as np

from structsvm_papk._types import Array
from structsvm_papk.datasets.synthetic import check_sizes, generator
from structsvm_papk.errors import check_number


def interaction_pairs(
    n_users: int = 300,
    n_items: int = 200,
    mean_size: int = 25,
    n_tastes: int = 6,
    test_share: float = 0.2,
    seed: int = 0,
) -> tuple[Array, Array]:
    """Users and items of a training and of a test part.

    A user draws about ``mean_size`` different items with odds ``popularity_i exp(4 a_u . b_i)``,
    where the popularity falls as ``1/(i + 5)`` in a random order and a, b are points on the unit
    sphere of ``n_tastes`` dimensions; items of each user go to the test part at random.

    Parameters
    ----------
    n_users, n_items, mean_size, n_tastes : int
        Every user has at least 5 items.
    test_share : float
        Of a user's items, rounded.
    seed : int

    Returns
    -------
    train, test : ndarray of int, shape (n_pairs, 2)
        User and item of each pair, counted from 0, ordered by user.

    Raises
    ------
    InputError
        Fewer than 1 user or 10 items, or a share outside 0..1.
    """
    check_sizes(n_users=n_users, n_tastes=n_tastes)
    check_number("n_items", n_items, least=10)
    check_number("mean_size", mean_size, above=0)
    check_number("test_share", test_share, above=0, below=1)
    rng = generator(seed)
    taste = _on_sphere(rng.standard_normal((n_users, n_tastes)))
    kind = _on_sphere(rng.standard_normal((n_items, n_tastes)))
    popularity = -np.log(rng.permutation(n_items) + 5.0)
    sizes = np.rint(mean_size * np.exp(0.5 * rng.standard_normal(n_users))).astype(int)
    sizes = np.clip(sizes, 5, n_items // 2)
    parts: list[list[Array]] = [[], []]
    for u, size in enumerate(sizes):
        # the largest of log-odds with Gumbel noise are a draw without replacement
        odds = popularity + 4.0 * kind @ taste[u] + rng.gumbel(size=n_items)
        items = rng.permutation(np.argsort(-odds)[:size])
        n_test = max(1, round(test_share * int(size)))
        for part, chosen in zip(parts, (items[n_test:], items[:n_test]), strict=True):
            part.append(np.column_stack([np.full(chosen.size, u), np.sort(chosen)]))
    train, test = (np.concatenate(part) for part in parts)
    return train, test


def _on_sphere(points: Array) -> Array:
    lengths: Array = np.linalg.norm(points, axis=1, keepdims=True)
    return np.divide(points, lengths)
