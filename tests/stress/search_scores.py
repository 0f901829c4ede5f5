"""Scores of models, held against a definition by loops: holes, storages, files, ONNX.

    python tests/stress/search_scores.py --problems 500

`holes` trains with missing="lowest" and compares risk and predictions with lists that are filled
one by one; equal rows have to score equally, in any order, from a file. `storage` asks
one model through every storage of the same rows, to the bit. `onnx` runs the exported graphs.
"""

import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from scipy import sparse
from searching import main

from structsvm_papk import EmpiricalRisk, PAPKRanker, RankingData, make_surrogate
from structsvm_papk.files.model import load_model


def check(seed, report, only=None):
    kind = only or ("holes", "storage", "onnx")[seed % 3]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        KINDS[kind](np.random.default_rng(seed), report)


def filled_by_hand(X, users):
    """Columns filled inside each list, and where the holes were."""
    filled = np.zeros(X.shape)
    for user in pd.unique(users):
        rows = np.flatnonzero(users == user)
        for j in range(X.shape[1]):
            column = X[rows, j].astype(float)
            there = column[~np.isnan(column)]
            lowest = there.min() if there.size else 0.0
            filled[rows, j] = np.where(np.isnan(column), lowest, column)
    return filled, np.isnan(X)


def _lists(rng, d):
    sizes = rng.integers(3, 15, int(rng.integers(3, 12)))
    users = np.repeat(np.arange(sizes.size), sizes)
    X = rng.normal(size=(users.size, d)).round(int(rng.integers(0, 4)))
    X = X * 10 ** rng.uniform(-3, 3, d)
    X[rng.integers(0, users.size, users.size // 3)] = X[
        rng.integers(0, users.size, users.size // 3)
    ]
    score = (X / np.abs(X).max(axis=0).clip(1e-9)).sum(axis=1) + 0.3 * rng.normal(size=users.size)
    return X, (score > np.quantile(score, 0.6)).astype(int), users


def _with_holes(rng, X, users):
    X = X.copy()
    X[rng.random(X.shape) < rng.choice([0.0, 0.2, 0.6])] = np.nan
    if rng.random() < 0.2:
        X[:, rng.integers(X.shape[1])] = np.nan
    if rng.random() < 0.3:
        X[users == users[0], rng.integers(X.shape[1])] = np.nan
    return X


def _holes(rng, report):
    X, y, users = _lists(rng, int(rng.integers(1, 5)))
    X = _with_holes(rng, X, users)
    name, positive = str(rng.choice(["ts", "avg", "pauc", "max"])), bool(rng.random() < 0.5)
    settings = {"missing": "lowest", "positive": positive, "alpha": 0.05, "curves": None}
    settings["standardize"] = bool(rng.random() < 0.5)
    report.problem = f"{X.shape} {name} {settings}"
    ranker = PAPKRanker(2, name, **settings).fit(X, y, groups=users)
    filled, holes = filled_by_hand(X, users)
    columns = np.flatnonzero(holes.any(axis=0))
    w = np.concatenate([ranker.coef_, -ranker.missing_coef_[columns]])
    by_hand = RankingData.from_groups(np.hstack([filled, ~holes[:, columns]]), y, users)
    risk = EmpiricalRisk(make_surrogate(name, 2, 0.5), by_hand, "cap")(w)[0]
    result = ranker.result_
    said = result.objective - result.alpha / 2 * (result.w @ result.w)
    report.counts["fits with holes"] += 1
    if abs(risk - said) > 1e-8 * max(1.0, risk):
        report.add("another risk", "fit", f"{said}, by hand {risk}")
    if positive and (w < 0).any():
        report.add("a weight below 0", "fit", str(w))
    new = np.where(rng.random(X.shape) < 0.3, np.nan, X)  # holes where training had none
    for rows, of in ((X, users), (new, users), (X[:1], users[:1])):
        _same_as_by_hand(rng, report, ranker, rows, of)


def _same_as_by_hand(rng, report, ranker, X, users):
    filled, holes = filled_by_hand(X, users)
    wanted = filled @ ranker.coef_ + holes @ ranker.missing_coef_
    size = 1 + np.abs(filled) @ np.abs(ranker.coef_) + holes @ np.abs(ranker.missing_coef_)
    scores = ranker.predict(X, groups=users)
    report.counts["predictions with holes"] += 1
    if (np.abs(scores - wanted) > 1e-9 * size).any():
        report.add("other scores", "predict", f"{np.abs(scores - wanted).max():.1e}")
    order = rng.permutation(len(X))
    again = ranker.predict(X[order], groups=users[order])
    if not np.array_equal(again, scores[order]):
        report.add("order changes scores", "predict", "")
    frame = pd.DataFrame(X).assign(user=users)
    same = frame.groupby(list(frame), dropna=False, sort=False).ngroup().to_numpy()
    if (pd.Series(scores).groupby(same).nunique() > 1).any():
        report.add("equal rows differ", "predict", "")
    with tempfile.TemporaryDirectory() as folder:
        ranker.save(Path(folder) / "m")
        if not np.array_equal(load_model(Path(folder) / "m").predict(X, groups=users), scores):
            report.add("other bits", "a model file", "")


def _storage(rng, report):
    n, d = int(rng.integers(30, 400)), int(rng.integers(1, 70))
    X = rng.normal(size=(n, d)) * 10 ** rng.uniform(-4, 4, d)
    X = (X * (rng.random((n, d)) < rng.choice([1, 0.3]))).astype(rng.choice(["f8", "f4"]))
    X[rng.integers(0, n, n // 2)] = X[rng.integers(0, n, n // 2)]
    y = np.arange(n) % 3 == 0
    ranker = PAPKRanker(2, "avg", max_iter=2, curves=None).fit(
        X, y, groups=np.repeat([0, 1], [n // 2, n - n // 2])
    )
    ranker._weights = rng.normal(size=d) * 10 ** rng.uniform(-3, 3, d)
    scores, order = ranker.predict(X), rng.permutation(n)
    twice = np.repeat(np.repeat(X, 2, axis=0), 2, axis=1)
    csr = sparse.csr_array(X)
    backwards = csr[:, ::-1][:, ::-1]  # indices may come unsorted
    answers = {
        "Fortran": ranker.predict(np.asfortranarray(X)),
        "strides": ranker.predict(twice[::2, ::2]),
        "CSR": ranker.predict(csr),
        "CSR, other order": ranker.predict(backwards),
        "frame": ranker.predict(pd.DataFrame(X)),
        "lists": ranker.predict(X.tolist()),
        "other byte order": ranker.predict(X.astype(X.dtype.newbyteorder())),
        "row by row": np.concatenate([ranker.predict(X[i : i + 1]) for i in range(n)]),
        "rows in another order": ranker.predict(X[order])[np.argsort(order)],
        "model": ranker.to_model().predict(X),
        "minus zero": ranker.predict(np.where(X == 0, X.dtype.type(-0.0), X)),
    }
    for name, answer in answers.items():
        report.counts["storages compared"] += 1
        if not np.array_equal(answer, scores):
            report.add("other bits", name, f"{np.abs(answer - scores).max():.1e}")


def _onnx(rng, report):
    runtime = __import__("onnxruntime")
    X, y, users = _lists(rng, int(rng.integers(1, 8)))
    missing = "lowest" if rng.random() < 0.6 else None
    X = _with_holes(rng, X, users) if missing else X
    curves = 3 if rng.random() < 0.5 else None
    ranker = PAPKRanker(2, "avg", missing=missing, curves=curves).fit(X, y, groups=users)
    report.problem = f"{X.shape} {missing=} {curves=}"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "ranker.onnx"
        ranker.to_onnx(path)
        session = runtime.InferenceSession(path)
    for user in np.unique(users):
        rows = X[users == user]
        if missing and rng.random() < 0.3:
            rows = np.where(rng.random(rows.shape) < rng.choice([0.3, 1.0]), np.nan, rows)
        wanted = ranker.predict(rows, groups="one_list")
        (scores,) = session.run(None, {"X": rows})
        report.counts["lists by ONNX"] += 1
        size = 1 + np.abs(ranker.contributions(rows, "one_list")).sum(axis=1).max()
        if scores.shape != wanted.shape or (np.abs(scores - wanted) > 1e-12 * size).any():
            report.add("other scores", "ONNX", str(scores[:3] - wanted[:3]))


KINDS = {"holes": _holes, "storage": _storage, "onnx": _onnx}

if __name__ == "__main__":
    sys.exit(main(check, __doc__, list(KINDS), 500))
