"""Rankers outside of this package: ONNX, JSON, and the function of the page on production."""

import contextlib
import json
import re
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

from helpers.functions import lines
from structsvm_papk import PAPKRanker
from structsvm_papk.datasets import engagement_lists
from structsvm_papk.errors import InputError

pytestmark = pytest.mark.portable

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def lists():
    return engagement_lists(n_users=60, n_features=6, noise=1.0, seed=2)


@pytest.fixture(scope="module")
def named(lists):
    X = pd.DataFrame(lists.X, columns=[f"größe {j}" for j in range(6)])
    return PAPKRanker(k=5, surrogate="ts", depth=0.9, alpha=0.01, curves=None).fit(
        X, lists.y, groups=lists.groups
    )


def test_weights_are_plain_json_with_the_certificate(named, lists, tmp_path, monkeypatch):
    plain = json.loads(json.dumps(named.export_weights(), allow_nan=False))
    assert list(plain["weights"]) == list(named.feature_names_in_)
    np.testing.assert_array_equal(list(plain["weights"].values()), named.coef_)
    assert plain["certificate"]["lower_bound"] == named.result_.lower_bound
    assert (plain["k"], plain["surrogate"], plain["depth"]) == (5, "ts", 0.9)
    unnamed = PAPKRanker(k=5, depth=0.9, curves=None).fit(lists.X, lists.y, groups=lists.groups)
    assert list(unnamed.export_weights()["weights"]) == [f"x{j}" for j in range(6)]
    with pytest.raises(NotFittedError):
        PAPKRanker().export_weights()
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(InputError, match=r"structsvm-papk\[onnx\]"):
        named.to_onnx(tmp_path / "x.onnx")


@pytest.mark.parametrize("size", [1e39, 1e-43])
def test_weights_that_float32_does_not_hold_and_wrong_input(tmp_path, size):
    pytest.importorskip("onnx")
    X = np.random.default_rng(0).normal(size=(40, 2))
    ranker = PAPKRanker(k=1).fit(X, X[:, 0] > 0, np.repeat([1, 2], 20))
    ranker.function_ = lines([1.0, size])
    with pytest.raises(InputError, match=r"'x1' is 1e(\+39|-43), outside the range of float32"):
        ranker.to_onnx(tmp_path / "x.onnx", dtype="float32")
    ranker.to_onnx(tmp_path / "x.onnx")
    with pytest.raises(InputError, match="dtype='int8' is not known; choose one of float64, flo"):
        ranker.to_onnx(tmp_path / "x.onnx", dtype="int8")
    with pytest.raises(InputError, match="cannot write"):
        ranker.to_onnx(tmp_path / "nowhere" / "x.onnx")


def page_blocks(language):
    page = ROOT / "docs" / "howto" / "production.md"
    if not page.exists():
        pytest.skip("the documentation is not here")
    return re.findall(rf"^```{language}\n(.*?)^```$", page.read_text(), re.DOTALL | re.MULTILINE)


# --- every kind of term -------------------------------------------------------------------------


def rows_of_every_kind(seed=0):
    """Lines, curves, text, truth values, codes; numbers that single precision holds."""
    rng = np.random.default_rng(seed)
    n_rows = 480
    numbers = rng.normal(size=(n_rows, 3)).astype(np.float32).astype(float)
    kind = rng.choice(["flat", "größe", "tent"], n_rows).astype(object)
    frame = pd.DataFrame(numbers, columns=["price", "stars", "age"])
    frame["constant"] = 7.5
    frame["kind"] = kind
    frame["pool"] = rng.random(n_rows) < 0.5
    frame["code"] = rng.choice([3, 7, 11], n_rows)
    liked = np.where(kind == "tent", -numbers[:, 0], numbers[:, 0]) - abs(numbers[:, 1])
    liked += np.where(frame["pool"], numbers[:, 2], 0) + 0.3 * rng.normal(size=n_rows)
    return frame, liked > 0.3, np.repeat(np.arange(16), 30)


NUMBERS = ["price", "stars", "age", "constant"]
EVERY_KIND = {
    "lines": (NUMBERS, False, {"curves": None, "pairs": None}),
    "lines with gaps": (NUMBERS, True, {"curves": None, "pairs": None}),
    "curves": (NUMBERS, False, {"curves": 6, "pairs": None}),
    "curves with gaps": (NUMBERS, True, {"curves": 6, "pairs": None}),
    "levels": (["kind", "pool"], False, {"pairs": None}),
    "levels beside curves of nothing": (["kind", "pool"], False, {"curves": 6, "pairs": 1}),
    "levels with gaps": (["price", "kind"], True, {"curves": None, "pairs": None}),
    "pairs": (["price", "kind", "pool", "stars"], False, {"curves": 6, "pairs": 4}),
    "pairs with gaps": (["price", "kind", "stars"], True, {"curves": None, "pairs": 3}),
    "codes": (
        ["price", "age", "code"], False,
        {"curves": 4, "pairs": 2, "categorical_features": ["code"]},
    ),
    "lowest": (
        ["price", "stars", "kind"], True, {"curves": None, "pairs": 3, "missing": "lowest"},
    ),
    "lowest with curves that fall": (
        NUMBERS, True,
        {"curves": 6, "pairs": None, "missing": "lowest", "monotonic_cst": {"price": -1}},
    ),
    "lowest of one list": (
        ["price", "stars", "kind"], True,
        {
            "curves": 4, "pairs": 2, "missing": "lowest", "monotonic_cst": {"stars": -1},
            "groups": "one_list",
        },
    ),
}  # fmt: skip


@pytest.fixture(scope="module", params=EVERY_KIND.values(), ids=EVERY_KIND)
def of_every_kind(request):
    """A ranker, rows of one list that have new levels and values beyond training, their groups."""
    names, with_gaps, settings = request.param
    frame, liked, groups = rows_of_every_kind()
    frame = frame[names].copy()
    rng = np.random.default_rng(1)
    if with_gaps:
        for name in names:
            is_text = frame[name].dtype == object
            hole = rng.random(len(frame)) < 0.15
            frame[name] = frame[name].mask(hole, None if is_text else np.nan)
        frame.loc[groups == 2, "price"] = np.nan  # a list that has none of them
    one_list = "groups" in settings
    ranker = PAPKRanker(k=5, alpha=0.02, **settings)
    ranker.fit(frame, liked, None if one_list else groups)
    lists = []
    for user in (0, 2, "one row"):
        rows = frame[:1].copy() if user == "one row" else frame[groups == user].copy()
        for name in names:
            if name == "kind":
                rows.iloc[1:3, names.index(name)] = "castle"
            elif rows[name].dtype == float:
                rows[name] *= 4
        lists.append((rows, None if one_list else np.zeros(len(rows))))
    return ranker, lists


@pytest.fixture(scope="module")
def scores_by_json():
    """The function of the example, which needs the standard library only."""
    example = ROOT / "examples" / "score_json.py"
    if not example.exists():
        pytest.skip("the examples are not here")
    code = example.read_text().split("if __name__")[0]
    assert re.findall(r"^(?:from|import) (\w+)", code, re.MULTILINE) == ["json", "bisect"]
    names = {}
    exec(code, names)
    return names["scores"]


def test_columns_without_names_are_x0_x1_in_all_of_the_json(lists, scores_by_json):
    X = lists.X.copy()
    X[::7, 2] = np.nan
    signs = [0, -1, 0, 0, 0, 0]
    settings = {"missing": "lowest", "monotonic_cst": signs, "groups": "one_list"}
    ranker = PAPKRanker(5, surrogate="ts", alpha=0.5, curves=3, pairs=1, **settings)
    ranker.fit(X, lists.y)
    plain = json.loads(json.dumps(ranker.export_weights()))
    names = [f"x{j}" for j in range(6)]
    assert [term["column"] for term in plain["terms"][:6]] == list(plain["lowest"]) == names
    assert set(plain["terms"][6]["columns"]) < set(names) and plain["falling"] == ["x1"]
    rows = [dict(zip(names, row, strict=True)) for row in X[:20].tolist()]
    rows = [{name: None if x != x else x for name, x in row.items()} for row in rows]
    scores = scores_by_json(plain, rows)
    np.testing.assert_allclose(scores, ranker.predict(X[:20]), rtol=0, atol=1e-12)
    with_nan = [dict(zip(names, row, strict=True)) for row in X[:20].tolist()]
    assert scores_by_json(plain, with_nan) == scores


def test_the_example_scores_every_kind_of_term(of_every_kind, scores_by_json):
    ranker, lists = of_every_kind
    plain = json.loads(json.dumps(ranker.export_weights(), allow_nan=False))
    for rows, groups in lists:
        dicts = rows.astype(object).where(rows.notna(), None).to_dict("records")
        scores = scores_by_json(plain, dicts)
        np.testing.assert_allclose(scores, ranker.predict(rows, groups), rtol=0, atol=1e-12)


@pytest.mark.parametrize(("dtype", "error"), [("float64", 1e-12), ("float32", 1e-5)])
def test_onnx_scores_every_kind_of_term(of_every_kind, tmp_path, dtype, error):
    onnx = pytest.importorskip("onnx")
    from onnx.reference import ReferenceEvaluator

    ranker, lists = of_every_kind
    path = tmp_path / "ranker.onnx"
    ranker.to_onnx(path, dtype=dtype)
    onnx.checker.check_model(str(path), full_check=True)
    sessions = [ReferenceEvaluator(str(path))]
    with contextlib.suppress(ImportError):
        from onnxruntime import InferenceSession

        sessions.append(InferenceSession(path))
    (about,) = (each.value for each in onnx.load(path).metadata_props)
    about = json.loads(about)
    assert about["feature_names"] == list(ranker.feature_names_in_)
    assert about["certificate"]["status"] == "converged"
    levels = {
        term["column"]: term["levels"]
        for term in about.get("terms", ())
        if term["kind"] == "levels"
    }
    for rows, groups in lists:
        X = np.empty(rows.shape)
        for j, name in enumerate(about["feature_names"]):
            X[:, j] = [place_of(value, levels.get(name)) for value in rows[name]]
        expected = ranker.predict(rows, groups)
        size = np.abs(ranker.contributions(rows, groups)).sum(axis=1).max() + 1
        for session in sessions:
            (scores,) = session.run(None, {"X": X.astype(dtype)})
            assert scores.shape == (len(rows),)
            np.testing.assert_allclose(scores, expected, rtol=0, atol=error * size)


@pytest.mark.parametrize("curves", [None, 4])
def test_a_missing_number_that_training_never_had_has_no_score(
    lists, scores_by_json, tmp_path, curves
):
    X = lists.X.copy()
    X[::7, 0] = np.nan
    ranker = PAPKRanker(k=5, alpha=0.1, curves=curves, pairs=None)
    ranker.fit(X, lists.y, groups=lists.groups)
    plain = json.loads(json.dumps(ranker.export_weights()))
    row = {f"x{j}": None if j < 2 else 1.0 for j in range(6)}
    with pytest.raises(ValueError, match="'x1' is missing, and never was in training"):
        scores_by_json(plain, [row])
    pytest.importorskip("onnx")
    from onnx.reference import ReferenceEvaluator

    ranker.to_onnx(tmp_path / "ranker.onnx")
    graph = ReferenceEvaluator(str(tmp_path / "ranker.onnx"))
    nan = np.nan
    (scores,) = graph.run(None, {"X": np.array([[nan, nan, 1, 1, 1, 1], [nan, 1, 1, 1, 1, 1]])})
    np.testing.assert_array_equal(np.isnan(scores), [True, False])


def place_of(value, levels):
    """What a graph takes for a value, by the page."""
    if value is None or value != value:
        return np.nan
    if levels is None:
        return value
    return levels.index(value) if value in levels else -1


def test_the_onnx_block_of_the_page_runs(tmp_path, monkeypatch, capsys, lists):
    pytest.importorskip("onnx")
    pytest.importorskip("onnxruntime")
    monkeypatch.chdir(tmp_path)
    ranker = PAPKRanker(k=5, depth=0.9).fit(lists.X, lists.y, groups=lists.groups)
    (code,) = page_blocks("py")
    exec(code, {"ranker": ranker, "lists": lists})
    assert capsys.readouterr().out == "True\n"


def test_curves_whose_knots_float32_does_not_tell_apart_are_refused(tmp_path):
    pytest.importorskip("onnx")
    rng = np.random.default_rng(0)
    X = 1.0 + 1e-9 * rng.normal(size=(200, 2))
    y = np.abs(X[:, 1] - 1) < 5e-10
    frame = pd.DataFrame(X, columns=["a", "b"])
    ranker = PAPKRanker(k=2, alpha=0.05, curves=4).fit(frame, y, np.repeat(np.arange(10), 20))
    with pytest.raises(InputError, match="two knots of column 'a' are the same in float32: use"):
        ranker.to_onnx(tmp_path / "x.onnx", dtype="float32")
    ranker.to_onnx(tmp_path / "x.onnx")
