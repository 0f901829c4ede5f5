"""The score factors of RecTools' recommenders, where it is installed."""

import numpy as np
import pandas as pd
from implicit.nearest_neighbours import CosineRecommender, TFIDFRecommender
from rectools import Columns, models
from rectools.dataset import Dataset, IdMap, Interactions
from scipy import sparse


def factors(train, kind, setting):
    """Factors of a RecTools recommender: `setting` is its strength, neighbours or factors."""
    if kind == "ease":
        found = train, models.EASEModel(setting).fit(_dataset(train)).weight
    elif kind in ("items", "tfidf", "users"):
        rows = sparse.csr_matrix(train.T) if kind == "users" else train
        cosine = TFIDFRecommender if kind == "tfidf" else CosineRecommender
        knn = models.ImplicitItemKNNWrapperModel(cosine(K=setting))
        similarity = sparse.csr_matrix(knn.fit(_dataset(rows)).model.similarity)
        found = (similarity, train) if kind == "users" else (train, similarity)
    elif kind == "svd":
        svd = models.PureSVDModel(setting).fit(_dataset(train))
        found = svd.user_factors, svd.item_factors.T
    else:
        items, counts = models.PopularModel().fit(_dataset(train)).popularity_list
        right = np.zeros((1, train.shape[1]))
        right[0, items] = np.log1p(counts)
        found = np.ones((train.shape[0], 1)), right
    return _widened(*found, train.shape)


def _widened(left, right, shape):
    """Factors with zeros for the last users and items, which RecTools leaves out where unused."""
    rank = min(left.shape[1], right.shape[0])
    return _padded(left[:, :rank], (shape[0], rank)), _padded(right[:rank], (rank, shape[1]))


def _padded(matrix, shape):
    if sparse.issparse(matrix):
        wide = sparse.csr_matrix(matrix, copy=True)
        wide.resize(shape)
        return wide
    out = np.zeros(shape, matrix.dtype)
    out[: matrix.shape[0], : matrix.shape[1]] = matrix
    return out


def _dataset(train):
    """A data set of RecTools whose internal ids are the places in the matrix."""
    pairs = train.tocoo()
    frame = pd.DataFrame({Columns.User: pairs.row, Columns.Item: pairs.col})
    frame[Columns.Weight], frame[Columns.Datetime] = 1.0, pd.Timestamp(0)
    maps = (IdMap(np.arange(n)) for n in train.shape)
    return Dataset(*maps, Interactions(frame))
