"""The benchmark of long lists: which rows its lists have, and what is measured of them."""

import numpy as np
import pytest

from benchmarks.quality import long_lists
from benchmarks.studies.rerank.data import write_synthetic

pytestmark = pytest.mark.study


def test_a_catalogue_gives_all_items_that_a_user_does_not_know(tmp_path):
    source = long_lists.Catalogue(write_synthetic(tmp_path / "people"), 50)
    train, test = source.drawn(20, 0)
    assert train.n_lists == test.n_lists == 20
    counts = np.bincount(test.groups[test.relevant], minlength=20)
    assert (counts > 0).all() and (test.sizes > 20).all() and (test.sizes < 50).all()
    assert train.sizes.mean() > test.sizes.mean()  # what is held back is a candidate there
    measured = long_lists.measured(source, 20, 0)
    assert set(measured["NDCG"]) == set(measured["pAp"]) == set(long_lists.METHODS)
    assert measured["items"] == train.sizes.mean()
    assert measured["columns"] == 8  # of fifty items PureSVD has one rank
    lines = list(long_lists.page([{"set": "people", "parts": [measured]}]))
    assert sum(line.startswith("| people | ") for line in lines) == 2  # NDCG and pAp
