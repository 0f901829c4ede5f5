"""Candidates of a recommender system with the raw scores of four recommenders."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from structsvm_papk.datasets.synthetic import check_sizes, generator
from structsvm_papk.errors import InputError

if TYPE_CHECKING:
    import pandas as pd


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
