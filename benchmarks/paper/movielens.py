"""MovieLens-100K prepared as in the paper, files of its authors' scripts, and a stand-in.

Preparation: each user's first 20 ratings by time make a matrix that is factorised into non-negative
factors of rank 30, its missing entries masked. The other ratings, of items seen in that matrix and
of users with at least 20 of them, are the instances: relevant where the rating is 5; the features
are the user's factors, the item's, and their products, scaled to range 1 around the training
mid-range. Each row goes to training, validation or test with probability 60, 20 and 20%.

MovieLens 100K belongs to GroupLens Research, University of Minnesota. Its licence allows research
use and forbids redistribution without permission, so nothing of it is here: download and unpack
ml-100k.zip yourself, and cite F. M. Harper and J. A. Konstan, "The MovieLens datasets: history and
context", ACM TiiS 5(4), 2015.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from scipy import sparse

from structsvm_papk import RankingData
from structsvm_papk.errors import InputError

LICENCE = __doc__.rsplit("\n\n", 1)[1].strip()
_SMALLEST = 1e-5  # floor of the factors
_PARTS = ("train", "val", "test")


@dataclass(frozen=True)
class Splits:
    """Training, validation and test lists with the same features."""

    train: RankingData
    val: RankingData
    test: RankingData


@dataclass(frozen=True)
class Preparation:
    """How ratings become lists; the defaults are the paper's."""

    rank: int = 30
    n_first: int = 20
    min_rows: int = 20
    steps: int = 1000


def read_ratings(folder):
    """Ratings of an unpacked ``ml-100k`` folder; the line that is no rating is named."""
    path = Path(folder) / "u.data"
    if not Path(folder).is_dir():
        raise InputError(f"{folder} is no folder; give the path of an unpacked ml-100k.zip")
    if not path.is_file():
        raise InputError(
            f"{folder} holds no u.data, so it is no unpacked ml-100k.zip (prepared .tsv files are "
            "read with --dataset citation or behance)"
        )
    try:
        ratings = np.loadtxt(path, dtype=np.int64, ndmin=2)
    except (ValueError, UnicodeDecodeError):
        raise InputError(_first_bad_line(path)) from None
    if ratings.size == 0 or ratings.shape[1] != 4:
        raise InputError(_first_bad_line(path))
    wrong = np.flatnonzero((ratings[:, 2] < 1) | (ratings[:, 2] > 5))
    if wrong.size:
        raise InputError(f"{path}, line {wrong[0] + 1}: rating {ratings[wrong[0], 2]} is not 1..5")
    return ratings


def is_movielens_100k(ratings):
    """Whether the sizes are those of MovieLens 100K: 100,000 ratings, 943 users, 1,682 items."""
    sizes = (len(ratings), np.unique(ratings[:, 0]).size, np.unique(ratings[:, 1]).size)
    return sizes == (100_000, 943, 1682)


def _first_bad_line(path):
    with open(path, encoding="utf-8", errors="replace") as file:
        for number, line in enumerate(file, 1):
            fields = line.split()
            if len(fields) != 4 or not all(field.lstrip("-").isdigit() for field in fields):
                return (
                    f"{path}, line {number}: expected user, item, rating and time as whole "
                    f"numbers, found {line.rstrip()[:60]!r}"
                )
    return f"{path}: no ratings"


def prepare(ratings, seed=0, how=None):
    """Turn ratings into training, validation and test lists; the seed starts factors and split."""
    how = how or Preparation()
    rng = np.random.default_rng(seed)
    users, items, grades = _first_and_rest(ratings, how)
    (first_u, rest_u), (first_i, rest_i), (first_g, rest_g) = users, items, grades
    rows, columns = np.unique(first_u), np.unique(first_i)
    keep = np.isin(rest_i, columns)
    _, owner, count = np.unique(rest_u[keep], return_inverse=True, return_counts=True)
    keep[keep] = count[owner] >= how.min_rows
    if not keep.any():
        raise InputError(
            f"no user has {how.min_rows} ratings of known items after the first {how.n_first}"
        )
    at_first = (np.searchsorted(rows, first_u), np.searchsorted(columns, first_i))
    shape = (rows.size, columns.size)
    matrix = sparse.csr_matrix((first_g.astype(float), at_first), shape=shape)
    user_factors, item_factors = masked_nmf(matrix, how.rank, rng, how.steps)
    of_user = user_factors[np.searchsorted(rows, rest_u[keep])]
    of_item = item_factors[np.searchsorted(columns, rest_i[keep])]
    X = np.hstack([of_user, of_item, of_user * of_item])
    return _split(X, rest_g[keep] == 5, rest_u[keep], rng)


def _first_and_rest(ratings, how):
    """Users, items and grades of each user's first ratings by time, and of the others."""
    ordered = ratings[np.lexsort((ratings[:, 3], ratings[:, 0]))]
    starts = np.searchsorted(ordered[:, 0], ordered[:, 0])
    first = np.arange(len(ordered)) - starts < how.n_first
    return tuple((ordered[first, c], ordered[~first, c]) for c in range(3))


def masked_nmf(matrix, rank, rng, steps=1000):
    """Non-negative factors ``A, Y`` that lower ``sum over stored (u, i) of (R_ui - A_u . Y_i)^2``.

    Multiplicative updates of Lee and Seung, the missing entries left out of both sides; they end
    early where 5 updates change the fitted ratings by less than 1e-6.
    """
    known = matrix.tocoo()
    left = np.maximum(rng.random((matrix.shape[0], rank)), _SMALLEST)
    # least squares for the other side, missing entries as zeros: only a start
    right = np.linalg.lstsq(left.T @ left, (matrix.T @ left).T, rcond=None)[0].T
    right = np.maximum(right, _SMALLEST)
    before = np.zeros(known.nnz)
    for t in range(steps):
        left *= (matrix @ right) / (_fitted(known, left, right) @ right + _SMALLEST)
        np.maximum(left, _SMALLEST, out=left)
        fitted = _fitted(known, left, right)
        right *= (matrix.T @ left) / (fitted.T @ left + _SMALLEST)
        np.maximum(right, _SMALLEST, out=right)
        if t % 5 == 4:
            now = _fitted(known, left, right).data
            if np.linalg.norm(now - before) < 1e-6:
                break
            before = now
    return left, right


def _fitted(known, left, right):
    values = np.einsum("nr,nr->n", left[known.row], right[known.col])
    return sparse.csr_matrix((values, (known.row, known.col)), shape=known.shape)


def _split(X, relevant, users, rng):
    part = np.searchsorted([0.6, 0.8], rng.random(users.size), side="right")
    train = part == 0
    low, high = X[train].min(axis=0), X[train].max(axis=0)
    X = (X - (low + high) / 2) / np.maximum(high - low, np.finfo(float).tiny)
    return Splits(
        *(
            RankingData.from_groups(X[part == p], relevant[part == p], users[part == p])
            for p in range(3)
        )
    )


def read_prepared(folder):
    """Lists that the authors' scripts wrote: ``train_data_d*.tsv``, ``val_..``, ``test_..``."""
    folder = Path(folder)
    paths = [sorted(folder.glob(f"{part}_data_d*.tsv")) for part in _PARTS]
    for part, found in zip(_PARTS, paths, strict=True):
        if len(found) != 1:
            raise InputError(f"{folder} holds {len(found)} files {part}_data_d*.tsv, expected one")
    sizes = {_n_features(found[0]) for found in paths}
    if len(sizes) > 1:
        raise InputError(f"{folder}: the files have different numbers of features")
    return Splits(*(_read_lists(found[0]) for found in paths))


def _read_lists(path):
    rows = pd.read_csv(path, sep="\t")
    X = rows.drop(columns=["label", "user_id"])
    return RankingData.from_groups(X.to_numpy(float), rows["label"], rows["user_id"])


def _n_features(path):
    with open(path, encoding="utf-8", errors="replace") as file:
        names = file.readline().rstrip("\r\n").split("\t")
    features = [f"f{j}" for j in range(len(names) - 2)]
    if names != ["user_id", *features, "label"] or not features:
        shown = ", ".join(names[:4]) + (", .." if len(names) > 4 else "")
        raise InputError(
            f"{path}: expected the columns user_id, f0, f1, .., label, separated by tabs; "
            f"found {shown}"
        )
    return len(features)


def write_synthetic(folder, n_users=100, n_items=200, mean_ratings=90, rank=4, seed=0):
    """Write an ``ml-100k``-shaped folder of invented ratings, for trying the table out.

    ``rating = round(3.4 + 1.2 (a_u . b_i)/sqrt(rank) + noise)``, clipped to 1..5, a and b standard
    normal; popular items are rated more often. Nothing in it comes from MovieLens.
    """
    folder = Path(folder)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError(f"{folder} exists and is not an empty folder")
    rng = np.random.default_rng(seed)
    taste, kind = rng.standard_normal((n_users, rank)), rng.standard_normal((n_items, rank))
    popularity = 1.0 / np.arange(5, n_items + 5)
    popularity /= popularity.sum()
    rows = []
    for u in range(n_users):
        size = min(n_items, max(45, round(mean_ratings * rng.lognormal(-0.08, 0.4))))
        seen = rng.choice(n_items, size, replace=False, p=popularity)
        liking = 3.4 + 1.2 * (kind[seen] @ taste[u]) / np.sqrt(rank)
        grades = np.clip(np.rint(liking + 0.5 * rng.standard_normal(size)), 1, 5)
        times = 874724710 + rng.integers(0, 18_000_000) + np.sort(rng.integers(0, 90_000, size))
        rows += zip([u + 1] * size, seen + 1, grades.astype(int), times, strict=True)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "README").write_text("Invented ratings in the format of MovieLens 100K.\n")
    path = folder / "u.data"
    path.write_text(
        "".join("\t".join(map(str, rows[i])) + "\n" for i in rng.permutation(len(rows)))
    )
    return path
