"""Seeded synthetic data: the paper's, recommender-like, and with an exact margin condition.

Every generator returns `Lists(X, y, groups, w_true)`: rows, 0/1 labels, the user of each row and
the direction that generated (or realises) the labels. Nothing but numpy is imported.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from structsvm_papk._types import Array
from structsvm_papk.errors import InputError

CONDITIONS = ("weak", "beta", "moderate", "strong")
GRID = 2.0**-10  # feature grid of `margin_lists`: sums of products on it are exact in float64


class Lists(NamedTuple):
    """Labelled rows of many users, and the truth behind them.

    Attributes
    ----------
    X : ndarray of shape (n_rows, n_features)
    y : ndarray of shape (n_rows,), 0 or 1
    groups : ndarray of shape (n_rows,), the user of each row, 0 .. n_users - 1, sorted
    w_true : ndarray of shape (n_features,)
    """

    X: np.ndarray
    y: np.ndarray
    groups: np.ndarray
    w_true: np.ndarray


# ----------------------------------------------------------------- recommender-like lists


def linear_lists(
    n_users: int = 600,
    n_items: int = 70,
    n_features: int = 90,
    noise: float = 0.3,
    relevant_share: float = 0.2,
    noise_law: str = "normal",
    df: float | None = None,
    mislabelled_users: float = 0.0,
    mislabelled_share: float = 0.8,
    w_true: Array | None = None,
    seed: int = 0,
) -> Lists:
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
    noise_law : {"normal", "t"}
    df : float
        Degrees of freedom of the Student law.
    mislabelled_users : float
        This share of the users (the first ones) has labels exchanged.
    mislabelled_share : float
        In those users, this share of the positives (random ones) loses its label to the items of
        lowest ``s``.
    w_true : ndarray of shape (n_features,), optional
        The direction ``w*``; drawn when not given. Pass the same one for training and test users.
    seed : int

    Returns
    -------
    Lists
        ``w_true`` is ``w*`` (not divided by ``sqrt(d)``).
    """
    _check_sizes(n_users=n_users, n_items=n_items, n_features=n_features)
    if n_items < 2:
        raise InputError(f"n_items = {n_items}: a list needs a positive and a negative, so >= 2")
    rng = np.random.default_rng(seed)
    w_true = _direction(w_true, n_features, rng)
    X = rng.standard_normal((n_users * n_items, n_features))
    scores = X @ (w_true / np.sqrt(n_features)) + _noise(noise, noise_law, df, len(X), rng)
    n_pos = _n_relevant(relevant_share, n_items)
    y = _top_labels(scores.reshape(n_users, n_items), n_pos)
    n_bad = round(_share("mislabelled_users", mislabelled_users) * n_users)
    n_exchanged = round(_share("mislabelled_share", mislabelled_share) * n_pos)
    _exchange_labels(y[:n_bad], scores.reshape(y.shape)[:n_bad], n_exchanged, rng)
    return Lists(X, y.ravel(), np.repeat(np.arange(n_users), n_items), w_true)


def engagement_lists(
    n_users: int = 300,
    n_features: int = 20,
    mean_items: float = 60.0,
    tail: float = 0.8,
    relevant_share: float = 0.15,
    share_spread: float = 0.1,
    noise: float = 0.5,
    noise_law: str = "normal",
    df: float | None = None,
    min_neg: int = 1,
    w_true: Array | None = None,
    seed: int = 0,
) -> Lists:
    """Users of very different activity: long-tailed list lengths and shares of relevant items.

    User u has ``n_u = max(min_neg + 1, floor(mean_items * exp(tail * z_u - tail^2/2)))`` items, z_u
    standard normal (log-normal lengths of mean about `mean_items`); a share
    ``r_u ~ Beta(m c, (1 - m) c)`` with ``m = relevant_share``, ``c = m (1 - m)/share_spread^2 - 1``
    of them is relevant, at least 1 and at most ``n_u - min_neg``. Labels as in `linear_lists`.

    Parameters
    ----------
    n_users, n_features : int
    mean_items : float
        Mean list length.
    tail : float
        Standard deviation of the log of the length; 0 gives equal lengths.
    relevant_share, share_spread : float
        Mean and standard deviation over users of the share of relevant items.
    noise, noise_law, df, w_true, seed
        As in `linear_lists`.
    min_neg : int
        Every user has at least this many negatives (use k).

    Returns
    -------
    Lists
    """
    _check_sizes(n_users=n_users, n_features=n_features, min_neg=min_neg)
    rng = np.random.default_rng(seed)
    w_true = _direction(w_true, n_features, rng)
    lengths = mean_items * np.exp(tail * rng.standard_normal(n_users) - tail**2 / 2)
    n_items = np.maximum(min_neg + 1, lengths.astype(np.int64))
    shares = _beta_shares(relevant_share, share_spread, n_users, rng)
    n_pos = np.clip(np.rint(shares * n_items).astype(np.int64), 1, n_items - min_neg)
    groups = np.repeat(np.arange(n_users), n_items)
    X = rng.standard_normal((len(groups), n_features))
    scores = X @ (w_true / np.sqrt(n_features)) + _noise(noise, noise_law, df, len(X), rng)
    order = np.lexsort((-scores, groups))
    rank = np.arange(len(groups)) - np.repeat(np.cumsum(n_items) - n_items, n_items)
    y = np.empty(len(groups), dtype=np.int64)
    y[order] = rank < np.repeat(n_pos, n_items)
    return Lists(X, y, groups, w_true)


def degenerate_lists(
    n_users: int = 50,
    n_pos: int = 10,
    n_neg: int = 40,
    n_features: int = 8,
    noise: float = 1.0,
    seed: int = 0,
) -> Lists:
    """Lists on which ``w = 0`` is an exact minimiser of Avg, TS, pAUC and Max for every alpha.

    In each user the positives are moved so that their mean equals the mean of the negatives. Then
    for every w and every user the top-k negatives score at least ``mean(p)`` on average, hence
    ``Avg(w) >= 1 = Avg(0)``; so it is for pAUC and Max, which are above Avg, and for TS, which is
    at least ``1 + n_pos/beta (mean of the top-k negatives - mean(p))``.

    Parameters
    ----------
    n_users, n_pos, n_neg, n_features : int
    noise : float
        Standard deviation of the positives around that mean.
    seed : int

    Returns
    -------
    Lists
        ``w_true`` is the zero vector.
    """
    _check_sizes(n_users=n_users, n_pos=n_pos, n_neg=n_neg, n_features=n_features)
    rng = np.random.default_rng(seed)
    neg = rng.standard_normal((n_users, n_neg, n_features))
    pos = noise * rng.standard_normal((n_users, n_pos, n_features))
    pos += (neg.mean(axis=1) - pos.mean(axis=1))[:, None, :]
    return _stack(pos, neg, np.zeros(n_features))


# ----------------------------------------------------------------- one user


def two_gaussians(
    n_pos: int,
    n_neg: int,
    n_features: int,
    separation: float,
    direction: Array | None = None,
    seed: int = 0,
) -> Lists:
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
    Lists
        ``w_true = u``.
    """
    _check_sizes(n_pos=n_pos, n_neg=n_neg, n_features=n_features)
    rng = np.random.default_rng(seed)
    u = _direction(direction, n_features, rng)
    u = u / np.linalg.norm(u)
    X = rng.standard_normal((n_pos + n_neg, n_features))
    X[:n_pos] += separation * u
    y = np.repeat([1, 0], [n_pos, n_neg])
    return Lists(X, y, np.zeros(len(y), dtype=np.int64), u)


def paper_table2(case: int = 1, seed: int = 0) -> Lists:
    """The data of Section 7.1 (Table 2) of the paper: positives ``N(-1_5, I)``, negatives ``N(0_5,
    I)``.

    Parameters
    ----------
    case : {1, 2}
        1: 10 positives, 160 negatives, to be used with k = 20; 2: 20 positives, 160 negatives, k =
        10.
    seed : int

    Returns
    -------
    Lists
        One user.
    """
    sizes = {1: (10, 160), 2: (20, 160)}
    if case not in sizes:
        raise InputError(f"case = {case!r}: Section 7.1 has the cases 1 (k = 20) and 2 (k = 10)")
    return two_gaussians(*sizes[case], 5, np.sqrt(5.0), direction=-np.ones(5), seed=seed)


def paper_figure1(
    condition: str,
    k: int = 30,
    n_pos: int = 250,
    n_neg: int = 2000,
    mean: float = 0.5,
    delta: float = 1.0,
    min_neg: int = 300,
    seed: int = 0,
) -> Lists:
    """The data of Section 7.2 (Figure 1): one user, d = 5, filtered to satisfy a margin condition.

    Positives ``N(0, I)``, negatives ``N(mean * 1_5, I)``; with ``w = -1_5`` the negatives kept are
    those with ``w.x <= tau``, tau the largest threshold for which the condition holds with margin
    `delta` (`largest_negative`). While fewer than `min_neg` remain, the lowest positive is dropped.

    Parameters
    ----------
    condition : {"weak", "beta", "moderate", "strong"}
    k, n_pos, n_neg : int
        Sizes before filtering.
    mean : float
        0.5 in the paper; 0.4 in the authors' code.
    delta : float
        Margin.
    min_neg : int
        At least this many negatives are kept.
    seed : int

    Returns
    -------
    Lists
        ``w_true = -1_5``.
    """
    rng = np.random.default_rng(seed)
    w_true = -np.ones(5)
    pos = rng.standard_normal((n_pos, 5))
    neg = rng.standard_normal((n_neg, 5)) + mean
    pos = pos[np.argsort(-(pos @ w_true), kind="stable")]
    for n_kept in range(n_pos, 0, -1):
        p = pos[:n_kept] @ w_true
        keep = neg @ w_true <= largest_negative(p, min(n_kept, k), condition, delta)
        if keep.sum() >= min_neg:
            return _stack(pos[None, :n_kept], neg[keep][None], w_true)
    raise InputError(
        f"even with one positive only {keep.sum()} of {n_neg} negatives satisfy the {condition} "
        f"condition with margin {delta}, fewer than min_neg = {min_neg}: raise n_neg or mean, or "
        "lower delta or min_neg"
    )


def largest_negative(pos_scores: Array, beta: int, condition: str, delta: float) -> float:
    """Largest value that ``max q`` may take for a margin condition to hold (Defs. 2-5).

    ``weak: p_(beta) - delta; beta: mean of the beta smallest - delta; strong: p_(n_pos) - delta;``
    ``moderate: min(p_(n_pos), p_(beta) - delta)``.
    """
    p = np.sort(np.asarray(pos_scores, dtype=float))[::-1]
    limits = {
        "weak": p[beta - 1] - delta,
        "beta": p[len(p) - beta :].mean() - delta,
        "moderate": min(p[-1], p[beta - 1] - delta),
        "strong": p[-1] - delta,
    }
    if condition not in limits:
        raise InputError(f"condition {condition!r} is not one of {', '.join(limits)}")
    return limits[condition]


# ----------------------------------------------------------------- exact margin conditions


def margin_lists(
    condition: str,
    n_users: int = 1,
    n_pos: int = 8,
    n_neg: int = 20,
    n_features: int = 4,
    k: int = 3,
    delta: float = 1.0,
    exclude: str | None = None,
    seed: int = 0,
) -> Lists:
    """Lists on which one shared linear w realises a margin condition exactly, and, on request, no
    other.

    `w_true` has small integer entries and the features lie on a grid of 2^-10, so that ``X @
    w_true`` is exact in float64: the condition holds with margin `delta` (rounded up to the grid)
    without any rounding.

    Parameters
    ----------
    condition : {"weak", "beta", "moderate", "strong"}
    n_users, n_pos, n_neg, n_features, k : int
        Sizes of every user; ``1 <= k <= n_neg``, ``beta = min(n_pos, k)``.
    delta : float
        Margin, > 0.
    exclude : None, "truth" or "any"
        None: stronger conditions may hold too. "truth": with `w_true` and `delta`, only
        `condition` and those that it implies hold. "any": no linear w realises, with any positive
        margin, a condition that `condition` does not imply. Implied: strong => all; moderate =>
        weak; beta => weak when ``n_pos >= 2 beta - 1``.
    seed : int

    Returns
    -------
    Lists

    Raises
    ------
    InputError
        When the request contradicts itself; the message says which condition contradicts which.
    """
    _check_margin_request(condition, n_pos, n_neg, k, delta, exclude, n_features)
    _check_sizes(n_users=n_users, n_features=n_features)
    rng = np.random.default_rng(seed)
    delta = np.ceil(delta / GRID) * GRID
    w_true = _integer_direction(n_features, rng)
    users = [
        _margin_user(condition, n_pos, n_neg, k, delta, exclude, w_true, rng)
        for _ in range(n_users)
    ]
    pos, neg = (np.stack(side) for side in zip(*users, strict=True))
    return _stack(pos, neg, w_true)


def _check_margin_request(condition, n_pos, n_neg, k, delta, exclude, d):
    """Refuse requests that no data can satisfy."""
    if condition not in CONDITIONS:
        raise InputError(f"condition {condition!r} is not one of {', '.join(CONDITIONS)}")
    if exclude not in (None, "truth", "any"):
        raise InputError(f"exclude = {exclude!r}: use None, 'truth' or 'any'")
    if not (1 <= k <= n_neg and n_pos >= 1):
        raise InputError(f"need n_pos >= 1 and 1 <= k <= n_neg, got {n_pos}, k={k}, {n_neg}")
    if not delta > 0 or not np.isfinite(delta):
        raise InputError(f"delta = {delta}: a margin is a positive number")
    if exclude is None or condition == "strong":
        return
    beta = min(n_pos, k)
    problem = None
    if condition in ("weak", "moderate") and n_pos <= k:
        problem = f"with n_pos = {n_pos} <= k = {k} the {condition} condition is the strong one"
    elif condition == "beta" and beta == 1:
        problem = "with beta = 1 the beta condition is the strong one"
    elif condition == "moderate" and exclude == "any" and n_pos < 2 * beta:
        problem = (
            f"with n_pos = {n_pos} < 2 beta = {2 * beta} every set of beta positives meets the "
            "best beta: a w that realises the moderate condition realises the beta condition too "
            "(with a smaller margin); use exclude='truth'"
        )
    elif condition in ("weak", "beta") and exclude == "any" and n_neg < d + 2:
        problem = (
            "excluding the moderate condition for every w needs a positive inside a full simplex "
            f"of negatives and one more negative: n_neg >= n_features + 2 = {d + 2}, got {n_neg}"
        )
    if problem:
        raise InputError(f"{condition} with exclude={exclude!r} is impossible: {problem}")


def _margin_user(condition, n_pos, n_neg, k, delta, exclude, w, rng):
    """Draw one user's positives and negatives: scores first, then features with those scores."""
    beta = min(n_pos, k)
    neg = _on_grid(rng.standard_normal((n_neg, len(w))))
    top = (neg @ w).max()
    spread = lambda size: _on_grid(rng.exponential(1.0, size))  # noqa: E731
    high = _with_scores(top + delta + spread(n_pos), w, rng)
    if exclude is None or condition == "strong":
        return _relaxed_positives(high, condition, beta, top, w, rng), neg
    if condition == "moderate":
        return _moderate_only(high, neg, beta, delta, top, w, rng), neg
    inside, neg = _surrounded_point(neg, w, rng, tight=exclude == "any")
    gap = top + delta - inside @ w
    if condition == "beta":
        n_low = 1 if n_pos >= 2 * beta - 1 else n_pos - beta + 1
        lift = np.ceil(n_low * gap / (beta - n_low) / GRID) * GRID
        high = _with_scores(top + delta + lift + spread(n_pos), w, rng)
        high[-n_low:] = inside
        return high, neg
    high[-1] = beta * inside - high[: beta - 1].sum(axis=0) if beta > 1 else inside
    if n_pos > beta + 1:
        high[beta:-1] = inside
    return high, neg


def _relaxed_positives(high, condition, beta, top, w, rng):
    """Lower the positives that the condition leaves free; the others stay strong."""
    n_free = len(high) - beta if condition in ("weak", "moderate") else 0
    if n_free:
        shift = _on_grid(rng.exponential(1.0, n_free))
        high[-n_free:] = _with_scores(top + (shift if condition == "moderate" else -shift), w, rng)
    return high


def _moderate_only(high, neg, beta, delta, top, w, rng):
    """All positives at or above max q, yet beta and strong fail: the free ones copy the best
    negative.

    With n_pos < 2 beta the copies and the lowest of the best beta must still have a mean below
    ``max q + delta``: those are put at exactly ``max q + delta``.
    """
    n_pos = len(high)
    high[beta:] = neg[np.argmax(neg @ w)]
    n_shared = max(0, 2 * beta - n_pos)
    if n_shared:
        high[beta - n_shared : beta] = _with_scores(np.full(n_shared, top + delta), w, rng)
    return high


def _surrounded_point(neg, w, rng, tight):
    """Return a point that scores below max q for w; with `tight`, for every w that is not zero.

    Tight: ``d + 1`` negatives (not the best one) become the corners of a simplex around the
    point, ``c + h e_i`` and ``c - h (1, .., 1)``, so that c is their mean without rounding.
    """
    best = int(np.argmax(neg @ w))
    low = neg[np.argsort(neg @ w)[: max(1, len(neg) // 2)]]
    centre = low[rng.integers(len(low))].copy()
    centre[_unit_entry(w)] -= w[_unit_entry(w)] * 1.0
    if not tight:
        return centre, neg
    step = np.vstack([np.eye(len(w)), -np.ones(len(w))])
    room = (neg @ w).max() - centre @ w
    h = GRID * max(1.0, np.floor(min(1.0, room / (2 * np.abs(w).sum())) / GRID))
    others = [i for i in np.argsort(neg @ w) if i != best][: len(step)]
    neg = neg.copy()
    neg[others] = centre + h * step
    return centre, neg


def _integer_direction(n_features, rng):
    """Draw a direction with entries in -3..3, one of them +-1: scores can then be set exactly."""
    w = rng.integers(-3, 4, n_features).astype(float)
    w[rng.integers(n_features)] = rng.choice([-1.0, 1.0])
    return w


def _unit_entry(w):
    return int(np.flatnonzero(np.abs(w) == 1.0)[0])


def _with_scores(scores, w, rng):
    """Draw rows on the grid with ``rows @ w`` equal to the given scores (on the grid), exactly."""
    rows = _on_grid(rng.standard_normal((len(scores), len(w))))
    j = _unit_entry(w)
    rows[:, j] = 0.0
    rows[:, j] = (scores - rows @ w) * w[j]
    return rows


def _on_grid(values):
    return np.rint(values / GRID) * GRID


# ----------------------------------------------------------------- pieces


def _stack(pos, neg, w_true):
    """Lists from arrays (n_users, n_pos, d) and (n_users, n_neg, d)."""
    n_users, n_pos, d = pos.shape
    n_neg = neg.shape[1]
    X = np.concatenate([pos, neg], axis=1).reshape(-1, d)
    y = np.tile(np.repeat([1, 0], [n_pos, n_neg]), n_users)
    return Lists(X, y, np.repeat(np.arange(n_users), n_pos + n_neg), w_true)


def _top_labels(scores, n_pos):
    """Labels (n_users, n_items): 1 for the `n_pos` largest scores of each row."""
    best = np.argpartition(-scores, n_pos - 1, axis=1)[:, :n_pos]
    y = np.zeros(scores.shape, dtype=np.int64)
    np.put_along_axis(y, best, 1, axis=1)
    return y


def _exchange_labels(y, scores, n_exchanged, rng):
    """In each row, move `n_exchanged` labels from random positives to the lowest scores."""
    n_exchanged = min(n_exchanged, int((y == 0).sum(axis=1).min(initial=y.shape[1])))
    keys = np.where(y == 1, rng.random(y.shape), np.inf)
    losers = np.argsort(keys, axis=1, kind="stable")[:, :n_exchanged]
    winners = np.argsort(np.where(y == 0, scores, np.inf), axis=1, kind="stable")[:, :n_exchanged]
    np.put_along_axis(y, losers, 0, axis=1)
    np.put_along_axis(y, winners, 1, axis=1)


def _noise(scale, law, df, size, rng):
    if not scale >= 0 or not np.isfinite(scale):
        raise InputError(f"noise = {scale}: a scale is a finite number >= 0")
    if law == "normal":
        return scale * rng.standard_normal(size)
    if law == "t":
        if df is None or not df > 0:
            raise InputError(f"noise_law='t' needs df > 0 (degrees of freedom), got {df}")
        return scale * rng.standard_t(df, size)
    raise InputError(f"noise_law {law!r} is not one of normal, t")


def _beta_shares(mean, spread, size, rng):
    _share("relevant_share", mean)
    if not 0 <= spread**2 < mean * (1 - mean):
        raise InputError(
            f"share_spread = {spread}: a law on [0, 1] with mean {mean} has a standard deviation "
            f"below {np.sqrt(mean * (1 - mean)):.3g}"
        )
    if spread == 0:
        return np.full(size, mean)
    c = mean * (1 - mean) / spread**2 - 1
    return rng.beta(mean * c, (1 - mean) * c, size)


def _n_relevant(share, n_items):
    if not 0 < share < 1:
        raise InputError(f"relevant_share = {share}: a share strictly between 0 and 1")
    return int(np.clip(round(share * n_items), 1, n_items - 1))


def _share(name, value):
    if not 0 <= value <= 1:
        raise InputError(f"{name} = {value}: a share lies in [0, 1]")
    return value


def _direction(w, n_features, rng):
    if w is None:
        return rng.standard_normal(n_features)
    w = np.asarray(w, dtype=float)
    if w.shape != (n_features,) or not np.isfinite(w).all():
        raise InputError(f"the direction has shape {w.shape}, needs {n_features} finite numbers")
    return w


def _check_sizes(**sizes):
    for name, value in sizes.items():
        if int(value) != value or value < 1:
            raise InputError(f"{name} = {value}: a whole number >= 1")
