import shutil
import subprocess
from importlib.resources import files

import numpy as np
import pytest
from sklearn.datasets import load_digits

from helpers.reference_theory import margins_by_subsets
from helpers.sources import read_lists
from structsvm_papk import __version__, cli, datasets, margins, metrics
from structsvm_papk._version import head_of, versions
from structsvm_papk.datasets import retrieval_runs
from structsvm_papk.errors import InputError
from structsvm_papk.margins.conditions import CONDITIONS

IMPLIED = {
    "weak": {"weak"},
    "beta": {"beta", "weak"},
    "moderate": {"moderate", "weak"},
    "strong": {"strong", "beta", "moderate", "weak"},
}


def users(lists, k, delta):
    scores = lists.X @ lists.w_true
    for u in np.unique(lists.groups):
        rows = lists.groups == u
        p, q = scores[rows & (lists.y == 1)], scores[rows & (lists.y == 0)]
        found = margins_by_subsets(p, q, k)
        yield {c for c, v in found.items() if v is not None and v >= delta}


@pytest.mark.parametrize("condition", CONDITIONS)
@pytest.mark.parametrize(("exclude", "n_pos"), [(None, 6), ("any", 9)])
def test_condition_holds_exactly_and_no_other_on_request(condition, exclude, n_pos):
    how = {"n_users": 2, "n_pos": n_pos, "n_neg": 9, "n_features": 4, "k": 3, "seed": n_pos}
    lists = datasets.margin_lists(condition, delta=0.5, exclude=exclude, **how)
    for holding in users(lists, 3, 0.5):
        assert condition in holding
        assert holding == IMPLIED[condition] or not exclude
    few = datasets.margin_lists("beta", n_pos=4, n_neg=12, n_features=3, k=3, exclude="any")
    assert list(users(few, 3, 1.0)) == [{"beta"}]  # without weak


@pytest.mark.parametrize("condition", ["weak", "beta", "moderate"])
def test_no_linear_scorer_realises_an_excluded_condition(condition):
    lists = datasets.margin_lists(
        condition, n_pos=8, n_neg=12, n_features=3, k=3, exclude="any", seed=4
    )
    for other in CONDITIONS:
        found = margins.find_scorer(lists.X, lists.y, 3, other, largest_margin=False)
        assert found.answer == ("yes" if other in IMPLIED[condition] else "no")
        assert found.verify(lists.X, lists.y)


@pytest.mark.parametrize(
    ("request_", "words"),
    [
        ({"condition": "weak", "n_pos": 3, "k": 3, "exclude": "any"}, "is the strong one"),
        ({"condition": "beta", "n_pos": 5, "k": 1, "exclude": "any"}, "is the strong one"),
        ({"condition": "moderate", "n_pos": 5, "k": 3, "exclude": "any"}, "beta condition too"),
        ({"condition": "weak", "n_neg": 4, "k": 3, "exclude": "any"}, "n_neg >= n_features"),
        ({"condition": "medium"}, "is not known; choose one of weak"),
        ({"condition": "weak", "k": 30}, "k"),
        ({"condition": "weak", "delta": 0.0}, "delta must be a number above 0"),
        ({"condition": "weak", "exclude": "all"}, "exclude"),
    ],
)
def test_contradictory_requests_say_what_contradicts_what(request_, words):
    with pytest.raises(InputError, match=words):
        datasets.margin_lists(**request_)


def test_linear_lists_label_the_best_share_and_repeat_with_the_seed():
    how = {"n_users": 20, "n_items": 30, "n_features": 5, "noise": 0.0}
    first, again = (datasets.linear_lists(**how, seed=1) for _ in range(2))
    other = datasets.linear_lists(**how, w_true=first.w_true, seed=2)
    assert all(np.array_equal(a, b) for a, b in zip(first, again, strict=True))
    assert not np.array_equal(first.X, other.X) and np.array_equal(first.w_true, other.w_true)
    scores = (first.X @ first.w_true).reshape(20, 30)
    labels = first.y.reshape(20, 30)
    assert (labels.sum(axis=1) == 6).all()
    lowest = np.where(labels == 1, scores, np.inf).min(axis=1)
    assert (lowest > np.where(labels == 0, scores, -np.inf).max(axis=1)).all()


def test_mislabelled_users_give_labels_to_their_worst_items():
    lists = datasets.linear_lists(
        n_users=40, n_items=20, n_features=5, noise=0.0, mislabelled_users=0.5, seed=3
    )
    ranks = (-(lists.X @ lists.w_true)).reshape(40, 20).argsort(axis=1).argsort(axis=1)
    labels = lists.y.reshape(40, 20) == 1
    assert (labels.sum(axis=1) == 4).all()
    assert ((ranks >= 17) & labels).sum(axis=1)[:20].tolist() == [3] * 20
    assert (labels[20:] == (ranks[20:] < 4)).all()


def test_engagement_is_long_tailed_and_every_user_is_usable():
    lists = datasets.engagement_lists(n_users=400, min_neg=6, seed=2)
    sizes = np.bincount(lists.groups)
    n_pos = np.bincount(lists.groups, lists.y)
    assert (n_pos >= 1).all() and (sizes - n_pos >= 6).all()
    assert np.percentile(sizes, 99) > 4 * np.median(sizes)
    assert np.unique(n_pos).size > 10


def test_laws_of_one_user():
    lists = datasets.generators.two_gaussians(4000, 4000, 3, 2.0, direction=[0, 0, 2], seed=0)
    assert np.array_equal(lists.w_true, [0, 0, 1])
    gap = lists.X[lists.y == 1].mean(axis=0) - lists.X[lists.y == 0].mean(axis=0)
    assert np.abs(gap - [0, 0, 2]).max() < 0.12


@pytest.mark.parametrize(
    ("make", "wrong"),
    [
        (datasets.linear_lists, {"df": 0}),
        (datasets.linear_lists, {"n_items": 1}),
        (datasets.linear_lists, {"w_true": [1.0]}),
        (datasets.engagement_lists, {"relevant_share": 0.01}),
        *((datasets.generators.recommender_lists, {n: 3}) for n in ("n_candidates", "n_items")),
        (datasets.interaction_pairs, {"n_items": 5}),
        *((datasets.digit_queries, {name: "else"}) for name in ("part", "features")),
        (datasets.digit_queries, {"n_queries": 901}),
        (datasets.digit_queries, {"part": "test", "n_shown": 897}),
    ],
)
def test_bad_requests(make, wrong):
    with pytest.raises(InputError):
        make(**wrong)


def test_recommender_lists_are_candidates_whose_combination_beats_each_score():
    train, new = datasets.generators.recommender_lists(n_users=60, seed=1)
    again, _ = datasets.generators.recommender_lists(n_users=60, seed=1)
    assert train.equals(again) and not train.equals(new)
    assert (train.groupby("user")["item"].nunique() == 100).all()
    assert train.groupby("user")["relevant"].sum().min() >= 1

    def pairs_in_order(scores):
        return metrics.evaluate("auc", scores, new["relevant"], new["user"]).mean("auc")

    names = ["ease", "neighbours", "content", "popularity"]
    mixed = new["ease"] / 0.15 + new["content"] / 0.25 + np.log1p(new["neighbours"]) / 1.2
    assert pairs_in_order(mixed) > max(pairs_in_order(new[name]) for name in names)


def test_interactions_are_different_pairs_of_everybody():
    train, test = datasets.interaction_pairs(40, 30, seed=5)
    both = np.concatenate([train, test])
    assert len(np.unique(both, axis=0)) == len(both)  # no pair twice
    assert np.unique(test[:, 0]).size == np.unique(train[:, 0]).size == 40
    np.testing.assert_array_equal(train, datasets.interaction_pairs(40, 30, seed=5)[0])
    assert not np.array_equal(train, datasets.interaction_pairs(40, 30, seed=6)[0])


def test_lists_of_digits_have_the_features_labels_and_images_of_their_part():
    images, digits = load_digits(return_X_y=True)
    images, seen = images / 16, []
    for part, size in (("train", 900), ("test", 897)):
        X, y, _ = datasets.digit_queries(part, n_queries=1, n_shown=size - 1, seed=1)
        shown = [row.tobytes() for row in X]  # every image of the part but the query
        for query in range(digits.size):
            differences = -((images[query] - images) ** 2)
            if not (differences == X[0]).all(axis=1).any():
                continue
            places = {row.tobytes(): i for i, row in enumerate(differences)}
            if places.keys() >= set(shown):
                break
        rows = [places[row] for row in shown]
        assert query not in rows and np.array_equal(digits[rows] == digits[query], y)
        product, same, groups = datasets.digit_queries(part, 1, size - 1, "product", seed=1)
        assert np.array_equal(product, images[query] * images[rows])
        assert np.array_equal(same, y) and not groups.any()
        seen.append({query, *rows})
    assert not seen[0] & seen[1]


def test_files_hold_the_lists_and_are_never_overwritten(tmp_path, capsys):
    folder = tmp_path / "new" / "folder"
    command = ["example-data", str(folder), "--n-users", "15"]
    assert cli.main(command) in (0, None)
    train, _ = datasets.generators.recommender_lists(n_users=15)
    read = read_lists(folder / "train.csv", label="relevant")
    names = ["ease", "neighbours", "content", "popularity"]  # ids are no features
    assert np.array_equal(read.X, train[names])
    before = (folder / "train.csv").read_bytes()
    assert cli.main(command) == 2
    assert "train.csv exists" in " ".join(capsys.readouterr().err.split())
    assert (folder / "train.csv").read_bytes() == before


def test_versions_are_those_that_are_installed():
    assert versions()["structsvm-papk"] == __version__ and "numba" in versions()


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
def test_the_commit_is_that_at_the_head_of_a_repository(tmp_path, monkeypatch):
    for name in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"):
        monkeypatch.delenv(name, raising=False)

    def git(*words):
        who = ("-c", "user.name=a", "-c", "user.email=a@b.example")
        return subprocess.run(["git", *who, *words], cwd=tmp_path, check=True, capture_output=True)

    assert head_of(tmp_path / ".git") is None
    git("init", "-q")
    assert head_of(tmp_path / ".git") is None  # no commit yet
    git("commit", "-q", "--allow-empty", "-m", "first")
    commit = git("rev-parse", "HEAD").stdout.decode().strip()
    assert head_of(tmp_path / ".git") == commit and len(commit) == 40
    git("worktree", "add", "-q", "second")
    assert head_of(tmp_path / "second" / ".git") == commit
    monkeypatch.setenv("PATH", "")
    assert head_of(tmp_path / ".git") is None


# --- runs of real retrievers ----------------------------------------------------------------------


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
