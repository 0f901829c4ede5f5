"""Columns of every kind, and what a storage says of them against the matrix written out."""

import numpy as np

from structsvm_papk.data.columns.dense import DenseColumns
from structsvm_papk.data.columns.knots import knots_of
from structsvm_papk.data.columns.value_counts import counts_of_columns


def mixed_columns(rng, n, d):
    """Numbers, binary columns, few values, heavy tails, a constant, many zeros."""
    X = rng.normal(size=(n, d))
    for j in range(d):
        X[:, j] = [
            X[:, j],
            rng.integers(0, 2, n),
            rng.integers(0, 5, n),
            np.exp(3 * X[:, j]),
            np.full(n, 3.0),
            np.where(rng.random(n) < 0.8, 0.0, X[:, j]),
        ][rng.integers(6)]
    return X


def lists_of(rng, n, n_users=4):
    """Some order of the rows, and bounds of the users."""
    sizes = np.bincount(rng.integers(0, n_users, n), minlength=n_users)
    return rng.permutation(n), np.concatenate([[0], np.cumsum(sizes)])


def knots_at_quantiles(X, rows, n_pieces, rising=None):
    """Knots of the columns of a matrix, in some of its rows."""
    return knots_of(counts_of_columns(X, rows), n_pieces, rising)


def assert_as_written_out(columns, rng, called_indicators=True):
    """Products, spread, deviations and rows of a storage are those of its matrix.

    `called_indicators`: which columns of two values the storage says so of.
    """
    n = columns.n_rows
    written = columns.toarray()
    assert written.shape == (n, columns.n_weights)
    close = {"rtol": 1e-11, "atol": 1e-11 * max(np.abs(written).max(), 1e-300)}
    rows, indptr = lists_of(rng, n)

    w = rng.normal(size=columns.n_weights)
    scores = np.full(n, np.nan)
    columns.scores(rows, w, 0, n, scores)
    np.testing.assert_allclose(scores, written[rows] @ w, **close)
    some = np.full(n, 7.0)
    columns.scores(rows, w, n // 3, n // 2, some)
    np.testing.assert_array_equal(some[n // 3 : n // 2], scores[n // 3 : n // 2])
    assert (np.delete(some, np.arange(n // 3, n // 2)) == 7.0).all()
    reported = columns.reported_scores(w, rows)
    np.testing.assert_allclose(reported, written[rows] @ w, **close)
    assert (columns.reported_scores(w)[rows] == reported).all()

    factors = rng.normal(size=columns.n_weights)
    products = columns.inner_products(factors)
    bound = 1e-11 * max(np.abs(products).max(), 1e-300)
    np.testing.assert_allclose(
        products, (written * factors) @ (written * factors).T, rtol=1e-11, atol=bound
    )

    coef = np.where(rng.random(n) < 0.5, 0.0, rng.normal(size=n))
    edges = np.array([0, n // 3, n])
    sums = np.zeros((2, columns.n_weights))
    columns.add_weighted_rows(rows, coef, edges, sums)
    for part in range(2):
        own = slice(edges[part], edges[part + 1])
        np.testing.assert_allclose(sums[part], coef[own] @ written[rows[own]], **close)
    combined = columns.combined_rows(rows, np.array([coef, 2 * coef]))
    np.testing.assert_allclose(combined[1], 2 * (coef @ written[rows]), **close)

    spread = columns.spread(rows, indptr)
    assert (np.abs(written[rows]).max(axis=0) <= spread.largest * (1 + 1e-12)).all()
    plain = DenseColumns(written)
    variation = columns.variation(rows, indptr, spread)
    expected = plain.variation(rows, indptr, plain.spread(rows, indptr))
    np.testing.assert_allclose(variation.deviation, expected.deviation, rtol=1e-9, atol=1e-14)
    np.testing.assert_array_equal(variation.deviation == 0, expected.deviation == 0)
    half = np.where(called_indicators, expected.half_difference, np.nan)
    varies = expected.deviation > 0
    np.testing.assert_allclose(variation.half_difference[varies], half[varies], rtol=1e-12)

    picked = rng.integers(0, n, 9)
    np.testing.assert_array_equal(columns.take(picked).toarray(), written[picked])
    mask = rng.random(n) < 0.5
    joined = columns.take(mask).join([columns.take(~mask), columns.take(picked)])
    np.testing.assert_array_equal(
        joined.toarray(), np.vstack([written[mask], written[~mask], written[picked]])
    )
    entries = columns.written_out(picked)
    np.testing.assert_array_equal(entries.values, written[picked][:, entries.weights])
