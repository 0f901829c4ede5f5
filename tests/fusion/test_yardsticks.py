"""RRF, CombSUM and CombMNZ against their definitions, written out query by query."""

import numpy as np
import pytest

from structsvm_papk import fusion
from structsvm_papk.errors import InputError


def by_hand(runs, of_rank=None):
    """Scores {(query, document): value} by the definition; `of_rank` makes it RRF."""
    total = {}
    for run in runs.values():
        for query, members in run.items():
            ranked = sorted(members, key=lambda d: (members[d], d), reverse=True)
            low, high = min(members.values()), max(members.values())
            for place, document in enumerate(ranked):
                value = (members[document] - low) / (high - low) if high > low else 0.0
                value = of_rank(place + 1) if of_rank else value
                key = query, document
                total[key] = (total.get(key, (0, 0))[0] + value, total.get(key, (0, 0))[1] + 1)
    return total


@pytest.fixture
def runs():
    rng = np.random.default_rng(1)
    return {
        name: {
            f"q{q}": {
                f"d{d}": float(rng.integers(5)) for d in rng.choice(30, rng.integers(1, 20), False)
            }
            for q in range(25)
            if rng.random() < 0.9
        }
        for name in "abcd"
    }


@pytest.mark.filterwarnings("ignore:run")
def test_yardsticks_are_their_definitions(runs):
    joined = fusion.join_lists(runs)
    keys = list(zip(joined["query"], joined["document"], strict=True))
    sums = by_hand(runs)
    ranks = by_hand(runs, lambda rank: 1 / (7 + rank))
    assert np.allclose(fusion.combsum(joined), [sums[key][0] for key in keys], atol=1e-12)
    assert np.allclose(
        fusion.yardsticks.combmnz(joined), [np.prod(sums[key]) for key in keys], atol=1e-12
    )
    assert np.allclose(fusion.rrf(joined, k=7), [ranks[key][0] for key in keys], atol=1e-15)


@pytest.mark.filterwarnings("ignore:run")
def test_columns_that_are_no_runs_do_not_count(runs):
    joined = fusion.join_lists(runs)
    for yardstick in (fusion.rrf, fusion.combsum, fusion.yardsticks.combmnz):
        before = yardstick(joined)
        joined[yardstick.__name__] = before
        assert np.array_equal(yardstick(joined), before)
        two = yardstick(joined, runs=["a", "b"])
        plain = joined[["query", "document", "a", "b"]]
        assert np.array_equal(two, yardstick(plain, runs=["a", "b"]))
        with pytest.raises(InputError, match="no column 'z' of a run"):
            yardstick(joined, runs=["z"])


@pytest.mark.filterwarnings("ignore:run")
def test_the_order_of_rows_does_not_matter(runs):
    joined = fusion.join_lists(runs)
    order = np.random.default_rng(0).permutation(len(joined))
    mixed = joined.iloc[order].reset_index(drop=True)
    for yardstick in (fusion.rrf, fusion.combsum, fusion.yardsticks.combmnz):
        assert np.allclose(yardstick(joined)[order], yardstick(mixed), atol=1e-15)


def test_equal_scores_are_in_the_order_of_the_text_of_ids():
    # as text, 9 stands behind 10 and is first; so does trec_eval, which knows no numbers
    lists = {"a": {1: {9: 1.0, 10: 1.0, 100: 1.0}}, "b": {1: {9: 1.0, 10: 0.5}}}
    with pytest.warns(UserWarning, match="all scores of a query are equal"):
        numbers = fusion.join_lists(lists)
    texts = numbers.astype({"document": str})
    texts.attrs = numbers.attrs
    assert fusion.rrf(numbers).tolist() == fusion.rrf(texts).tolist()
    rank = {9: 1, 100: 2, 10: 3}
    alone = fusion.rrf(numbers, runs=["a"]).tolist()
    assert alone == [1 / (60 + rank[document]) for document in numbers["document"]]


def test_scores_are_compared_in_single_precision():
    lists = {"a": {"q": {"x": 0.5 + 1e-11, "y": 0.5}}, "b": {"q": {"x": 1.0, "y": 2.0}}}
    assert fusion.rrf(fusion.join_lists(lists), runs=["a"]).tolist() == [1 / 62, 1 / 61]
