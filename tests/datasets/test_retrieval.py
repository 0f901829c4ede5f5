from importlib.resources import files

import pytest

from structsvm_papk.datasets import retrieval_runs

RUNS = ["bm25", "bm25_rm3", "tasb", "ada2", "repllama", "splade"]


@pytest.fixture(scope="module")
def sample():
    return retrieval_runs()


@pytest.mark.parametrize(
    ("year", "n_queries", "n_judged"), [("train", 43, 9260), ("test", 54, 11386)]
)
def test_both_years_are_whole(sample, year, n_queries, n_judged):
    collection = getattr(sample, year)
    assert list(collection.runs) == RUNS
    assert collection.n_queries == n_queries
    assert len(collection.judgments) == n_judged
    assert set(collection.judgments["grade"]) == {0, 1, 2, 3}
    judged = set(collection.judgments["query"])
    for run in collection.runs.values():
        assert list(run.columns) == ["query", "document", "score"]
        assert (run.groupby("query").size() == 100).all()
        assert set(run["query"]) == judged
        assert not run.duplicated(["query", "document"]).any()
        best = run.groupby("query")["score"]
        assert (best.diff().dropna() <= 0).all()  # the best document first


def test_the_years_have_no_query_in_common(sample):
    assert not set(sample.train.judgments["query"]) & set(sample.test.judgments["query"])


def test_scores_are_those_of_the_files(sample):
    bm25 = sample.train.runs["bm25"].set_index(["query", "document"])["score"]
    assert bm25["264014", "5611210"] == 15.780599594116211
    splade = sample.test.runs["splade"].set_index(["query", "document"])["score"]
    assert splade["23849", "8010561"] == 114183
    grades = sample.test.judgments.set_index(["query", "document"])["grade"]
    assert grades["23849", "1034183"] == 3


def test_source_and_licence_stand_beside_the_data():
    folder = files("structsvm_papk.datasets") / "trec_dl"
    notice = (folder / "NOTICE").read_text()
    assert all(name in notice for name in RUNS)
    assert "castorini/rank_llm" in notice
    assert "Apache License" in (folder / "LICENSE-APACHE-2.0").read_text()
    assert sum((folder / f"{year}.csv.xz").stat().st_size for year in ("train", "test")) < 600_000
