"""The study of raw scores: every method on the same users, columns of any unit, resumed runs."""

import json
import sys

import numpy as np
import pytest

from benchmarks.quality import raw_scores
from benchmarks.studies.rerank.lists import Lists, metrics_of

pytestmark = [pytest.mark.study, pytest.mark.portable]

K, USERS, ITEMS = 5, 60, 20


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(USERS * ITEMS, 3)) * [1e-4, 1.0, 1e4]
    labels = X @ [1e4, 1.0, 0.0] + rng.normal(size=len(X)) > 1.5
    n_relevant = labels.reshape(USERS, ITEMS).sum(axis=1)
    sizes = np.arange(0, len(X) + 1, ITEMS)
    path = tmp_path_factory.mktemp("lists")
    n_unseen = np.full(USERS, ITEMS)
    Lists(np.arange(USERS), X, labels, sizes, n_relevant, n_unseen).save(path)
    return path


def answer(monkeypatch, capsys, *arguments):
    words = ["raw_scores", *map(str, arguments), "--k", str(K), "--json"]
    monkeypatch.setattr(sys, "argv", words)
    raw_scores.main()
    return json.loads(capsys.readouterr().out)


def test_every_method_is_measured_on_the_same_users(folder, tmp_path, monkeypatch, capsys):
    names = [name for name in raw_scores.ROWS if not name.startswith(("trees", "search"))]
    some = ["--train-users", 30, "--test-users", 20, "--draws", 2, "--results", tmp_path / "kept"]
    told = answer(monkeypatch, capsys, folder, *some, "--method", *names)
    rows = {row["name"]: row for row in told["rows"]}
    assert list(rows) == ["best single score", *names]
    best = []
    for draw in range(2):
        train, test = raw_scores.drawn(Lists.load(folder), 30, 20, draw)
        assert not set(train.users) & set(test.users)
        columns = [metrics_of(x, test.labels, test.groups, K)[f"ndcg@{K}"] for x in test.X.T]
        best.append(max(np.mean(column) for column in columns))
    assert rows["best single score"]["ndcg"] == pytest.approx(np.mean(best))
    assert rows["default"]["ndcg"] > rows["best single score"]["ndcg"] + 0.05
    assert rows["default"]["default_ahead"] == 0
    raw = rows["default, raw (`standardize=False`)"]
    assert raw["default_ahead"] == pytest.approx(rows["default"]["ndcg"] - raw["ndcg"])
    assert raw["default_ahead"] > 0.05
    monkeypatch.setattr(raw_scores, "outcome", None)  # all of it is kept
    assert answer(monkeypatch, capsys, folder, *some, "--method", *names) == told


def test_wrong_input(folder, tmp_path, monkeypatch, capsys):
    for arguments, message in (
        ([tmp_path], "holds no lists of the study"),
        ([folder, "--train-users", 55, "--test-users", 20], "60 users are too few"),
        ([folder, "--draws", 0], "draws must be at least 1"),
    ):
        with pytest.raises(SystemExit, match=message):
            answer(monkeypatch, capsys, *arguments)
