"""First-stage recommenders: scores of all items for blocks of users, never for all at once.

EASE at several strengths, neighbours of items and of users by cosine, a truncated SVD, and
popularity. Each is a product of two factors, of users and of items.

EASE takes the inverse of a matrix of items by items. For catalogues of more than `EXACT` items the
regression of each item is restricted to its most similar items (Ning and Karypis, "SLIM", ICDM
2011, with feature selection), which needs no such matrix.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from scipy.linalg.lapack import dpotrf, dpotri
from scipy.sparse.linalg import svds

STRENGTHS = (50.0, 300.0, 2000.0)
N_NEIGHBOURS = 100
RANKS = (64, 256)
EXACT = 8000  # items up to which EASE is exact
_SUPPORT = 100  # items that a restricted regression takes
_BLOCK = 512


@dataclass(frozen=True)
class FirstStage:
    """A recommender whose scores are ``left @ right``, arrays or CSR."""

    name: str
    left: Any
    right: Any

    def scores(self, users):
        """Scores of all items, float32 of shape (n_users, n_items)."""
        product = self.left[users] @ self.right
        return np.asarray(product.toarray() if sparse.issparse(product) else product, np.float32)


def fit_all(train, callback=None, exact=EXACT):
    """Every recommender, fitted on interactions; of more than `exact` items EASE is restricted."""
    tasks = {f"EASE {strength:g}": ("ease", strength) for strength in STRENGTHS}
    tasks |= {"item kNN": ("items", N_NEIGHBOURS), "item kNN, TF-IDF": ("tfidf", N_NEIGHBOURS)}
    tasks |= {"user kNN": ("users", N_NEIGHBOURS)}
    most = max(1, min(train.shape) // 8)
    tasks |= {f"PureSVD {rank}": ("svd", rank) for rank in sorted({min(n, most) for n in RANKS})}
    tasks |= {"popularity": ("popularity", None)}
    models = []
    large = train.shape[1] > exact
    restricted = restricted_ease(train, STRENGTHS) if large else {}
    for name, (kind, setting) in tasks.items():
        if kind == "ease" and large:
            factors = train, restricted[setting]
        else:
            factors = factors_of(train, kind, setting)
        models.append(FirstStage(name, *factors))
        if callback is not None:
            callback(name)
    return models


def factors_of(train, kind, setting):
    """The two factors of one recommender."""
    if kind == "ease":
        return train, ease(train, setting)
    if kind == "items":
        return train, neighbours(train.T.tocsr(), setting)
    if kind == "tfidf":
        return train, neighbours(tfidf(train.T.tocsr()), setting)
    if kind == "users":
        return neighbours(train, setting), train
    if kind == "svd":
        start = np.random.default_rng(0).standard_normal(min(train.shape))
        left, sizes, right = svds(train.astype(np.float64), k=setting, v0=start)
        return left, sizes[:, None] * right
    counts = np.bincount(train.indices, minlength=train.shape[1])
    return np.ones((train.shape[0], 1)), np.log1p(counts)[None]


def ease(train, strength):
    """Weights ``B = I - P / diag(P)``, ``P = (X'X + strength I)^-1`` (Steck, WWW 2019)."""
    gram = (train.T @ train).toarray().astype(np.float64)
    gram[np.diag_indices_from(gram)] += strength
    factor, _ = dpotrf(gram, lower=1, overwrite_a=1)
    inverse, _ = dpotri(factor, lower=1, overwrite_c=1)  # its lower half
    inverse = np.tril(inverse) + np.tril(inverse, -1).T
    weights = inverse / -np.diag(inverse)
    np.fill_diagonal(weights, 0.0)
    return weights.astype(np.float32)


def tfidf(rows):
    """Entries weighed by ``log(n_rows) - log(1 + count of their column)``."""
    counts = np.bincount(rows.indices, minlength=rows.shape[1])
    weights = np.maximum(np.log(rows.shape[0]) - np.log1p(counts), 0)
    return sparse.csr_matrix(rows @ sparse.diags(weights))


def neighbours(rows, n):
    """Cosine similarities of rows, the n largest of each row (its own among them), as CSR."""
    norms = np.sqrt(np.maximum(np.asarray(rows.multiply(rows).sum(axis=1)).ravel(), 1e-12))
    unit = sparse.csr_matrix(sparse.diags(1.0 / norms) @ rows)
    other = unit.T.tocsr()
    blocks = []
    for start in range(0, unit.shape[0], _BLOCK):
        block = (unit[start : start + _BLOCK] @ other).toarray()
        n_here = min(n, block.shape[1])
        top = np.argpartition(-block, n_here - 1, axis=1)[:, :n_here]
        values = np.take_along_axis(block, top, 1)
        indptr = np.arange(0, top.size + 1, n_here)
        shape = len(block), block.shape[1]
        part = sparse.csr_matrix((values.ravel(), top.ravel(), indptr), shape=shape)
        part.eliminate_zeros()
        blocks.append(part)
    return sparse.vstack(blocks, format="csr", dtype=np.float32)


def restricted_ease(train, strengths, n=_SUPPORT):
    """EASE with the regression of each item on its n most similar items only, a CSR each strength.

    Column j of the weights minimises ``||x_j - X_N b||^2 + strength ||b||^2``, N the neighbours of
    j; with all other items for N it is the column of EASE.
    """
    gram = sparse.csr_matrix(train.T @ train, dtype=np.float32)
    nearest = neighbours(train.T.tocsr(), n + 1)
    nearest = nearest - sparse.diags(nearest.diagonal())
    nearest.eliminate_zeros()
    nearest = nearest.tocsr()
    nearest.sort_indices()
    data = {strength: np.empty(nearest.nnz, np.float32) for strength in strengths}
    for j in range(train.shape[1]):
        part = slice(nearest.indptr[j], nearest.indptr[j + 1])
        support = nearest.indices[part]
        if not support.size:
            continue
        among, target = (gram[rows][:, support].toarray().astype(float) for rows in (support, [j]))
        diagonal = np.diag(among).copy()
        for strength in strengths:
            np.fill_diagonal(among, diagonal + strength)
            data[strength][part] = np.linalg.solve(among, target[0])
    square = (train.shape[1],) * 2  # row j holds column j of the weights
    return {
        strength: sparse.csr_matrix((values, nearest.indices, nearest.indptr), square).T.tocsr()
        for strength, values in data.items()
    }
