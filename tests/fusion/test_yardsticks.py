"""RRF and CombSUM against their definitions, written out query by query."""

import numpy as np
import pytest

from helpers.marks import some_of
from structsvm_papk import PAPKRanker, fusion
from structsvm_papk.datasets import retrieval_runs
from structsvm_papk.errors import InputError
from structsvm_papk.fusion.engines import ENGINES
from structsvm_papk.fusion.joining import join
from structsvm_papk.fusion.requests import EngineWeights


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
    assert np.allclose(fusion.rrf(joined, k=7), [ranks[key][0] for key in keys], atol=1e-15)


@pytest.mark.filterwarnings("ignore:run")
def test_columns_that_are_no_runs_do_not_count(runs):
    joined = fusion.join_lists(runs)
    for yardstick in (fusion.rrf, fusion.combsum):
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
    for yardstick in (fusion.rrf, fusion.combsum):
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


# --- one query from dictionaries ------------------------------------------------------------------


@pytest.fixture(scope="module")
def year():
    return retrieval_runs().train


def queries(year, n=5):
    """{run: {document: score}} of the first queries, by query."""
    for query in year.judgments["query"].unique()[:n]:
        yield (
            str(query),
            {
                name: {
                    str(d): float(s)
                    for d, s in run.loc[run["query"] == query, ["document", "score"]].to_numpy()
                }
                for name, run in year.runs.items()
            },
        )


@pytest.mark.parametrize("engine", ENGINES)
def test_an_engine_serves_what_it_ranks(year, engine):
    values = np.linspace(0.1, 1, len(year.runs)).tolist()
    weights = EngineWeights(engine, dict(zip(year.runs, values, strict=True)), 100)
    for query, lists in queries(year, some_of(2)):
        joined = join({name: {query: scores} for name, scores in lists.items()})
        rows = joined.frame.assign(score=weights.scores(joined))
        rows = rows.sort_values(["score", "document"], ascending=False)
        fused = fusion.fuse(weights, lists)
        assert [*fused] == rows["document"].tolist()
        assert [*fused.values()] == pytest.approx(rows["score"].tolist(), rel=1e-12)


def test_a_model_serves_what_it_predicts(year):
    names = list(year.runs)
    joined = fusion.join_lists(year.runs, year.judgments)
    ranker = PAPKRanker(k=10, missing="lowest", relevance_threshold=1, tol=1e-3)
    ranker.fit(joined[names], joined["grade"], groups=joined["query"])
    model = ranker.to_model()
    joined["score"] = ranker.predict(joined[names], groups=joined["query"])
    for query, lists in queries(year):
        rows = joined[joined["query"].astype(str) == query].astype({"document": str})
        fused = fusion.fuse(model, lists)
        expected = dict(zip(rows["document"], rows["score"], strict=True))
        assert fused == pytest.approx(expected, rel=1e-9)
        assert [*fused.values()] == sorted(fused.values(), reverse=True)


def test_runs_that_are_left_out_retrieved_nothing():
    weights = EngineWeights("langchain", {"a": 0.5, "b": 0.5}, 9)
    lists = {"a": {"x": 3.0, "y": 1.0}}
    assert fusion.fuse(weights, lists) == fusion.fuse(weights, lists | {"b": {}})
    assert fusion.fuse(weights, {}) == {}
    with pytest.raises(InputError, match="no weight is for run 'c'"):
        fusion.fuse(weights, {"c": {"x": 1.0}})
    with pytest.raises(InputError, match="not a finite number"):
        fusion.fuse(weights, {"a": {"x": np.nan}})
    for score in ("1_0", None, 10**400, [1.0]):
        with pytest.raises(InputError, match=r"scores of run 'a' must be numbers|finite number"):
            fusion.fuse(weights, {"a": {"x": score}})
    with pytest.raises(InputError, match="give one kind"):
        fusion.fuse(weights, {"a": {"x": 1.0, 1: 2.0}})


def test_an_engine_joins_what_is_within_its_window():
    weights = EngineWeights("elasticsearch", {"a": 0.5, "b": 0.5}, 2)
    lists = {"a": {"x": 9.0, "y": 8.0, "z": 1.0}, "b": {"w": 3.0, "z": 3.0, "y": 3.0, "x": 0.0}}
    cut = {"a": {"x": 9.0, "y": 8.0}, "b": {"z": 3.0, "y": 3.0}}  # the larger ids of equal scores
    assert fusion.fuse(weights, lists) == fusion.fuse(weights, cut)
    assert "w" not in fusion.fuse(weights, lists)


def test_equal_scores_are_served_in_the_order_of_the_text_of_ids():
    weights = EngineWeights("langchain", {"a": 1.0}, 2)
    assert list(fusion.fuse(weights, {"a": {9: 1.0, 10: 1.0, 100: 1.0}})) == [9, 100]
