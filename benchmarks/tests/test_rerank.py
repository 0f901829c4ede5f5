"""Recommenders, candidates, metrics over all items, and the command on folders of any kind."""

import json
import zipfile
from functools import partial

import numpy as np
import pytest
from scipy import sparse
from sklearn.model_selection import GroupKFold

from benchmarks.studies.__main__ import app
from benchmarks.studies.rerank import data as rerank_data
from benchmarks.studies.rerank import first_stage, lists, methods, study
from benchmarks.studies.rerank.data import write_synthetic
from helpers.commands import invoke
from helpers.reference_metrics import metric
from structsvm_papk import SolverResult
from structsvm_papk.datasets import interaction_pairs
from structsvm_papk.errors import InputError

pytestmark = [pytest.mark.study, pytest.mark.portable]
run = partial(invoke, "rerank", app=app)


def folder_of(path, train, test, header=False):
    path.mkdir()
    for name, pairs in (("train.tsv", train), ("test.tsv", test)):
        text = "user_id\titem_id\n" if header else ""
        (path / name).write_text(text + "".join(f"{u}\t{i}\n" for u, i in pairs))
    return path


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return rerank_data.read(write_synthetic(tmp_path_factory.mktemp("d") / "x", 60, 40, seed=1))


# ----------------------------------------------------------------- reading


def test_header_or_not_folder_or_zip_is_the_same(tmp_path):
    train, test = interaction_pairs(30, 25, seed=0)
    plain = rerank_data.read(folder_of(tmp_path / "a", train, test))
    named = folder_of(tmp_path / "b", train, test, header=True)
    with zipfile.ZipFile(tmp_path / "c.zip", "w") as archive:
        for name in ("train.tsv", "test.tsv"):
            archive.write(named / name, f"proc/{name}")
    for other in (rerank_data.read(named), rerank_data.read(tmp_path / "c.zip")):
        assert (plain.train != other.train).nnz == 0 and (plain.test != other.test).nnz == 0
    assert plain.train.nnz == len(train) and plain.test.nnz == len(test)
    assert plain.remarks == () and plain.published == (None, None, {})


def test_what_cannot_be_used_is_left_out_and_said(tmp_path):
    """Users 0..4: ordinary, one interaction, in test only, in training only, known test pair."""
    train = [(0, 0), (0, 1), (0, 1), (1, 2), (3, 0), (3, 1), (4, 1), (4, 2)]
    test = [(0, 2), (0, 2), (1, 9), (2, 1), (4, 1)]
    data = rerank_data.read(folder_of(tmp_path / "d", train, test))
    assert data.n_users == 5 and data.n_items == 4
    np.testing.assert_array_equal(np.diff(data.test.indptr), [1, 1, 0, 0, 0])
    said = " ".join(data.remarks)
    for text in (
        "2 lines repeat a pair",
        "1 test pairs are in training",
        "1 users are in test.tsv only",
        "1 users have no test item",
        "1 items are in test.tsv only",
    ):
        assert text in said, said
    history, labels = rerank_data.inner_split(data.train)
    assert (history + labels != data.train).nnz == 0
    np.testing.assert_array_equal(np.diff(labels.indptr), [1, 0, 0, 1, 1])  # one stays history
    many = sparse.csr_matrix(np.ones((2, 20), np.float32))
    first, other = (rerank_data.inner_split(many, seed=seed)[1] for seed in (3, 4))
    assert np.diff(first.indptr).tolist() == [4, 4] and (first != other).nnz > 0  # a fifth of each


@pytest.mark.parametrize(
    ("train", "text"),
    [
        ("user\titem\n0\t1\n1\tbook\n", "train.tsv, line 3: expected user and item"),
        ("0\t1\n-1\t2\n", "train.tsv, line 2"),
        ("0\t1.5\n", r"train.tsv, line 1: expected user and item .* found '0.t1.5'"),
        ("user\titem\n", "train.tsv holds no interactions"),
        ("5\t1\n", "no user of test.tsv has an item there that train.tsv lacks"),
    ],
)
def test_other_files_are_refused_with_the_line(tmp_path, train, text):
    (tmp_path / "train.tsv").write_text(train)
    (tmp_path / "test.tsv").write_text("0\t3\n")
    with pytest.raises(InputError, match=text):
        rerank_data.read(tmp_path)


# ----------------------------------------------------------------- recommenders


def test_ease_solves_its_regressions(data, monkeypatch):
    """Column j is the ridge regression of item j on others (Steck, eq. 4 to 8), all or similar."""
    X, strength = data.train.toarray().astype(float), 20.0
    few = first_stage.restricted_ease(data.train, (strength,), n=5)[strength].tocsc()
    assert (np.diff(few.indptr) <= 6).all()
    weights = first_stage.ease(data.train, strength)
    for j in range(data.n_items):
        for found, support in (
            (weights[:, j], np.flatnonzero(np.arange(data.n_items) != j)),
            (few[:, [j]].toarray().ravel(), few[:, [j]].indices),
        ):
            A = X[:, support]
            expected = np.linalg.solve(A.T @ A + strength * np.eye(support.size), A.T @ X[:, j])
            np.testing.assert_allclose(found[support], expected, atol=1e-4)
            assert found[j] == 0
    # large catalogues take the restricted one
    assert sparse.issparse(first_stage.fit_all(data.train, exact=10)[0].right)


def test_neighbours_are_the_largest_cosines(data):
    X = data.train.toarray()
    unit = X / np.linalg.norm(X, axis=1, keepdims=True)
    cosine = unit @ unit.T
    near = first_stage.neighbours(data.train, 7).toarray()
    for row, all_of_it in zip(near, cosine, strict=True):
        kept = row > 0
        assert kept.sum() <= 7
        np.testing.assert_allclose(row[kept], all_of_it[kept], rtol=1e-5)
        assert row[kept].min() >= np.sort(all_of_it)[-7] - 1e-6


def test_factors_are_the_definitions(data):
    X = data.train.toarray().astype(float)
    users, sizes, items = np.linalg.svd(X, full_matrices=False)
    counts = X.sum(axis=0)
    weighed = X.T * np.maximum(np.log(data.n_items) - np.log1p(X.sum(axis=1)), 0)
    unit = weighed / np.maximum(np.linalg.norm(weighed, axis=1, keepdims=True), 1e-6)
    expected = {
        ("svd", 5): users[:, :5] * sizes[:5] @ items[:5],
        ("popularity", None): np.tile(np.log1p(counts), (len(X), 1)),
        ("tfidf", data.n_items): X @ unit @ unit.T,
        ("users", data.n_users): first_stage.neighbours(data.train, data.n_users) @ X,
        ("items", data.n_items): X @ first_stage.neighbours(data.train.T.tocsr(), data.n_items),
    }
    for how, scores in expected.items():
        model = first_stage.FirstStage("", *first_stage.factors_of(data.train, *how))
        np.testing.assert_allclose(model.scores(np.arange(len(X))), scores, atol=1e-4)


@pytest.fixture(scope="module")
def built(data):
    models = first_stage.fit_all(data.train)
    users = np.flatnonzero(np.diff(data.test.indptr))[5:]
    return models, users, *lists.build(models, data.train, data.test, users, 12, 5)


RULES = {"ties": "loss", "few_negatives": "normalise", "no_positives": "exclude"}
NAMES = ("ndcg@5", "recall@5", "pap@5")


def brute_force(scores, seen, target):
    """The metrics of a complete order of the unseen items, relevant ones last among ties."""
    rows = [(scores[i], bool(target[i]), int(target[i])) for i in np.flatnonzero(~seen)]
    return pytest.approx([float(metric(name, rows, RULES)) for name in NAMES], abs=1e-9)


def candidates_by_definition(scores, seen, n):
    """The items with the best place in any model; ties by the mean of scaled scores."""
    orders = [np.argsort(np.where(seen, np.inf, -s), kind="stable") for s in scores]
    total = sum((s - s.min()) / (s.max() - s.min()) for s in scores)
    best = np.minimum(np.min(np.argsort(orders), axis=0), n) - total / (len(scores) + 1)
    chosen = np.argsort(np.where(seen, np.inf, best), kind="stable")[:n]
    return chosen[~seen[chosen]]


@pytest.mark.parametrize("n_candidates", [3, 12, 40])
def test_metrics_are_over_all_unseen_items(data, n_candidates):
    """Items that are no candidates stand below, tied; also with fewer candidates than k."""
    models = first_stage.fit_all(data.train)[:3]
    users = np.flatnonzero(np.diff(data.test.indptr))
    block_bytes = 1 if n_candidates == 12 else lists.BLOCK_BYTES  # 1: a user at a time
    made, of_models = lists.build(
        models, data.train, data.test, users, n_candidates, 5, block_bytes=block_bytes
    )
    given = np.random.default_rng(0).standard_normal(made.labels.size)
    values = made.values(given, 5)
    for r, user in enumerate(users):
        seen, target = (m[user].toarray().ravel() > 0 for m in (data.train, data.test))
        alone = [model.scores([user])[0].astype(float) for model in models]
        inside = candidates_by_definition(alone, seen, n_candidates)
        part = slice(made.indptr[r], made.indptr[r + 1])
        mine, relevant, scores = given[part], made.labels[part], np.full(data.n_items, -np.inf)
        assert made.n_unseen[r] == (~seen).sum() and made.n_relevant[r] == target.sum()
        # where a user's candidates are is not kept: labels and number say enough
        assert relevant.sum() == target[inside].sum() and relevant.size == inside.size
        scores[inside[target[inside]]] = mine[relevant]
        scores[inside[~target[inside]]] = mine[~relevant]
        assert [values[name][r] for name in NAMES] == brute_force(scores, seen, target)
        for model, scores in zip(models, alone, strict=True):
            found = [of_models[model.name][name][r] for name in NAMES]
            assert found == brute_force(scores, seen, target), model.name


def test_lists_are_kept_standardised_and_users_taken_in_any_order(built, tmp_path):
    built[2].save(tmp_path / "lists")
    made = lists.Lists.load(tmp_path / "lists").standardised()
    few = made.subset(np.array([7, 2]))
    rows = np.r_[made.indptr[7] : made.indptr[8], made.indptr[2] : made.indptr[3]]
    assert few.users.tolist() == built[2].users[[7, 2]].tolist()
    np.testing.assert_array_equal(few.X, made.X[rows])
    np.testing.assert_array_equal(few.labels, built[2].labels[rows])
    for X in np.split(made.X, made.indptr[1:-1]):
        np.testing.assert_allclose(X.mean(axis=0), 0, atol=1e-5)
        assert (np.isclose(X.std(axis=0), 1, atol=1e-4) | (X == 0).all(axis=0)).all()


def test_a_recommender_without_scores_for_a_user_is_refused(data, built):
    models, users, *_ = built
    left = models[-1].left.copy()
    left[users[3]] = np.nan
    broken = first_stage.FirstStage("broken", left, models[-1].right)
    with pytest.raises(InputError, match=f"broken has no score for user {users[3]}"):
        lists.build([*models, broken], data.train, data.test, users, 12, 5)


def test_the_better_of_two_settings_is_taken_on_the_folds_of_all_methods(built):
    """A baseline that is right with one setting and wrong with the other."""
    made, seen, held_out = built[2].standardised(), [], []
    made = made.subset(study._drawn(made, study.Plan(train_users=50), 0))

    class Folds(GroupKFold):
        def split(self, X, y=None, groups=None):
            splits = list(super().split(X, y, groups))
            held_out.append([set(groups[held]) for _, held in splits])
            return iter(splits)

    def path(data, k):
        seen.append(data.n_users)
        for sign in (-1, 1, -2):
            w = sign * np.ones(data.n_features)
            yield {"sign": sign}, SolverResult(w, 1.0, 0.0, "finished", ())

    folds = Folds(3, shuffle=True, random_state=2)
    assert methods.Tuned(path).fit(made, 5, folds, 0).setting == {"sign": 1}
    assert sum(made.users.size - n for n in seen[:3]) == made.users.size == seen[3]
    assert len(held_out) == 1


# ----------------------------------------------------------------- the run and the command


def test_intervals_cover_new_users_and_new_draws():
    """Differences u + d + e with known variances: 95% of the intervals hold the mean."""
    rng, covered = np.random.default_rng(0), 0
    for _ in range(400):
        users, draws = 0.1 * rng.standard_normal(300), 0.01 * rng.standard_normal((10, 1))
        lower, upper = study.interval(users + draws + 0.05 * rng.standard_normal((10, 300)))
        covered += lower <= 0 <= upper
    assert 0.92 <= covered / 400 <= 0.98
    assert study.interval(np.zeros((3, 4))) == (0.0, 0.0)


def test_command(tmp_path, monkeypatch):
    folder, kept = write_synthetic(tmp_path / "x", 70, 40, seed=2), ["--results", tmp_path / "run"]
    how = [folder, "--k", 5, "--candidates", 25, "--train-users", 50, "--draws", 2, *kept]
    names = "logistic regression", "logistic regression on pairs"
    how += ["--method", names[0], "--method", names[1]]
    first = json.loads(run(*how, "--json").stdout)["rows"]
    rows = {row["name"]: row for row in first}
    assert {*names, study.OURS, "user kNN"} <= {*rows}
    ours, row = rows[study.OURS], rows["popularity"]
    assert ours["lower"] is None and ours["spread"] > 0 and row["spread"] is None
    assert row["lower"] < row["ours_ahead"] < row["upper"]
    assert row["ours_ahead"] == pytest.approx(ours["ndcg"] - row["ndcg"])
    assert len(ours["certificates"]) == 2 and ours["certificates"][0]["lower_bound"] is not None
    assert ours["ndcg"] > row["ndcg"]
    monkeypatch.setattr(study, "build", None)  # it is resumed without any work
    monkeypatch.setattr(methods, "outcome", None)
    assert json.loads(run(*how, "--json").stdout)["rows"] == first
    shown = run(*how).stdout
    assert all(words in shown for words in ("EASE 300", "k 5", "ndcg", "ours ahead"))
    for wrong, text in (
        ([folder, "--k", 5, "--candidates", 9], "another run: candidates"),
        ([tmp_path / "no"], "neither a folder nor a zip"),
        ([tmp_path], "holds no train.tsv and no test.tsv"),
        ([folder, "--k", 0], "k must be at least 1"),
        ([folder, "--k", 500], "has 40 items; k=500 has to be smaller"),
        ([folder, "--method", "oracle"], "unknown method 'oracle'"),
        ([folder, "--draws", 1], "draws must be at least 2"),
    ):
        assert text in str(run(*wrong, *kept).exception)
