"""Recommenders, candidates, metrics over all items, and the command on folders of any kind."""

import json
import zipfile
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse
from sklearn.model_selection import GroupKFold
from typer.testing import CliRunner

from benchmarks.studies.__main__ import app
from benchmarks.studies.rerank import data as rerank_data
from benchmarks.studies.rerank import first_stage, lists, methods, study
from benchmarks.studies.rerank.data import write_synthetic
from helpers.reference_metrics import metric
from structsvm_papk import PAPKRankerCV, SolverResult, Status
from structsvm_papk.datasets import interaction_pairs
from structsvm_papk.errors import InputError

pytestmark = [pytest.mark.study, pytest.mark.portable]

FAST = ["logistic regression", "logistic regression on pairs", "PAPKRanker"]


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


def test_inner_split_takes_a_fifth_of_each_user(data):
    history, labels = rerank_data.inner_split(data.train, seed=3)
    sizes, held = np.diff(data.train.indptr), np.diff(labels.indptr)
    np.testing.assert_array_equal(held, np.maximum(np.rint(0.2 * sizes), 1))
    assert history.multiply(labels).nnz == 0
    again = rerank_data.inner_split(data.train, seed=3)[1]
    other = rerank_data.inner_split(data.train, seed=4)[1]
    assert (labels != again).nnz == 0 and (labels != other).nnz > 0


@pytest.mark.parametrize(
    ("train", "text"),
    [
        ("0\t1\n0 2\n", "train.tsv, line 2: expected user and item"),
        ("user\titem\n0\t1\n1\tbook\n", "train.tsv, line 3: expected user and item"),
        ("0\t1\n-1\t2\n", "train.tsv, line 2"),
        ("0\t1.5\n", r"train.tsv, line 1: expected user and item .* found '0.t1.5'"),
        ("user\titem\n", "train.tsv holds no interactions"),
        ("", "train.tsv holds no interactions"),
        ("5\t1\n", "no user of test.tsv has an item there that train.tsv lacks"),
    ],
)
def test_other_files_are_refused_with_the_line(tmp_path, train, text):
    (tmp_path / "train.tsv").write_text(train)
    (tmp_path / "test.tsv").write_text("0\t3\n")
    with pytest.raises(InputError, match=text):
        rerank_data.read(tmp_path)


def test_other_folders_are_refused(tmp_path):
    with pytest.raises(InputError, match=r"holds no train.tsv and no test.tsv; expected"):
        rerank_data.read(tmp_path)
    with pytest.raises(InputError, match="neither a folder nor a zip"):
        rerank_data.read(tmp_path / "nowhere")
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as archive:
        archive.writestr("train.tsv", "0\t1\n")
    with pytest.raises(InputError, match=r"holds no test.tsv"):
        rerank_data.read(tmp_path / "x.zip")


# ----------------------------------------------------------------- recommenders


def test_ease_solves_its_regression(data):
    """Column j is the ridge regression of item j on all others (Steck, eq. 4 to 8)."""
    X, strength = data.train.toarray().astype(float), 20.0
    weights = first_stage.ease(data.train, strength)
    for j in range(data.n_items):
        others = np.arange(data.n_items) != j
        A = X[:, others]
        gram = A.T @ A + strength * np.eye(A.shape[1])
        expected = np.linalg.solve(gram, A.T @ X[:, j])
        np.testing.assert_allclose(weights[others, j], expected, atol=1e-5)
        assert weights[j, j] == 0


def test_restricted_ease_is_ease_where_all_items_are_similar(data):
    full = first_stage.ease(data.train, 20.0)
    gram = (data.train.T @ data.train).toarray()
    wide = first_stage.restricted_ease(data.train, (20.0,), n=data.n_items - 1)[20.0].toarray()
    complete = (gram > 0).all(axis=0)  # items that share a user with every other
    assert complete.any()
    np.testing.assert_allclose(wide[:, complete], full[:, complete], atol=1e-5)
    few = first_stage.restricted_ease(data.train, (20.0,), n=5)[20.0]
    assert (np.diff(few.tocsc().indptr) <= 6).all()
    X = data.train.toarray().astype(float)
    support = few.tocsc()[:, 3].indices
    A = X[:, support]
    expected = np.linalg.solve(A.T @ A + 20.0 * np.eye(support.size), A.T @ X[:, 3])
    np.testing.assert_allclose(few.tocsc()[:, 3].data, expected, atol=1e-4)


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


def test_large_catalogues_take_the_restricted_regression(data, monkeypatch):
    monkeypatch.setattr(first_stage, "_DENSE", 10)
    models = {m.name: m for m in first_stage.fit_all(data.train, "own")}
    assert sparse.issparse(models["EASE 50"].right)
    assert np.isfinite(models["EASE 50"].scores(np.arange(5))).all()


@pytest.mark.parametrize("kind", ["ease", "items", "tfidf", "users", "svd", "popularity"])
def test_own_recommenders_are_those_of_rectools(kind):
    """Scores of unknown items; those of items that a user knows are not used.

    Nobody has used the last item, and RecTools leaves it out. All neighbours count here, as equal
    similarities may be cut at another place.
    """
    pytest.importorskip("rectools")
    from benchmarks.studies.rerank.rectools_models import factors as of_rectools

    user, item = interaction_pairs(150, 80)[0].T
    train = sparse.csr_matrix((np.ones(user.size, np.float32), (user, item)), shape=(150, 81))
    setting = {"ease": 50.0, "svd": 8, "popularity": None}.get(kind, 200)
    if kind == "tfidf":  # its weights hang on the number of items
        train = train[:, :80]
    own, theirs = (
        first_stage.FirstStage(kind, *factors(train, kind, setting)).scores(np.arange(150))
        for factors in (first_stage._own_factors, of_rectools)
    )
    unknown = train.toarray() == 0
    np.testing.assert_allclose(own[unknown], theirs[unknown], rtol=1e-3, atol=1e-4)


@pytest.fixture(scope="module")
def built(data):
    models = first_stage.fit_all(data.train, "own")
    users = np.flatnonzero(np.diff(data.test.indptr))[5:]
    return models, users, *lists.build(models, data.train, data.test, users, 12, 5)


RULES = {"ties": "loss", "few_negatives": "normalise", "no_positives": "exclude"}


def brute_force(scores, seen, target, k):
    """The three metrics of a complete order of the unseen items, relevant ones last among ties."""
    rows = [(scores[i], bool(target[i]), int(target[i])) for i in np.flatnonzero(~seen)]
    names = (f"ndcg@{k}", f"recall@{k}", f"pap@{k}")
    return {name: float(metric(name, rows, RULES)) for name in names}


def test_recommenders_are_measured_over_all_unseen_items(data, built):
    models, users, _, values = built
    for model in models:
        scores = model.scores(users)
        for r, user in enumerate(users):
            seen, target = (m[user].toarray().ravel() > 0 for m in (data.train, data.test))
            for name, value in brute_force(scores[r], seen, target, 5).items():
                assert values[model.name][name][r] == pytest.approx(value, abs=1e-9), name


@pytest.mark.parametrize("n_candidates", [3, 12, 40])
def test_re_rankers_are_measured_over_all_unseen_items(data, n_candidates):
    """Items that are no candidates stand below, tied; also with fewer candidates than k."""
    models = first_stage.fit_all(data.train, "own")[:3]
    users = np.flatnonzero(np.diff(data.test.indptr))
    made, _ = lists.build(models, data.train, data.test, users, n_candidates, 5)
    given = np.random.default_rng(0).standard_normal(made.labels.size)
    values = made.values(given, 5)
    chosen = candidates_by_definition(models, data, users, n_candidates)
    for r, user in enumerate(users):
        seen, target = (m[user].toarray().ravel() > 0 for m in (data.train, data.test))
        part = slice(made.indptr[r], made.indptr[r + 1])
        assert made.n_unseen[r] == (~seen).sum() and made.n_relevant[r] == target.sum()
        scores = np.full(data.n_items, -np.inf)
        # where a user's candidates are is not kept: labels and number say enough
        inside = chosen[r]
        assert made.labels[part].sum() == target[inside].sum()
        assert made.labels[part].size == inside.size
        mine, relevant = given[part], made.labels[part]
        scores[inside[target[inside]]] = mine[relevant]
        scores[inside[~target[inside]]] = mine[~relevant]
        for name, value in brute_force(scores, seen, target, 5).items():
            assert values[name][r] == pytest.approx(value, abs=1e-9), name


def candidates_by_definition(models, data, users, n):
    """The items with the best place in any model; ties by the mean of scaled scores."""
    out = []
    all_scores = [model.scores(users).astype(np.float64) for model in models]
    for r, user in enumerate(users):
        seen = data.train[user].toarray().ravel() > 0
        best, total = np.full(data.n_items, np.inf), np.zeros(data.n_items)
        for scores in all_scores:
            s = scores[r]
            order = np.argsort(np.where(seen, np.inf, -s), kind="stable")
            place = np.empty(data.n_items)
            place[order] = np.arange(data.n_items)
            best = np.minimum(best, place)
            total += (s - s.min()) / (s.max() - s.min())
        best = np.where(best < n, best, n) - total / (len(models) + 1)
        best[seen] = np.inf
        chosen = np.argsort(best, kind="stable")[:n]
        out.append(chosen[~seen[chosen]])
    return out


def test_features_are_standardised_within_users(built):
    made = built[2].standardised()
    for a, b in zip(made.indptr[:-1], made.indptr[1:], strict=True):
        np.testing.assert_allclose(made.X[a:b].mean(axis=0), 0, atol=1e-5)
        spread = made.X[a:b].std(axis=0)
        assert (np.isclose(spread, 1, atol=1e-4) | (spread == 0)).all()


def test_lists_are_kept_and_users_can_be_taken_in_any_order(built, tmp_path):
    made = built[2]
    made.save(tmp_path / "lists")
    again = lists.Lists.load(tmp_path / "lists").subset(np.array([7, 2]))
    rows = np.r_[made.indptr[7] : made.indptr[8], made.indptr[2] : made.indptr[3]]
    np.testing.assert_array_equal(again.X, made.X[rows])
    np.testing.assert_array_equal(again.labels, made.labels[rows])
    assert again.users.tolist() == made.users[[7, 2]].tolist()


def test_blocks_do_not_change_anything(data, built, monkeypatch):
    models, users, made, values = built
    monkeypatch.setattr(lists, "_BLOCK_BYTES", 1)
    other, again = lists.build(models, data.train, data.test, users, 12, 5)
    np.testing.assert_allclose(other.X, made.X, atol=1e-6)
    np.testing.assert_array_equal(other.labels, made.labels)
    assert again == values


def test_a_recommender_without_scores_for_a_user_is_refused(data, built):
    models, users, *_ = built
    left = models[-1].left.copy()
    left[users[3]] = np.nan
    broken = first_stage.FirstStage("broken", left, models[-1].right)
    with pytest.raises(InputError, match=f"broken has no score for user {users[3]}"):
        lists.build([*models, broken], data.train, data.test, users, 12, 5)


def test_the_better_of_two_settings_is_taken_on_the_folds_of_all_methods(built):
    """A baseline that is right with one setting and wrong with the other; ours sees its folds."""
    made, seen, held_out = built[2].standardised(), [], []
    made = made.subset(study._drawn(made, PLAN, 0))

    class Folds(GroupKFold):
        def split(self, X, y=None, groups=None):
            splits = list(super().split(X, y, groups))
            held_out.append([set(groups[held]) for _, held in splits])
            return iter(splits)

    def path(data, k):
        seen.append(data.n_users)
        for sign in (-1, 1, -2):
            w = sign * np.ones(data.n_features)
            yield {"sign": sign}, SolverResult(w, 1.0, 0.0, Status.FINISHED, ())

    folds = Folds(3, shuffle=True, random_state=2)
    assert methods.Tuned(path).fit(made, 5, folds, 0).setting == {"sign": 1}
    assert sum(made.users.size - n for n in seen[:3]) == made.users.size == seen[3]
    PAPKRankerCV(k=5, cv=folds, **SMALL).fit(made.X, made.labels, groups=made.groups)
    assert held_out[0] == held_out[1]


# ----------------------------------------------------------------- the run and the command


def test_intervals_cover_new_users_and_new_draws():
    """Differences u + d + e with known variances: 95% of the intervals hold the mean."""
    rng, covered, of_users = np.random.default_rng(0), 0, 0
    for _ in range(400):
        users, draws = 0.1 * rng.standard_normal(300), 0.01 * rng.standard_normal((10, 1))
        ahead = 0.02 + users + draws + 0.05 * rng.standard_normal((10, 300))
        lower, upper = study.interval(ahead)
        covered += lower <= 0.02 <= upper
        one = ahead[0]  # what one fit says of itself
        of_users += abs(one.mean() - 0.02) <= 1.96 * one.std(ddof=1) / np.sqrt(300)
    assert 0.92 <= covered / 400 <= 0.98 and of_users / 400 < 0.85
    assert study.interval(np.zeros((3, 4))) == (0.0, 0.0)


SMALL = {"surrogates": ("avg",), "depths": (0.9,), "user_weights": ("equal",)}
PLAN = study.Plan(k=5, candidates=25, train_users=50, draws=2, first_stage="own")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_synthetic(tmp_path_factory.mktemp("f") / "x", 70, 40, seed=2)


def quick(monkeypatch):
    """Ours with a small grid: the search itself is tested elsewhere."""
    ours = methods.Ranker(
        lambda k, folds, seed: PAPKRankerCV(k=k, cv=folds, scoring=f"ndcg@{k}", **SMALL)
    )
    monkeypatch.setitem(methods.METHODS, methods.OURS, ours)


def test_a_run_is_resumed_without_any_work(folder, tmp_path, monkeypatch):
    quick(monkeypatch)
    first = study.run(folder, tmp_path / "run", PLAN, FAST[:2])

    def never(*arguments, **more):
        raise AssertionError("computed again")

    monkeypatch.setattr(study, "build", never)
    monkeypatch.setattr(methods, "outcome", never)
    again = study.run(folder, tmp_path / "run", PLAN, FAST[:2])
    assert json.loads(json.dumps(again)) == json.loads(json.dumps(first))
    rows = {row["name"]: row for row in first["rows"]}
    ours, row = rows[study.OURS], rows["popularity"]
    assert ours["lower"] is None and ours["spread"] > 0 and row["spread"] is None
    assert row["lower"] < row["ours_ahead"] < row["upper"]
    assert row["ours_ahead"] == pytest.approx(ours["ndcg"] - row["ndcg"])
    assert len(ours["certificates"]) == 2 and ours["certificates"][0]["lower_bound"] is not None
    assert ours["ndcg"] > row["ndcg"]
    with pytest.raises(InputError, match="another run: candidates"):
        study.run(folder, tmp_path / "run", replace(PLAN, candidates=9), FAST[:2])


def test_published_numbers_are_found_by_the_numbers_of_the_data():
    made = rerank_data.Interactions(
        sparse.csr_matrix((29_858, 40_988)), None, "", rows=(810_128, 217_336)
    )
    name, _, models = made.published
    assert name == "gowalla" and max(ndcg for ndcg, _ in models.values()) == 0.1729


def test_data_of_known_numbers_are_shown_beside_what_is_published(folder, tmp_path, monkeypatch):
    quick(monkeypatch)
    data = rerank_data.read(folder)
    known = {(data.n_users, data.n_items, *data.rows): ("a name", "a page", {"a net": (0.2, 0.3)})}
    monkeypatch.setattr(rerank_data, "PUBLISHED", known)
    answer = study.run(folder, tmp_path / "run", replace(PLAN, k=20), ["PAPKRanker"])
    row = {"name": "a net", "ndcg": 0.2, "recall": 0.3, "source": "a page"}
    assert answer["dataset"] == "a name" and answer["published"] == [row]


def run(*arguments):
    return CliRunner().invoke(app, ["rerank", *map(str, arguments)])


def test_command(folder, tmp_path, monkeypatch):
    quick(monkeypatch)
    how = [folder, "--k", 5, "--candidates", 25, "--train-users", 50, "--first-stage", "own"]
    how += ["--draws", 2, "--method", FAST[1], "--results", tmp_path / "run"]
    picture = tmp_path / "p.svg"
    shown = run(*how, "--plot", picture).stdout
    assert "EASE 300" in shown and "NDCG@5" in shown and "ahead by" in shown
    assert "</svg>" in picture.read_text(encoding="utf-8")
    answer = json.loads(run(*how, "--json").stdout)
    assert {row["name"] for row in answer["rows"]} >= {FAST[1], study.OURS, "user kNN"}
    for wrong, text in (
        ([tmp_path / "no"], "neither a folder nor a zip"),
        ([folder, "--k", 0], "k must be at least 1"),
        ([folder, "--k", 500], "has 40 items; k=500 has to be smaller"),
        ([folder, "--method", "oracle"], "unknown method 'oracle'"),
        ([folder, "--first-stage", "neural"], "unknown first stage 'neural'"),
        ([folder, "--draws", 1], "draws must be at least 2"),
    ):
        assert text in str(run(*wrong, "--results", tmp_path / "other").exception)
